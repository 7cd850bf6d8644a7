"""Tests groups and cursors over sessions when the broker ends: which messages count as acknowledged, and
which are delivered again."""
import random
import time

import pytest

from session_client import GROUP, OWN, RECEIVED, join
from session_support import consumer_of, fill_numbered, group_of, offsets
from support import files_below, numbered, until

DURABLE = ["file", "queue_file"]


def saved(broker, work):
    """Does `work`, and waits until the broker has since begun to write cursors to disk."""
    def newest():  # a new file is written before it gets its name, and then keeps that name
        files = [path for path in files_below(broker.data_dir / "topics") if path.suffix in (".0", ".1")]
        return max((path.stat().st_mtime_ns for path in files if path.stem == "cursors"), default=0)
    before = newest()
    work()
    until(lambda: newest() > before, "the cursors to be saved")


@pytest.mark.parametrize("broker_type", DURABLE)
@pytest.mark.parametrize("name, mode", [("", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_acknowledged_messages_are_not_redelivered_after_a_clean_stop(broker, control, session, broker_type, name, mode):
    control.create("t", broker_type)
    fill_numbered(session, "t", 0, 100)
    consumer = consumer_of(control, session, "t", name, mode, credit=(60, 1 << 40))
    consumer.receive(60)
    consumer.acknowledge((0, 10), (20, 25), (40, 50))
    until(lambda: group_of(control, "t", name or "default")["unacknowledged"] == 35, "the acknowledgement")
    broker.stop()
    assert consumer.session.goodbye() == "shutting_down"
    broker.start()
    again = consumer_of(control, session, "t", name, mode)
    assert again.opened["committed"] == 10
    come = again.receive(75)
    assert sorted(offsets(come)) == [*range(10, 20), *range(25, 40), *range(50, 100)]
    assert {message.payload for message in come} == {numbered(message.offset, 1)[0] for message in come}
    again.acknowledge_all(come)
    until(lambda: group_of(control, "t", name or "default")["committed_offset"] == 100, "everything")
    assert again.is_silent()


@pytest.mark.parametrize("broker_type", DURABLE)
@pytest.mark.parametrize("name, mode", [("", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_after_a_kill_everything_unacknowledged_comes_and_nothing_acknowledged_long_ago(
        broker, control, session, broker_type, name, mode):
    control.create("t", broker_type)
    fill_numbered(session, "t", 0, 100)
    consumer = consumer_of(control, session, "t", name, mode, credit=(60, 1 << 40))
    consumer.receive(60)

    def acknowledge(ranges, left):
        consumer.acknowledge(*ranges)
        until(lambda: group_of(control, "t", name or "default")["unacknowledged"] == left, "the acknowledgement")

    saved(broker, lambda: acknowledge([(0, 10), (20, 25)], left=45))
    # When this write begins, the first acknowledgement is on disk.
    saved(broker, lambda: acknowledge([(30, 35)], left=40))
    consumer.acknowledge((35, 40))  # these two acknowledgements may be lost
    broker.kill()
    broker.start()
    certain = {*range(10, 20), *range(25, 30), *range(40, 100)}
    again = consumer_of(control, session, "t", name, mode)
    again.session.wait(lambda: certain <= set(offsets(again.messages)), "everything that was not acknowledged")
    assert again.is_silent()
    come = offsets(again.messages)
    assert set(come) <= certain | set(range(30, 40)) and len(set(come)) == len(come)


@pytest.mark.parametrize("broker_type", DURABLE)
def test_after_a_kill_deliveries_and_delays_are_as_before(broker, control, session, broker_type):
    """The group's state is saved: no acknowledged message comes again, in whatever order they were acknowledged;
    the delivery numbers go on; delayed messages are not early, and hold no new ones back."""
    control.create("t", broker_type)
    count, delay_ms = 2000, 6000
    fill_numbered(session, "t", 0, count)
    consumer = consumer_of(control, session, "t", "billing")
    consumer.receive(count)
    again, later, held = range(1, 200, 2), range(201, 400, 2), range(401, count, 2)
    consumer.reject(*again)
    come = consumer.receive(len(again))
    assert {message.delivery for message in come} == {2}
    consumer.reject(*again[:50])
    assert {message.delivery for message in consumer.receive(50)} == {3}

    def acknowledge():
        consumer.acknowledge(*range(0, count, 2))
        until(lambda: group_of(control, "t", "billing")["unacknowledged"] == count / 2, "the acknowledgement")

    def reject():
        consumer.reject(*later, ms=delay_ms)
        until(lambda: group_of(control, "t", "billing")["retrying"] == len(later), "the reject")

    saved(broker, acknowledge)
    rejected_at = time.time()
    saved(broker, reject)
    saved(broker, lambda: consumer.extend((0, count), ms=60_000) or consumer.acknowledge(held[-1]))
    broker.kill()
    broker.start()
    fill_numbered(session, "t", count, 10)
    heir = consumer_of(control, session, "t", "billing")
    expected = {offset: 4 if offset < 100 else 3 if offset < 200 else 2 for offset in [*again, *held]}
    expected |= {offset: 1 for offset in range(count, count + 10)}
    del expected[held[-1]]
    heir.session.wait(lambda: expected.keys() <= set(offsets(heir.messages)) | {held[-1]}, "all that wait for nothing")
    come = {message.offset: message.delivery for message in heir.messages}
    early = set(come) & set(later)
    assert not early or time.time() >= rejected_at + delay_ms / 1000, "delayed messages are early"
    come.pop(held[-1], None)  # its acknowledgement may not have been saved
    assert {offset: number for offset, number in come.items() if offset not in later} == expected
    heir.session.wait(lambda: set(later) <= set(offsets(heir.messages)), "the delayed messages")
    assert time.time() >= rejected_at + delay_ms / 1000, "delayed messages are early"
    assert {message.delivery for message in heir.messages if message.offset in later} == {2}
    assert len(heir.messages) == len(set(offsets(heir.messages)))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_an_opened_group_survives_a_kill(broker, control, session, broker_type):
    """Nothing was acknowledged before the kill. The group's beginning is on disk before its consumer is told
    that it is open."""
    control.create("t", broker_type)
    fill_numbered(session, "t", 0, 20)
    for name, mode in (("", GROUP), ("billing", GROUP), ("mine", OWN)):
        consumer_of(control, session, "t", name, mode, start="next")
    broker.kill()
    broker.start()
    producer = fill_numbered(session, "t", 20, 10)
    assert producer.confirmed == 10
    for name, mode in (("", GROUP), ("billing", GROUP), ("mine", OWN)):
        assert offsets(consumer_of(control, session, "t", name, mode).receive(10)) == list(range(20, 30)), name


@pytest.mark.parametrize("broker_type", DURABLE)
def test_over_kills_every_message_is_delivered_and_none_twice_to_a_consumer_with_a_cursor(broker, control, session, broker_type):
    """The consumer stores its own offset together with its results, and continues there."""
    control.create("t", broker_type)
    seed, kept, produced = 3, [], 0
    dice = random.Random(seed)
    for round_number in range(4):
        fill_numbered(session, "t", produced, 300)
        produced += 300
        own = consumer_of(control, session, "t", "keeper", OWN)
        if own.opened["next"] != len(kept):
            own.seek("offset", len(kept))
        take = dice.randrange(50, 250) if round_number < 3 else produced - len(kept)
        come = own.receive(take)
        kept += offsets(come)
        own.acknowledge_before(len(kept))
        broker.kill()
        broker.start()
    assert kept == list(range(produced))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_four_producers_and_four_consumers_over_kills(broker, control, session, broker_type):
    """Every message is delivered at least once and stored once, and each producer's messages are in order."""
    control.create("t", broker_type)
    # Otherwise a message delivered before it was written is stored again after a kill.
    is_lasting = broker_type == "file"
    identities, sent, seen = [(0, 0)] * 4, [0] * 4, [dict() for _ in range(4)]
    unconfirmed = [[] for _ in range(4)]
    dice = random.Random(11)
    for round_number in range(3):
        producers = []
        for index in range(4):
            producer = session("t").producer("t", *identities[index])
            identities[index] = (producer.id, producer.epoch)
            for sequence, batch in unconfirmed[index]:
                producer.produce(batch, sequence=sequence)
            if sent[index] == 0:  # the broker may forget an id without a stored batch
                producer.produce([b"%d|0|" % index])
                producer.wait_confirmed()
                sent[index] = 1
            producers.append(producer)
        consumers = [consumer_of(control, session, "t", credit=(100, 1 << 40)) for _ in range(4)]
        target = sum(sent) + dice.randrange(400, 900)
        while sum(sent) < target:
            for index, producer in enumerate(producers):
                batch = [b"%d|%d|" % (index, sent[index] + at) for at in range(dice.randrange(1, 20))]
                unconfirmed[index].append((sent[index], batch))
                producer.produce(batch, sequence=sent[index])
                sent[index] += len(batch)
                producer.session.read_some(0.001)
            take(consumers, seen, is_lasting)
        broker.kill()
        for index, producer in enumerate(producers):
            unconfirmed[index] = [(sequence, batch) for sequence, batch in unconfirmed[index]
                                  if sequence + len(batch) > producer.confirmed]
        broker.start()
    producers = [session("t").producer("t", *identity) for identity in identities]
    for index, producer in enumerate(producers):
        for sequence, batch in unconfirmed[index]:
            producer.produce(batch, sequence=sequence)
        producer.next = max(producer.next, sent[index])
    consumers = [consumer_of(control, session, "t", credit=(100, 1 << 40)) for _ in range(4)]

    def all_come():
        take(consumers, seen, is_lasting)
        return all(len(seen[index]) >= sent[index] for index in range(4))

    until(all_come, lambda: f"{sent}: {[len(each) for each in seen]}")
    stored = [message.payload.split(b"|") for message in session(join(control, "t", "pull")).read("t")[0]]
    for index in range(4):
        assert sorted(seen[index]) == list(range(sent[index]))
        own = [int(number) for producer, number, _ in stored if int(producer) == index]
        assert own == list(range(sent[index])), "stored once each, in their order"


def take(consumers, seen, is_lasting):
    for consumer in consumers:
        consumer.session.read_some(0.001)
        come, consumer.messages = consumer.messages, []
        for message in come:
            index, number, _ = message.payload.split(b"|")
            place = seen[int(index)].setdefault(int(number), message.offset)
            assert not is_lasting or place == message.offset, "stored twice"
        consumer.acknowledge_all(come)
        if come:
            consumer.give(len(come))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_an_unnamed_cursor_misses_nothing_if_a_kill_took_the_logs_end(broker, control, session, broker_type):
    control.create("t", broker_type)
    lost_an_end = False

    def produce(first):  # half of these are on disk for certain
        producer = session("t").producer("t", level=RECEIVED)
        producer.produce(numbered(first, 50))
        producer.wait_confirmed()
        until(lambda: control.stats("t")["durable_offset"] == control.stats("t")["next_offset"], "half to be durable")
        producer.produce(numbered(first + 50, 50))

    produce(0)
    consumer = consumer_of(control, session, "t", mode=OWN)
    come = consumer.receive(100)
    for life in range(1, 20):
        place = come[-1].offset + 1
        broker.kill()
        broker.start()
        end = control.stats("t")["next_offset"]
        again = consumer_of(control, session, "t", mode=OWN, start="offset", value=place,
                            incarnation=consumer.opened["incarnation"])
        assert again.opened["incarnation"] != consumer.opened["incarnation"]
        assert again.opened["next"] == min(place, end), "nothing is passed over, and nothing comes twice"
        produce(1000 * life)
        come = again.receive(100)
        assert [message.payload for message in come] == numbered(1000 * life, 100)
        assert offsets(come) == list(range(min(place, end), min(place, end) + 100))
        consumer, lost_an_end = again, lost_an_end or end < place
        if lost_an_end or broker_type == "file":
            break
    assert lost_an_end == (broker_type == "queue_file"), "a file topic is written before anybody is told"
