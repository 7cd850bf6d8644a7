"""Tests segments that the broker cannot open for a time: consumers wait and then continue, and no message is
lost."""
import contextlib
import os
import resource

from session_support import consumer_of, fill_numbered, group_of, numbers, offsets
from support import until

MESSAGES = 3000


@contextlib.contextmanager
def no_descriptor_left(broker):
    """Lets the broker open nothing more."""
    kind, process = resource.RLIMIT_NOFILE, broker.process.pid
    taken = {int(number) for number in os.listdir(f"/proc/{process}/fd")}
    soft, hard = resource.prlimit(process, kind)
    resource.prlimit(process, kind, (min(set(range(len(taken) + 1)) - taken), hard))
    try:
        yield
    finally:
        resource.prlimit(process, kind, (soft, hard))


def test_a_group_waits_for_descriptors_and_gets_everything(broker, control, session):
    control.create("t", "file")
    fill_numbered(session, "t", 0, MESSAGES, payload_bytes=1000)
    broker.restart()  # so that no segment is open
    consumer = consumer_of(control, session, "t", "g", credit=(0, 1 << 40))
    with no_descriptor_left(broker):
        consumer.give(MESSAGES)
        until(lambda: group_of(control, "t", "g")["blocked_by"] == "disk: Too many open files",
              lambda: str(group_of(control, "t", "g")))
        until(lambda: "topic t: consumers wait, because their messages cannot be read now: " in broker.log(), broker.log)
        assert consumer.session.error_of("read", begin=0, end=MESSAGES, bytes=1 << 20, topic="t") == "io_error"
        seek = dict(channel=consumer.channel, start=5, start_value=1)
        assert consumer.session.error_of("seek", **seek) == "io_error", "by time"
        waiting = group_of(control, "t", "g")
        assert (waiting["committed_offset"], waiting["lost"], waiting["ready"]) == (0, 0, MESSAGES), waiting
    come = consumer.receive(MESSAGES)
    assert offsets(come) == list(range(MESSAGES)) and consumer.lost == 0
    assert numbers(message.payload for message in come) == list(range(MESSAGES))
    consumer.acknowledge_all(come)
    until(lambda: group_of(control, "t", "g")["committed_offset"] == MESSAGES, lambda: str(group_of(control, "t", "g")))
    assert (group_of(control, "t", "g")["lost"], group_of(control, "t", "g")["blocked_by"]) == (0, "")
    until(lambda: "topic t: no consumer waits for unavailable messages any more" in broker.log(), broker.log)
    assert broker.log().count("consumers wait, because their messages cannot be read now") == 1
    assert offsets(consumer.session.read("t", size=100_000)[0])[:50] == list(range(50))
