"""Tests batches longer than the broker accepts: they are refused and skipped, and the session continues."""
import struct

import session_frames

from session_client import Session, everything, join
from support import MEMORY_FACTOR


def test_a_frame_above_the_brokers_limit_is_refused_and_the_session_continues(make_broker):
    broker = make_broker("--message-bytes-max", "2MiB")
    control = broker.control()
    control.create("t", ring_bytes=32 << 20)
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        limit = producer.opened["message_bytes_max"]
        assert limit == 2 << 20
        before = broker.resident_bytes()
        for round in range(3):
            first = 2 * round
            producer.produce([b"before"], sequence=first)
            producer.produce([b"x" * (limit + 1)], sequence=first + 1)
            producer.produce([b"behind it"], sequence=first + 2)  # dropped without an answer
            refuse = producer.take_refuse()
            assert (refuse.code, refuse.values["begin"], refuse.values["end"], refuse.values["expected"]) == (
                "too_large", first + 1, first + 2, first + 1)
            producer.produce([b"x" * limit], sequence=first + 1)
            producer.wait_confirmed(first + 2)
        assert broker.resident_bytes() - before < MEMORY_FACTOR * (32 << 20), "it is passed over, not kept"
        assert control.broker_stats()["limits_reached"]["message_bytes_max"] == 3
        assert everything(broker, control, "t", 6) == [b"before", b"x" * limit] * 3


def test_a_very_long_frame_is_skipped_without_being_kept(make_broker):
    broker = make_broker()
    control = broker.control()
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        before = broker.resident_bytes()
        length = 40 << 20
        header = struct.pack("<BBHIII", 5, 0, 0, producer.channel, 0, length)
        header += struct.pack("<I", session_frames.crc32c(header))
        one.send_raw(header + producer.batch([b"x"], 0)[:64] + bytes(length - 64))
        assert producer.take_refuse().code == "too_large"
        producer.produce([b"next"], sequence=0)
        producer.wait_confirmed(1)
        assert broker.resident_bytes() - before < MEMORY_FACTOR * (16 << 20)
        assert everything(broker, control, "t", 1) == [b"next"]
