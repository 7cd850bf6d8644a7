"""Tests long batches in memory that a session shares with the broker: whole, in pieces, damaged, and taken
back."""
import contextlib
import ctypes
import random

import pytest

from shared_sessions import KIB, lives_on, shared_session
from support import ADMIN, ADMIN_PASSWORD, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


@pytest.fixture(params=["file", "queue"])  # a queue stores them directly in its log
def topic(request, control):
    control.create("t", request.param)
    return control


LONG = [bytes([number]) * 1000 for number in range(40)]


@pytest.mark.parametrize("kind", ["queue", "file", "queue_file"])
def test_long_batches_that_are_damaged_or_repeated_are_not_stored(control, kind):
    control.create("t", kind)
    with shared_session(control, sizes=(64 * KIB, 64 * KIB)) as session, shared_session(control, "pull") as other:
        producer = session.producer("t")
        producer.produce(LONG)
        for damaged_at in (60, 5_000, 40_000):
            batch = bytearray(producer.batch(LONG, producer.next))
            batch[damaged_at] ^= 1
            producer.send_batch(bytes(batch))
            assert producer.take_refuse().code == "corrupt"
        producer.produce(LONG, sequence=0)  # the same batch again
        producer.produce(LONG, sequence=40)
        producer.wait_confirmed()
        producer.produce(LONG, sequence=100)
        assert producer.take_refuse().code == "out_of_sequence"
        producer.produce([b"short"], sequence=80)
        producer.wait_confirmed()
        consumer = other.consumer("t")
        assert [message.payload for message in consumer.receive(81)] == LONG + LONG + [b"short"]
    assert control.stats("t")["messages_received"] == 81


def test_a_long_batch_may_come_in_pieces(topic):
    with shared_session(topic, sizes=(64 * KIB, 64 * KIB)) as session, shared_session(topic, "pull") as other:
        producer = session.producer("t")
        for cut in (10, 20, 60, 20_000, 40_000):
            frame = producer.frame_of(LONG)
            producer.next += len(LONG)
            for piece in frame[:cut], frame[cut:]:
                session.send_raw(piece)
                until(lambda: session.wire.out.taken.value == session.wire.out.written.value, "it to be read")
            producer.wait_confirmed()
        assert [message.payload for message in other.consumer("t").receive(200)] == 5 * LONG


def test_a_client_that_changes_a_long_batch_during_its_read_harms_only_itself(topic):
    """If the broker sees fewer bytes than before, or impossible values, the session ends. Everything it
    stored is whole."""
    numbers = random.Random(11)
    for _ in range(40):
        with shared_session(topic, sizes=(64 * KIB, 64 * KIB)) as session:
            producer = session.producer("t")
            written = session.wire.out.written.value
            session.send_raw(producer.frame_of(LONG))
            session.wire.out.written.value = written + numbers.randrange(45_000)
            ctypes.memset(ctypes.addressof(session.wire.out.bytes) + numbers.randrange(40_000), 255, 1)
            with contextlib.suppress(OSError):
                session.wire.wake()
    with shared_session(topic, "pull") as other:
        lives_on(topic)
        consumer = other.consumer("t")
        stored = topic.ok("stats", topic="t", **ROOT)["next_offset"]
        got = [message.payload for message in consumer.receive(stored)]
    assert got[-1] == b"more" and stored % 40 == 1 and got[:-1] == stored // 40 * LONG


def test_long_batches_wait_for_room_and_keep_their_order(control):
    control.create("t", "queue", ring_bytes=100 * KIB)
    with shared_session(control, sizes=(256 * KIB, 256 * KIB)) as session, \
            shared_session(control, "pull", (256 * KIB, 256 * KIB)) as other:
        consumer, producer = other.consumer("t"), session.producer("t")
        for _ in range(5):
            producer.produce(LONG)
        for turn in range(5):
            assert [message.payload for message in consumer.receive(40)] == LONG
            if turn == 0:
                producer.wait_confirmed(80)
                assert producer.confirmed == 80, "the third has no room"
            consumer.acknowledge_before(40 * (turn + 1))
        producer.wait_confirmed()
