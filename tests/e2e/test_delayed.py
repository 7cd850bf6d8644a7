"""Tests of delayed messages with the Python session client, which implements docs/session.md alone."""
import pytest
import zmq

from batch_bytes import LZ4, Message, batch
from delayed_support import (DAY_US, ID, SCHEDULE, YEARS_US, change, delayed, done, now_us, schedule, scheduler, stats_of, waiting)
from session_client import FLUSHED
from session_support import consumer_of, fill
from support import ADMIN, ADMIN_PASSWORD, receive, until

KINDS = ("queue", "file", "queue_file")


def payloads(messages):
    return [message.payload for message in messages]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_arrive_in_the_order_of_their_due_times_and_never_early(control, session, kind):
    control.create("t", kind)
    consumer = consumer_of(control, session, "t")
    begin = now_us()
    schedule(session, [delayed(b"third", seconds=0.6), delayed(b"first", seconds=0.2), delayed(b"at once"),
                       delayed(b"second", at_us=begin + 400_000)])
    come = []
    for _ in range(4):
        come += [(*consumer.receive(1), now_us())]
    assert payloads([message for message, _ in come]) == [b"at once", b"first", b"second", b"third"]
    for (_, at), least in zip(come, (0, 200_000, 400_000, 600_000)):
        assert at >= begin + least
    assert [message.offset for message, _ in come] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_arrives_with_everything_but_its_due_time(control, session, kind):
    control.create("t", kind)
    consumer = consumer_of(control, session, "t")
    schedule(session, [Message(b"p", key=b"k", headers=((ID, b"order 7"), (b"a", b"")), time_us=5, due=-100_000)])
    message, = consumer.receive(1)
    assert message.said == Message(b"p", key=b"k", headers=((ID, b"order 7"), (b"a", b"")), time_us=5, due=None)


def test_a_compressed_batch_arrives_as_its_messages(control, session):
    control.create("t", "file")
    producer = scheduler(session)
    producer.send_batch(batch([delayed(b"one", seconds=0.1), delayed(b"two", seconds=0.1)], producer.id, producer.epoch, 0, codec=LZ4))
    producer.wait_confirmed(2)
    assert payloads(consumer_of(control, session, "t").receive(2)) == [b"one", b"two"]


def test_a_waiting_message_is_in_no_group_and_has_no_offset(control, session):
    control.create("t", "file")
    consumer = consumer_of(control, session, "t")
    schedule(session, [delayed(b"later", seconds=3600)])
    assert consumer.is_silent()
    stats = control.stats("t")
    assert (stats["next_offset"], stats["messages_received"], stats["groups"][0]["pending"]) == (0, 0, 0)
    assert stats["delayed"]["messages"] == 1 and stats["delayed"]["bytes"] > 0
    assert abs(stats["delayed"]["next_due_us"] - now_us() - 3_600_000_000) < 60_000_000


def test_the_schedule_confirms_each_batch_with_its_number(control, session):
    control.create("t", "queue")
    producer = scheduler(session)
    numbers = []
    for payload in (b"a", b"b", b"c"):
        producer.produce([delayed(payload, seconds=60)])
        producer.wait_confirmed()
        numbers.append(producer.next_offset - 1)
    assert numbers == [message["number"] for message in waiting(control)]
    other = scheduler(session)
    assert other.opened["next_offset"] > numbers[-1]


@pytest.mark.parametrize("kind", ("queue", "file"))
def test_a_batch_that_is_sent_again_is_stored_once(control, session, kind):
    control.create("t", kind)
    producer = scheduler(session)
    first = producer.batch([delayed(b"once", seconds=0.5)], 0)
    producer.send_batch(first)
    producer.wait_confirmed(1)
    due, = [message["due_us"] for message in waiting(control)]
    again = session("t").producer("t", producer.id, producer.epoch + 1, target=SCHEDULE)
    assert again.opened["expected"] == 1
    again.send_batch(again.batch([delayed(b"once", seconds=0.5)], 0))
    again.wait_confirmed(1)
    assert [message["due_us"] for message in waiting(control)] in ([due], []), "the first due time counts"
    consumer = consumer_of(control, session, "t")
    assert payloads(consumer.receive(1)) == [b"once"] and consumer.is_silent()


def test_the_schedule_has_its_own_producers(control, session):
    control.create("t", "file")
    log_producer = fill(session, "t", [b"m"])
    again = session("t")
    assert again.error_of("produce_open", producer_id=log_producer.id, producer_epoch=log_producer.epoch + 1, level=0, target=SCHEDULE,
                          topic="t") == "unknown_producer"


@pytest.mark.parametrize("messages, code", [
    ([Message(b"without a time")], "not_supported"), ([delayed(b"m", at_us=now_us() + YEARS_US + DAY_US)], "too_large"),
    ([delayed(b"m", seconds=1), Message(b"m", due=-YEARS_US - 1)], "too_large"), ([Message(b"m", due=-(1 << 63))], "too_large"),
    ([delayed(b"m", seconds=1, id=b"i" * 129)], "too_large"), ([Message(b"m", headers=((ID, b""),), due=0)], "too_large"),
    ([Message(b"m", headers=((ID, b"1"), (ID, b"2")), due=0)], "too_large"),
    ([Message(b"m", headers=((b"lightq-dead-count", b"1"),), due=0)], "not_supported")])
@pytest.mark.parametrize("codec", (0, LZ4))
def test_a_batch_that_cannot_wait_is_refused_and_the_next_one_is_stored(control, session, messages, code, codec):
    control.create("t", "queue")
    producer = scheduler(session)
    producer.send_batch(batch(messages, producer.id, producer.epoch, 0, codec=codec))
    refused = producer.take_refuse()
    assert (refused.code, refused.values["begin"], refused.values["end"], refused.values["expected"]) == (code, 0, len(messages), 0)
    producer.produce([delayed(b"longest", seconds=3653 * 24 * 3600, id=b"i" * 128)], sequence=0)
    producer.wait_confirmed(1)
    message, = waiting(control)
    assert message["id"] == "i" * 128


@pytest.mark.parametrize("codec", (0, LZ4))
def test_a_channel_to_the_log_takes_no_due_times(control, session, codec):
    control.create("t", "queue")
    producer = session("t").producer("t")
    producer.send_batch(batch([delayed(b"m", seconds=1)], producer.id, producer.epoch, 0, codec=codec))
    refused = producer.take_refuse()
    assert refused.code == "not_supported" and "target 1" in refused.values["sentence"]
    producer.produce([b"m"], sequence=0)
    producer.wait_confirmed(1)
    assert stats_of(control) is None


def test_not_every_topic_has_a_schedule(control, session):
    control.create("d", "direct")
    control.create("q", "queue")
    one = session("d")
    assert one.error_of("produce_open", producer_id=0, producer_epoch=0, level=0, target=SCHEDULE, topic="d") == "not_supported"
    two = session("q")
    assert two.error_of("produce_open", producer_id=0, producer_epoch=0, level=FLUSHED, target=SCHEDULE, topic="q") == "not_supported"


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_messages_are_listed_by_due_time(control, session, kind):
    control.create("t", kind)
    base = now_us() + 3_600_000_000
    schedule(session, [delayed(b"c", at_us=base + 2, id=b"i"), delayed(b"aa", at_us=base, key=b"k"), delayed(b"b", at_us=base + 1),
                       delayed(b"d", at_us=base + 2, id=b"i")])
    listed = waiting(control)
    assert [message["due_us"] - base for message in listed] == [0, 1, 2, 2]
    numbers = [message["number"] for message in listed]
    assert listed[0]["key"] == "k" and "id" not in listed[0] and listed[2]["id"] == "i" and listed[1]["state"] == "waiting"
    assert numbers[1:2] > numbers[0:1] and numbers[2] < numbers[0] < numbers[3]
    assert waiting(control, due_from_us=base + 1, due_until_us=base + 2) == listed[1:2]
    assert waiting(control, id="i") == listed[2:]
    assert waiting(control, numbers=[numbers[0]], ranges=[[numbers[2], numbers[2] + 1]]) == [listed[2], listed[0]], "by number"
    assert waiting(control, id="other") == [] and waiting(control, due_from_us=base + 3) == []


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_messages_are_cancelled_hurried_and_rescheduled(control, session, kind):
    control.create("t", kind)
    consumer = consumer_of(control, session, "t")
    schedule(session, [delayed(b"%d" % number, seconds=3600, id=b"id %d" % (number % 2)) for number in range(6)])
    numbers = [message["number"] for message in waiting(control)]
    assert change(control, "cancel_delayed", id="id 0", preview=True) == done(3) and len(waiting(control)) == 6
    assert change(control, "cancel_delayed", numbers=numbers[0:3:2]) == done(2)
    assert change(control, "cancel_delayed", numbers=numbers[0:3:2]) == done(2), "idempotent"
    assert change(control, "hurry_delayed", numbers=[numbers[1]]) == done(1)
    assert payloads(consumer.receive(1)) == [b"1"]
    assert change(control, "reschedule_delayed", id="id 1", delay_us=7_200_000_000)["messages"] == 2
    assert [message["number"] for message in waiting(control)] == [numbers[4], numbers[3], numbers[5]]
    at = now_us() + 300_000
    assert change(control, "reschedule_delayed", numbers=[numbers[5]], deliver_at_us=at) == done(1)
    message, = consumer.receive(1)
    assert (message.payload, now_us() >= at) == (b"5", True)
    assert change(control, "cancel_delayed") == done(2) and waiting(control) == []
    assert change(control, "hurry_delayed", numbers=[numbers[5], numbers[5] + 1000]) == {
        "messages": 0, "too_late": 1, "unknown": 1,
        "untouched": [{"number": numbers[5], "why": "too_late"}, {"number": numbers[5] + 1000, "why": "unknown"}]}
    assert consumer.is_silent()
    stats = stats_of(control)
    assert (stats["messages"], stats["moved"], stats["cancelled"], stats["next_due_us"]) == (0, 2, 4, 0)


def test_a_new_due_time_may_not_be_too_far(control, session):
    control.create("t", "queue")
    schedule(session, [delayed(b"m", seconds=60)])
    for more in {}, {"preview": True}:
        control.fails("invalid_request", "reschedule_delayed", topic="t", deliver_at_us=now_us() + YEARS_US + DAY_US, **more,
                      admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    assert len(waiting(control)) == 1


@pytest.mark.parametrize("kind", ("file", "queue_file"))
@pytest.mark.parametrize("how", ("stop", "kill"))
def test_waiting_messages_and_their_changes_survive_the_end_of_the_broker(broker, control, session, kind, how):
    control.create("t", kind)
    schedule(session, [delayed(b"%d" % number, seconds=3600, id=b"id %d" % number) for number in range(5)], level=FLUSHED)
    change(control, "cancel_delayed", id="id 0")
    change(control, "reschedule_delayed", id="id 3", delay_us=60_000_000)
    before = waiting(control)
    broker.kill() if how == "kill" else broker.stop()
    broker.start()
    assert waiting(control) == before
    change(control, "hurry_delayed", id="id 4")
    change(control, "hurry_delayed", id="id 1")
    consumer = consumer_of(control, session, "t")
    assert payloads(consumer.receive(2)) == [b"4", b"1"]


def test_what_fell_due_while_the_broker_was_down_leaves_in_due_order(broker, control, session):
    control.create("t", "file")
    at = now_us() + 1_000_000
    schedule(session, [delayed(b"%d" % number, at_us=at - number) for number in range(20)], level=FLUSHED)
    broker.kill()
    until(lambda: now_us() > at, "the due times")
    broker.start()
    consumer = consumer_of(control, session, "t")
    assert payloads(consumer.receive(20)) == [b"%d" % number for number in reversed(range(20))]
    assert consumer.is_silent() and waiting(control) == []


def test_plain_consumers_receive_due_messages(broker, control, session):
    control.create("t", "queue")
    socket = broker.socket(zmq.PULL, control.join("t", "pull"))
    schedule(session, [delayed(b"due", seconds=0.1)])
    assert receive(socket, 1) == [b"due"]


def test_a_purge_leaves_delayed_messages_unless_told_otherwise(control, session):
    control.create("t", "file")
    fill(session, "t", [b"stored"])
    schedule(session, [delayed(b"%d" % number, seconds=3600) for number in range(3)])
    assert control.ok("purge", topic="t", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)["messages"] == 1
    assert len(waiting(control)) == 3
    fill(session, "t", [b"stored"])
    assert control.ok("purge", topic="t", delayed=True, admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)["messages"] == 4
    assert waiting(control) == []


def test_a_deleted_topic_takes_its_schedule_with_it(broker, control, session):
    control.create("t", "file")
    producer = schedule(session, [delayed(b"m", seconds=3600)])
    control.delete("t")
    assert producer.take_error().code == "topic_deleted"
    control.create("t", "file")
    assert stats_of(control) is None and waiting(control) == []
    broker.restart()
    assert stats_of(control) is None and waiting(control) == []


@pytest.mark.parametrize("kind", ("queue", "file"))
def test_a_full_topic_refuses_delayed_messages_under_reject(control, session, kind):
    sizes = {"ring_bytes": 65536} if kind == "queue" else {"capacity_bytes": 1 << 18, "segment_bytes": 65536}
    control.create("t", kind, overflow="reject", **sizes)
    producer = scheduler(session)
    stored = 0
    while stored < 1000:
        producer.produce([delayed(b"x" * 4000, seconds=3600)], sequence=stored)
        session_of = producer.session
        session_of.wait(lambda: producer.confirmed > stored or any(frame.op == "refuse" for frame in session_of.frames), "an answer", 20)
        if producer.confirmed == stored:
            break
        stored += 1
    assert producer.take_refuse().code == "limit_reached" and stored > 5
    assert change(control, "cancel_delayed")["messages"] == stored
    producer.produce([delayed(b"fits again", seconds=3600)], sequence=stored)
    producer.wait_confirmed(stored + 1)


def test_due_messages_leave_although_no_consumer_is_there(control, session):
    control.create("t", "file")
    schedule(session, [delayed(b"%d" % number, seconds=0.05) for number in range(200)])
    until(lambda: control.stats("t")["next_offset"] == 200, "the messages")
    stats = stats_of(control)
    assert stats["moved"] == 200 and stats["messages"] == 0 and stats["corrupt"] == 0
