"""Tests rights on groups (`TOPIC:GROUP`) from docs/protocol.md: the commands that they
permit and refuse, and how they end."""
import pytest

from session_client import GROUP, OWN, Session, Ticket, open_values
from support import ADMIN, ADMIN_PASSWORD, Secrets

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
ANN = {"user_id": "ann", "password": Secrets.plant("planted-user-secret-2527")}
EVERYTHING = (1 << 64) - 1


def right(topic, *words):
    return {"topic": topic, "rights": list(words)}


def join(control, kind):
    reply = control.ok("join", topic="t", type=kind, delivery="session", connection_type="socket", **ANN)
    return Ticket(reply["bind_uri"], f"{reply['ticket']['id']}.{reply['ticket']['secret']}", "socket")


def opened(session, group, mode=GROUP):
    answer = session.request("consume_open", **open_values("t", group, mode))
    return answer.code if answer.op == "error" else "ok"


@pytest.fixture
def session(control):
    """A session of user ann, who may consume with groups and cursors if their names begin with `work`."""
    control.create("t")
    control.ok("create_user", **ROOT, **ANN, rights=[right("t:work*", "consume")])
    with Session(join(control, "pull")) as session:
        assert session.present(join(control, "sub")).op != "error"
        yield session


def test_a_right_on_groups_applies_to_matching_groups_only(control, session):
    assert opened(session, "workers") == "ok"
    assert opened(session, "work.own", OWN) == "ok"
    assert opened(session, "audit") == "unauthorized_access"
    assert opened(session, "") == "unauthorized_access", "the default group is another"
    assert opened(session, "", OWN) == "unauthorized_access", "a cursor without a name"
    assert opened(session, "mine", OWN) == "unauthorized_access"
    assert session.request("read", begin=0, end=EVERYTHING, bytes=1 << 20, topic="t").op == "error", "by offset"
    for kind in ("pull", "sub"):
        control.fails("unauthorized_access", "join", topic="t", type=kind, **ANN)
    control.fails("unauthorized_access", "join", topic="t", type="push", **ANN)
    assert [each["topic"] for each in control.ok("list_topics", admin_user_id="ann", admin_password=ANN["password"])["topics"]] == ["t"]


def test_a_manager_of_a_group_manages_no_other_and_not_the_topic(control, session):
    control.ok("grant", **ROOT, user_id="ann", topic="t:workers", rights=["manage"])
    assert opened(session, "workers") == "ok" and opened(session, "worked") == "ok"
    for cmd in ("pause", "resume", "purge"):
        control.ok(cmd, topic="t", group="workers", **ANN)
        control.fails("unauthorized_access", cmd, topic="t", group="worked", **ANN)
        control.fails("unauthorized_access", cmd, topic="t", **ANN)
    control.fails("group_in_use", "delete_group", topic="t", group="workers", **ANN)
    control.fails("unauthorized_access", "delete_group", topic="t", group="worked", **ANN)
    control.fails("unauthorized_access", "delete_topic", topic="t", admin_user_id="ann", admin_password=ANN["password"])


def test_a_manager_of_a_group_may_move_it_while_others_consume_from_it(control, session):
    bob = {"user_id": "bob", "password": ANN["password"]}
    control.ok("create_user", **ROOT, **bob, rights=[right("t:workers", "consume")])
    reply = control.ok("join", topic="t", type="pull", delivery="session", connection_type="socket", **bob)
    with Session(Ticket(reply["bind_uri"], f"{reply['ticket']['id']}.{reply['ticket']['secret']}", "socket")) as other:
        assert opened(other, "workers") == "ok"
        channel = session.request("consume_open", **open_values("t", "workers", GROUP)).channel
        refused = session.request("seek", channel=channel, start=1, start_value=0)
        assert (refused.op, refused.code) == ("error", "unauthorized_access")
        control.ok("grant", **ROOT, user_id="ann", topic="t:workers", rights=["manage"])
        assert session.request("seek", channel=channel, start=1, start_value=0).op == "done"


def test_a_revoked_right_on_a_group_ends_only_its_channel(control, session):
    control.ok("grant", **ROOT, user_id="ann", topic="t:audit", rights=["consume"])
    kept = session.request("consume_open", **open_values("t", "workers", GROUP)).channel
    lost = session.request("consume_open", **open_values("t", "audit", GROUP)).channel
    control.ok("revoke", **ROOT, user_id="ann", topic="t:audit", rights=["consume"])
    ended = session.take(lambda frame: frame.op == "error" and frame.channel == lost, "its end")
    assert ended.code == "unauthorized_access"
    assert opened(session, "audit") == "unauthorized_access"
    assert session.request("seek", channel=kept, start=1, start_value=0).op == "done", "the other goes on"


@pytest.mark.parametrize("pattern", [":workers", "t:", "t:a:b", "t:a b"])
def test_an_invalid_pattern_of_topic_and_group_is_refused(control, pattern):
    control.ok("create_user", **ROOT, **ANN)
    refused = control.fails("invalid_request", "grant", **ROOT, user_id="ann", topic=pattern, rights=["consume"])
    assert "TOPIC:GROUP" in refused["description"]


def test_produce_is_not_a_right_on_a_group(control):
    control.ok("create_user", **ROOT, **ANN)
    refused = control.fails("invalid_request", "grant", **ROOT, user_id="ann", topic="t:g", rights=["consume", "produce"])
    assert "produce" in refused["description"]
