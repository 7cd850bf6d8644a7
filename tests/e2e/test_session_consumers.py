"""Tests consuming over sessions, with a client that knows only docs/session.md and a real broker."""
import time

import pytest
import zmq

import session_frames
from harness import variable
from session_client import OWN, join, open_values
from session_support import fill, group_of, until_committed
from support import SANITIZED, numbered, until

pytestmark = pytest.mark.one_broker

KIB = 1024
TYPES = ["queue", "file", "queue_file"]


def puller(control, session, topic, transport="tcp", **more):
    return session(join(control, topic, "pull", transport=transport), **more)


def subscriber(control, session, topic, **more):
    return session(join(control, topic, "sub"), **more)


# --- Delivery ---


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("broker_type", [*TYPES, "direct"])
def test_everything_comes_once_in_its_order_and_whole(control, session, broker_type, transport):
    control.create("t", broker_type)
    consumer = puller(control, session, "t", transport).consumer("t")
    messages = [b"", *numbered(1, 998, 64), b"x" * 100_000]
    producer = session(join(control, "t", transport=transport)).producer("t")
    for first in range(0, 1000, 25):
        producer.produce(messages[first:first + 25])
    producer.wait_confirmed()
    come = consumer.receive(1000)
    assert [message.payload for message in come] == messages
    assert [message.offset for message in come] == list(range(1000))
    assert {message.delivery for message in come} == {1} and consumer.lost == 0
    assert consumer.parts == 0 and len(consumer.batches) == 40, "the producer's own batches"
    for first, batch in zip(range(0, 1000, 25), consumer.batches):
        assert session_frames.unbatch(batch).offset == first
    consumer.acknowledge_before(1000)
    until_committed(control, "t", 1000)
    assert consumer.is_silent()


@pytest.mark.parametrize("broker_type", TYPES)
def test_earlier_messages_are_delivered_too(control, session, broker_type):
    control.create("t", broker_type)
    fill(session, "t", numbered(0, 500, 100), size=7)
    consumer = puller(control, session, "t").consumer("t", credit=(100, 1 << 30))
    assert (consumer.opened["next"], consumer.opened["committed"], consumer.opened["next_offset"]) == (0, 0, 500)
    assert consumer.opened["ack_timeout_ms"] == 30_000
    payloads = []
    for _ in range(5):
        payloads += [message.payload for message in consumer.receive(100)]
        consumer.give(100)
    assert payloads == numbered(0, 500, 100)


def test_messages_of_plain_producers_come_over_sessions(broker, control, session):
    control.create("t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 200):
        producer.send(message)
    consumer = puller(control, session, "t").consumer("t")
    assert [message.payload for message in consumer.receive(200)] == numbered(0, 200)


def test_large_messages_come_whole(control, session):
    control.create("t", "file")
    messages = [bytes([index]) * 900_000 for index in range(5)]
    fill(session, "t", messages, size=1)
    consumer = puller(control, session, "t").consumer("t")
    assert [message.payload for message in consumer.receive(5)] == messages


def test_a_frame_is_never_longer_than_the_client_accepts(control, session):
    """The client fails if a frame is longer."""
    control.create("t", "file")
    messages = numbered(0, 400, 1000)
    fill(session, "t", messages, size=200)
    consumer = puller(control, session, "t", frame_bytes_max=64 * KIB).consumer("t")
    assert [message.payload for message in consumer.receive(400)] == messages
    assert consumer.parts >= 6
    begins = [session_frames.unbatch(batch).offset for batch in consumer.batches]
    assert begins == sorted(begins) and begins[1] > 0


@pytest.mark.parametrize("automatic", [False, True])
def test_a_message_that_fits_no_frame_ends_the_channel_and_stays(control, session, automatic):
    control.create("t", "file")
    messages = [b"small", b"x" * 70_000, b"behind"]
    fill(session, "t", messages, size=3)
    one = puller(control, session, "t", frame_bytes_max=64 * KIB)
    consumer = one.consumer("t", automatic=automatic)
    assert consumer.take_error().code == "too_large"
    assert consumer.payloads == [b"small"]
    assert one.request("close", channel=consumer.channel).op == "done", "the session is as it was"
    other = puller(control, session, "t").consumer("t")
    expected = messages[1:] if automatic else messages
    come = other.receive(len(expected))
    assert sorted(message.payload for message in come) == sorted(expected)
    assert {message.offset: message.delivery for message in come}[1] == 1, "nobody was handed it before"


# --- Credit ---


def test_no_more_comes_than_there_is_credit_for(control, session):
    """The client counts, and fails if it receives more."""
    control.create("t")
    fill(session, "t", numbered(0, 100, 50), size=30)
    one = puller(control, session, "t")
    consumer = one.consumer("t", credit=(0, 0))
    assert consumer.is_silent()
    consumer.give(5)
    assert consumer.is_silent(), "a message, but no byte"
    consumer.give(0, 1)
    assert len(consumer.receive(1)) == 1 and consumer.is_silent()
    consumer.give(0, 200)  # 151 are left: 49 were borrowed
    assert len(consumer.receive(4)) == 4 and consumer.is_silent()
    consumer.give(50, 1 << 20)
    come = consumer.receive(50)
    assert [message.payload for message in come] == numbered(5, 50, 50) and consumer.is_silent()
    assert consumer.parts > 0


def test_a_message_larger_than_all_credit_is_still_delivered(control, session):
    control.create("t")
    fill(session, "t", [b"a" * 50_000, b"b"], size=2)
    consumer = puller(control, session, "t").consumer("t", credit=(10, 1))
    assert consumer.receive(1)[0].payload == b"a" * 50_000 and consumer.is_silent()
    consumer.give(0, 49_999)
    assert consumer.is_silent()
    consumer.give(0, 1)
    assert consumer.receive(1)[0].payload == b"b"


def test_a_slow_consumer_of_four_delays_no_other(control, session):
    """Counts messages instead of time. A consumer that gives credit as it finishes messages has at most its
    credit waiting. The other three consume the remaining messages as fast as without the slow one."""
    control.create("t")
    count, credit = 4000, 50
    fill(session, "t", numbered(0, count, 20), size=100)
    sessions = [puller(control, session, "t") for _ in range(4)]
    consumers = [one.consumer("t", credit=(credit, 1 << 40)) for one in sessions]
    slow, quick = consumers[0], consumers[1:]
    done, turns = [0, 0, 0], 0
    while sum(done) < count - credit:
        turns += 1
        assert turns <= 1.3 * count / (3 * credit) + 10, f"the quick ones wait: {done}"
        for index, consumer in enumerate(quick):
            left = count - credit - sum(done)
            if left <= 0:
                break
            come = consumer.receive(min(credit, left)) if left >= 3 * credit else consumer.receive(len(consumer.messages))
            consumer.acknowledge_all(come)
            consumer.give(len(come))
            done[index] += len(come)
            consumer.session.read_some(0.001)
        slow.session.read_some(0.001)
    assert len(slow.messages) == credit


@pytest.mark.own_broker
@pytest.mark.stream  # a ZeroMQ library reads even if its program does not
def test_a_stalled_consumer_costs_bounded_memory_and_delays_no_other(broker, control, session):
    control.create("t", "file")
    stalled = puller(control, session, "t")
    stalled.send("consume_open", request=77, **open_values("t", "stalled"))
    stalled.take(lambda frame: frame.request == 77, "consume_opened")
    quick = puller(control, session, "t").consumer("t", "quick", credit=(4, 1 << 40))
    producer = session("t").producer("t")
    before, payload = broker.anonymous_bytes(), b"x" * 900_000
    for index in range(64):  # the buffers of the system and the broker for the stalled consumer are soon full
        producer.produce([b"%d|" % index + payload])
        come = quick.receive(1)
        assert come[0].payload[:3] == (b"%d|" % index + payload)[:3] and come[0].offset == index
        quick.acknowledge_all(come)
        quick.give(1)
    producer.wait_confirmed()
    assert group_of(control, "t", "quick")["lag"] == 0
    assert group_of(control, "t", "stalled")["lag"] > 32
    # The thread sanitizer keeps records of the mapped file's bytes in its own memory.
    if variable("LIGHTQ_SANITIZE") != "thread":
        assert SANITIZED or broker.anonymous_bytes() - before < 8 * KIB * KIB


def test_a_session_with_a_waiting_producer_still_receives_deliveries(broker, control, session):
    """The broker does not read from the session, but delivers messages for the credit that it gave before."""
    control.create("full", ring_bytes=64 * KIB)
    control.create("free")
    one = session("full")
    assert one.present(join(control, "free", "pull")).op == "done"
    assert one.present(join(control, "full", "pull")).op == "done"
    one.consumer("full", credit=(0, 0))  # the group makes the log keep its messages
    consumer = one.consumer("free")
    held = one.producer("full")
    for first in range(0, 200, 10):
        held.produce(numbered(first, 10, 800))
    until(lambda: control.stats("full")["blocked_by"] != "", "the topic to be full")
    assert held.confirmed < 200
    fill(session, "free", numbered(0, 1000))
    assert [message.payload for message in consumer.receive(1000)] == numbered(0, 1000)
    assert group_of(control, "free")["unacknowledged"] == 1000
    consumer.acknowledge_before(1000)
    one.send("goodbye", code=0, sentence="")
    control.delete("full")  # the broker reads from the session again
    assert one.goodbye() == "ok"
    until(lambda: group_of(control, "free")["committed_offset"] == 1000, "what was said before goodbye")


# --- Acknowledgements ---


@pytest.mark.parametrize("broker_type", TYPES)
def test_acknowledging_moves_the_committed_offset(control, session, broker_type):
    control.create("t", broker_type)
    fill(session, "t", numbered(0, 100))
    consumer = puller(control, session, "t").consumer("t")
    consumer.receive(100)
    assert group_of(control, "t")["committed_offset"] == 0 and group_of(control, "t")["unacknowledged"] == 100
    consumer.acknowledge(0)
    until_committed(control, "t", 1)
    consumer.acknowledge((2, 10), (20, 30))
    until(lambda: group_of(control, "t")["unacknowledged"] == 81, "the ranges")
    assert group_of(control, "t")["committed_offset"] == 1
    consumer.acknowledge((0, 2), (25, 35))  # a second acknowledgement does no harm
    until_committed(control, "t", 10)
    consumer.acknowledge_before(50)
    until_committed(control, "t", 50)
    consumer.acknowledge((0, 1 << 63))
    until_committed(control, "t", 100)
    assert group_of(control, "t")["unacknowledged"] == 0 and consumer.is_silent()


def test_acknowledgements_of_messages_not_in_flight_are_ignored(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 20))
    first = puller(control, session, "t").consumer("t", credit=(10, 1 << 40))
    first.receive(10)
    second = puller(control, session, "t").consumer("t", credit=(10, 1 << 40))
    second.receive(10)
    first.acknowledge((0, 100))
    until_committed(control, "t", 10)
    first.reject((10, 20))
    first.acknowledge_before(1 << 60)
    first.extend((0, 1 << 60), ms=0)
    assert group_of(control, "t")["unacknowledged"] == 10 and second.is_silent()
    second.acknowledge_all(second.messages)
    second.acknowledge_before(20)
    until_committed(control, "t", 20)


def test_automatic_acknowledgement_happens_at_delivery(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 50))
    consumer = puller(control, session, "t").consumer("t", automatic=True, credit=(30, 1 << 40))
    consumer.receive(30)
    until_committed(control, "t", 30)
    assert group_of(control, "t")["unacknowledged"] == 0
    consumer.session.close()
    other = puller(control, session, "t").consumer("t", automatic=True)
    assert [message.offset for message in other.receive(20)] == list(range(30, 50))


# --- Redelivery ---


def test_rejected_messages_are_redelivered_before_new_ones(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 20))
    consumer = puller(control, session, "t").consumer("t", credit=(10, 1 << 40))
    consumer.receive(10)
    consumer.reject((3, 5), 7)
    until(lambda: group_of(control, "t")["unacknowledged"] == 7, "the rejection")
    consumer.give(4)
    again = consumer.receive(4)
    assert [(message.offset, message.delivery) for message in again] == [(3, 2), (4, 2), (7, 2), (10, 1)]
    assert [message.payload for message in again[:3]] == [numbered(index, 1)[0] for index in (3, 4, 7)]
    assert group_of(control, "t")["redelivered"] == 3
    consumer.reject(3)
    consumer.give(1)
    assert [(message.offset, message.delivery) for message in consumer.receive(1)] == [(3, 3)]


def test_a_delayed_rejection_is_redelivered_after_its_delay(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 10))
    consumer = puller(control, session, "t").consumer("t")
    consumer.receive(10)
    consumer.acknowledge((1, 10))
    began = time.monotonic()
    consumer.reject(0, ms=400)
    assert [(message.offset, message.delivery) for message in consumer.receive(1)] == [(0, 2)]
    assert time.monotonic() - began >= 0.39


def test_an_unacknowledged_message_goes_to_another_consumer_after_the_timeout(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 30))
    late = puller(control, session, "t").consumer("t", credit=(20, 1 << 40), ack_timeout_ms=1000)
    assert late.opened["ack_timeout_ms"] == 1000
    late.receive(20)
    late.acknowledge((0, 5))
    other = puller(control, session, "t").consumer("t")
    come = other.receive(25)
    assert sorted((message.offset, message.delivery) for message in come) == [
        *((offset, 2) for offset in range(5, 20)), *((offset, 1) for offset in range(20, 30))]
    late.acknowledge((5, 20))  # too late: another consumer has them
    other.acknowledge_all(come)
    until_committed(control, "t", 30)
    assert late.is_silent()


def test_an_extend_delays_the_redelivery_of_its_message(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    busy = puller(control, session, "t").consumer("t", credit=(2, 1 << 40), ack_timeout_ms=700)
    began = time.monotonic()
    busy.receive(2)
    busy.extend(1, ms=1700)
    other = puller(control, session, "t").consumer("t", credit=(10, 1 << 40))
    assert [(message.offset, message.delivery) for message in other.receive(1)] == [(0, 2)]
    assert [(message.offset, message.delivery) for message in other.receive(1)] == [(1, 2)]
    assert time.monotonic() - began >= 1.6


@pytest.mark.parametrize("end", ["close", "goodbye", "disconnect", "deleted channel"])
def test_messages_of_a_consumer_that_has_gone_go_to_others(control, session, end):
    control.create("t", "file")
    fill(session, "t", numbered(0, 40))
    one = puller(control, session, "t")
    gone = one.consumer("t", credit=(30, 1 << 40))
    come = gone.receive(30)
    gone.acknowledge((0, 10), (15, 20))
    until(lambda: group_of(control, "t")["unacknowledged"] == 15, "the acknowledgement")
    if end == "close":
        assert gone.close().values == {"value": 0}
        gone.acknowledge((10, 15))  # ignored
    elif end == "goodbye":
        one.send("goodbye", code=0, sentence="")
        assert one.goodbye() == "ok"
    elif end == "disconnect":
        one.close()
    else:
        one.send("reject", channel=gone.channel, flags=1, ms=0, ranges=[(10, 15)])
        assert gone.take_error().code == "not_supported", "dead letters are for later"
    other = puller(control, session, "t").consumer("t")
    again = other.receive(25)
    number = 1 if end in ("close", "goodbye") else 2  # an orderly end is no failure
    assert [(message.offset, message.delivery) for message in again] == [
        *((offset, number) for offset in (*range(10, 15), *range(20, 30))), *((offset, 1) for offset in range(30, 40))]
    assert all(message.payload == come[message.offset].payload for message in again if message.offset < 30)
    other.acknowledge_all(again)
    until_committed(control, "t", 40)


# --- Seek ---


def test_seek_continues_at_the_new_offset(control, session):
    control.create("t", "file")
    fill(session, "t", numbered(0, 50))
    consumer = puller(control, session, "t").consumer("t", credit=(30, 1 << 40))
    before = consumer.receive(30)
    assert consumer.seek("offset", 7) == 7
    consumer.give(43)
    come = consumer.receive(43)
    assert [(message.offset, message.delivery) for message in come] == [(offset, 1) for offset in range(7, 50)]
    assert consumer.seek("next") == 50
    assert consumer.seek("last") == 49
    consumer.give(2)
    assert [message.offset for message in consumer.receive(1)] == [49]
    assert consumer.seek("first") == 0
    assert [message.offset for message in consumer.receive(1)] == [0]
    assert consumer.seek("offset", 1 << 40) == 50
    assert consumer.seek("time", 0) == 0
    assert consumer.seek("time", come[20].time_us + (1 << 40)) == 50
    at = next(message.offset for message in before[:7] + come if message.time_us >= come[20].time_us)
    assert consumer.seek("time", come[20].time_us) == at


@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("start, value, first", [("first", 0, 0), ("next", 0, 100), ("last", 0, 99), ("offset", 42, 42),
                                                 ("offset", 1 << 50, 100), ("time", 0, 0), ("time", 1 << 60, 100)])
def test_a_new_group_or_cursor_begins_at_the_requested_start(control, session, broker_type, start, value, first):
    control.create("t", broker_type)
    producer = fill(session, "t", numbered(0, 100))
    group = puller(control, session, "t").consumer("t", "new", start=start, value=value)
    own = subscriber(control, session, "t").consumer("t", "", OWN, start=start, value=value)
    named = subscriber(control, session, "t").consumer("t", "mine", OWN, start=start, value=value)
    producer.produce([b"100|"])
    for consumer in (group, own, named):
        assert consumer.opened["next"] == first
        come = consumer.receive(101 - first)
        assert [message.payload for message in come] == numbered(first, 101 - first)


def test_start_applies_only_to_new_groups(control, session):
    control.create("t", "file")
    fill(session, "t", numbered(0, 20))
    first = puller(control, session, "t").consumer("t", "g")
    first.receive(20)
    first.acknowledge((0, 5))
    until_committed(control, "t", 5, "g")
    first.session.close()
    second = puller(control, session, "t").consumer("t", "g", start="next")
    assert second.opened["committed"] == 5
    assert [message.offset for message in second.receive(15)] == list(range(5, 20))


def test_an_offset_of_another_log_is_refused(control, session):
    control.create("t")
    one = puller(control, session, "t")
    incarnation = one.consumer("t").opened["incarnation"]
    assert one.error_of("consume_open", **open_values("t", "other", incarnation=incarnation ^ 1)) == "incarnation_changed"
    assert one.consumer("t", "other", incarnation=incarnation).opened["incarnation"] == incarnation
