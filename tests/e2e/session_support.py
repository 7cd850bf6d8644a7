"""Fills and reads topics over sessions, for the tests of groups and cursors."""
from session_client import GROUP, join
from support import number_of, numbered, until


def fill(session, topic, messages, size=10):
    """Sends batches of `size` messages from a producer on a session. Returns when all are confirmed."""
    producer = session(topic).producer(topic)
    for first in range(0, len(messages), size):
        producer.produce(messages[first:first + size])
    producer.wait_confirmed()
    return producer


def fill_numbered(session, topic, first, count, payload_bytes=0, size=10):
    """Sends messages that are numbered from `first`, as `fill` does."""
    return fill(session, topic, numbered(first, count, payload_bytes), size)


def consumer_of(control, session, topic, group="", mode=GROUP, **more):
    hello = {name: more.pop(name) for name in ("frame_bytes_max", "heartbeat_ms", "codecs") if name in more}
    kind = "pull" if mode == GROUP else "sub"
    return session(join(control, topic, kind), **hello).consumer(topic, group, mode, **more)


def group_of(control, topic, name="default"):
    """Returns the group's stats, or None if there is no such group."""
    return next((group for group in control.stats(topic)["groups"] if group["group"] == name), None)


def until_committed(control, topic, offset, name="default"):
    until(lambda: group_of(control, topic, name)["committed_offset"] == offset,
          lambda: f"commit of {offset}: {group_of(control, topic, name)}")


def offsets(messages):
    return [message.offset for message in messages]


def numbers(messages):
    return [number_of(message) for message in messages]
