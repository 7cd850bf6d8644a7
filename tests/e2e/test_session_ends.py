"""Tests sessions and channels that end in the middle of something: every request is answered, and nothing
stays behind."""
import socket

import pytest
import zmq

import session_frames
from session_client import FLUSHED, Session, join
from support import SANITIZED, numbered, receive, until

KIB = 1024
MIB = 1024 * KIB


def produce_open(topic, request, **changed):
    fields = dict(producer_id=0, producer_epoch=0, level=0, topic=topic)
    return session_frames.encode("produce_open", {**fields, **changed}, request=request)


def close(channel, request):
    return session_frames.encode("close", {}, channel=channel, request=request)


def fill(broker, control, held, topic="full"):
    """Fills the topic: a group without a consumer makes the log keep its messages. Returns when a batch of
    the producer waits, with the address at which the group's puller may connect."""
    uri = control.join(topic, "pull")
    with broker.socket(zmq.PULL, uri):
        until(lambda: control.stats(topic)["subscribers_count"] == 1, "the puller's handshake")
    until(lambda: control.stats(topic)["subscribers_count"] == 0, "the puller's end")
    for first in range(0, 200, 10):
        held.produce(numbered(first, 10, 800))
    until(lambda: control.stats(topic)["blocked_by"] == "group:default", "the topic to be full")
    return uri


def is_served(one, topic):
    producer = one.producer(topic)
    producer.produce([b"on"])
    producer.wait_confirmed()


# --- Channels ---


def test_an_opening_that_is_not_answered_yet_cannot_be_closed_and_is_answered(control, session):
    control.create("t", "file")
    one = session("t")
    one.send_raw(produce_open("t", 71) + close(1, 72))
    closed = one.take(lambda frame: frame.request == 72, "the answer to close")
    opened = one.take(lambda frame: frame.request == 71, "the answer to produce_open")
    assert (closed.op, closed.code) == ("error", "unknown_channel")
    assert opened.op == "produce_opened" and opened.channel == 1
    is_served(one, "t")


def test_nothing_is_accepted_on_a_channel_before_its_opening_is_answered(control, session):
    control.create("t", "file")
    first = session("t").producer("t")
    first.produce([b"one"])
    first.wait_confirmed()
    second = session("t")
    batch = session_frames.batch([b"too early"], first.id, first.epoch + 1, 1)
    second.send_raw(produce_open("t", 71, producer_id=first.id, producer_epoch=first.epoch + 1)
                    + session_frames.encode("produce", dict(batch=batch.hex()), channel=1))
    assert second.take(lambda frame: frame.op == "error", "the refusal").code == "unknown_channel"
    assert second.take(lambda frame: frame.request == 71, "the answer").values["expected"] == 1
    assert control.stats("t")["next_offset"] == 1


def test_an_opening_is_answered_before_goodbye(control, session):
    control.create("t", "file")
    one = session("t")
    one.send_raw(produce_open("t", 71) + session_frames.encode("goodbye", dict(code=0, sentence="")))
    assert one.goodbye() == "ok"
    assert one.take(lambda frame: frame.request == 71, "the answer to produce_open").op == "produce_opened"


def test_frames_after_close_are_ignored_and_a_second_close_is_answered(control, session):
    control.create("t", "file")
    one = session("t")
    producer = one.producer("t", level=FLUSHED)
    before, behind = producer.frame_of([b"before"]), producer.batch([b"behind"], 1)
    one.send_raw(before + close(producer.channel, 71) + close(producer.channel, 72)
                 + session_frames.encode("produce", dict(batch=behind.hex()), channel=producer.channel))
    assert one.take(lambda frame: frame.request == 71, "the answer to close").op == "done"
    assert one.take(lambda frame: frame.request == 72, "the answer to the second").request == 72
    assert producer.confirmed == 1
    is_served(one, "t")
    assert control.stats("t")["next_offset"] == 2


def test_a_batch_of_the_announced_maximum_length_is_accepted(control, session):
    for topic, kind, settings in (("queue", "queue", dict(ring_bytes=64 * KIB)),
                                  ("queue_file", "queue_file", dict(ring_bytes=64 * KIB, segment_bytes=64 * KIB)),
                                  ("file", "file", dict(segment_bytes=64 * KIB, capacity_bytes=128 * KIB))):
        control.create(topic, kind, **settings)
        producer = session(topic).producer(topic)
        most = producer.opened["batch_bytes_max"]
        producer.produce([b"x" * (most - 64 - 4)])
        assert len(producer.batch([b"x" * (most - 68)], 0)) == most
        producer.wait_confirmed()


def test_opening_and_closing_over_and_over_costs_no_memory(broker, control, session):
    control.create("t")
    one = session("t")

    def rounds(count):
        for _ in range(count):
            begin = one.last_request + 1
            one.last_request += 500
            one.send_raw(b"".join(produce_open("t", begin + index) for index in range(500)))
            channels = []
            for index in range(500):
                frame = one.take(lambda frame, number=begin + index: frame.request == number, "the opening")
                channels.append(frame.channel)
            begin = one.last_request + 1
            one.last_request += 500
            one.send_raw(b"".join(close(channel, begin + index) for index, channel in enumerate(channels)))
            for index in range(500):
                assert one.take(lambda frame, number=begin + index: frame.request == number, "done").op == "done"

    rounds(20)  # 10,000: as many producers as are remembered
    before = broker.resident_bytes()
    rounds(10)
    assert SANITIZED or broker.resident_bytes() - before < 2 * MIB


# --- Ends while the topic is full ---


@pytest.mark.parametrize("end", ["deleted", "fenced", "disconnected", "stopped",
                                 *(pytest.param(end, marks=pytest.mark.stream) for end in ("reset", "half closed"))])
def test_a_channel_that_waits_for_room_may_end(broker, control, session, end):
    control.create("full", ring_bytes=64 * KIB)
    control.create("free")
    one = session("full")
    one.present(join(control, "free"))
    held, other = one.producer("full"), one.producer("free")
    fill(broker, control, held)
    if end == "deleted":
        control.delete("full")
        assert held.take_error().code == "topic_deleted"
    elif end == "fenced":
        new = session("full").producer("full", held.id, held.epoch + 1)
        assert new.next < 200 and held.take_error().code == "fenced"
    elif end == "stopped":
        broker.stop()
        assert one.goodbye() == "shutting_down"
        return
    else:
        if end == "reset":
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if end == "half closed":
            one.socket.shutdown(socket.SHUT_WR)
        else:
            one.close()
        is_served(session("free"), "free")
        control.delete("full")
        until(lambda: control.stats("free")["publishers_count"] == 1, "its end")
        return
    other.produce([b"the session is read again"])
    other.wait_confirmed()
    one.send("goodbye", code=0, sentence="")
    assert one.goodbye() == "ok"


def test_everything_is_stored_once_where_many_channels_of_a_session_wait(broker, control, session):
    control.create("full", ring_bytes=64 * KIB)
    one = session("full")
    producers = [one.producer("full") for _ in range(8)]
    uri = fill(broker, control, producers[0])
    for producer in producers[1:]:
        for index in range(20):
            producer.produce([b"%d of %d" % (index, producer.channel)])
    one.send("goodbye", code=0, sentence="")
    consumer = broker.socket(zmq.PULL, uri)
    messages = receive(consumer, 200 + 7 * 20)
    assert one.goodbye() == "ok"
    assert all(producer.confirmed == producer.next for producer in producers)
    assert len(set(messages)) == 340


@pytest.mark.parametrize("how", ["closed", pytest.param("reset", marks=pytest.mark.stream)])
def test_a_client_that_leaves_during_back_pressure_is_noticed(make_broker, how):
    broker = make_broker("--session-heartbeat-ms", "200")
    control = broker.control()
    control.create("full", ring_bytes=64 * KIB)
    with Session(join(control, "full")) as one:
        fill(broker, control, one.producer("full"))
        if how == "reset":
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    until(lambda: control.stats("full")["publishers_count"] == 0, "its end")


# --- Memory ---


def test_memory_of_large_frames_is_released(broker, control, session):
    control.create("t")
    sessions = [session("t") for _ in range(24)]
    for one in sessions:  # frames on a closed channel are received and ignored
        producer = one.producer("t")
        producer.close()
        one.closed = session_frames.encode("produce", {}, channel=producer.channel, body=b"")
    before, size = broker.resident_bytes(), 4 * MIB
    for one in sessions:
        header = one.closed[:12] + size.to_bytes(4, "little")
        one.send_raw(header + session_frames.crc32c(header).to_bytes(4, "little") + bytes(size))
        is_served(one, "t")
    until(lambda: SANITIZED or broker.resident_bytes() - before < 24 * size / 2, "the memory to be given back")


def test_a_client_that_says_goodbye_and_does_not_read_is_closed(make_broker):
    broker = make_broker("--session-heartbeat-ms", "200")
    control = broker.control()
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        # In small pieces, because a client that takes long for a checksum is also taken for gone.
        for _ in range(80):
            producer.produce([b"x" * 90_000])
        producer.wait_confirmed()
    until(lambda: control.stats("t")["publishers_count"] == 0, "the producer's end")
    before, ticket = broker.descriptors(), join(control, "t", "pull")
    silent = [Session(ticket) for _ in range(5)]
    for each in silent:
        for number in range(16):
            each.send("read", request=7 + number, begin=0, end=80, bytes=1 << 26, topic="t")
        each.send("goodbye", code=0, sentence="")
    until(lambda: broker.descriptors() <= before, "their end")
    for each in silent:
        each.close()
