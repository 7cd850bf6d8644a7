"""Batches and records: docs/log_format.md, "Batch" and "Record". Compressed batches are not supported; a client that
declares no codec receives none."""
from __future__ import annotations

import dataclasses
import struct
import typing

from ..errors import InvalidArgument, ProtocolViolation
from ..message import Attributes
from .crc32c import crc32c

HEADER_BYTES = 64
RECORDS_MAX = 65536
KEY, HEADERS, TIME, DUE = 1, 2, 4, 8
KEY_BYTES_MAX, HEADERS_MAX, HEADER_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX = 1024, 64, 128, 32 * 1024
TTL_MS_MAX = DELAY_MS_MAX = 3653 * 86_400_000
ID_BYTES_MAX = 128
Headers = typing.Union[typing.Mapping[str, typing.Union[str, bytes]],
                       typing.Iterable[typing.Tuple[str, typing.Union[str, bytes]]]]

Plain = bytes  # a message without attributes is its body alone, which saves an object
Waiting = typing.Union[Plain, "Outgoing"]

_PIECE_MESSAGES, _PIECE_BYTES = 1024, 128 * 1024
_MAGIC = 0x3142514C
_FIELDS = struct.Struct("<IBBHIIQqQQHHIII")


@dataclasses.dataclass
class Outgoing:
    """A message that waits to be sent. `kinds`: the attributes that it has."""
    body: bytes
    kinds: int = 0
    key: bytes = b""
    headers: typing.Tuple[typing.Tuple[bytes, bytes], ...] = ()
    time_us: int = 0
    due: int = 0

    @property
    def size(self) -> int:
        """An upper bound of the bytes of its record."""
        if not self.kinds:
            return 4 + len(self.body)
        return 32 + len(self.body) + len(self.key) + sum(4 + len(name) + len(value) for name, value in self.headers)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Messages as they were delivered. `attributes`: one for each body, or None if no message has any."""
    base_offset: int
    append_time_us: int
    bodies: typing.List[bytes]
    attributes: typing.Optional[typing.List[Attributes]]

    def sizes(self) -> typing.List[int]:
        """Returns the bytes of attributes and payload of each message."""
        return list(map(len, self.bodies)) if self.attributes is None else [each.size for each in self.attributes]


def size_of(message: Waiting) -> int:
    """Returns an upper bound of the bytes of the message's record."""
    return 4 + len(message) if type(message) is bytes else typing.cast(Outgoing, message).size


def plain(body: typing.Union[bytes, bytearray, memoryview, str]) -> Plain:
    """Returns the bytes of a body. Errors: InvalidArgument."""
    if type(body) is bytes:
        return body
    if isinstance(body, str):
        return body.encode()
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"a body is bytes or str, not {type(body).__name__}")
    return bytes(body)


def plain_many(bodies: typing.Iterable[typing.Union[bytes, bytearray, memoryview, str]]) -> typing.List[Plain]:
    """Returns the bytes of at least one body. Errors: InvalidArgument."""
    messages = list(map(plain, bodies))
    if not messages:
        raise InvalidArgument("there is no message to send")
    return messages


def pieces(messages: typing.List[Plain]) -> typing.Iterator[typing.List[Plain]]:
    """Yields messages that are sent together: few enough that the sender looks at its connection in between, and few bytes
    unless one is large."""
    begin, size = 0, 0
    for at, message in enumerate(messages):
        if at > begin and (at - begin == _PIECE_MESSAGES or size + len(message) > _PIECE_BYTES):
            yield messages[begin:at]
            begin, size = at, 0
        size += len(message)
    yield messages[begin:]


def _as_bytes(value: typing.Union[str, bytes]) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _checked_headers(headers: Headers) -> typing.List[typing.Tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, typing.Mapping) else headers
    checked = []
    for name, value in pairs:
        coded, content = _as_bytes(name), _as_bytes(value)
        if not 1 <= len(coded) <= HEADER_NAME_BYTES_MAX:
            raise InvalidArgument(f"the name of a header has {len(coded)} bytes; it must have 1 to {HEADER_NAME_BYTES_MAX}")
        if coded.startswith(b"lightq-dead-"):
            raise InvalidArgument(f"{name!r}: headers that begin with lightq-dead- are set by the broker only")
        checked.append((coded, content))
    return checked


def _milliseconds(seconds: float, name: str, most: int) -> int:
    ms = max(round(seconds * 1000), 1)
    if seconds < 0 or ms > most:
        raise InvalidArgument(f"{name} is {seconds} s; it must be 0 to {most // 1000} s")
    return ms


def outgoing(body: typing.Union[bytes, bytearray, memoryview, str], key: typing.Union[str, bytes] = b"",
             headers: Headers = (), time: typing.Optional[float] = None, delay: typing.Optional[float] = None,
             deliver_at: typing.Optional[float] = None, ttl: typing.Optional[float] = None, id: str = "") -> Outgoing:
    """Makes a message for sending. Times are in seconds, points of time in seconds since 1970. Errors:
    InvalidArgument."""
    message = Outgoing(plain(body))
    pairs = _checked_headers(headers) if headers else []
    if ttl is not None:
        pairs.insert(0, (b"lightq-ttl-ms", str(_milliseconds(ttl, "ttl", TTL_MS_MAX)).encode()))
    if id:
        if len(id.encode()) > ID_BYTES_MAX:
            raise InvalidArgument(f"an id has at most {ID_BYTES_MAX} bytes")
        pairs.insert(0, (b"lightq-id", id.encode()))
    if delay is not None and deliver_at is not None:
        raise InvalidArgument("give delay or deliver_at, not both")
    if key:
        message.key, message.kinds = _as_bytes(key), KEY
    if pairs:
        message.headers, message.kinds = tuple(pairs), message.kinds | HEADERS
    if time is not None:
        message.time_us, message.kinds = round(time * 1e6), message.kinds | TIME
    if delay is not None:
        message.due, message.kinds = -1000 * _milliseconds(delay, "delay", DELAY_MS_MAX) if delay else 0, message.kinds | DUE
    if deliver_at is not None:
        message.due, message.kinds = max(round(deliver_at * 1e6), 0), message.kinds | DUE
    if len(message.key) > KEY_BYTES_MAX:
        raise InvalidArgument(f"the key has {len(message.key)} bytes; at most {KEY_BYTES_MAX} are allowed")
    if len(pairs) > HEADERS_MAX or message.size - len(message.body) > ATTRIBUTES_BYTES_MAX:
        raise InvalidArgument(f"a message has at most {HEADERS_MAX} headers, and {ATTRIBUTES_BYTES_MAX} bytes of attributes")
    return message


def _record(message: Outgoing, kinds: int) -> bytes:
    parts = []
    if kinds & DUE:
        parts.append(struct.pack("<q", message.due))
    if kinds & TIME:
        parts.append(struct.pack("<q", message.time_us))
    if kinds & KEY:
        parts.append(struct.pack("<H", len(message.key)) + message.key)
    if kinds & HEADERS:
        parts.append(struct.pack("<H", len(message.headers)))
        for name, value in message.headers:
            parts.append(struct.pack("<H", len(name)) + name + struct.pack("<H", len(value)) + value)
    parts.append(message.body)
    whole = b"".join(parts)
    return struct.pack("<I", len(whole)) + whole


def _plain_records(bodies: typing.List[bytes]) -> bytes:
    lengths = list(map(len, bodies))
    prefixes = {length: length.to_bytes(4, "little") for length in set(lengths)}
    if len(prefixes) == 1:
        prefix = prefixes[lengths[0]]
        return prefix + prefix.join(bodies)
    parts = [b""] * (2 * len(bodies))
    parts[0::2], parts[1::2] = map(prefixes.__getitem__, lengths), bodies
    return b"".join(parts)


def encode(messages: typing.Sequence[Waiting], producer_id: int, epoch: int, sequence: int) -> bytes:
    """Returns a batch as a producer makes it."""
    plain_ones = [message for message in messages if type(message) is bytes]
    kinds = 0
    if len(plain_ones) == len(messages):
        body = _plain_records(plain_ones)
    else:
        others = [message if isinstance(message, Outgoing) else Outgoing(message) for message in messages]
        for message in others:
            kinds |= message.kinds
        body = b"".join([_record(message, kinds) for message in others])
    lengths = struct.pack("<BBHII", 1, 0, kinds, HEADER_BYTES + len(body), len(messages))
    of_producer = struct.pack("<QQHH", producer_id, sequence, epoch, 0)
    checksum = crc32c(lengths + of_producer + body)
    return struct.pack("<I", _MAGIC) + lengths + bytes(16) + of_producer + struct.pack("<III", 0, checksum, 0) + body


def decode(data: bytes) -> Batch:
    """Decodes a delivered batch, and checks both of its checksums. Errors: ProtocolViolation."""
    (magic, version, codec, kinds, total, count, base, time_us, _, _, _, zero, _, body_crc,
     header_crc) = _FIELDS.unpack_from(data)
    if header_crc != crc32c(data[:60]):
        raise ProtocolViolation("the broker delivered a batch with a damaged header")
    if (magic, version, codec, zero, total) != (_MAGIC, 1, 0, 0, len(data)) or kinds & 0xFF & ~(KEY | HEADERS | TIME):
        raise ProtocolViolation("the broker delivered a batch of an unknown format")
    if body_crc != crc32c(data[4:16] + data[32:52] + data[64:]):
        raise ProtocolViolation("the broker delivered a damaged batch")
    records = _equal_records(data, count) or _records(data, count)
    if not kinds:
        return Batch(base, time_us, records, None)
    try:
        decoded = [_decoded(record, kinds) for record in records]
    except struct.error:
        raise ProtocolViolation("the broker delivered a record with broken attributes") from None
    return Batch(base, time_us, [body for body, _ in decoded], [attributes for _, attributes in decoded])


def _equal_records(data: bytes, count: int) -> typing.List[bytes]:
    """Returns the records if all have the same length, which is quicker. Otherwise returns none."""
    step = 4 + int.from_bytes(data[HEADER_BYTES:HEADER_BYTES + 4], "little")
    if count == 0 or len(data) - HEADER_BYTES != count * step:
        return []
    for at in range(HEADER_BYTES, HEADER_BYTES + 4):
        if data[at::step] != data[at:at + 1] * count:
            return []
    return [data[at:at + step - 4] for at in range(HEADER_BYTES + 4, len(data) + 1, step)]


def _records(data: bytes, count: int) -> typing.List[bytes]:
    records, at = [], HEADER_BYTES
    for _ in range(count):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin], "little")
        if at > len(data):
            raise ProtocolViolation("the broker delivered a record that is longer than its batch")
        records.append(data[begin:at])
    if at != len(data) or not records:
        raise ProtocolViolation("the broker delivered a batch whose records do not fill it")
    return records


def _text(data: bytes, at: int) -> typing.Tuple[bytes, int]:
    length, = struct.unpack_from("<H", data, at)
    if at + 2 + length > len(data):
        raise ProtocolViolation("the broker delivered an attribute that is longer than its record")
    return data[at + 2:at + 2 + length], at + 2 + length


def _decoded(data: bytes, kinds: int) -> typing.Tuple[bytes, Attributes]:
    at, time_us, key, headers = 0, 0, b"", []
    if kinds & TIME:
        time_us, = struct.unpack_from("<q", data)
        at = 8
    if kinds & KEY:
        key, at = _text(data, at)
    if kinds & HEADERS:
        count, = struct.unpack_from("<H", data, at)
        at += 2
        for _ in range(count):
            name, at = _text(data, at)
            value, at = _text(data, at)
            headers.append((name.decode("utf-8", "surrogateescape"), value))
    return data[at:], Attributes(len(data), key, tuple(headers), time_us / 1e6 if time_us else None)
