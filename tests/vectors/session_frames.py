"""Session frames in Python, from docs/session.md alone: an encoder, a decoder, and the test vectors.

`python3 session_frames.py` writes session_frames.json beside itself. The result must not change unless the
document has changed. The tests check that, and that the C++ codec agrees with every frame in the file.
"""
import json
import pathlib
import struct

from batch_bytes import LZ4, ZSTD, Message, batch, crc32c, unbatch  # noqa: F401

HEADER = struct.Struct("<BBHIIII")  # op, flags, zero, channel, request, body bytes, CRC


# Each op has a number and the fields of its body, in their order. A field is a name and a format. The format
# is one of `struct` (always little-endian), "text", or "bytes" (a text of bytes, here in hexadecimal digits).
# The name None stands for bytes that are zero. A format that begins with "?" is there only with flag 2, one that
# begins with "!" only with flag 1.
OPS = {
    "hello": (1, [("magic", "I"), ("oldest_version", "H"), ("newest_version", "H"), ("frame_bytes_max", "I"),
                  ("heartbeat_ms", "I"), ("codecs", "I"), ("name", "text"), ("ticket", "text")]),
    "welcome": (2, [("version", "H"), (None, "H"), ("frame_bytes_max", "I"), ("heartbeat_ms", "I"),
                    ("channels_max", "I"), ("broker", "Q"), ("session", "Q")]),
    "produce_open": (3, [("producer_id", "Q"), ("producer_epoch", "H"), ("level", "B"), ("target", "B"), ("topic", "text"),
                         ("secret", "bytes")]),
    "produce_opened": (4, [("producer_id", "Q"), ("producer_epoch", "H"), ("level", "B"), ("target", "B"),
                           ("batch_bytes_max", "I"), ("message_bytes_max", "Q"), ("expected", "Q"),
                           ("next_offset", "Q"), ("incarnation", "Q"), ("secret", "rest")]),
    "produce": (5, [("batch", "rest")]),
    "confirm": (6, [("received", "Q"), ("flushed", "Q"), ("next_offset", "Q")]),
    "refuse": (7, [("begin", "Q"), ("end", "Q"), ("expected", "Q"), ("code", "H"), ("sentence", "text")]),
    "consume_open": (8, [("mode", "B"), ("acknowledgement", "B"), ("start", "B"), ("holds", "B"),
                         ("credit_messages", "I"), ("credit_bytes", "Q"), ("start_value", "Q"), ("incarnation", "Q"),
                         ("ack_timeout_ms", "I"), (None, "I"), (None, "Q"), ("topic", "text"), ("group", "text"),
                         ("filter", "text")]),
    "consume_opened": (9, [("next", "Q"), ("committed", "Q"), ("next_offset", "Q"), ("incarnation", "Q"),
                           ("ack_timeout_ms", "I"), (None, "I")]),
    "deliver": (10, [("delivery", "I"), ("hand_out", "I"), ("lost", "Q"), ("batch", "rest")]),
    "credit": (11, [("messages", "I"), ("bytes", "Q")]),
    "acknowledge": (12, [("hand_out", "?I"), (None, "?I"), ("ranges", "ranges")]),
    "reject": (13, [("ms", "I"), ("hand_out", "?I"), ("reason", "!text"), ("ranges", "ranges")]),
    "extend": (14, [("ms", "I"), ("hand_out", "?I"), ("ranges", "ranges")]),
    "seek": (15, [("start", "B"), (None, "3s"), (None, "I"), ("start_value", "Q")]),
    "read": (16, [("begin", "Q"), ("end", "Q"), ("bytes", "Q"), ("topic", "text")]),
    "done": (17, [("value", "Q")]),
    "close": (18, []),
    "heartbeat": (19, []),
    "error": (20, [("code", "H"), ("sentence", "text")]),
    "goodbye": (21, [("code", "H"), ("sentence", "text")]),
    "present": (22, [("ticket", "text")]),
    "share": (23, [("to_broker", "I"), ("to_client", "I")]),
    "shared": (24, [("to_broker", "I"), ("to_client", "I")]),
    "late": (25, [("ranges", "ranges")]),
    "started": (26, [("hand_out", "I"), (None, "I"), ("ranges", "ranges")]),
    "revoked": (27, [("cause", "B"), (None, "B"), (None, "H"), ("hand_outs_before", "I"), ("ranges", "ranges")]),
}
NAMES = {number: name for name, (number, _) in OPS.items()}
DEFAULTS = {"target": 0}  # of fields that values may leave out
BEFORE_BATCH = {"produce": 0, "deliver": 16}


def encode_body(op, values):
    body = b""
    for name, kind in OPS[op][1]:
        if kind.startswith("?") and "hand_out" not in values or kind.startswith("!") and name not in values:
            continue
        kind = kind.removeprefix("?").removeprefix("!")
        if kind == "text":
            text = values.get(name, "").encode()
            body += struct.pack("<H", len(text)) + text
        elif kind == "bytes":
            data = bytes.fromhex(values.get(name, ""))
            body += struct.pack("<H", len(data)) + data
        elif kind == "rest":
            body += bytes.fromhex(values.get(name, ""))
        elif kind == "ranges":
            cumulative = "before" in values
            body += struct.pack("<Q", values["before"]) if cumulative else b"".join(
                struct.pack("<QQ", *both) for both in values["ranges"])
        else:
            zero = b"" if kind.endswith("s") else 0
            body += struct.pack("<" + kind, zero if name is None else {**DEFAULTS, **values}[name])
    return body


def decode_body(op, flags, body):
    values = {}
    for name, kind in OPS[op][1]:
        if kind.startswith("?") and not flags & 2 or kind.startswith("!") and not flags & 1:
            continue
        kind = kind.removeprefix("?").removeprefix("!")
        if kind == "text":
            length, = struct.unpack_from("<H", body)
            values[name], body = body[2:2 + length].decode(), body[2 + length:]
        elif kind == "bytes":
            length, = struct.unpack_from("<H", body)
            values[name], body = body[2:2 + length].hex(), body[2 + length:]
        elif kind == "rest":
            values[name], body = body.hex(), b""
        elif kind == "ranges":
            if op in ("acknowledge", "started") and flags & 1:
                values["before"], = struct.unpack("<Q", body)
            else:
                values["ranges"] = [list(both) for both in struct.iter_unpack("<QQ", body)]
            body = b""
        else:
            value, = struct.unpack_from("<" + kind, body)
            body = body[struct.calcsize("<" + kind):]
            if name is not None:
                values[name] = value
            elif value not in (0, b"\0\0\0"):
                raise ValueError("bytes that must be zero are not")
    if body:
        raise ValueError("the body is too long")
    return values


def checked(op, body):
    return body[:BEFORE_BATCH.get(op, len(body))]


def encode(op, values, flags=0, channel=0, request=0, body=None):
    body = encode_body(op, values) if body is None else body
    start = struct.pack("<BBHIII", OPS[op][0], flags, 0, channel, request, len(body))
    return start + struct.pack("<I", crc32c(start + checked(op, body))) + body


def decode(frame):
    """Decodes one whole, sound frame. Returns (op, flags, channel, request, values)."""
    number, flags, zero, channel, request, length, crc = HEADER.unpack_from(frame)
    op, body = NAMES[number], frame[HEADER.size:]
    if zero or length != len(body) or crc != crc32c(frame[:16] + checked(op, body)):
        raise ValueError("not a sound frame")
    return op, flags, channel, request, decode_body(op, flags, body)


def sound_frames():
    labelled = [Message(b"one", key=b"tea", headers=((b"kind", b"json"), (b"trace", b"")), time_us=1763750000000001),
                Message(b"two")]
    delayed = [Message(b"at nine", key=b"tea", headers=((b"lightq-id", b"order 7"),), due=1763800000000000),
               Message(b"in ten minutes", due=-600_000_000), Message(b"at once", due=0)]
    produced = batch([b"one", b"", b"three"], producer_id=0x1122334455667788, epoch=3, sequence=40)
    delivered = batch([b"one", b"", b"three"], offset=1000, time_us=1763750000123456, segment_epoch=7)
    secret = "00112233445566778899aabbccddeeff"
    yield "hello", "hello", dict(magic=0x5353514C, oldest_version=1, newest_version=1, frame_bytes_max=1 << 20,
                                 heartbeat_ms=10000, codecs=6, name="billing-7", ticket=""), dict(request=1)
    yield "hello with a ticket", "hello", dict(
        magic=0x5353514C, oldest_version=1, newest_version=9, frame_bytes_max=65536, heartbeat_ms=0, codecs=0, name="",
        ticket="42." + "ab" * 32), dict(request=1)
    yield "welcome", "welcome", dict(version=1, frame_bytes_max=1 << 24, heartbeat_ms=30000, channels_max=10000,
                                     broker=0xFEDCBA9876543210, session=12), dict(request=1)
    yield "a new producer", "produce_open", dict(producer_id=0, producer_epoch=0, level=0, topic="orders"), dict(
        request=2)
    yield "a producer that comes back", "produce_open", dict(
        producer_id=0x1122334455667788, producer_epoch=3, level=2, topic="orders"), dict(request=7)
    yield "produce_opened", "produce_opened", dict(
        producer_id=0x1122334455667788, producer_epoch=3, level=2, batch_bytes_max=1 << 20, message_bytes_max=1 << 24,
        expected=40, next_offset=1000, incarnation=0x0102030405060708), dict(channel=1, request=2)
    yield "a producer that comes back with its secret", "produce_open", dict(
        producer_id=0x1122334455667788, producer_epoch=3, level=0, topic="orders", secret=secret), dict(request=7)
    yield "produce_opened with a secret", "produce_opened", dict(
        producer_id=0x1122334455667788, producer_epoch=0, level=1, batch_bytes_max=1 << 20, message_bytes_max=1 << 24,
        expected=0, next_offset=1000, incarnation=0x0102030405060708, secret=secret), dict(channel=1, request=2)
    yield "a producer of delayed messages", "produce_open", dict(
        producer_id=0, producer_epoch=0, level=2, target=1, topic="orders"), dict(request=2)
    yield "produce_opened to the schedule", "produce_opened", dict(
        producer_id=0x1122334455667788, producer_epoch=0, level=2, target=1, batch_bytes_max=1 << 20,
        message_bytes_max=1 << 24, expected=0, next_offset=70, incarnation=0x0102030405060708), dict(channel=1, request=2)
    yield "produce", "produce", dict(batch=produced.hex()), dict(channel=1)
    yield "produce and flush", "produce", dict(batch=produced.hex()), dict(channel=1, flags=1)
    yield "produce with key, headers and time", "produce", dict(
        batch=batch(labelled, 0x1122334455667788, 3, 43).hex()), dict(channel=1)
    yield "produce compressed by LZ4", "produce", dict(
        batch=batch([b"one", b"two"], 0x1122334455667788, 3, 45, codec=LZ4).hex()), dict(channel=1)
    yield "produce with due times", "produce", dict(
        batch=batch(delayed, 0x1122334455667788, 3, 47).hex()), dict(channel=1)
    yield "confirm", "confirm", dict(received=43, flushed=40, next_offset=1003), dict(channel=1)
    yield "refuse", "refuse", dict(begin=43, end=50, expected=43, code=6, sentence="the topic is full"), dict(channel=1)
    yield "a member of the default group", "consume_open", dict(
        mode=1, acknowledgement=1, start=1, holds=0, credit_messages=1000, credit_bytes=1 << 20, start_value=0,
        incarnation=0, ack_timeout_ms=30000, topic="orders", group=""), dict(request=3)
    yield "a cursor of one's own from an offset", "consume_open", dict(
        mode=2, acknowledgement=2, start=4, holds=1, credit_messages=1, credit_bytes=1, start_value=999,
        incarnation=0x0102030405060708, ack_timeout_ms=0, topic="orders", group="audit"), dict(request=4)
    yield "consume_opened", "consume_opened", dict(next=1000, committed=998, next_offset=1003,
                                                   incarnation=0x0102030405060708, ack_timeout_ms=30000), dict(
                                                       channel=2, request=3)
    yield "consume_opened with leases", "consume_opened", dict(
        next=1000, committed=998, next_offset=1003, incarnation=0x0102030405060708, ack_timeout_ms=1800000), dict(
            channel=2, request=3, flags=1)
    yield "consume_opened with leases and dead letters", "consume_opened", dict(
        next=1000, committed=998, next_offset=1003, incarnation=0x0102030405060708, ack_timeout_ms=1800000), dict(
            channel=2, request=3, flags=3)
    yield "deliver", "deliver", dict(delivery=1, hand_out=0, lost=0, batch=delivered.hex()), dict(channel=2)
    yield "deliver with a hand-out", "deliver", dict(delivery=2, hand_out=0x01020304, lost=0, batch=delivered.hex()), dict(
        channel=2)
    yield "deliver a part again", "deliver", dict(
        delivery=4, hand_out=0, lost=17,
        batch=batch([b"three"], offset=1002, time_us=1763750000123456, segment_epoch=7).hex()), dict(channel=2, flags=1)
    yield "deliver a part that has expired", "deliver", dict(
        delivery=0, hand_out=0, lost=0,
        batch=batch([Message(b"three", headers=((b"lightq-ttl-ms", b"60000"),))], offset=1002, time_us=1763750000123456,
                    segment_epoch=7).hex()), dict(request=9, flags=3)
    yield "deliver with attributes, compressed by Zstandard", "deliver", dict(
        delivery=1, hand_out=0, lost=0,
        batch=batch(labelled, offset=1003, time_us=1763750000123456, segment_epoch=7, codec=ZSTD).hex()), dict(channel=2)
    yield "credit", "credit", dict(messages=64, bytes=65536), dict(channel=2)
    yield "acknowledge", "acknowledge", dict(ranges=[[1000, 1001], [1002, 1003]]), dict(channel=2)
    yield "acknowledge everything before", "acknowledge", dict(before=1003), dict(channel=2, flags=1)
    yield "reject", "reject", dict(ms=5000, ranges=[[1001, 1002]]), dict(channel=2)
    yield "acknowledge messages of a hand-out", "acknowledge", dict(
        hand_out=7, ranges=[[1000, 1001], [1002, 1003]]), dict(channel=2, flags=2)
    yield "acknowledge everything before, of a hand-out", "acknowledge", dict(hand_out=7, before=1003), dict(
        channel=2, flags=3)
    yield "reject messages of a hand-out", "reject", dict(ms=5000, hand_out=7, ranges=[[1001, 1002]]), dict(
        channel=2, flags=2)
    yield "release", "reject", dict(ms=0, hand_out=7, ranges=[[1001, 1002], [1005, 1006]]), dict(channel=2, flags=6)
    yield "dead messages", "reject", dict(ms=0, reason="not an order", ranges=[[1001, 1002]]), dict(channel=2, flags=1)
    yield "dead messages of a hand-out, without a reason", "reject", dict(
        ms=0, hand_out=7, reason="", ranges=[[1001, 1002], [1005, 1006]]), dict(channel=2, flags=3)
    yield "extend messages of a hand-out", "extend", dict(ms=60000, hand_out=7, ranges=[[1001, 1002]]), dict(
        channel=2, flags=2)
    yield "started", "started", dict(hand_out=7, ranges=[[1000, 1001], [1002, 1003]]), dict(channel=2)
    yield "started everything before", "started", dict(hand_out=7, before=1003), dict(channel=2, flags=1)
    yield "revoked", "revoked", dict(cause=2, hand_outs_before=8, ranges=[[1000, 1001], [1005, 1010]]), dict(channel=2)
    yield "extend", "extend", dict(ms=60000, ranges=[[0, 1], [2, (1 << 64) - 1]]), dict(channel=2)
    yield "seek to a time", "seek", dict(start=5, start_value=1763750000000000), dict(channel=2, request=5)
    yield "seek to the end", "seek", dict(start=2, start_value=0), dict(channel=2, request=6)
    yield "read", "read", dict(begin=10, end=20, bytes=1 << 16, topic="orders"), dict(request=8)
    yield "done", "done", dict(value=20), dict(request=8)
    yield "close", "close", {}, dict(channel=2, request=9)
    yield "heartbeat", "heartbeat", {}, {}
    yield "error", "error", dict(code=4, sentence="topic not found"), dict(request=2)
    yield "goodbye", "goodbye", dict(code=0, sentence=""), {}
    yield "present", "present", dict(ticket="43." + "cd" * 32), dict(request=10)
    yield "share", "share", dict(to_broker=1 << 19, to_client=1 << 14), dict(request=11)
    yield "shared", "shared", dict(to_broker=4096, to_client=1 << 20), dict(request=11)
    yield "late", "late", dict(ranges=[[1000, 1001], [1005, 1010]]), dict(channel=2)


def broken_frames():
    """Yields name, frame and fault. The fault is one of the frame, or `body` for a field that the document
    does not permit."""
    confirm = encode("confirm", dict(received=43, flushed=40, next_offset=1003), channel=1)
    yield "op 0", b"\0" + confirm[1:], "unknown_op"
    yield "op 28", b"\x1c" + confirm[1:], "unknown_op"
    yield "a flag that confirm has not", confirm[:1] + b"\1" + confirm[2:], "unknown_flags"
    yield "a flag that produce has not", encode("produce", dict(batch=batch([b"x"]).hex()), flags=2), "unknown_flags"
    yield "reserved bytes", confirm[:3] + b"\1" + confirm[4:], "reserved_bytes"
    yield "a body that is too short", encode("confirm", {}, body=b"\0" * 23), "bad_length"
    yield "a body that is too long", encode("heartbeat", {}, body=b"\0"), "bad_length"
    yield "a length that lies", confirm[:12] + b"\xff\xff\xff\xff" + confirm[16:], "bad_length"
    # A receiver refuses this frame after its header, so the body need not be there.
    yield "a produce longer than the receiver takes", encode("produce", {}, body=b"\0" * 65537)[:20], "bad_length"
    yield "a checksum that does not fit", confirm[:-1] + b"\1", "bad_crc"
    yield "a head in front of a batch that does not fit", (lambda frame: frame[:20] + b"\2" + frame[21:])(encode(
        "deliver", dict(delivery=1, hand_out=0, lost=0, batch=batch([b"x"], offset=1).hex()))), "bad_crc"
    good = dict(magic=0x5353514C, oldest_version=1, newest_version=1, frame_bytes_max=65536, heartbeat_ms=0, codecs=0,
                name="", ticket="")
    for name, change in [("another magic", dict(magic=0x5353514D)), ("versions backwards", dict(oldest_version=2)),
                         ("frames that are too small", dict(frame_bytes_max=65535)),
                         ("a heartbeat that is too quick", dict(heartbeat_ms=99)),
                         ("a name that is too long", dict(name="n" * 129))]:
        yield name, encode("hello", {**good, **change}), "body"
    yield "no ticket to present", encode("present", {}, body=b"\0\0\0"), "body"
    yield "a ticket that is too long", encode("present", dict(ticket="t" * 513)), "body"
    yield "memory that is too little", encode("share", dict(to_broker=2048, to_client=4096)), "body"
    yield "memory that is too much", encode("share", dict(to_broker=4096, to_client=1 << 21)), "body"
    yield "memory that is no power of two", encode("share", dict(to_broker=4096, to_client=12288)), "body"
    yield "memory that is no power of two, given", encode("shared", dict(to_broker=12288, to_client=4096)), "body"
    yield "a text longer than its body", encode("error", {}, body=b"\1\0\5\0abcd"), "body"
    yield "something behind the last field", encode("error", {}, body=b"\1\0\2\0abcd"), "body"
    yield "no topic", encode("produce_open", {}, body=struct.pack("<QHBBHHx", 0, 0, 0, 0, 0, 0)), "body"
    yield "level 3", encode("produce_open", dict(producer_id=0, producer_epoch=0, level=3, topic="t")), "body"
    yield "target 2", encode(
        "produce_open", dict(producer_id=0, producer_epoch=0, level=0, target=2, topic="t")), "body"
    yield "target 2, opened", encode("produce_opened", dict(
        producer_id=1, producer_epoch=0, level=1, target=2, batch_bytes_max=1, message_bytes_max=1, expected=0,
        next_offset=0, incarnation=1)), "body"
    yield "a secret that is too short", encode(
        "produce_open", dict(producer_id=1, producer_epoch=0, level=0, topic="t", secret="ab" * 15)), "body"
    yield "a secret that is too long", encode(
        "produce_open", dict(producer_id=1, producer_epoch=0, level=0, topic="t", secret="ab" * 17)), "body"
    yield "half a secret", encode("produce_opened", dict(
        producer_id=1, producer_epoch=0, level=1, batch_bytes_max=1, message_bytes_max=1, expected=0, next_offset=0,
        incarnation=1, secret="ab" * 8)), "body"
    yield "flushed past received", encode("confirm", dict(received=1, flushed=2, next_offset=1)), "body"
    yield "an empty refusal", encode("refuse", dict(begin=5, end=5, expected=5, code=6, sentence="")), "body"
    yield "half a range", encode("acknowledge", {}, body=b"\0" * 24), "body"
    yield "an empty range", encode("acknowledge", dict(ranges=[[5, 5]])), "body"
    yield "ranges that touch", encode("acknowledge", dict(ranges=[[1, 2], [2, 3]])), "body"
    yield "ranges that descend", encode("reject", dict(ms=0, ranges=[[7, 9], [1, 2]])), "body"
    yield "a release with a delay", encode("reject", dict(ms=1, ranges=[[1, 2]]), flags=4), "body"
    dead = dict(ms=0, reason="r", ranges=[[1, 2]])
    yield "dead messages with a delay", encode("reject", {**dead, "ms": 1}, flags=1), "body"
    yield "dead messages that are released", encode("reject", dead, flags=5), "body"
    yield "a reason that is too long", encode("reject", {**dead, "reason": "r" * 257}, flags=1), "body"
    yield "a reason longer than its body", encode("reject", {}, flags=1, body=struct.pack("<IHQQ", 0, 17, 1, 2)), "body"
    yield "dead messages, half a range", encode("reject", {}, flags=1, body=struct.pack("<IHQQQ", 0, 0, 1, 2, 3)), "body"
    yield "dead messages without a reason's length", encode(
        "reject", {}, flags=1, body=struct.pack("<IQQ", 0, 1, 2)), "body"
    yield "consume_opened with an unknown flag", encode("consume_opened", dict(
        next=0, committed=0, next_offset=0, incarnation=1, ack_timeout_ms=0), flags=4), "unknown_flags"
    yield "a hand-out without its zero", encode(
        "acknowledge", {}, flags=2, body=struct.pack("<IIQQ", 7, 1, 1, 2)), "body"
    yield "a hand-out and no range", encode("acknowledge", {}, flags=2, body=struct.pack("<II", 7, 0)), "body"
    yield "started without its zero", encode("started", {}, body=struct.pack("<IIQQ", 7, 1, 1, 2)), "body"
    yield "started, half a range", encode("started", {}, body=struct.pack("<IIQ", 7, 0, 1)), "body"
    yield "revoked without a cause", encode("revoked", dict(cause=0, hand_outs_before=8, ranges=[[1, 2]])), "body"
    yield "revoked ranges that touch", encode("revoked", dict(
        cause=1, hand_outs_before=8, ranges=[[1, 2], [2, 3]])), "body"
    yield "a release that extend has not", encode("extend", dict(ms=0, ranges=[[1, 2]]), flags=4), "unknown_flags"
    yield "a start that needs no value", encode("seek", dict(start=1, start_value=1)), "body"
    yield "start 6", encode("seek", dict(start=6, start_value=0)), "body"
    yield "a range backwards", encode("read", dict(begin=2, end=1, bytes=1, topic="t")), "body"


def vectors():
    sound = [dict(name=name, op=op, **{"flags": 0, "channel": 0, "request": 0, **header}, body=values,
                  frame=encode(op, values, **header).hex()) for name, op, values, header in sound_frames()]
    broken = [dict(name=name, fault=fault, frame=frame.hex()) for name, frame, fault in broken_frames()]
    return dict(version=1, receiver_takes=65536, sound=sound, broken=broken)


def text_of_vectors():
    return json.dumps(vectors(), indent=1) + "\n"


if __name__ == "__main__":
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(text_of_vectors())
    print(f"{path}: {len(vectors()['sound'])} sound frames, {len(vectors()['broken'])} broken ones")
