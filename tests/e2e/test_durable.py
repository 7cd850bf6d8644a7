"""Tests that topics survive a restart, and a SIGKILL at any moment."""
import os
import random

import pytest
import zmq

from support import (PASSWORD, SANITIZED, USER, bytes_of, files_below, number_of, numbered, receive, receive_topic,
                     silent, until)

DURABLE = ["file", "queue_file"]


def send_all(control, producer, messages, topic="t"):
    goal = control.stats(topic)["messages_received"] + len(messages)
    for message in messages:
        producer.send(message)
    until(lambda: control.stats(topic)["messages_received"] >= goal, f"{goal} messages in the log")


@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_clean_restart_keeps_topics_messages_ports_and_cursors(broker, control, broker_type):
    control.create("t", broker_type)
    uris = {kind: control.join("t", kind) for kind in ("push", "pull", "sub")}
    producer = broker.socket(zmq.PUSH, uris["push"])
    consumer = broker.socket(zmq.PULL, uris["pull"], rcvhwm=0)
    subscriber = broker.socket(zmq.SUB, uris["sub"], rcvhwm=0)
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the handshakes")
    send_all(control, producer, numbered(0, 1000))
    assert [number_of(message) for message in receive(consumer, 1000)] == list(range(1000))
    broker.restart()
    send_all(control, producer, numbered(1000, 1000))  # the same sockets: they reconnect by themselves
    assert [number_of(message) for message in receive(consumer, 1000)] == list(range(1000, 2000))
    assert [number_of(message) for message in receive_topic(subscriber, "t", 2000)] == list(range(2000))
    assert control.join("t", "push") == uris["push"]
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"], stats["messages_received"]) == (0, 2000, 1000)
    assert silent(consumer)


def test_a_transient_topic_keeps_its_name_and_ports_but_not_its_messages(broker, control):
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, producer, numbered(0, 100))
    broker.restart()
    assert control.stats("t")["queue_size"] == 0
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    send_all(control, producer, [b"new"])
    assert receive(consumer, 1) == [b"new"]


def test_the_catalogue_survives_a_kill(broker, control):
    for index in range(20):
        control.create(f"t{index}", ["queue", "file", "direct", "queue_file"][index % 4])
    for index in range(0, 20, 5):
        control.delete(f"t{index}")
    before = control.list()
    uri = control.join("t1", "push")
    broker.kill()
    broker.start()
    assert control.list() == before and len(before) == 16
    assert control.join("t1", "push") == uri
    control.create("t0", "file")
    broker.kill()
    broker.start()
    assert len(control.list()) == 17


def test_everything_appended_before_a_kill_is_there_after_it(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for life in range(3):
        send_all(control, producer, numbered(life * 2000, 2000, 100))
        broker.kill()
        broker.start()
    assert control.stats("t")["next_offset"] == 6000
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert receive(consumer, 6000) == numbered(0, 6000, 100)
    assert silent(consumer)


def seeds():
    fixed = os.environ.get("LIGHTQ_TEST_SEED")
    return [int(fixed)] if fixed else [random.SystemRandom().randrange(1 << 32) for _ in range(2 if SANITIZED else 4)]


@pytest.mark.parametrize("seed", seeds())
def test_a_kill_at_any_moment_under_load_loses_nothing_appended_and_invents_nothing(broker, control, seed):
    """LIGHTQ_TEST_SEED repeats a run. Every message that the broker reported as received must be there. The
    messages must be a selection of those sent, in order, each one once. The puller may receive some twice,
    and must miss none in the log."""
    print("LIGHTQ_TEST_SEED =", seed)
    dice = random.Random(seed)
    control.create("t", "file", segment_bytes=256 * 1024)
    push, pull = control.join("t", "push"), control.join("t", "pull")
    consumer = broker.socket(zmq.PULL, pull, rcvhwm=0)
    consumed, next_number = [], 0
    for _ in range(3):
        producer = broker.socket(zmq.PUSH, push)
        acknowledged, target = 0, dice.randrange(200, 3000)
        while acknowledged < target:
            for message in numbered(next_number, 50, dice.randrange(1, 2000)):
                if producer.poll(2000, zmq.POLLOUT):
                    producer.send(message)
                    next_number += 1
            acknowledged = control.stats("t")["messages_received"]
            while consumer.poll(0):
                consumed.append(number_of(consumer.recv()))
        said = control.stats("t")["next_offset"]
        broker.kill()
        producer.close()
        broker.start()
        assert control.stats("t")["next_offset"] >= said
        assert control.stats("t")["corrupt"] == 0
    producer = broker.socket(zmq.PUSH, push)
    producer.send(b"%d|end" % next_number)

    def drained():
        while consumer.poll(0):
            consumed.append(number_of(consumer.recv()))
        return consumed and consumed[-1] == next_number

    until(drained, "the puller to reach the end")
    log = read_again(broker, control)
    assert log == sorted(set(log)), "the log's order, or a message twice"
    assert len(log) == control.stats("t")["next_offset"]
    assert log[-1] == next_number and set(log) <= set(range(next_number + 1))
    assert set(consumed) == set(log), "the puller missed part of the log, or was given what is not in it"


def read_again(broker, control):
    """Reads the whole log from first_offset, where a new group starts."""
    for endpoint in list(broker.clients):
        if endpoint.type == zmq.PULL:
            endpoint.close()
    until(lambda: control.stats("t")["groups"][0]["consumers"] == 0, "the pullers' end")
    control.ok("delete_group", topic="t", user_id=USER, password=PASSWORD, group="default")
    stats = control.stats("t")
    reader = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0)
    return [number_of(message) for message in receive(reader, stats["next_offset"] - stats["first_offset"])]


def test_a_consumer_continues_after_a_kill_repeating_some_and_skipping_none(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    send_all(control, producer, numbered(0, 2000))
    first = [number_of(message) for message in receive(consumer, 1000)]
    broker.kill()
    consumer.close()
    broker.start()
    committed = control.stats("t")["groups"][0]["committed_offset"]
    assert committed <= 2000
    fresh = broker.socket(zmq.PULL, control.join("t", "pull"))
    second = [number_of(message) for message in receive(fresh, 2000 - committed)]
    assert first == list(range(1000)) and second == list(range(committed, 2000))


@pytest.mark.legible
def test_a_torn_tail_is_cut_and_logged(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for start in range(0, 500, 50):  # several batches
        send_all(control, producer, numbered(start, 50, 100))
    broker.kill()
    segments = sorted(path for path in broker.data_dir.rglob("*") if path.is_file() and path.stat().st_size >= 1 << 16
                      and numbered(499, 1, 100)[0] in path.read_bytes())
    assert len(segments) == 1, segments
    with open(segments[0], "r+b") as segment:  # the last byte of the last message never reached the file
        segment.seek(segment.read().rindex(numbered(499, 1, 100)[0]) + 99)
        segment.write(b"\0")
    broker.start()
    kept = control.stats("t")["next_offset"]
    assert 450 <= kept < 500
    until(lambda: "torn" in broker.log() or "cut" in broker.log(), broker.log)
    send_all(control, producer, [b"1000|"])
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [number_of(m) for m in receive(consumer, kept + 1)] == [*range(kept), 1000]


@pytest.mark.legible
def test_damage_in_the_middle_is_counted_and_never_delivered(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for start in range(0, 500, 50):
        send_all(control, producer, numbered(start, 50, 100))
    broker.kill()
    needle = numbered(200, 1, 100)[0]
    segment = next(path for path in broker.data_dir.rglob("*") if path.is_file() and needle in path.read_bytes())
    with open(segment, "r+b") as file:
        file.seek(file.read().index(needle) + 50)
        file.write(b"#")
    broker.start()
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = []

    def reached_the_end():
        while consumer.poll(0):
            received.append(consumer.recv())
        return received and number_of(received[-1]) == 499

    until(reached_the_end, lambda: f"the newest message, have {len(received)}; {broker.log()[-2000:]}")
    assert needle not in received and all(b"#" not in message for message in received)
    numbers = [number_of(message) for message in received]
    assert numbers == sorted(set(numbers)) and len(numbers) < 500
    assert control.stats("t")["corrupt"] == 500 - len(numbers)


def test_a_topic_of_ten_short_messages_takes_little_of_the_disk(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, producer, numbered(0, 10, 20))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert len(receive(consumer, 10)) == 10
    until(lambda: control.stats("t")["durable_offset"] == 10, "the sync")
    broker.stop()
    directory = next(path for path in (broker.data_dir / "topics").iterdir() if any(path.glob("*.seg")))
    assert sum(path.stat().st_blocks * 512 for path in directory.iterdir()) <= 64 * 1024
    broker.start()
    assert broker.control().stats("t")["log_bytes"] == sum(path.stat().st_size for path in directory.glob("*.seg"))


def test_retention_removes_the_oldest_segments(broker, control):
    control.create("t", "file", segment_bytes=64 * 1024, retention_bytes=256 * 1024)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, producer, numbered(0, 2000, 1000))
    stats = until(lambda: (s := control.stats("t"))["log_bytes"] <= 7 * 64 * 1024 and s, "the oldest segments to go")
    assert stats["first_offset"] > 1000 and stats["next_offset"] == 2000
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    first = control.stats("t")["first_offset"]
    assert [number_of(m) for m in receive(consumer, 2000 - first)] == list(range(first, 2000))


def test_retention_keeps_the_newest_messages_by_count(broker, control):
    control.create("t", "file", segment_bytes=64 * 1024, retention_messages=300)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, producer, numbered(0, 1000, 1000))
    stats = until(lambda: (s := control.stats("t"))["first_offset"] > 500 and s, "the oldest segments to go")
    assert stats["first_offset"] <= 700 and stats["next_offset"] == 1000
    send_all(control, producer, numbered(1000, 1000, 1000))
    stats = until(lambda: (s := control.stats("t"))["first_offset"] > 1500 and s, "it to move on")
    assert stats["first_offset"] <= 1700
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    first = stats["first_offset"]
    assert [number_of(m) for m in receive(consumer, 2000 - first)] == list(range(first, 2000))


def test_retention_removes_messages_by_age(broker, control):
    control.create("t", "file", segment_bytes=64 * 1024, retention_ms=500)
    control.create("kept", "file", segment_bytes=64 * 1024, retention_ms=3_600_000)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, broker.socket(zmq.PUSH, control.join("kept", "push")), numbered(0, 500, 1000), "kept")
    send_all(control, producer, numbered(0, 500, 1000))
    until(lambda: control.stats("t")["first_offset"] == 500, lambda: f"all to go: {control.stats('t')}")
    send_all(control, producer, numbered(500, 500, 1000))
    until(lambda: control.stats("t")["first_offset"] == 1000, lambda: f"all to go: {control.stats('t')}")
    assert control.stats("kept")["first_offset"] == 0


def test_a_deleted_topic_leaves_nothing_behind_and_its_name_starts_anew(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    send_all(control, producer, [b"the old life's message" * 10])
    producer.close()
    control.delete("t")

    def gone():  # segment files are recycled: those in the pool belong to no log and are overwritten later
        return not any(b"the old life's message" in bytes_of(path) for path in files_below(broker.data_dir)
                       if path.parent.name != "pool")

    until(gone, "the old files to go")
    control.create("t", "file")
    assert control.stats("t")["next_offset"] == 0
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"))
    send_all(control, broker.socket(zmq.PUSH, control.join("t", "push")), [b"new"])
    assert receive_topic(subscriber, "t", 1) == [b"new"]
