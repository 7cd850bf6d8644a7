"""Frames of a session, encoded and decoded: docs/session.md, "The frame"."""
from __future__ import annotations

import dataclasses
import struct
import typing

from ..errors import ProtocolViolation
from .crc32c import crc32c
from .ranges import Range

HEADER_BYTES = 20
FRAME_BYTES_MAX = 1 << 31
MAGIC = 0x5353514C
# Bits of `codecs` in hello: abilities of the client.
KNOWS_EXPIRED, KNOWS_DEAD, KNOWS_LEASES, MAY_BE_BUSY, KNOWS_LATE, KEEPS_SECRET = (1 << bit for bit in range(26, 32))
CODES = ("ok", "invalid_frame", "unsupported_version", "unauthorized_access", "topic_not_found", "unknown_channel",
         "limit_reached", "too_large", "corrupt", "out_of_sequence", "fenced", "unknown_producer", "no_space", "io_error",
         "incarnation_changed", "shutting_down", "topic_deleted", "not_supported", "idle", "internal")

_HEADER = struct.Struct("<BBHIIII")
_START = struct.Struct("<BBHIII")
_CRC = struct.Struct("<I")
_SMALL, _LISTS = 1 << 10, 1 << 16

(HELLO, WELCOME, PRODUCE_OPEN, PRODUCE_OPENED, PRODUCE, CONFIRM, REFUSE, CONSUME_OPEN, CONSUME_OPENED, DELIVER, CREDIT,
 ACKNOWLEDGE, REJECT, EXTEND, SEEK, READ, DONE, CLOSE, HEARTBEAT, ERROR, GOODBYE, PRESENT, SHARE, SHARED, LATE, STARTED,
 REVOKED) = range(1, 28)

# The frames that a broker sends: the flags that each may have, and the least and greatest length of its body. None:
# the greatest length that the receiver takes.
_FROM_BROKER: typing.Dict[int, typing.Tuple[int, int, typing.Optional[int]]] = {
    WELCOME: (0, 32, 32), PRODUCE_OPENED: (0, 48, 64), CONFIRM: (0, 24, 24), REFUSE: (0, 28, _SMALL),
    CONSUME_OPENED: (3, 40, 40), DELIVER: (3, 84, None), DONE: (0, 8, 8), HEARTBEAT: (0, 0, 0), ERROR: (0, 4, _SMALL),
    GOODBYE: (0, 4, _SMALL), LATE: (0, 16, _LISTS), REVOKED: (0, 24, _LISTS)}
_BEFORE_BATCH = {DELIVER: 16, PRODUCE: 0}  # bytes of the body that the frame's checksum covers


class Frame(typing.NamedTuple):
    op: int
    flags: int
    channel: int
    request: int
    body: bytes


@dataclasses.dataclass(frozen=True)
class Welcome:
    version: int
    frame_bytes_max: int
    heartbeat_ms: int
    channels_max: int
    broker: int
    session: int


@dataclasses.dataclass(frozen=True)
class ProduceOpened:
    producer_id: int
    epoch: int
    level: int
    target: int
    batch_bytes_max: int
    message_bytes_max: int
    expected: int
    next_offset: int
    incarnation: int
    secret: bytes


@dataclasses.dataclass(frozen=True)
class Confirm:
    received: int
    flushed: int
    next_offset: int


@dataclasses.dataclass(frozen=True)
class Refuse:
    begin: int
    end: int
    expected: int
    code: str
    text: str


@dataclasses.dataclass(frozen=True)
class ConsumeOpened:
    next: int
    committed: int
    next_offset: int
    incarnation: int
    ack_timeout_ms: int
    leases: bool
    dead: bool


@dataclasses.dataclass(frozen=True)
class Deliver:
    delivery: int
    hand_out: int
    lost: int
    expired: bool
    batch: bytes


@dataclasses.dataclass(frozen=True)
class Revoke:
    cause: int
    before: int
    ranges: typing.List[Range]


@dataclasses.dataclass(frozen=True)
class Failure:
    """An `error` or a `goodbye`."""
    code: str
    text: str


# --- Encoding. --------------------------------------------------------------------------------------------------------

def text_of(data: bytes) -> bytes:
    return struct.pack("<H", len(data)) + data


def ranges_bytes(ranges: typing.Iterable[Range]) -> bytes:
    return b"".join(struct.pack("<QQ", *both) for both in ranges)


def encode(op: int, body: bytes = b"", channel: int = 0, request: int = 0, flags: int = 0) -> bytes:
    """Returns a whole frame."""
    start = _START.pack(op, flags, 0, channel, request, len(body))
    return start + _CRC.pack(crc32c(start + body[:_BEFORE_BATCH.get(op, len(body))])) + body


def hello(request: int, frame_bytes_max: int, heartbeat_ms: int, codecs: int, name: str, ticket: str) -> bytes:
    body = struct.pack("<IHHIII", MAGIC, 1, 1, frame_bytes_max, heartbeat_ms, codecs)
    return encode(HELLO, body + text_of(name.encode()) + text_of(ticket.encode()), request=request)


def produce_open(request: int, topic: str, producer_id: int = 0, epoch: int = 0, level: int = 0, target: int = 0,
                 secret: bytes = b"") -> bytes:
    body = struct.pack("<QHBB", producer_id, epoch, level, target) + text_of(topic.encode()) + text_of(secret)
    return encode(PRODUCE_OPEN, body, request=request)


def consume_open(request: int, topic: str, group: str, mode: int, acknowledgement: int, start: int, start_value: int,
                 holds: bool, credit: typing.Tuple[int, int], incarnation: int, ack_timeout_ms: int) -> bytes:
    body = struct.pack("<BBBBIQQQIIQ", mode, acknowledgement, start, holds, *credit, start_value, incarnation,
                       ack_timeout_ms, 0, 0)
    return encode(CONSUME_OPEN, body + text_of(topic.encode()) + text_of(group.encode()) + text_of(b""), request=request)


def credit(channel: int, messages: int, size: int) -> bytes:
    return encode(CREDIT, struct.pack("<IQ", messages, size), channel)


def acknowledge(channel: int, ranges: typing.Iterable[Range], hand_out: int) -> bytes:
    """`hand_out`: 0 without leases."""
    head = struct.pack("<II", hand_out, 0) if hand_out else b""
    return encode(ACKNOWLEDGE, head + ranges_bytes(ranges), channel, flags=2 if hand_out else 0)


def reject(channel: int, ranges: typing.Iterable[Range], hand_out: int, delay_ms: int = 0, flags: int = 0,
           reason: bytes = b"") -> bytes:
    """`flags`: 1 dead, with the reason; 4 release, only with leases."""
    body = struct.pack("<I", delay_ms) + (struct.pack("<I", hand_out) if hand_out else b"")
    body += text_of(reason) if flags & 1 else b""
    return encode(REJECT, body + ranges_bytes(ranges), channel, flags=flags | (2 if hand_out else 0))


def extend(channel: int, ranges: typing.Iterable[Range], hand_out: int, ms: int) -> bytes:
    body = struct.pack("<I", ms) + (struct.pack("<I", hand_out) if hand_out else b"")
    return encode(EXTEND, body + ranges_bytes(ranges), channel, flags=2 if hand_out else 0)


def started(channel: int, ranges: typing.Iterable[Range], hand_out: int) -> bytes:
    return encode(STARTED, struct.pack("<II", hand_out, 0) + ranges_bytes(ranges), channel)


def seek(channel: int, request: int, start: int, value: int) -> bytes:
    return encode(SEEK, struct.pack("<B7xQ", start, value), channel, request)


def read(request: int, topic: str, begin: int, end: int, size: int) -> bytes:
    return encode(READ, struct.pack("<QQQ", begin, end, size) + text_of(topic.encode()), request=request)


def goodbye() -> bytes:
    return encode(GOODBYE, struct.pack("<H", 0) + text_of(b""))


# --- Decoding. --------------------------------------------------------------------------------------------------------

class FrameReader:
    """Splits the broker's bytes into frames. Checks op, flags, zero bytes, length and checksum of each before it
    is used: ProtocolViolation."""

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max, self._data, self._at = frame_bytes_max, bytearray(), 0

    def feed(self, data: bytes) -> None:
        if self._at:
            del self._data[:self._at]
            self._at = 0
        self._data += data

    def next(self) -> typing.Optional[Frame]:
        """Returns the next whole frame, or None."""
        if len(self._data) - self._at < HEADER_BYTES:
            return None
        op, flags, zero, channel, request, length, crc = _HEADER.unpack_from(self._data, self._at)
        allowed, least, most = _FROM_BROKER.get(op, (0, 1, 0))
        if flags & ~allowed or zero or not least <= length <= (self._frame_bytes_max if most is None else most):
            raise ProtocolViolation(f"the broker sent a malformed frame: op {op}, flags {flags}, {length} bytes")
        begin, end = self._at + HEADER_BYTES, self._at + HEADER_BYTES + length
        if len(self._data) < end:
            return None
        body = bytes(self._data[begin:end])
        if crc != crc32c(bytes(self._data[self._at:self._at + 16]) + body[:_BEFORE_BATCH.get(op, length)]):
            raise ProtocolViolation(f"the broker sent a damaged frame: op {op}")
        self._at = end
        return Frame(op, flags, channel, request, body)


def _code(number: int) -> str:
    return CODES[number] if number < len(CODES) else "internal"


def _last_text(body: bytes, at: int) -> str:
    """Returns the text that fills the body from `at` on."""
    length = int.from_bytes(body[at:at + 2], "little")
    if len(body) != at + 2 + length:
        raise ProtocolViolation("the broker sent a text with a wrong length")
    return body[at + 2:].decode("utf-8", "replace")


def _ranges(body: bytes, at: int) -> typing.List[Range]:
    if (len(body) - at) % 16 or len(body) == at:
        raise ProtocolViolation("the broker sent half a range")
    ranges = [(begin, end) for begin, end in struct.iter_unpack("<QQ", body[at:])]
    last = -1
    for begin, end in ranges:
        if not last < begin < end:
            raise ProtocolViolation("the broker sent ranges in a wrong order")
        last = end
    return ranges


def welcome_of(body: bytes) -> Welcome:
    version, zero, *others = struct.unpack("<HHIIIQQ", body)
    if zero or version != 1:
        raise ProtocolViolation(f"the broker sent a welcome with the version {version}")
    return Welcome(version, *others)


def produce_opened_of(body: bytes) -> ProduceOpened:
    if len(body) not in (48, 64):
        raise ProtocolViolation("the broker sent half a secret")
    (producer_id, epoch, level, target, batch_bytes_max, message_bytes_max, expected, next_offset,
     incarnation) = struct.unpack_from("<QHBBIQQQQ", body)
    opened = ProduceOpened(producer_id, epoch, level, target, batch_bytes_max, message_bytes_max, expected, next_offset,
                           incarnation, body[48:])
    if opened.producer_id == 0 or opened.level not in (1, 2) or opened.target > 1:
        raise ProtocolViolation("the broker opened a producer with invalid fields")
    return opened


def confirm_of(body: bytes) -> Confirm:
    confirm = Confirm(*struct.unpack("<QQQ", body))
    if confirm.flushed > confirm.received:
        raise ProtocolViolation("the broker confirmed more on disk than in the log")
    return confirm


def refuse_of(body: bytes) -> Refuse:
    begin, end, expected, code = struct.unpack_from("<QQQH", body)
    if begin >= end:
        raise ProtocolViolation("the broker refused an empty range")
    return Refuse(begin, end, expected, _code(code), _last_text(body, 26))


def consume_opened_of(body: bytes, flags: int) -> ConsumeOpened:
    following, committed, next_offset, incarnation, ack_timeout_ms, zero = struct.unpack("<QQQQII", body)
    if zero:
        raise ProtocolViolation("the broker opened a consumer with reserved bytes")
    return ConsumeOpened(following, committed, next_offset, incarnation, ack_timeout_ms, bool(flags & 1), bool(flags & 2))


def deliver_of(body: bytes, flags: int) -> Deliver:
    delivery, hand_out, lost = struct.unpack_from("<IIQ", body)
    return Deliver(delivery, hand_out, lost, bool(flags & 2), body[16:])


def done_of(body: bytes) -> int:
    return int.from_bytes(body, "little")


def failure_of(body: bytes) -> Failure:
    return Failure(_code(int.from_bytes(body[:2], "little")), _last_text(body, 2))


def late_of(body: bytes) -> typing.List[Range]:
    return _ranges(body, 0)


def revoke_of(body: bytes) -> Revoke:
    cause, zero, also_zero, before = struct.unpack_from("<BBHI", body)
    if cause == 0 or zero or also_zero:
        raise ProtocolViolation("the broker revoked messages without a cause")
    return Revoke(cause, before, _ranges(body, 8))
