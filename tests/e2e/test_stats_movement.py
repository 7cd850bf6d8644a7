"""Tests of the statistics that say whether a topic and its groups move: repeats, waits, ages and holes."""
import time

import pytest
import zmq

from session_support import consumer_of, fill_numbered, group_of
from support import PASSWORD, USER, numbered, receive, until

pytestmark = pytest.mark.one_broker


def await_group(control, **wanted):
    def is_so():
        group = group_of(control, "t")
        return group is not None and all(group[name] == value for name, value in wanted.items())
    until(is_so, lambda: f"{wanted}: {group_of(control, 't')}")


def test_messages_that_are_sent_again_count_as_duplicates(control, session):
    control.create("t")
    producer = session("t").producer("t")
    messages = numbered(0, 3)
    producer.produce(messages)
    producer.wait_confirmed()
    producer.produce(messages, sequence=producer.next - 3)
    producer.produce(numbered(3, 1))
    producer.wait_confirmed()
    stats = control.stats("t")
    assert (stats["messages_received"], stats["duplicates"]) == (4, 3)


def test_time_that_producers_wait_is_counted(broker, control):
    control.create("t", ring_bytes=65536)
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=1)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the consumer")
    control.ok("pause", topic="t", user_id=USER, password=PASSWORD)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=100_000)
    for message in numbered(0, 200, 1000):
        producer.send(message)
    until(lambda: control.stats("t")["blocked_ms"] >= 100, "the wait to be counted")
    control.ok("resume", topic="t", user_id=USER, password=PASSWORD)
    receive(consumer, 200)
    until(lambda: control.stats("t")["messages_received"] == 200, "all of them")
    ended = control.stats("t")["blocked_ms"]
    assert control.stats("t")["blocked_ms"] == ended, "nobody waits"


def test_the_oldest_message_has_an_age(control, session):
    control.create("t", "file")
    assert control.stats("t")["oldest_ms"] == 0
    fill_numbered(session, "t", 0, 2)
    first = until(lambda: control.stats("t")["oldest_ms"], "an age")
    until(lambda: control.stats("t")["oldest_ms"] > first, "a greater age")


def test_a_group_counts_the_messages_that_are_done_behind_one_that_is_not(control, session):
    control.create("t")
    fill_numbered(session, "t", 0, 6)
    consumer = consumer_of(control, session, "t", credit=(6, 1 << 20))
    consumer.receive(6)
    consumer.acknowledge((1, 3), 4)
    await_group(control, ack_holes=3, in_flight=3, acknowledged=3)
    consumer.acknowledge(0)
    await_group(control, ack_holes=1, in_flight=2)
    consumer.acknowledge(3, 5)
    await_group(control, ack_holes=0, in_flight=0)


def test_a_group_says_when_the_next_message_is_due(control, session):
    control.create("t")
    fill_numbered(session, "t", 0, 2)
    consumer = consumer_of(control, session, "t", credit=(2, 1 << 20))
    taken = consumer.receive(2)
    assert group_of(control, "t")["next_due_ms"] == 0
    consumer.reject(taken[0].offset, ms=60_000)
    await_group(control, retrying=1)
    ahead = group_of(control, "t")["next_due_ms"] / 1000 - time.time()
    assert 30 < ahead < 70, ahead


def test_consumers_with_credit_are_free(control, session):
    control.create("t")
    fill_numbered(session, "t", 0, 3)
    consumer = consumer_of(control, session, "t", credit=(2, 1 << 20))
    consumer.receive(2)
    await_group(control, consumers=1, free_consumers=0, ready=1)
    consumer.give(2)
    consumer.receive(1)
    await_group(control, free_consumers=1, ready=0)


def test_messages_out_never_decrease(broker, control):
    control.create("t")
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=1)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the subscriber")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 500, 1000):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 500, "the messages")
    before = until(lambda: control.stats("t")["messages_out"], "the first of them")
    subscriber.close()
    until(lambda: control.stats("t")["subscribers_count"] == 0, "its end")
    assert control.stats("t")["messages_out"] >= before
