"""Tests reading over sessions without a group, and the reports that consumers receive about lost messages."""
import pytest

import session_frames
from session_client import OWN, join, messages_of
from session_support import fill
from support import numbered

pytestmark = pytest.mark.one_broker

KIB = 1024
TYPES = ["queue", "file", "queue_file"]


def puller(control, session, topic, **more):
    return session(join(control, topic, "pull"), **more)


@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("kind", ["pull", "sub"])
def test_read_has_no_side_effects(control, session, broker_type, kind):
    control.create("t", broker_type)
    messages = numbered(0, 1000, 300)
    fill(session, "t", messages, size=13)
    before = control.stats("t")
    one = session(join(control, "t", kind))
    for begin, end in ((0, 1000), (0, 1), (5, 6), (12, 14), (500, 777), (999, 1 << 63), (13, 26)):
        come, following = one.read("t", begin, end)
        assert [message.payload for message in come] == messages[begin:end]
        assert [message.offset for message in come] == list(range(begin, min(end, 1000))) and following == min(end, 1000)
    for begin, end in ((1000, 2000), (4000, 5000), (3, 3)):
        assert one.read("t", begin, end) == ([], begin)
    after = control.stats("t")
    changed = {name for name in before if before[name] != after[name]} - {"groups", "durable_offset", "log_bytes"}
    assert not changed & {"messages_sent", "deliveries", "subscribers_count", "queue_size"}, changed
    assert not after["groups"]


def test_read_returns_the_requested_bytes_and_at_least_one_message(control, session):
    control.create("t")
    fill(session, "t", [b"x" * 1000, b"y" * 10, b"", b"z" * 10, b"w" * 5000], size=5)
    one = puller(control, session, "t")
    for size, count in ((0, 1), (1, 1), (1000, 1), (1009, 1), (1010, 2), (1019, 3), (1020, 4), (6019, 4), (6020, 5)):
        come, following = one.read("t", size=size)
        assert (len(come), following) == (count, count), size
    assert [message.payload for message in one.read("t", 4, size=0)[0]] == [b"w" * 5000]


@pytest.mark.parametrize("size", [6422, 6423, 6424, 6425])
def test_reads_up_to_the_limit_are_all_answered(control, session, size):
    """Ten of these messages fill the bytes that may wait for a client, to within a byte or so. The client sends
    nothing more."""
    control.create("t")
    fill(session, "t", [b"x" * size] * 16, size=1)
    one = puller(control, session, "t")
    asked = [session_frames.encode("read", dict(begin=at, end=at + 1, bytes=1, topic="t"), request=100 + at) for at in range(16)]
    one.send_raw(b"".join(asked))
    one.wait(lambda: len([frame for frame in one.frames if frame.op == "done"]) == 16, "sixteen answers")


def test_reads_are_answered_in_their_order_and_not_too_many_wait(control, session):
    control.create("t", "file")
    payload = b"x" * 200_000
    fill(session, "t", [payload] * 40, size=4)
    one = puller(control, session, "t")
    ask = dict(begin=0, end=40, bytes=1 << 40, topic="t")
    one.send_raw(b"".join(session_frames.encode("read", ask, request=number) for number in range(101, 121)))
    refused = [one.take(lambda frame, number=number: frame.request == number, "limit") for number in range(117, 121)]
    assert {frame.code for frame in refused} == {"limit_reached"}
    one.close()
    another = puller(control, session, "t")
    another.send_raw(b"".join(session_frames.encode("read", {**ask, "end": number}, request=number)
                              for number in range(1, 9)))
    another.wait(lambda: [frame for frame in another.frames if frame.op == "done"][7:], "eight answers")
    assert [frame.request for frame in another.frames if frame.op == "done"] == list(range(1, 9))
    requests = [frame.request for frame in another.frames]
    assert requests == sorted(requests), "one after the other"
    for number in range(1, 9):
        come = [message for frame in another.frames if frame.request == number and frame.op == "deliver"
                for message in messages_of(frame)]
        assert [message.offset for message in come] == list(range(number))


def test_a_message_too_large_to_be_read_is_reported(control, session):
    control.create("t")
    fill(session, "t", [b"small", b"x" * 70_000, b"behind"], size=3)
    one = puller(control, session, "t", frame_bytes_max=64 * KIB)
    come, following = one.read("t")
    assert [message.payload for message in come] == [b"small"] and following == 1
    assert one.error_of("read", begin=1, end=9, bytes=100, topic="t") == "too_large"
    assert [message.payload for message in one.read("t", 2)[0]] == [b"behind"]


def test_lost_messages_are_reported(control, session):
    control.create("t", ring_bytes=64 * KIB, overflow="drop_oldest")
    producer = session("t").producer("t")
    own = session(join(control, "t", "sub")).consumer("t", "", OWN, credit=(10, 1 << 40))
    producer.produce(numbered(0, 10, 800))
    assert [message.offset for message in own.receive(10)] == list(range(10))
    for first in range(10, 400, 10):
        producer.produce(numbered(first, 10, 800))
    producer.wait_confirmed()
    first = control.stats("t")["first_offset"]
    assert first > 10
    own.give(1000)
    come = own.receive(400 - first)
    assert [message.offset for message in come] == list(range(first, 400)) and own.lost == first - 10
    one = puller(control, session, "t")
    done = one.request("read", begin=5, end=400, bytes=1 << 30, topic="t")
    brought = [frame for frame in one.frames if frame.request == done.request]
    assert sum(frame.values["lost"] for frame in brought) == first - 5 and done.values["value"] == 400
