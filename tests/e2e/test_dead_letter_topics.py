"""Tests of dead-letter topics: docs/session.md, "Dead letters". The topic of the group and the dead-letter topic are
on different threads of the broker."""
import time

import pytest

from batch_bytes import LZ4, Message
import session_frames

from dead_letter_support import dead_of, member, set_group
from session_support import fill, group_of, until_committed
from support import DEADLINE, until

MESSAGES = 60


@pytest.fixture
def broker(make_broker):
    return make_broker("--reactors", "2")


def create(control, kinds=("file", "file"), **settings):
    control.create("work", kinds[0])
    control.create("dead", kinds[1])
    set_group(control, "work", dead_letter_topic="dead", **settings)


def headers_of(letter):
    return {name.decode(): value.decode() for name, value in letter.said.headers}


def letters_of(control, session, count, group="reads"):
    """Returns the letters of the topic "dead". There must be `count`, each once."""
    consumer = member(control, session, "dead", group=group)
    letters = consumer.receive(count)
    assert consumer.is_silent(), "there are more letters than messages"
    consumer.session.close()
    assert len({letter.payload for letter in letters}) == count, "a letter is there twice"
    return letters


def test_a_letter_is_the_message_with_the_account_of_its_death(control, session):
    create(control)
    sent = Message(b"payload", key=b"customer 7", headers=((b"tenant", b"a"), (b"empty", b"")), time_us=1_700_000_000_000_000)
    fill(session, "work", [b"first", sent])
    consumer = member(control, session, "work")
    consumer.receive(2)
    consumer.start((0, 2))
    consumer.acknowledge(0)
    before_ms = int(time.time() * 1000)
    consumer.reject_dead(1, reason="no such customer")
    until_committed(control, "work", 2)
    letter, = letters_of(control, session, 1)
    assert (letter.said.payload, letter.said.key, letter.said.time_us) == (sent.payload, sent.key, sent.time_us)
    assert tuple(letter.said.headers[:2]) == sent.headers
    headers = headers_of(letter)
    assert headers["lightq-dead-cause"] == "rejected" and headers["lightq-dead-reason"] == "no such customer"
    assert (headers["lightq-dead-topic"], headers["lightq-dead-group"], headers["lightq-dead-offset"]) == ("work", "default", "1")
    assert headers["lightq-dead-count"] == "1"
    assert abs(int(headers["lightq-dead-last-failure-ms"]) - before_ms) < 60_000
    stats = group_of(control, "work")
    assert (stats["pending"], stats["dead_waiting"], stats["dead"]) == (0, 0, 1)


def test_a_message_that_dies_twice_tells_both_deaths(control, session):
    create(control)
    control.create("graveyard", "file")
    set_group(control, "dead", dead_letter_topic="graveyard")
    fill(session, "work", [b"m"])
    for topic, reason in (("work", "first"), ("dead", "second")):
        consumer = member(control, session, topic)
        consumer.receive(1)
        consumer.start(0)
        consumer.reject_dead(0, reason=reason)
        until_committed(control, topic, 1)
    consumer = member(control, session, "graveyard")
    letter, = consumer.receive(1)
    headers = headers_of(letter)
    assert (headers["lightq-dead-count"], headers["lightq-dead-topic"], headers["lightq-dead-reason"]) == ("2", "dead", "second")
    assert (headers["lightq-dead-origin-topic"], headers["lightq-dead-origin-reason"]) == ("work", "first")


@pytest.mark.parametrize("codec", [0, LZ4])
def test_producers_may_not_send_the_headers_of_letters(control, session, codec):
    control.create("t", "file")
    producer = session("t").producer("t")
    forged = [Message(b"x" * 500, headers=((b"lightq-dead-topic", b"work"),)), Message(b"y" * 500, headers=((b"a", b"b"),))]
    producer.send_batch(session_frames.batch(forged, producer.id, producer.epoch, producer.next, codec=codec))
    refused = producer.take_refuse()
    assert refused.code == "not_supported" and "lightq-dead-" in refused.values["sentence"]
    producer.produce([Message(b"z", headers=((b"lightq-dea", b"x"),))])
    producer.wait_confirmed()
    assert control.stats("t")["queue_size"] == 1


def test_letters_wait_for_a_topic_that_was_deleted(control, session):
    create(control)
    control.delete("dead")
    fill(session, "work", [b"one", b"two", b"three"])
    consumer = member(control, session, "work")
    consumer.receive(3)
    consumer.start((0, 3))
    consumer.reject_dead(0, 2, reason="broken")
    consumer.acknowledge(1)
    until(lambda: group_of(control, "work")["dead_waiting"] == 2, "the deaths")
    assert [each["state"] for each in dead_of(control, "work")] == ["dead_waiting"] * 2
    until(lambda: "was deleted" in group_of(control, "work")["dead_waiting_by"], "the cause")
    control.create("dead", "file")  # perhaps by somebody else: nothing goes there
    set_group(control, "work", max_attempts=7)
    until(lambda: "another one has its name" in group_of(control, "work")["dead_waiting_by"], "the new cause")
    assert group_of(control, "work")["dead_waiting"] == 2 and control.stats("dead")["next_offset"] == 0
    set_group(control, "work", dead_letter_topic="dead")
    until_committed(control, "work", 3)
    assert {letter.payload for letter in letters_of(control, session, 2)} == {b"one", b"three"}
    assert group_of(control, "work")["dead_waiting_by"] == ""


def reject_until_settled(control, session, topic):
    """Declares every message dead that the topic still delivers, until each one is finished or parked."""
    consumer = member(control, session, topic)
    deadline = time.monotonic() + DEADLINE
    while sum(group_of(control, topic)[state] for state in ("ready", "in_flight", "retrying", "dead_waiting")):
        assert time.monotonic() < deadline, group_of(control, topic)
        consumer.session.read_some(0.05)
        arrived, consumer.messages = consumer.messages, []
        for message in arrived:
            consumer.start((message.offset, message.offset + 1))
            consumer.reject_dead(message.offset, reason="broken")
    consumer.session.close()


@pytest.mark.parametrize("target", ["other", ""])
@pytest.mark.parametrize("kills", [False, True])
def test_another_dead_letter_topic_or_none_doubles_nothing(broker, control, session, target, kills):
    create(control)
    control.create("other", "file")
    fill(session, "work", [b"message %d" % n for n in range(MESSAGES)])
    consumer = member(control, session, "work", credit=(MESSAGES, 1 << 20))
    for message in consumer.receive(MESSAGES):
        consumer.start((message.offset, message.offset + 1))
        consumer.reject_dead(message.offset, reason="first")
    until(lambda: control.stats("dead")["next_offset"] > 0, "a letter")
    set_group(control, "work", dead_letter_topic=target)
    if kills:
        broker.kill()
        broker.start()
        control.connect(broker.control_uri)
    else:
        consumer.session.close()
    reject_until_settled(control, session, "work")
    places = [b"message %d" % message["offset"] for message in dead_of(control, "work")]
    for topic in ("dead", "other"):
        letters = control.stats(topic)["next_offset"]
        if letters:
            places += [letter.payload for letter in member(control, session, topic, group="reads").receive(letters)]
    assert sorted(places) == sorted(b"message %d" % n for n in range(MESSAGES)), "a message is in two places, or in none"


@pytest.mark.parametrize("kinds", [("file", "file"), ("queue_file", "file"), ("file", "queue_file")])
def test_kills_neither_double_nor_lose_a_letter(broker, control, session, kinds):
    create(control, kinds)
    fill(session, "work", [b"message %d" % n for n in range(MESSAGES)])
    if kinds[0] == "queue_file":
        until(lambda: control.stats("work")["durable_offset"] == MESSAGES, "messages on disk")
    for kill in range(6):
        consumer = member(control, session, "work", credit=(10, 1 << 20))
        for message in consumer.receive(5):
            consumer.start((message.offset, message.offset + 1))
            consumer.reject_dead(message.offset, reason=f"kill {kill}")
        if kill % 2:
            until(lambda: group_of(control, "work")["committed_offset"] > 0, "a letter")
        broker.kill()
        broker.start()
        control.connect(broker.control_uri)
    consumer = member(control, session, "work")
    deadline = time.monotonic() + DEADLINE
    while group_of(control, "work")["committed_offset"] < MESSAGES:
        assert time.monotonic() < deadline, group_of(control, "work")
        consumer.session.read_some(0.05)
        arrived, consumer.messages = consumer.messages, []
        for message in arrived:
            consumer.start((message.offset, message.offset + 1))
            consumer.reject_dead(message.offset, reason="broken")
    letters = letters_of(control, session, MESSAGES)
    assert {letter.payload for letter in letters} == {b"message %d" % n for n in range(MESSAGES)}
