"""Tests sessions with everything that docs/session.md does not permit. A request, a channel or the session
ends with an error, and the broker continues."""
import random
import struct

import pytest

import session_frames
from session_client import Session, Ticket, hello_values, join, open_values
from support import numbered, until

pytestmark = pytest.mark.one_broker


def spoiled(frame, at, value):
    return frame[:at] + bytes([value]) + frame[at + 1:]


HEARTBEAT = session_frames.encode("heartbeat", {})
CREDIT = session_frames.encode("credit", dict(messages=1, bytes=1), channel=1)
OPENING = dict(producer_id=0, producer_epoch=0, level=0, topic="t")
# Frames with an error in the header, in the checksum, or in a field of the body.
BROKEN = {
    "no topic": session_frames.encode("produce_open", {**OPENING, "topic": ""}, request=9),
    "op 0": spoiled(HEARTBEAT, 0, 0),
    "op 28": spoiled(HEARTBEAT, 0, 28),
    "op 255": spoiled(HEARTBEAT, 0, 255),
    "a flag that the op has not": spoiled(HEARTBEAT, 1, 1),
    "bytes that must be zero": spoiled(HEARTBEAT, 3, 1),
    "a body where there is none": session_frames.encode("heartbeat", {}, body=b"\0"),
    "a body that is too short": session_frames.encode("credit", {}, channel=1, body=b"\0" * 11),
    "a length of 4 GiB": HEARTBEAT[:12] + b"\xff" * 4 + HEARTBEAT[16:],
    "a batch of 4 GiB": struct.pack("<BBHIIII", 5, 0, 0, 1, 0, 0xFFFFFFFF, 0),
    "a batch shorter than one": session_frames.encode("produce", {}, channel=1, body=b"\0" * 67),
    "a header's checksum": spoiled(HEARTBEAT, 16, HEARTBEAT[16] ^ 1),
    "a body's checksum": spoiled(CREDIT, 31, 9),
    "a second hello": session_frames.encode("hello", hello_values(), request=9),
    "what only a broker says": session_frames.encode("confirm", dict(received=1, flushed=1, next_offset=1), channel=1),
    "a request without a number": session_frames.encode("produce_open", OPENING),
    "ZeroMQ's greeting": b"\xff" + b"\0" * 8 + b"\x7f\3\1NULL" + b"\0" * 48,
    "a request of HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
# Frames with an error in a field of a request's body. They end only that request.
BROKEN_REQUESTS = {
    "level 3": session_frames.encode("produce_open", {**OPENING, "level": 3}, request=9),
    "a text longer than its body": session_frames.encode("present", {}, request=9, body=b"\xff\0abc"),
    "no ticket to present": session_frames.encode("present", {}, request=9, body=b"\0\0\0"),
}
BROKEN_HELLOS = {
    "another magic": dict(magic=0x5353514D),
    "versions backwards": dict(oldest_version=2, newest_version=1),
    "frames that are too small": dict(frame_bytes_max=65535),
    "a heartbeat that is too quick": dict(heartbeat_ms=99),
    "a name that is too long": dict(name="n" * 129),
}


@pytest.fixture
def ticket(control):
    control.create("t", "file")
    return join(control, "t")


def lives_on(ticket, control, stored):
    """Checks that another session is served, and that only confirmed messages were stored."""
    with Session(ticket) as another:
        producer = another.producer("t")
        producer.produce([b"on"])
        producer.wait_confirmed()
    assert control.stats("t")["next_offset"] == stored + 1


@pytest.mark.parametrize("frame", BROKEN.values(), ids=BROKEN.keys())
def test_an_invalid_frame_ends_the_session_with_an_error(control, session, ticket, frame):
    one = session(ticket)
    producer = one.producer("t")
    producer.produce([b"before it"])
    producer.wait_confirmed()
    one.send_raw(frame)
    assert one.goodbye() == "invalid_frame"
    lives_on(ticket, control, stored=1)


@pytest.mark.parametrize("frame", BROKEN_REQUESTS.values(), ids=BROKEN_REQUESTS.keys())
def test_a_refused_request_leaves_the_session_open(control, session, ticket, frame):
    one = session(ticket)
    producer = one.producer("t")
    one.send_raw(frame)
    answer = one.take(lambda got: got.request == 9, "the answer")
    assert (answer.op, answer.code, answer.channel) == ("error", "invalid_frame", 0)
    producer.produce([b"behind it"])
    producer.wait_confirmed()
    lives_on(ticket, control, stored=1)


@pytest.mark.parametrize("frame", (BROKEN | BROKEN_REQUESTS).values(), ids=(BROKEN | BROKEN_REQUESTS).keys())
def test_an_invalid_first_frame_is_refused_like_an_invalid_hello(control, session, ticket, frame):
    one = session(ticket, hello=False)
    if frame == BROKEN["a second hello"]:
        frame = HEARTBEAT  # valid, but not allowed as the first frame
    one.send_raw(frame)
    assert one.goodbye() == "invalid_frame"
    lives_on(ticket, control, stored=0)


@pytest.mark.parametrize("changed", BROKEN_HELLOS.values(), ids=BROKEN_HELLOS.keys())
def test_a_hello_with_an_invalid_field_is_refused(control, session, ticket, changed):
    one = session(ticket, hello=False)
    one.send("hello", request=1, **hello_values(ticket=ticket.text, **changed))
    assert one.goodbye() == "invalid_frame"
    lives_on(ticket, control, stored=0)


@pytest.mark.own_broker
def test_an_announced_length_costs_no_memory_before_its_bytes_arrive(broker, control, session, ticket):
    """64 connections announce the longest batch that the broker accepts, and send nothing more."""
    before = broker.resident_bytes()
    held = []
    for _ in range(64):
        one = session(ticket)
        longest = one.welcome["frame_bytes_max"]
        channel = one.producer("t").channel
        one.send_raw(struct.pack("<BBHIIII", 5, 0, 0, channel, 0, longest, 0) + b"\0" * 64)
        held.append(one)
    lives_on(ticket, control, stored=0)
    assert broker.resident_bytes() - before < 64 * longest / 4
    for one in held:
        one.close()


@pytest.mark.parametrize("cut", [1, 11, 19, 20, 21, 40])
def test_an_incomplete_frame_is_forgotten_with_its_connection(control, session, ticket, cut):
    one = session(ticket)
    frame = session_frames.encode("produce_open", {**OPENING, "topic": "t" * 30}, request=9)
    one.send_raw(frame[:cut])
    one.close()
    lives_on(ticket, control, stored=0)


@pytest.mark.stream
def test_a_frame_may_come_byte_by_byte(control, session, ticket):
    one = session(ticket, hello=False)
    for byte in session_frames.encode("hello", hello_values(ticket=ticket.text), request=1):
        one.send_raw(bytes([byte]))
    assert one.take(lambda frame: frame.request == 1, "welcome").op == "welcome"
    producer = one.producer("t")
    for byte in producer.frame_of([b"one", b"two"]):
        one.send_raw(bytes([byte]))
    producer.wait_confirmed(2)
    lives_on(ticket, control, stored=2)


def test_many_frames_may_come_at_once(control, session, ticket):
    one = session(ticket)
    producer = one.producer("t")
    frames = []
    for index in range(1000):
        frames.append(producer.frame_of([b"%d" % index]))
        producer.next += 1
    one.send_raw(b"".join(frames) + session_frames.encode("goodbye", dict(code=0, sentence="")))
    assert one.goodbye() == "ok"
    assert producer.confirmed == 1000
    lives_on(ticket, control, stored=1000)


def test_no_random_bytes_end_the_broker(control, session, ticket):
    """To repeat a run, replace the random seed by the printed one."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sound = [session_frames.encode(op, values, **header) for _, op, values, header in session_frames.sound_frames()]
    for round_number in range(100):
        one = session(ticket, hello=round_number % 4 != 0)
        stream = b"".join(chance.choice(sound) for _ in range(chance.randrange(1, 6)))
        for _ in range(chance.randrange(0, 4)):
            at = chance.randrange(len(stream))
            stream = spoiled(stream, at, chance.randrange(256))
        try:
            one.send_raw(stream if chance.randrange(4) else chance.randbytes(chance.randrange(1, 3000)))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the broker has closed the connection already
        one.close()
    until(lambda: control.stats("t")["publishers_count"] == 0, "their end")
    with Session(Ticket(*ticket)) as another:
        producer = another.producer("t")
        producer.produce([b"on"])
        producer.wait_confirmed()
        assert control.stats("t")["messages_received"] == 1


# Frames that consumers may not send. They are for channel 1, which consumes and to which ten messages were
# delivered.

CONSUMING = open_values("t")


def on_channel(op, flags=0, request=0, body=None, **values):
    return session_frames.encode(op, values, flags=flags, channel=1, request=request, body=body)


def opening(**changed):
    return session_frames.encode("consume_open", {**CONSUMING, **changed}, request=9)


# Errors of the session itself, or errors that look like one.
BROKEN_CONSUMING = {
    "read of no topic": session_frames.encode("read", dict(begin=1, end=2, bytes=1, topic=""), request=9),
    "no range": on_channel("acknowledge", body=b""),
    "a flag that acknowledge has not": on_channel("acknowledge", flags=4, ranges=[(0, 1)]),
    "a flag that reject has not": on_channel("reject", flags=8, ms=0, ranges=[(0, 1)]),
    "a flag that extend has not": on_channel("extend", flags=1, ms=0, ranges=[(0, 1)]),
    "nothing to extend": on_channel("extend", ms=1, body=b"\1\0\0\0"),
    "more than 64 KiB of ranges": struct.pack("<BBHIIII", 12, 0, 0, 1, 0, 64 * 1024 + 16, 0),
    "4 GiB of ranges": struct.pack("<BBHIIII", 12, 0, 0, 1, 0, 0xFFFFFFF0, 0),
    "seek without a number": on_channel("seek", start=1, start_value=0),
    "credit with a number": on_channel("credit", request=9, messages=1, bytes=1),
    "credit without a channel": session_frames.encode("credit", dict(messages=1, bytes=1)),
    "read on a channel": on_channel("read", request=9, begin=0, end=1, bytes=1, topic="t"),
    "what only a broker delivers": on_channel("deliver", delivery=1, hand_out=0, lost=0,
                                              batch=session_frames.batch([b"m"], offset=0).hex()),
    "what only a broker revokes": on_channel("revoked", cause=1, hand_outs_before=2, ranges=[(0, 1)]),
    "what only a broker opens": on_channel("consume_opened", next=0, committed=0, next_offset=0, incarnation=1,
                                           ack_timeout_ms=1),
}
# These end the channel.
BROKEN_ON_CHANNEL = {
    "ranges that overlap": on_channel("acknowledge", ranges=[(0, 3), (2, 5)]),
    "ranges that touch": on_channel("acknowledge", ranges=[(0, 2), (2, 5)]),
    "ranges that descend": on_channel("acknowledge", ranges=[(4, 5), (0, 1)]),
    "an empty range": on_channel("acknowledge", ranges=[(4, 4)]),
    "a range backwards": on_channel("acknowledge", ranges=[(4, 2)]),
    "half a range": on_channel("acknowledge", body=b"\0" * 24),
    "a hand-out without leases": on_channel("acknowledge", flags=2, hand_out=1, ranges=[(0, 1)]),
    "a rejected hand-out without leases": on_channel("reject", flags=2, ms=0, hand_out=1, ranges=[(0, 1)]),
    "an extended hand-out without leases": on_channel("extend", flags=2, ms=1, hand_out=1, ranges=[(0, 1)]),
    "a release without leases": on_channel("reject", flags=4, ms=0, ranges=[(0, 1)]),
    "started without leases": on_channel("started", hand_out=1, ranges=[(0, 1)]),
    "a hand-out and no range": on_channel("acknowledge", flags=2, body=struct.pack("<II", 1, 0)),
    "a release with a delay": on_channel("reject", flags=4, ms=1, ranges=[(0, 1)]),
    "ranges where one offset is to be": on_channel("acknowledge", flags=1, ranges=[(0, 1)]),
    "one offset where ranges are to be": on_channel("acknowledge", body=b"\1" + b"\0" * 7),
    "rejected ranges that overlap": on_channel("reject", ms=0, ranges=[(0, 3), (2, 5)]),
    "more credit than there is": on_channel("credit", messages=(1 << 31) + 1, bytes=0),
    "more bytes of credit than there are": on_channel("credit", messages=0, bytes=(1 << 62) + 1),
    "a channel that produces": on_channel("produce", batch=session_frames.batch([b"m"]).hex()),
}
# These are answered with an error.
BROKEN_REQUESTS_CONSUMING = {
    "seek to 0": on_channel("seek", request=9, start=0, start_value=0),
    "seek to 6": on_channel("seek", request=9, start=6, start_value=0),
    "seek with a value that is not wanted": on_channel("seek", request=9, start=2, start_value=1),
    "seek with bytes that must be zero": on_channel("seek", request=9, body=b"\1\0\0\0\0\0\0\1" + b"\0" * 8),
    "read backwards": session_frames.encode("read", dict(begin=2, end=1, bytes=1, topic="t"), request=9),
    "mode 0": opening(mode=0),
    "mode 3": opening(mode=3),
    "acknowledgement 0": opening(acknowledgement=0),
    "acknowledgement 3": opening(acknowledgement=3),
    "start 0": opening(start=0),
    "start 6": opening(start=6),
    "a start that needs no value": opening(start_value=1),
    "holds 2": opening(holds=2),
    "too much credit to begin with": opening(credit_messages=(1 << 31) + 1),
    "too many bytes to begin with": opening(credit_bytes=(1 << 62) + 1),
    "a group without a name's form": opening(group="no group"),
    "a group with a dot before it": opening(group=".hidden"),
    "a group of 129 bytes": opening(group="g" * 129),
    "a filter": opening(filter="f"),
}


@pytest.fixture
def consuming(control, session):
    control.create("t", "file")
    producer = session("t").producer("t")
    producer.produce(numbered(0, 10))
    producer.wait_confirmed()
    consumer = session(join(control, "t", "pull")).consumer("t")
    consumer.receive(10)
    assert consumer.channel == 1
    return consumer


@pytest.mark.parametrize("frame", BROKEN_CONSUMING.values(), ids=BROKEN_CONSUMING.keys())
def test_a_consumers_invalid_frame_ends_the_session_and_its_messages_are_redelivered(control, session, consuming, frame):
    consuming.session.send_raw(frame)
    assert consuming.session.goodbye() == "invalid_frame"
    other = session(join(control, "t", "pull")).consumer("t")
    assert [(message.offset, message.delivery) for message in other.receive(10)] == [(offset, 2) for offset in range(10)]


@pytest.mark.parametrize("frame", BROKEN_ON_CHANNEL.values(), ids=BROKEN_ON_CHANNEL.keys())
def test_an_invalid_frame_on_a_channel_ends_only_the_channel(control, session, consuming, frame):
    one = consuming.session
    one.send_raw(frame)
    ended = one.take(lambda got: got.op == "error", "the channel's end")
    assert (ended.code, ended.channel, ended.request) == ("invalid_frame", 1, 0)
    again = one.consumer("t")
    assert again.channel == 2
    assert [(message.offset, message.delivery) for message in again.receive(10)] == [(offset, 2) for offset in range(10)]


@pytest.mark.parametrize("frame", BROKEN_REQUESTS_CONSUMING.values(), ids=BROKEN_REQUESTS_CONSUMING.keys())
def test_a_consumers_refused_request_leaves_its_channel_open(consuming, frame):
    one = consuming.session
    one.send_raw(frame)
    answer = one.take(lambda got: got.request == 9, "the answer")
    assert (answer.op, answer.code) == ("error", "invalid_frame")
    assert consuming.seek("first") == 0
    assert [message.offset for message in consuming.receive(10)] == list(range(10))


def test_a_consumers_frame_ends_a_producers_channel(control, session, ticket):
    one = session(ticket)
    producer, other = one.producer("t"), one.producer("t")
    one.send("credit", channel=producer.channel, messages=1, bytes=1)
    ended = one.take(lambda got: got.op == "error", "the channel's end")
    assert (ended.code, ended.channel) == ("invalid_frame", producer.channel)
    assert one.request("seek", channel=other.channel, start=1, start_value=0).code == "invalid_frame"
    other.produce([b"as before"])
    other.wait_confirmed()


def test_a_batch_of_another_producer_ends_its_channel_alone(control, session, ticket):
    one = session(ticket)
    producer, other = one.producer("t"), one.producer("t")
    producer.send_batch(session_frames.batch([b"not mine"], other.id, producer.epoch, 0))
    assert producer.take_error().code == "invalid_frame"
    other.produce([b"mine"])
    other.wait_confirmed()
    assert control.stats("t")["next_offset"] == 1


def test_a_batch_across_the_expected_number_is_refused_completely(control, session, ticket):
    one = session(ticket)
    producer = one.producer("t")
    for message in (b"0", b"1"):
        producer.produce([message])
    producer.wait_confirmed()
    producer.next = 1
    one.send_raw(producer.frame_of([b"1", b"2"]))
    refused = one.take(lambda got: got.op == "refuse", "refuse")
    assert (refused.code, refused.values["expected"]) == ("out_of_sequence", 2)
    assert "stored already" in refused.values["sentence"], refused.values
    producer.next = 5
    one.send_raw(producer.frame_of([b"5"]))  # ignored, because it is not the expected sequence
    producer.next = 2
    producer.produce([b"2"])
    producer.wait_confirmed()
    assert control.stats("t")["next_offset"] == 3


def test_a_second_close_is_answered(control, session, consuming):
    one = consuming.session
    for request in (21, 22):
        one.send("close", channel=1, request=request)
    answers = [one.take(lambda got, request=request: got.request == request, "an answer") for request in (21, 22)]
    assert answers[0].op == "done" and (answers[1].op == "done" or answers[1].code == "unknown_channel"), answers
    assert one.request("close", channel=1).op == "done"
    assert one.request("close", channel=77).code == "unknown_channel"


def test_an_empty_range_may_be_read(consuming):
    for at in (0, 5, 99):
        answer = consuming.session.request("read", begin=at, end=at, bytes=1, topic="t")
        assert (answer.op, answer.values["value"]) == ("done", at)


@pytest.mark.parametrize("messages, size", [(1, 0), (0, 1), (1 << 31, 1 << 62)])
def test_credit_above_its_limit_ends_the_channel(control, session, messages, size):
    control.create("t")
    one = session(join(control, "t", "pull"))
    consumer = one.consumer("t", credit=(1 << 31, 1 << 62))
    consumer.give(messages, size)
    ended = one.take(lambda got: got.op == "error", "the channel's end")
    assert (ended.code, ended.channel) == ("limit_reached", consumer.channel)
    assert one.consumer("t").seek("next") == 0


def test_credit_may_reach_its_limit(control, session):
    control.create("t")
    consumer = session(join(control, "t", "pull")).consumer("t", credit=(0, 0))
    for _ in range(4):
        consumer.give(1 << 29, 1 << 60)
    assert consumer.seek("next") == 0


def test_a_ticket_permits_the_mode_it_was_joined_for(control, session):
    control.create("t")
    control.create("other")
    for kind, allowed in (("pull", 1), ("sub", 2), ("push", 0)):
        one = session(join(control, "t", kind))
        for mode in (1, 2):
            answer = one.request("consume_open", **open_values("t", mode=mode))
            assert (answer.op == "consume_opened") == (mode == allowed), answer
            assert answer.op != "error" or answer.code == "unauthorized_access"
        assert one.error_of("consume_open", **open_values("other", mode=max(allowed, 1))) == "unauthorized_access"
        assert one.error_of("read", begin=0, end=1, bytes=1, topic="other") == "unauthorized_access"
        reading = one.request("read", begin=0, end=1, bytes=1, topic="t")
        assert reading.op == ("error" if kind == "push" else "done")
        if kind != "push":
            fields = dict(producer_id=0, producer_epoch=0, level=0, topic="t")
            assert one.error_of("produce_open", **fields) == "unauthorized_access"


def test_frames_for_a_closed_channel_receive_unknown_channel(control, session, consuming):
    one = consuming.session
    for op, values in (("credit", dict(messages=1, bytes=1)), ("acknowledge", dict(ranges=[(0, 1)])),
                       ("reject", dict(ms=0, ranges=[(0, 1)])), ("extend", dict(ms=0, ranges=[(0, 1)]))):
        one.send(op, channel=2, **values)
        answer = one.take(lambda frame: frame.op == "error", "error")
        assert (answer.code, answer.channel, answer.request) == ("unknown_channel", 2, 0)
    assert one.request("seek", channel=2, start=1, start_value=0).code == "unknown_channel"
    assert consuming.close().op == "done"
    consuming.acknowledge((0, 10))  # ignored, as on any channel that was closed a moment ago
    consuming.give(1, 1)
    assert one.request("seek", channel=1, start=1, start_value=0).code == "unknown_channel", "who asks is answered"
    other = one.consumer("t")
    assert [message.delivery for message in other.receive(10)] == [1] * 10, "close has released them"


def test_a_channel_of_another_session_is_unknown(control, session, consuming):
    stranger = session(join(control, "t", "pull"))
    stranger.send("acknowledge", channel=1, ranges=[(0, 10)])
    assert stranger.take(lambda frame: frame.op == "error", "error").code == "unknown_channel"
    other = stranger.consumer("t")
    other.acknowledge((0, 10))  # delivered to another channel
    assert other.channel == 1 and other.seek("next") == 10
    assert consuming.is_silent()


def test_two_channels_of_a_session_do_not_acknowledge_for_each_other(control, session, consuming):
    second = consuming.session.consumer("t", "second", start="next")
    second.acknowledge((0, 10))
    second.acknowledge_before(10)
    groups = {group["group"]: group for group in control.stats("t")["groups"]}
    assert groups["default"]["unacknowledged"] == 10


@pytest.mark.own_broker
def test_a_missing_part_of_announced_ranges_costs_nothing(broker, control, session, consuming):
    header = struct.pack("<BBHIIII", 12, 0, 0, 1, 0, 64 * 1024, 0)
    consuming.session.send_raw(header + b"\0" * 1000)
    consuming.session.close()
    other = session(join(control, "t", "pull")).consumer("t")
    assert [message.delivery for message in other.receive(10)] == [2] * 10
