"""Tests purging topics and groups: which messages are gone, where consumers continue, and that no purged
message is delivered later."""
import threading

import pytest
import zmq

from pause_support import DURABLE, KIB, MINE, TYPES, committed, consumer_of, end, fill, group_of, pause, purge, resume
from session_client import GROUP, OWN, RECEIVED, Session, everything, join
from session_support import numbers, offsets
from support import DEADLINE, files_below, numbered, receive_topic, until
from test_data_directory import small_disk  # noqa: F401 (a fixture)

pytestmark = pytest.mark.one_broker


@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("name, mode", [("default", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_a_purged_group_continues_at_the_end(control, session, broker_type, name, mode):
    control.create("t", broker_type)
    purged = consumer_of(control, session, name, mode, credit=(30, 1 << 40))
    other = consumer_of(control, session, "other")
    fill(session, 0, 100)
    before = purged.receive(30)
    purged.acknowledge((0, 10))
    committed(control, name, 10)
    assert purge(control, group=name) == 90
    after = group_of(control, name)
    assert (after["next_offset"], after["committed_offset"], after["lag"], after["unacknowledged"], after["lost"]) == (
        100, 100, 0, 0, 0)
    assert purge(control, group=name) == 0
    purged.acknowledge_all(before)  # too late, which does no harm
    purged.give(1000)
    fill(session, 100, 10)
    assert offsets(purged.receive(10)) == list(range(100, 110)) and purged.is_silent()
    assert offsets(other.receive(110)) == list(range(110))


def empty_bytes(broker_type, segment_bytes):
    """Returns the bytes of a topic's log without messages. A durable topic keeps its last file and the
    prepared next one."""
    return 2 * segment_bytes if broker_type in DURABLE else 0


@pytest.mark.parametrize("broker_type", TYPES)
def test_a_purged_topic_is_empty(broker, control, session, broker_type):
    control.create("t", broker_type, segment_bytes=64 * KIB) if broker_type in DURABLE else control.create("t")
    group = consumer_of(control, session, "g", credit=(30, 1 << 40))
    own = consumer_of(control, session, "mine", OWN, credit=(0, 0), holds=True)
    uri = control.join("t", "sub")
    subscriber = broker.socket(zmq.SUB, uri)
    until(lambda: control.stats("t")["subscribers"][0]["connected"], "the subscriber")
    fill(session, 0, 400, size=KIB)
    assert len(group.receive(30)) == 30
    assert numbers(receive_topic(subscriber, "t", 400)) == list(range(400))
    assert control.stats("t")["log_bytes"] > 300 * KIB
    assert purge(control) == 400
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"], stats["queue_size"]) == (400, 400, 0)
    assert stats["log_bytes"] <= empty_bytes(broker_type, 64 * KIB)
    assert [(each["next_offset"], each["committed_offset"], each["lost"], each["lag"]) for each in stats["groups"]] == [
        (400, 400, 0, 0)] * 2
    assert (stats["subscribers"][0]["lost"], stats["dropped"], stats["unclaimed_dropped"]) == (0, 0, 0)
    assert purge(control) == 0
    assert session(join(control, "t", "sub")).read("t") == ([], 400)
    group.give(100)
    own.give(100, 1 << 30)
    assert group.is_silent() and own.is_silent()
    fresh = consumer_of(control, session, "fresh")
    fill(session, 400, 20)
    for consumer in (group, own, fresh):
        assert offsets(consumer.receive(20)) == list(range(400, 420))
    assert numbers(receive_topic(subscriber, "t", 20)) == list(range(400, 420))


@pytest.mark.parametrize("broker_type", DURABLE)
@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("messages", [3, 300])
def test_purged_messages_do_not_reappear(broker, control, session, broker_type, how, messages):
    control.create("t", broker_type, segment_bytes=64 * KIB)
    producer = fill(session, 0, messages, size=KIB)
    consumer_of(control, session, "g", credit=(2, 1 << 40)).receive(2)
    uri = control.join("t", "sub")
    assert purge(control) == messages
    end(broker, how)
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"]) == (messages, messages)
    assert stats["log_bytes"] <= empty_bytes(broker_type, 64 * KIB)
    assert [(each["next_offset"], each["lost"]) for each in stats["groups"]] == [(messages, 0)]
    subscriber = broker.socket(zmq.SUB, uri)
    until(lambda: control.stats("t")["subscribers"][0]["connected"], "the subscriber")
    again = session("t").producer("t", producer.id, producer.epoch + 1)
    assert again.next == messages, "the producer is known still"
    again.produce(numbered(messages, 10))
    again.wait_confirmed()
    for name in ("g", "fresh"):
        assert offsets(consumer_of(control, session, name).receive(10)) == list(range(messages, messages + 10))
    assert numbers(receive_topic(subscriber, "t", 10)) == list(range(messages, messages + 10))
    end(broker, how)
    assert control.stats("t")["first_offset"] == messages
    assert numbers(everything(broker, control, "t", 10)) == list(range(messages, messages + 10))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_broker_killed_during_a_purge_has_purged_all_or_nothing(broker, control, session, broker_type):
    control.create("t", broker_type, segment_bytes=64 * KIB)
    consumer_of(control, session, "g")
    begin = count = 0
    producer = None
    for ms in (0, 0, 1, 2, 4, 8):
        known = dict(producer_id=producer.id, epoch=producer.epoch + 1) if producer else {}
        producer = session("t").producer("t", **known)
        assert producer.next == count, "it is known, whatever was purged"
        for at in range(count, count + 100, 10):
            producer.produce(numbered(at, 10, KIB))
        count += 100
        producer.wait_confirmed()
        control.socket.send_json({"cmd": "purge", "topic": "t", **MINE})
        answered = control.socket.poll(ms)
        broker.kill()
        broker.start()
        stats = control.stats("t")
        assert stats["next_offset"] == count
        assert stats["first_offset"] in ((count,) if answered else (begin, count)), stats
        assert group_of(control, "g")["lost"] == 0
        begin = stats["first_offset"]
    left, _ = session(join(control, "t", "sub")).read("t")
    assert numbers(message.payload for message in left) == list(range(begin, count))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_purged_group_continues_at_the_end_after_a_kill_too(broker, control, session, broker_type):
    control.create("t", broker_type)
    consumer_of(control, session, "g", credit=(20, 1 << 40)).receive(0)
    fill(session, 0, 50)
    assert purge(control, group="g") == 50
    broker.kill()
    broker.start()
    assert group_of(control, "g")["next_offset"] == min(50, control.stats("t")["next_offset"])
    assert consumer_of(control, session, "g").is_silent()
    next_offset = control.stats("t")["next_offset"]
    fill(session, next_offset, 5)
    come = consumer_of(control, session, "fresh").receive(next_offset + 5)
    assert offsets(come) == list(range(next_offset + 5))


def test_a_purge_frees_files_and_space_for_waiting_producers(broker, control, session):
    control.create("t", "file", segment_bytes=64 * KIB, capacity_bytes=512 * KIB)
    consumer_of(control, session, "g", credit=(0, 0))
    producer = session("t").producer("t")
    for at in range(0, 600):
        producer.produce(numbered(at, 1, KIB))
    until(lambda: control.stats("t")["blocked_by"] == "group:g", "the full topic")

    def segments():
        return [path for path in files_below(broker.data_dir / "topics") if path.suffix == ".seg"]

    full = len(segments())
    purged = purge(control)
    producer.wait_confirmed()
    assert 400 < purged < 600 and control.stats("t")["next_offset"] == 600
    assert control.stats("t")["first_offset"] == purged
    until(lambda: len(segments()) < full or full <= 2, lambda: f"{len(segments())} of {full} files are left")


@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_purge_makes_room_on_a_full_disk(small_disk, make_broker, broker_type):  # noqa: F811
    broker = make_broker(start=False, environment={"LIGHTQ_MIN_FREE_BYTES": "0"})
    broker.data_dir = small_disk / "data"
    broker.start()
    control = broker.control()
    memory = {"ring_bytes": 256 * KIB} if broker_type == "queue_file" else {}
    control.create("t", broker_type, segment_bytes=256 * KIB, **memory)
    with Session(join(control, "t")) as producing:
        producer = producing.producer("t", level=RECEIVED)
        for at in range(800):
            producer.produce(numbered(at, 1, 8 * KIB))
            if at % 50 == 49 and control.stats("t")["blocked_by"]:
                break
        until(lambda: control.stats("t")["blocked_by"] == "disk", "the full disk")
        until(lambda: control("purge", topic="t", **MINE)["status"] == "ok" and goes_on(producer), "room", 2 * DEADLINE)
    assert control.stats("t")["next_offset"] == producer.next
    broker.kill()
    broker.start()
    control.ok("purge", topic="t", **MINE)
    assert control.stats("t")["log_bytes"] <= empty_bytes(broker_type, 256 * KIB)


@pytest.mark.parametrize("left", ["the floor", "12 KiB"])
@pytest.mark.parametrize("segment_bytes", [256 * KIB, 128 * KIB * KIB], ids=["many segments", "few"])
def test_one_purge_is_enough_on_a_full_disk(small_disk, make_broker, left, segment_bytes):  # noqa: F811
    """The next segment would need more than the free space."""
    floor = 1_000_000 if left == "the floor" else 0
    broker = make_broker(start=False, environment={"LIGHTQ_MIN_FREE_BYTES": str(floor)})
    broker.data_dir = small_disk / "data"
    broker.start()
    control = broker.control()
    control.create("t", "file", segment_bytes=segment_bytes)
    with Session(join(control, "t")) as producing:
        producer = producing.producer("t", level=RECEIVED)
        for at in range(800):
            producer.produce(numbered(at, 1, 8 * KIB))
            if at % 50 == 49 and control.stats("t")["blocked_by"]:
                break
        until(lambda: control.stats("t")["blocked_by"] == "disk", "the full disk")
        if not floor:
            leave_free(small_disk, 12 * KIB)
        assert purge(control) > 0
        until(lambda: goes_on(producer), "room")
        until(lambda: not control.stats("t")["blocked_by"], "no more to wait for")
    kept = control.stats("t")["next_offset"]
    assert kept == producer.next
    broker.kill()
    broker.start()
    assert control.stats("t")["next_offset"] == kept


def leave_free(disk, count):
    """Fills the disk except for so many bytes."""
    with open(disk / "filler", "wb", buffering=0) as filler:
        while True:
            try:
                filler.write(bytes(4 * KIB))
            except OSError:
                break
        filler.truncate(filler.tell() - count)


def goes_on(producer):
    producer.session.read_some(0.05)
    return producer.confirmed == producer.next


@pytest.mark.parametrize("broker_type", TYPES)
def test_purged_while_producers_run_each_message_is_purged_or_delivered(broker, control, session, broker_type):
    settings = dict(segment_bytes=64 * KIB) if broker_type in DURABLE else {}
    control.create("t", broker_type, **settings)
    producers, each = 3, 1500
    group = consumer_of(control, session, "g", automatic=True)
    threads = [threading.Thread(target=produce, args=(join(control, "t"), index, each)) for index in range(producers)]
    for thread in threads:
        thread.start()
    come, boundaries = [], []

    def take():
        group.session.read_some(0.002)
        taken, group.messages = group.messages, []
        come.extend(taken)

    while any(thread.is_alive() for thread in threads):
        take()
        pause(control, group="g")  # so that there are messages to purge
        purge(control)
        boundaries.append(control.stats("t")["first_offset"])
        resume(control, group="g")
    for thread in threads:
        thread.join()
    total = producers * each
    assert control.stats("t")["next_offset"] == total, "all were confirmed"
    last = boundaries[-1]
    until(lambda: take() or not come or come[-1].offset == total - 1 or last == total, "the last")
    until(lambda: take() or group_of(control, "g")["lag"] == 0, "the rest")
    while not group.is_silent():
        take()
    take()
    got = offsets(come)
    assert got == sorted(set(got)), "in order, each once"
    missing = sorted(set(range(total)) - set(got))
    assert all(offset < last for offset in missing), "what came behind the last purge is delivered"
    for index in range(producers):
        mine = [int(message.payload.split(b"|")[1]) for message in come
                if int(message.payload.split(b"|")[0]) == index]
        assert mine == sorted(mine), "in each producer's order"
    assert group_of(control, "g")["lost"] == 0


def produce(ticket, index, count):
    with Session(ticket) as session:
        producer = session.producer("t")
        for at in range(0, count, 5):
            producer.produce([f"{index}|{number}|".encode() + bytes(200) for number in range(at, at + 5)])
            producer.wait_confirmed(max(0, at - 50))
        producer.wait_confirmed()


def test_a_paused_topic_is_purged_and_stays_paused(control, session):
    control.create("t", "file")
    consumer = consumer_of(control, session, "g")
    pause(control)
    fill(session, 0, 10)
    assert purge(control) == 10
    fill(session, 10, 10)
    assert control.stats("t")["paused"] and consumer.is_silent()
    resume(control)
    assert offsets(consumer.receive(10)) == list(range(10, 20))
