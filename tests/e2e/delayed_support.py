"""Sends delayed messages, and reads and changes the schedule of a topic, for the tests of delayed messages."""
import time

from batch_bytes import Message
from dead_letter_support import ADMINISTRATOR

SCHEDULE = 1  # target of produce_open
DAY_US = 24 * 60 * 60 * 1_000_000
YEARS_US = 3653 * DAY_US  # the longest delay
ID = b"lightq-id"


def now_us():
    return time.time_ns() // 1000


def delayed(payload, seconds=None, at_us=None, id=None, **more):
    """Returns a message for the schedule. Without a time it is due at once."""
    due = at_us if at_us is not None else -int(seconds * 1_000_000) if seconds else 0
    return Message(payload, headers=((ID, id),) if id else (), due=due, **more)


def scheduler(session, topic="t", **more):
    """Returns a producer of delayed messages."""
    return session(topic).producer(topic, target=SCHEDULE, **more)


def schedule(session, messages, topic="t", size=100, **more):
    """Sends delayed messages. Returns their producer when all are confirmed."""
    producer = scheduler(session, topic, **more)
    for first in range(0, len(messages), size):
        producer.produce(messages[first:first + size])
    producer.wait_confirmed()
    return producer


def waiting(control, topic="t", limit=2, **more):
    """Returns all delayed messages, which it reads in pages."""
    messages, more = [], dict(more)
    while True:
        page = control.ok("list_delayed", topic=topic, limit=limit, **more, **ADMINISTRATOR)
        assert len(page["messages"]) <= limit, page
        messages += page["messages"]
        if "continue_after_number" not in page:
            return messages
        more["after_due_us"], more["after_number"] = page["continue_after_due_us"], page["continue_after_number"]


def change(control, cmd, topic="t", **more):
    """Cancels, hurries or reschedules. Returns the reply without `cmd` and `status`."""
    reply = control.ok(cmd, topic=topic, **more, **ADMINISTRATOR)
    return {name: value for name, value in reply.items() if name not in ("cmd", "status")}


def done(messages):
    """Returns the reply of a command that has changed so many messages, and missed none."""
    return {"messages": messages, "too_late": 0, "unknown": 0}


def stats_of(control, topic="t"):
    return control.stats(topic).get("delayed")
