"""Tests messages with keys, headers and times, and compressed batches, from a client that knows only the
documents."""
import pytest

from session_client import OWN, Session, everything, join  # first, because it adds the path of the vectors
import batch_bytes
from batch_bytes import HEADERS, KEYS, LZ4, NONE, TIMES, ZSTD, Message
from session_support import consumer_of, until_committed
from support import until

pytestmark = pytest.mark.one_broker

MESSAGES = [Message(b"number %d" % number,
                    key=b"key %d" % number if number % 3 else b"",
                    headers=((b"kind", b"json"), (b"n", b"%d" % number)) if number % 4 else (),
                    time_us=1763750000000000 + number if number % 5 else 0) for number in range(60)]
READS_ALL = 2 | 4


def produce(session, control, topic, messages=tuple(MESSAGES), codec=NONE, size=20):
    producer = session(topic).producer(topic)
    for first in range(0, len(messages), size):
        producer.send_batch(batch_bytes.batch(messages[first:first + size], producer.id, producer.epoch, producer.next,
                                              codec=codec))
        producer.next += len(messages[first:first + size])
    producer.wait_confirmed()
    return producer


def unpacked(consumer):
    return [message for batch in consumer.batches for message in batch_bytes.unbatch(batch).messages]


@pytest.mark.parametrize("codec", [NONE, LZ4, ZSTD], ids=["plain", "lz4", "zstd"])
@pytest.mark.parametrize("broker_type", ["queue", "file", "queue_file"])
def test_messages_arrive_with_their_keys_headers_times_and_codec(control, session, broker_type, codec):
    control.create("t", broker_type)
    produce(session, control, "t", codec=codec)
    consumer = consumer_of(control, session, "t", codecs=READS_ALL)
    consumer.receive(60)
    assert unpacked(consumer) == MESSAGES
    assert consumer.parts == 0 and len(consumer.batches) == 3, "the producer's own batches"
    assert [batch_bytes.unbatch(batch).codec for batch in consumer.batches] == [codec] * 3
    for first, batch in zip((0, 20, 40), consumer.batches):
        # Without producer id and sequence, which consumers do not receive.
        sent = batch_bytes.batch(MESSAGES[first:first + 20], codec=codec)
        assert batch[64:] == sent[64:] and batch[4:16] == sent[4:16] and batch[32:52] == sent[32:52]
        assert batch[56:60] == sent[56:60], "the body's checksum fits what is shown"
    consumer.acknowledge_before(60)
    until_committed(control, "t", 60)


@pytest.mark.parametrize("codecs", [0, 2, 4, READS_ALL | 0xFFFFFF00])
@pytest.mark.parametrize("codec", [LZ4, ZSTD], ids=["lz4", "zstd"])
def test_a_client_without_a_codec_receives_unpacked_messages(control, session, codec, codecs):
    control.create("t")
    produce(session, control, "t", codec=codec)
    consumer = consumer_of(control, session, "t", codecs=codecs)
    consumer.receive(60)
    reads = bool(codecs & 1 << codec)
    assert unpacked(consumer) == MESSAGES and len(consumer.batches) == 3
    assert [batch_bytes.unbatch(batch).codec for batch in consumer.batches] == [codec if reads else NONE] * 3
    assert bool(consumer.parts) != reads, "flag 1: the broker has made the batch's header"


@pytest.mark.parametrize("codec", [NONE, LZ4, ZSTD], ids=["plain", "lz4", "zstd"])
def test_a_part_of_a_batch_keeps_its_messages_attributes(control, session, codec):
    control.create("t")
    produce(session, control, "t", codec=codec)
    consumer = consumer_of(control, session, "t", codecs=READS_ALL, credit=(7, 1 << 20))
    for left in range(60, 0, -7):
        consumer.receive(min(7, left))
        consumer.give(7)
    assert unpacked(consumer) == MESSAGES and consumer.parts > 0
    at = 0
    for batch in map(batch_bytes.unbatch, consumer.batches):
        assert (batch.offset, batch.sequence, batch.producer_id) == (at, 0, 0)
        at += len(batch.messages)


@pytest.mark.parametrize("codec", [NONE, LZ4, ZSTD], ids=["plain", "lz4", "zstd"])
def test_plain_consumers_get_the_payloads(broker, control, session, codec):
    control.create("t")
    produce(session, control, "t", codec=codec)
    assert everything(broker, control, "t", 60) == [message.payload for message in MESSAGES]


def message_bytes(messages):
    kinds = batch_bytes.kinds_of(messages)
    return sum(len(batch_bytes.record(message, kinds)) - 4 for message in messages)


def test_a_message_s_bytes_are_its_attributes_and_its_payload_wherever_they_are_counted(control, session):
    control.create("t")
    produce(session, control, "t", codec=ZSTD, size=60)
    assert control.stats("t")["total_bytes_written"] == message_bytes(MESSAGES)
    one_less = consumer_of(control, session, "t", group="a", codecs=READS_ALL, credit=(1000, message_bytes(MESSAGES[:7])))
    one_less.receive(7)  # the first seven together have all kinds of attributes that occur in the batch
    assert one_less.is_silent()
    one_more = consumer_of(control, session, "t", group="b", codecs=READS_ALL,
                           credit=(1000, message_bytes(MESSAGES[:7]) + 1))
    one_more.receive(8)
    assert one_more.is_silent()


def test_reads_return_attributes_too(control, session):
    control.create("t", "file")
    produce(session, control, "t", codec=LZ4)
    reader = session(join(control, "t", "sub"), codecs=READS_ALL)
    come, following = reader.read("t", 15, 45)
    assert [message.said for message in come] == MESSAGES[15:45] and following == 45


BAD = {
    "a key that is not there": (KEYS, b"\1\0\0\0x"),
    "a key longer than its message": (KEYS, b"\3\0\0\0\2\0x"),
    "a key that is too long": (KEYS, batch_bytes.record(Message(b"", key=b"k" * 1025), KEYS)),
    "half a time": (TIMES, b"\7\0\0\0" + b"t" * 7),
    "headers that are not there": (HEADERS, b"\2\0\0\0\1\0"),
    "a header without a name": (HEADERS, batch_bytes.record(Message(b"", headers=((b"", b"v"),)), HEADERS)),
    "a name that is too long": (HEADERS, batch_bytes.record(Message(b"", headers=((b"n" * 129, b"v"),)), HEADERS)),
    "too many headers": (HEADERS, batch_bytes.record(Message(b"", headers=((b"n", b"v"),) * 65), HEADERS)),
    "headers that are too long": (HEADERS, batch_bytes.record(Message(b"", headers=((b"n", b"v" * 32768),)), HEADERS)),
    "a flag that is kept": (16, b"\1\0\0\0x"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_invalid_attributes_are_refused_and_nothing_is_stored(control, session, name, codec):
    flags, record = BAD[name]
    control.create("t")
    producer = session("t").producer("t")
    producer.send_batch(batch_bytes.batch_of_records(record, 1, flags, codec, producer.id, producer.epoch, 0))
    assert producer.take_refuse().code == "corrupt"
    producer.produce([b"good"], 0)
    producer.wait_confirmed(1)
    assert control.stats("t")["messages_received"] == 1


def lying(plain_bytes, packed, count=1):
    return dict(body=plain_bytes.to_bytes(4, "little") + packed, count=count)


RECORDS = batch_bytes.record(b"payload") * 3
PACKED = {
    "noise": lying(len(RECORDS), b"\xff" * 40),
    "more than it says": lying(len(RECORDS) - 1, batch_bytes.lz4_literals(RECORDS), 3),
    "less than it says": lying(len(RECORDS) + 1, batch_bytes.lz4_literals(RECORDS), 3),
    "other records than it says": lying(len(RECORDS), batch_bytes.lz4_literals(RECORDS), 2),
    "records that do not add up": lying(9, batch_bytes.lz4_literals(b"\x09\0\0\0abcde"), 1),
    "four gigabytes, it says": lying(0xFFFFFFFF, batch_bytes.lz4_literals(RECORDS), 3),
    "more than four mebibytes": lying((4 << 20) + 1, batch_bytes.lz4_literals(b"\xfd\xff\x3f\0" + bytes((4 << 20) - 3))),
    "nothing": lying(4, b""),
    "too much for so few bytes": lying(16384 + 128 * 100 + 1, bytes(100)),
}
ZSTD_FRAME = batch_bytes.zstd_raw(RECORDS)
NOT_ONE_FRAME = {
    "two frames": batch_bytes.zstd_raw(RECORDS[:11]) + batch_bytes.zstd_raw(RECORDS[11:]),
    "one to be skipped": b"\x50\x2a\x4d\x18\1\0\0\0x" + ZSTD_FRAME,
    "one of a former version": b"\x27\xb5\x2f\xfd" + ZSTD_FRAME[4:],
    "one that does not say its size": ZSTD_FRAME[:4] + b"\0\x58" + ZSTD_FRAME[9:],
    "something behind it": ZSTD_FRAME + b"\0",
}


@pytest.mark.parametrize("name", PACKED)
def test_a_batch_that_cannot_be_unpacked_is_refused_completely(control, session, name):
    control.create("t")
    producer = session("t").producer("t")
    producer.send_batch(batch_bytes.batch_of_body(**PACKED[name], codec=LZ4, producer_id=producer.id,
                                                  epoch=producer.epoch, sequence=0))
    assert producer.take_refuse().code == "corrupt"
    producer.produce([b"good"], 0)
    producer.wait_confirmed(1)
    assert control.stats("t")["messages_received"] == 1


@pytest.mark.parametrize("name", NOT_ONE_FRAME)
def test_anything_but_one_zstandard_frame_with_its_size_is_refused(control, session, name):
    control.create("t")
    producer = session("t").producer("t")
    for packed, is_sound in ((NOT_ONE_FRAME[name], False), (ZSTD_FRAME, True)):
        body = len(RECORDS).to_bytes(4, "little") + packed
        producer.send_batch(batch_bytes.batch_of_body(body, 3, codec=ZSTD, producer_id=producer.id, epoch=producer.epoch))
        if is_sound:
            producer.wait_confirmed(3)
        else:
            assert producer.take_refuse().code == "corrupt"


def test_a_batch_that_is_not_stored_is_not_unpacked_either(control, session):
    """A batch that is stored already is confirmed again. A batch out of sequence is refused as such, with any
    content."""
    control.create("t")
    producer = session("t").producer("t")
    producer.produce([b"first"])
    producer.wait_confirmed(1)
    noise = len(RECORDS).to_bytes(4, "little") + b"\xff" * 40
    for sequence in (0, 9):
        producer.send_batch(batch_bytes.batch_of_body(noise, 1, codec=LZ4, producer_id=producer.id, epoch=producer.epoch,
                                                      sequence=sequence))
    assert producer.take_refuse().code == "out_of_sequence"
    assert control.stats("t")["messages_received"] == 1


def test_a_message_is_too_large_with_its_attributes_and_before_it_is_compressed(make_broker):
    broker = make_broker("--message-bytes-max", "1000")
    control = broker.control()
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        for message in (Message(b"x" * 1001), Message(b"x" * 998, key=b"k")):
            for codec in (NONE, ZSTD):
                producer.send_batch(batch_bytes.batch([message], producer.id, producer.epoch, 0, codec=codec))
                assert producer.take_refuse().code == "too_large", "the key's length and the key count"
        producer.send_batch(batch_bytes.batch([Message(b"x" * 997, key=b"k")], producer.id, producer.epoch, 0))
        producer.wait_confirmed(1)


@pytest.mark.parametrize("broker_type", ["file", "queue_file"])
def test_attributes_survive_a_kill(broker, control, session, broker_type):
    control.create("t", broker_type)
    produce(session, control, "t", codec=ZSTD)
    until(lambda: control.stats("t")["durable_offset"] == 60, "all of it on disk")
    broker.kill()
    broker.start()
    consumer = consumer_of(control, session, "t", mode=OWN, codecs=READS_ALL)
    consumer.receive(60)
    assert unpacked(consumer) == MESSAGES
