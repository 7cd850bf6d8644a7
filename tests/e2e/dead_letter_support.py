"""Sets up groups whose messages fail, and reads their dead messages, for the tests of dead letters."""
from session_client import HEARS_LATE, KNOWS_DEAD_LETTERS, KNOWS_LEASES, MAY_BE_BUSY
from session_support import consumer_of
from support import ADMIN, ADMIN_PASSWORD

ALL = KNOWS_LEASES | MAY_BE_BUSY | HEARS_LATE | KNOWS_DEAD_LETTERS
ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
STATES = ("ready", "in_flight", "retrying", "parked", "dead_waiting")


def member(control, session, topic="t", codecs=ALL, **more):
    return consumer_of(control, session, topic, codecs=codecs, **more)


def set_group(control, topic="t", group="default", **settings):
    assert control("set_group", topic=topic, group=group, **settings, **ADMINISTRATOR) == {"cmd": "set_group", "status": "ok"}


def dead_of(control, topic="t", group="default", **more):
    """Returns all dead messages, which it reads in pages of two."""
    messages, more = [], dict(more)
    while True:
        page = control.ok("list_dead", topic=topic, group=group, limit=2, **more, **ADMINISTRATOR)
        assert len(page["messages"]) <= 2, page
        messages += page["messages"]
        if "continue_after" not in page:
            return messages
        more["after_offset"] = page["continue_after"]


def act(control, cmd, topic="t", group="default", **more):
    """Retries or purges dead messages. Returns their number."""
    return control.ok(cmd, topic=topic, group=group, **more, **ADMINISTRATOR)["messages"]


def check_states(stats):
    assert stats["pending"] == sum(stats[state] for state in STATES), stats
