"""Batches and records: docs/log_format.md, "Batch" and "Record". Compressed batches are not supported; a client that
declares no codec receives none."""
from __future__ import annotations

import dataclasses
import struct
import typing

from ..errors import InvalidArgument, ProtocolViolation
from .crc32c import crc32c

HEADER_BYTES = 64
RECORDS_MAX = 65536
KEY, HEADERS, TIME, DUE = 1, 2, 4, 8
KEY_BYTES_MAX, HEADERS_MAX, HEADER_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX = 1024, 64, 128, 32 * 1024
TTL_MS_MAX = DELAY_MS_MAX = 3653 * 86_400_000
ID_BYTES_MAX = 128
Header = typing.Tuple[str, bytes]
Headers = typing.Union[typing.Mapping[str, typing.Union[str, bytes]],
                       typing.Iterable[typing.Tuple[str, typing.Union[str, bytes]]]]

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
class Record:
    """A message as it was delivered."""
    body: bytes
    size: int  # attributes and payload
    key: bytes = b""
    headers: typing.Tuple[Header, ...] = ()
    time_us: int = 0


@dataclasses.dataclass(frozen=True)
class Batch:
    base_offset: int
    append_time_us: int
    records: typing.List[Record]


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
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"a body is bytes or str, not {type(body).__name__}")
    message = Outgoing(bytes(body))
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


def encode(messages: typing.Sequence[Outgoing], producer_id: int, epoch: int, sequence: int) -> bytes:
    """Returns a batch as a producer makes it."""
    kinds = 0
    for message in messages:
        kinds |= message.kinds
    if kinds:
        body = b"".join([_record(message, kinds) for message in messages])
    else:
        parts: typing.List[bytes] = []
        for message in messages:
            parts += (len(message.body).to_bytes(4, "little"), message.body)
        body = b"".join(parts)
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
    records, at = [], HEADER_BYTES
    try:
        for _ in range(count):
            length = int.from_bytes(data[at:at + 4], "little")
            at += 4 + length
            if at > total:
                raise ProtocolViolation("the broker delivered a record that is longer than its batch")
            records.append(_decoded(data[at - length:at], kinds) if kinds else Record(data[at - length:at], length))
    except struct.error:
        raise ProtocolViolation("the broker delivered a record with broken attributes") from None
    if at != total or not records:
        raise ProtocolViolation("the broker delivered a batch whose records do not fill it")
    return Batch(base, time_us, records)


def _text(data: bytes, at: int) -> typing.Tuple[bytes, int]:
    length, = struct.unpack_from("<H", data, at)
    if at + 2 + length > len(data):
        raise ProtocolViolation("the broker delivered an attribute that is longer than its record")
    return data[at + 2:at + 2 + length], at + 2 + length


def _decoded(data: bytes, kinds: int) -> Record:
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
    return Record(data[at:], len(data), key, tuple(headers), time_us)
