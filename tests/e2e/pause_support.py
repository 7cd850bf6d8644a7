"""Fills, pauses and purges topics, for the tests of these commands."""
import session_support
from session_client import GROUP
from support import PASSWORD, USER

KIB = 1024
TYPES = ["queue", "file", "queue_file"]
DURABLE = ["file", "queue_file"]
MINE = dict(user_id=USER, password=PASSWORD)


def pause(control, topic="t", **group):
    return control.ok("pause", topic=topic, **MINE, **group)


def resume(control, topic="t", **group):
    return control.ok("resume", topic=topic, **MINE, **group)


def purge(control, topic="t", **group):
    return control.ok("purge", topic=topic, **MINE, **group)["messages"]


def group_of(control, name="default", topic="t"):
    return session_support.group_of(control, topic, name)


def fill(session, first, count, size=0, topic="t"):
    return session_support.fill_numbered(session, topic, first, count, size)


def consumer_of(control, session, group="", mode=GROUP, topic="t", **more):
    return session_support.consumer_of(control, session, topic, group, mode, **more)


def committed(control, group, offset):
    session_support.until_committed(control, "t", offset, group)


def end(broker, how):
    """Ends the broker and starts it again."""
    broker.kill() if how == "kill" else broker.stop()
    broker.start()
