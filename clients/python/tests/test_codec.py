"""Tests the codec on the vectors of docs/session.md, and against an independent decoder."""
import os
import random

import batch_bytes
import pytest
import session_frames
from checksum import crc32c as other_crc32c
from lightq.core import batch, frames, requests, salsa, zmtp
from lightq.core.crc32c import crc32c_python
from lightq.core.credit import Credit
from lightq.core.discovery import Place
from lightq.core.ranges import ranges_of
from lightq.errors import Error, InvalidArgument, ProtocolViolation, Unauthorized

VECTORS = session_frames.vectors()
FROM_BROKER = {"welcome": lambda f: frames.welcome_of(f.body), "produce_opened": lambda f: frames.produce_opened_of(f.body),
               "confirm": lambda f: frames.confirm_of(f.body), "refuse": lambda f: frames.refuse_of(f.body),
               "consume_opened": lambda f: frames.consume_opened_of(f.body, f.flags), "deliver": lambda f: frames.deliver_of(f.body, f.flags),
               "done": lambda f: frames.done_of(f.body), "error": lambda f: frames.failure_of(f.body),
               "goodbye": lambda f: frames.failure_of(f.body), "late": lambda f: frames.late_of(f.body),
               "revoked": lambda f: frames.revoke_of(f.body), "heartbeat": lambda f: None}
NAMES = {number: name for name, (number, _) in session_frames.OPS.items()}
# Fields with other names in the vectors than in the client.
RENAMED = {"producer_epoch": "epoch", "sentence": "text", "hand_outs_before": "before"}


def read(data, most=VECTORS["receiver_takes"]):
    reader = frames.FrameReader(most)
    reader.feed(data)
    return reader.next()


def as_vector(value):
    return value.hex() if isinstance(value, bytes) else [list(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vector", [each for each in VECTORS["sound"] if each["op"] in FROM_BROKER], ids=lambda each: each["name"])
def test_a_frame_of_the_broker_decodes_to_its_fields(vector):
    frame = read(bytes.fromhex(vector["frame"]))
    assert (NAMES[frame.op], frame.flags, frame.channel, frame.request) == tuple(
        vector[key] for key in ("op", "flags", "channel", "request"))
    decoded = FROM_BROKER[vector["op"]](frame)
    for name, value in vector["body"].items():
        if isinstance(decoded, (int, list)):
            assert as_vector(decoded) == value
        elif name == "code":
            assert decoded.code == frames.CODES[value]
        else:
            assert as_vector(getattr(decoded, RENAMED.get(name, name))) == value, name


def encoded(vector):
    """Encodes a client's frame from the fields of a vector. None: this client never sends such a frame."""
    op, flags, channel, request, body = (vector[key] for key in ("op", "flags", "channel", "request", "body"))
    if op == "hello" and body["newest_version"] == 1:
        return frames.hello(request, body["frame_bytes_max"], body["heartbeat_ms"], body["codecs"], body["name"], body["ticket"])
    if op == "produce_open":
        return frames.produce_open(request, body["topic"], body["producer_id"], body["producer_epoch"], body["level"],
                                   body.get("target", 0), bytes.fromhex(body.get("secret", "")))
    if op == "consume_open":
        return frames.consume_open(request, body["topic"], body["group"], body["mode"], body["acknowledgement"], body["start"],
                                   body["start_value"], bool(body["holds"]), (body["credit_messages"], body["credit_bytes"]),
                                   body["incarnation"], body["ack_timeout_ms"])
    if op == "produce":
        return frames.encode(frames.PRODUCE, bytes.fromhex(body["batch"]), channel, flags=flags)
    if op == "credit":
        return frames.credit(channel, body["messages"], body["bytes"])
    if op in ("acknowledge", "started") and "before" in body:
        return None
    if op == "acknowledge":
        return frames.acknowledge(channel, body["ranges"], body.get("hand_out", 0))
    if op == "reject":
        return frames.reject(channel, body["ranges"], body.get("hand_out", 0), body["ms"], flags & ~2, body.get("reason", "").encode())
    if op == "extend":
        return frames.extend(channel, body["ranges"], body.get("hand_out", 0), body["ms"])
    if op == "started":
        return frames.started(channel, body["ranges"], body["hand_out"])
    if op == "seek":
        return frames.seek(channel, request, body["start"], body["start_value"])
    if op == "read":
        return frames.read(request, body["topic"], body["begin"], body["end"], body["bytes"])
    return frames.encode(frames.CLOSE, channel=channel, request=request) if op == "close" else None


def test_frames_of_the_client_have_the_bytes_of_the_vectors():
    compared = {vector["op"]: encoded(vector) == bytes.fromhex(vector["frame"])
                for vector in VECTORS["sound"] if encoded(vector) is not None}
    assert all(compared.values()), compared
    assert len(compared) == 12, sorted(compared)


@pytest.mark.parametrize("vector", VECTORS["broken"], ids=lambda each: each["name"])
def test_a_broken_frame_is_a_violation(vector):
    data = bytes.fromhex(vector["frame"])
    with pytest.raises(ProtocolViolation):
        frame = read(data)
        FROM_BROKER[NAMES[frame.op]](frame)
        if frame.op == frames.ERROR:
            return


def test_mutated_frames_are_read_or_refused():
    """Bytes of a hostile peer end in a frame, in None, or in a violation."""
    source = random.Random(7)
    sound = [bytes.fromhex(vector["frame"]) for vector in VECTORS["sound"]]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(3000):
        data = bytearray(source.choice(sound))
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        if source.random() < 0.8 and len(data) >= 20:  # with a right checksum, so that the fields are decoded
            op, flags, _, channel, request = data[0], data[1], 0, 1, 0
            data = bytearray(frames.encode(op, bytes(data[20:]), channel, request, flags & 3))
        try:
            frame = read(bytes(data))
            if frame is not None:
                decoded = FROM_BROKER[NAMES[frame.op]](frame)
                if frame.op == frames.DELIVER:
                    batch.decode(decoded.batch)
            outcomes["read"] += 1
        except ProtocolViolation:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 300, outcomes


def test_mutated_batches_are_refused():
    source = random.Random(8)
    messages = [batch_bytes.Message(b"one", b"key", ((b"name", b"value"),), 5), batch_bytes.Message(b"two")]
    whole = batch_bytes.batch(messages, offset=7, time_us=9)
    for _ in range(2000):
        records = bytearray(whole[64:])
        records[source.randrange(len(records))] = source.randrange(256)
        broken = batch_bytes.batch_of_body(bytes(records), source.choice([1, 2, 3]), 7, offset=7)
        try:
            assert batch.decode(broken).base_offset == 7
        except ProtocolViolation:
            pass
    with pytest.raises(ProtocolViolation):
        batch.decode(whole[:-1] + b"x")


def test_batches_agree_with_another_codec():
    sent = [batch.outgoing(b"one", key="schön", headers={"a": "b", "c": b"\xff"}, time=1.5), batch.outgoing(b""), batch.outgoing("drei")]
    coded = bytearray(batch.encode(sent, 17, 3, 40))
    coded[60:64] = other_crc32c(bytes(coded[:60])).to_bytes(4, "little")  # as the log does
    other = batch_bytes.unbatch(bytes(coded))
    assert (other.producer_id, other.epoch, other.sequence) == (17, 3, 40)
    assert [message.payload for message in other.messages] == [b"one", b"", "drei".encode()]
    assert other.messages[0].key == "schön".encode() and other.messages[0].time_us == 1_500_000
    assert other.messages[0].headers == ((b"a", b"b"), (b"c", b"\xff"))
    own = batch.decode(bytes(coded))
    assert own.bodies == [b"one", b"", b"drei"] and own.sizes() == other.sizes
    assert own.attributes[0].headers == (("a", b"b"), ("c", b"\xff")) and own.attributes[0].producer_time == 1.5


@pytest.mark.parametrize("length", [0, 1, 9, 47, 48, 49, 81, 255, 256, 847, 848, 4095, 4096, 4097, 100_000, 3_000_001])
def test_checksums_agree(length):
    data = random.Random(length).randbytes(length)
    assert crc32c_python(data) == other_crc32c(data)


def test_the_known_checksum():
    assert crc32c_python(b"123456789") == 0xE3069283


@pytest.mark.parametrize("arguments", [
    {"key": "k" * 1025}, {"headers": [("n", "v")] * 65}, {"headers": {"": "v"}}, {"headers": {"n" * 129: "v"}}, {"ttl": -1},
    {"headers": {"lightq-dead-count": "1"}}, {"delay": 1, "deliver_at": 2}, {"delay": 4000 * 86400}, {"id": "i" * 129},
    {"headers": [("n", "v" * 1000)] * 40}], ids=str)
def test_attributes_beyond_their_limits_are_refused(arguments):
    with pytest.raises(InvalidArgument):
        batch.outgoing(b"body", **arguments)


def test_x25519_of_rfc_7748():
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert salsa.x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"


def test_a_box_opens_only_with_its_keys():
    (public, secret), (other_public, other_secret) = salsa.key_pair(), salsa.key_pair()
    nonce, plain = os.urandom(24), os.urandom(333)
    box = salsa.seal(salsa.shared_key(other_public, secret), nonce, plain)
    assert salsa.unseal(salsa.shared_key(public, other_secret), nonce, box) == plain
    for at in (0, 20, len(box) - 1):
        changed = bytearray(box)
        changed[at] ^= 1
        with pytest.raises(salsa.BadBox):
            salsa.unseal(salsa.shared_key(public, other_secret), nonce, bytes(changed))


def test_a_control_socket_of_another_kind_is_refused():
    keys = zmtp.Keys(bytes(32), *salsa.key_pair())
    null = b"\xff" + bytes(8) + b"\x7f\3\0" + b"NULL".ljust(20, b"\0") + bytes(32)
    with pytest.raises(Unauthorized):
        zmtp.Connection(keys).receive(null)
    for first in (b"HTTP/1.1 400 Bad Request\r\n" * 4, bytes(64)):
        with pytest.raises(ProtocolViolation):
            zmtp.Connection(None).receive(first)
    ready = zmtp.Connection(None)
    ready.receive(null)
    with pytest.raises(ProtocolViolation):
        ready.receive(b"\x02" + (1 << 40).to_bytes(8, "big"))


def test_ready_without_welcome_and_a_second_welcome_are_refused():
    """A side without the broker's key answers HELLO with READY under a key that everybody knows."""
    public, secret = salsa.key_pair()
    curve = b"\xff" + bytes(8) + b"\x7f\3\0" + b"CURVE".ljust(20, b"\0") + bytes(32)
    nonce = (1).to_bytes(8, "big")
    ready = b"\x05READY" + nonce + salsa.seal(bytes(32), b"CurveZMQREADY---" + nonce, b"properties")
    connection = zmtp.Connection(zmtp.Keys(public, *salsa.key_pair()))
    with pytest.raises(ProtocolViolation):
        connection.receive(curve + bytes([4, len(ready)]) + ready)
    assert not connection.is_ready
    connection = zmtp.Connection(zmtp.Keys(public, *salsa.key_pair()))
    connection.receive(curve)
    client = bytes(connection.out[64 + 2 + 80:][:32])  # behind greeting, frame, and the beginning of HELLO
    box = salsa.seal(salsa.shared_key(client, secret), b"WELCOME-" + bytes(16), salsa.key_pair()[0] + bytes(96))
    welcome = b"\4\xa8\7WELCOME" + bytes(16) + box
    connection.receive(welcome)
    with pytest.raises(ProtocolViolation):
        connection.receive(welcome)


def test_mutated_control_connections_end_in_errors():
    """Random bytes of a peer, in clear and behind the handshake of CURVE's client, end in messages or errors."""
    source = random.Random(9)
    null = b"\xff" + bytes(8) + b"\x7f\3\0" + b"NULL".ljust(20, b"\0") + bytes(32)
    curve = null.replace(b"NULL\0", b"CURVE")
    answers = [b"\4\6\5READY", b"\1\0\0\2{}", b"\4\7\5ERROR\0", b"\4\xa8\7WELCOME" + bytes(160), b"\2" + bytes(7) + b"\3abc"]
    outcomes = {"read": 0, "refused": 0}
    for round_number in range(600):
        keys = zmtp.Keys(bytes(32), bytes(32), bytes(32)) if round_number % 50 == 0 else None  # its arithmetic is slow
        data = bytearray((curve if keys else null) + b"".join(source.choices(answers, k=3)))
        data[source.randrange(len(data))] = source.randrange(256)
        try:
            zmtp.Connection(keys).receive(bytes(data))
            outcomes["read"] += 1
        except Error:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50, outcomes


@pytest.mark.parametrize("reply", [b"", b"[]", b"{}", b"7", b"\xff", b"[" * 100_000, b'{"status":1}', b'{"status":"error","code":[]}'])
def test_wrong_replies_are_errors(reply):
    with pytest.raises(Error):
        requests.reply_of(reply)


@pytest.mark.parametrize("joined", [{}, {"bind_uri": 5, "ticket": {}}, {"bind_uri": "tcp://127.0.0.1:x", "ticket": {"id": "a", "secret": "b"}},
                                    {"bind_uri": "tcp://127.0.0.1:5", "ticket": {"id": "a" * 600, "secret": "b"}},
                                    {"bind_uri": "tcp://127.0.0.1:5", "ticket": []}, {"bind_uri": "", "ticket": {"id": "é", "secret": ""}}])
def test_wrong_replies_to_a_join_are_violations(joined):
    with pytest.raises(ProtocolViolation):
        requests.address_of(Place("tcp://127.0.0.1:1"), joined)


def test_an_encrypting_broker_must_name_a_certificate():
    joined = {"bind_uri": "tcp://127.0.0.1:5", "ticket": {"id": "a", "secret": "b"}}
    with pytest.raises(ProtocolViolation):
        requests.address_of(Place("tcp://127.0.0.1:1", server_key="k"), joined)


def test_ranges_do_not_touch():
    assert ranges_of([5, 1, 2, 2, 9, 6]) == [(1, 3), (5, 7), (9, 10)]


def test_credit_follows_the_work():
    quick, slow = Credit(None, 1000), Credit(None, 1000)
    for credit, seconds in ((quick, 1e-5), (slow, 0.5)):
        for _ in range(100):
            assert credit.take(1)
            credit.begun()
            credit.worked(seconds)
            credit.settled(1)
            credit.give(*credit.due())
    assert quick.target == 116 and slow.target == 1


def test_fixed_credit_bounds_the_messages_in_flight():
    credit, in_flight, given = Credit(10, 1000), 0, 10
    for _ in range(50):
        in_flight, given = in_flight + given, 0
        while credit._unsettled < in_flight:
            assert credit.take(1)
        assert credit._granted > 0 or not credit.take(1)
        assert in_flight <= 10
        credit.begun()
        credit.settled(1)
        in_flight -= 1
        messages, size = credit.due()
        credit.give(messages, size)
        given = messages
