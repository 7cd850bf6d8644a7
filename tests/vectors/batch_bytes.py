"""Encodes and decodes batches in Python, from docs/log_format.md alone: with attributes and compressed."""
import struct
import typing

from checksum import crc32c

KEYS, HEADERS, TIMES, DUES = 1, 2, 4, 8
NONE, LZ4, ZSTD = 0, 1, 2


class Message(typing.NamedTuple):
    """A message with attributes. A message without attributes may be given as its payload alone."""
    payload: bytes
    key: bytes = b""
    headers: tuple = ()  # pairs (name, value)
    time_us: int = 0
    due: int = None  # None: without a due time


class Batch(typing.NamedTuple):
    offset: int
    time_us: int
    producer_id: int
    epoch: int
    sequence: int
    payloads: list
    messages: list  # a Message for each record
    sizes: list  # bytes of attributes and payload together, for each record
    codec: int


def text(value):
    return struct.pack("<H", len(value)) + value


def attributes(kinds, message):
    """Encodes the attributes of a record (docs/log_format.md, "Record")."""
    coded = struct.pack("<q", message.due or 0) if kinds & DUES else b""
    coded += struct.pack("<q", message.time_us) if kinds & TIMES else b""
    coded += text(message.key) if kinds & KEYS else b""
    if kinds & HEADERS:
        coded += struct.pack("<H", len(message.headers))
        coded += b"".join(text(name) + text(value) for name, value in message.headers)
    return coded


def record(message, kinds=0):
    whole = attributes(kinds, message) + message.payload if kinds else message
    return struct.pack("<I", len(whole)) + whole


def kinds_of(messages):
    bits = 0
    for message in messages:
        bits |= (KEYS if message.key else 0) | (HEADERS if message.headers else 0) | (TIMES if message.time_us else 0)
        bits |= DUES if message.due is not None else 0
    return bits


def lz4_literals(plain):
    """Encodes a block in LZ4's block format, with literals only."""
    length, coded = len(plain), b""
    if length >= 15:
        rest = length - 15
        coded = b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([min(length, 15) << 4]) + coded + plain


def lz4_plain(coded):
    """Decodes a block in LZ4's block format."""
    plain, at = bytearray(), 0

    def length_from(start):
        nonlocal at
        length = start
        while start == 15:
            length += coded[at]
            at += 1
            if coded[at - 1] != 255:
                break
        return length

    while at < len(coded):
        token = coded[at]
        at += 1
        literals = length_from(token >> 4)
        plain += coded[at:at + literals]
        at += literals
        if at == len(coded):
            break
        back, = struct.unpack_from("<H", coded, at)
        at += 2
        for _ in range(length_from(token & 15) + 4):
            plain.append(plain[-back])
    return bytes(plain)


def zstd_raw(plain):
    """Encodes a Zstandard frame (RFC 8878) with raw blocks only."""
    coded = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(plain))  # a single segment, with its size in four bytes
    for at in range(0, max(len(plain), 1), 1 << 17):
        block = plain[at:at + (1 << 17)]
        last = at + (1 << 17) >= len(plain)
        coded += struct.pack("<I", int(last) | len(block) << 3)[:3] + block
    return coded


def zstd_raw_plain(coded):
    plain, at, last = b"", 9, False
    while not last:
        head = int.from_bytes(coded[at:at + 3], "little")
        last, kind, length = head & 1, head >> 1 & 3, head >> 3
        if kind != 0:
            raise ValueError("a block that is compressed")
        plain += coded[at + 3:at + 3 + length]
        at += 3 + length
    return plain


PACK = {LZ4: lz4_literals, ZSTD: zstd_raw}
UNPACK = {LZ4: lz4_plain, ZSTD: zstd_raw_plain}


def batch(messages, producer_id=0, epoch=0, sequence=0, offset=None, time_us=0, segment_epoch=0, codec=NONE):
    """Encodes a batch (docs/log_format.md, "Batch"). Without an offset it is a batch as a producer makes it.
    `messages` has payloads or values of Message."""
    messages = [message if isinstance(message, Message) else Message(message) for message in messages]
    kinds = kinds_of(messages)
    records = b"".join(record(message if kinds else message.payload, kinds) for message in messages)
    return batch_of_records(records, len(messages), kinds, codec, producer_id, epoch, sequence, offset, time_us,
                            segment_epoch)


def batch_of_records(records, count, kinds=0, codec=NONE, producer_id=0, epoch=0, sequence=0, offset=None, time_us=0,
                     segment_epoch=0):
    body = struct.pack("<I", len(records)) + PACK[codec](records) if codec else records
    return batch_of_body(body, count, kinds, codec, producer_id, epoch, sequence, offset, time_us, segment_epoch)


def batch_of_body(body, count, kinds=0, codec=NONE, producer_id=0, epoch=0, sequence=0, offset=None, time_us=0,
                  segment_epoch=0):
    of_producer = struct.pack("<QQHH", producer_id, sequence, epoch, 0)
    lengths = struct.pack("<BBHII", 1, codec, kinds, 64 + len(body), count)
    body_crc = crc32c(lengths + of_producer + body)
    header = struct.pack("<I", 0x3142514C) + lengths + struct.pack("<Qq", offset or 0, time_us) + of_producer
    header += struct.pack("<II", segment_epoch, body_crc)
    return header + struct.pack("<I", crc32c(header) if offset is not None else 0) + body


def take_text(data, at):
    length, = struct.unpack_from("<H", data, at)
    return data[at + 2:at + 2 + length], at + 2 + length


def message_of(kinds, data):
    at, time_us, due, key, headers = 0, 0, None, b"", []
    if kinds & DUES:
        due, = struct.unpack_from("<q", data)
        at = 8
    if kinds & TIMES:
        time_us, = struct.unpack_from("<q", data, at)
        at += 8
    if kinds & KEYS:
        key, at = take_text(data, at)
    if kinds & HEADERS:
        count, = struct.unpack_from("<H", data, at)
        at += 2
        for _ in range(count):
            name, at = take_text(data, at)
            value, at = take_text(data, at)
            headers.append((name, value))
    return Message(data[at:], key, tuple(headers), time_us, due)


def unbatch(data):
    """Decodes a batch that a log has stamped. Checks both of its checksums."""
    fields = struct.unpack_from("<IBBHIIQqQQHHIII", data)
    magic, version, codec, flags, length, count, offset, time_us, producer_id, sequence, epoch, zero, _, body, head = fields
    if (magic, version, zero) != (0x3142514C, 1, 0) or codec > ZSTD or flags > 15 or length != len(data):
        raise ValueError("not a batch")
    if head != crc32c(data[:60]) or body != crc32c(data[4:16] + data[32:52] + data[64:]):
        raise ValueError("a batch's checksum is wrong")
    records = data[64:]
    if codec:
        plain_bytes, = struct.unpack_from("<I", records)
        records = UNPACK[codec](records[4:])
        if len(records) != plain_bytes:
            raise ValueError("a batch's records are not as long as it says")
    messages, sizes, at = [], [], 0
    while at < len(records):
        size, = struct.unpack_from("<I", records, at)
        messages.append(message_of(flags, records[at + 4:at + 4 + size]))
        sizes.append(size)
        at += 4 + size
    if at != len(records) or len(messages) != count or count == 0:
        raise ValueError("a batch's records do not add up")
    return Batch(offset, time_us, producer_id, epoch, sequence, [message.payload for message in messages], messages,
                 sizes, codec)
