"""Topics that are filled, paused and purged, for the tests of that."""
from session_client import GROUP, join
from support import PASSWORD, USER, number_of, numbered, until

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
    return next((group for group in control.stats(topic)["groups"] if group["group"] == name), None)


def fill(session, first, count, size=0, topic="t"):
    producer = session(topic).producer(topic)
    for at in range(first, first + count, 10):
        producer.produce(numbered(at, min(10, first + count - at), size))
    producer.wait_confirmed()
    return producer


def consumer_of(control, session, group="", mode=GROUP, topic="t", **more):
    kind = "pull" if mode == GROUP else "sub"
    return session(join(control, topic, kind)).consumer(topic, group, mode, **more)


def offsets(messages):
    return [message.offset for message in messages]


def numbers(messages):
    return [number_of(message) for message in messages]


def committed(control, group, offset):
    until(lambda: group_of(control, group)["committed_offset"] == offset, lambda: str(group_of(control, group)))


def end(broker, how):
    """Ends the broker and starts it again."""
    broker.kill() if how == "kill" else broker.stop()
    broker.start()
