"""Tests bad input: none of it may end or block the broker, or make it leak memory."""
import contextlib
import json
import socket as plain

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, SANITIZED, USER, receive, until

CREATE = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD, "topic": "t",
          "broker_type": "queue", "user_id": USER, "password": PASSWORD}
JOIN = {"cmd": "join", "connection_type": "zmq", "type": "pull", "topic": "flow", "user_id": USER, "password": PASSWORD}


@pytest.fixture
def flowing(broker, control):
    """A topic in use. After the test it checks that messages still flow and that nothing has leaked."""
    control.create("flow", "queue")
    producer = broker.socket(zmq.PUSH, control.join("flow", "push"))
    consumer = broker.socket(zmq.PULL, control.join("flow", "pull"))
    producer.send(b"before")
    assert receive(consumer, 1) == [b"before"]
    before = broker.descriptors()
    yield control
    control.ok("ping")
    producer.send(b"after")
    assert receive(consumer, 1) == [b"after"]
    until(lambda: broker.descriptors() <= before + 4, lambda: f"{broker.descriptors()} descriptors, were {before}")


def deep(levels, opening="[", closing="]"):
    return (opening * levels + closing * levels).encode()


RAW = {
    "empty": b"", "truncated": b'{"cmd":"pi', "half a string": b'"', "braces": b"{}", "brackets": b"[]", "number": b"5",
    "null": b"null", "cmd number": b'{"cmd":5}', "cmd null": b'{"cmd":null}', "cmd list": b'{"cmd":["ping"]}',
    "no json": b"hello", "2015 ping": b"ping", "NUL": b"\0", "NUL inside": b'{"cmd":"ping\0"}',
    "escaped NUL": b'{"cmd":"\\u0000"}', "bad UTF-8": b'{"cmd":"\xff\xfe"}', "bad UTF-8 key": b'{"\xc3\x28":"ping"}',
    "lone surrogate": b'{"cmd":"\\ud800"}', "huge number": b'{"cmd":1e999}', "deep": deep(30_000),
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "deep and truncated": b"[" * 60_000,
    "deep field": b'{"cmd":"ping","x":' + deep(17) + b"}", "trailing": b'{"cmd":"ping"} x', "twice": b'{"cmd":"ping"}' * 2,
    "just too large": json.dumps({"cmd": "ping", "x": "y" * 65536}).encode(), "large": b"[" + b"1," * 300_000 + b"1]",
    "unknown": b'{"cmd":"dance"}', "long cmd": json.dumps({"cmd": "x" * 60_000}).encode(), "BOM": b'\xef\xbb\xbf{"cmd":"dance"}',
}


@pytest.mark.parametrize("request_bytes", RAW.values(), ids=RAW.keys())
def test_a_bad_request_is_answered_with_an_error(flowing, request_bytes):
    reply = flowing.send_raw(request_bytes)
    assert reply["status"] == "error" and reply["description"], reply
    assert reply["code"] in ("invalid_json", "invalid_cmd", "invalid_request", "request_too_large"), reply
    assert len(json.dumps(reply)) < 2000, "an answer that repeats the request"


def test_a_request_of_64_kib_is_read_and_one_above_is_refused(flowing):
    padded = b'{"cmd":"ping"}'.ljust(65536)
    assert flowing.send_raw(padded)["status"] == "ok"
    assert flowing.send_raw(padded + b" ")["code"] == "request_too_large"


def test_a_request_above_the_hard_limit_costs_its_sender_the_connection_only(broker, flowing):
    rude = broker.socket(zmq.REQ, broker.control_uri)
    rude.send(b"x" * 3_000_000)
    flowing.ok("ping")
    rude.close()


ZMTP_GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00NULL".ljust(55, b"\0")
ZMTP_READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ"


def handshaken(broker):
    """Returns a TCP connection to the control port that has sent the handshake of a REQ socket."""
    host, port = broker.control_uri.removeprefix("tcp://").split(":")
    stranger = plain.create_connection((host, int(port)), timeout=DEADLINE)
    stranger.sendall(ZMTP_GREETING + ZMTP_READY)
    return stranger


def test_a_message_with_endless_parts_takes_no_memory(broker, flowing):
    with handshaken(broker) as stranger:
        before = broker.resident_bytes()
        part = b"\x01\xff" + b"x" * 255  # a short frame with the flag that more frames follow
        for _ in range(100):
            stranger.sendall(part * 4096)  # 105 MB in all
        flowing.ok("ping")
        assert SANITIZED or broker.resident_bytes() - before < 8 << 20
        stranger.sendall(b"\0\0")
        answer = b""
        while b"invalid_json" not in answer:
            received = stranger.recv(4096)
            assert received, answer
            answer += received


def test_a_client_that_never_reads_its_answers_takes_little_memory(broker, flowing):
    with handshaken(broker) as stranger:
        before = broker.resident_bytes()
        stranger.setblocking(False)
        ping = b"\x01\0\0\x0e" + b'{"cmd":"ping"}'
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 200 << 20:
                sent += stranger.send(ping * 10_000)
        flowing.ok("ping")
        assert sent < 200 << 20, "the broker reads on although nobody reads its answers"
        assert SANITIZED or broker.resident_bytes() - before < 16 << 20
        # The broker continues once its answers are read.
        stranger.settimeout(DEADLINE)
        status, answered, unfinished = b'"status":', 0, b""  # ok, or busy: the client asks too much
        while answered < sent // len(ping):
            received = unfinished + stranger.recv(1 << 20)
            answered += received.count(status)
            unfinished = received[1 - len(status):]


WRONG_VALUES = [5, -1, 1.5, True, None, [], {}, ["t"], {"a": 1}, "", "x" * 5000, "\u0000", "\u00e9"]


@pytest.mark.parametrize("field", sorted(set(CREATE) - {"cmd"}))
def test_each_field_of_create_topic_is_demanded_and_its_type_checked(flowing, field):
    without = {name: value for name, value in CREATE.items() if name != field}
    demanded = [without] if field != "broker_type" else []  # a template or the default chooses the type
    for request in demanded + [{**CREATE, field: value} for value in WRONG_VALUES]:
        reply = flowing.send_raw(json.dumps(request).encode())
        free_text = field in ("password", "user_id") and isinstance(request.get(field), str) and \
            0 < len(request[field].encode()) <= 128
        admin = field.startswith("admin_")
        codes = ("invalid_request", "unauthorized_access") if admin else ("invalid_request",)
        assert (reply["status"] == "ok" and free_text) or reply.get("code") in codes, (request, reply)
        if reply["status"] == "ok":
            flowing.delete("t")


@pytest.mark.parametrize("field", sorted(set(JOIN) - {"cmd", "connection_type"}))
def test_each_field_of_join_is_demanded_and_its_type_checked(flowing, field):
    without = {name: value for name, value in JOIN.items() if name != field}
    for request in [without] + [{**JOIN, field: value} for value in WRONG_VALUES]:
        reply = flowing.send_raw(json.dumps(request).encode())
        assert reply.get("code") in ("invalid_request", "unauthorized_access"), (request, reply)


@pytest.mark.parametrize("name", ["../x", "a/b", ".", "..", "", "-a", ".hidden", "a b", "a\nb", "a\u0000b", "\u00fc", "x" * 129,
                                  "x" * 300, "/etc/passwd", "a\\b", "%2e%2e"])
def test_a_bad_topic_name_is_refused(broker, flowing, name):
    reply = flowing.send_raw(json.dumps({**CREATE, "topic": name, "broker_type": "file"}).encode())
    assert reply["code"] == "invalid_request", reply
    assert [topic["topic"] for topic in flowing.list()] == ["flow"]
    assert {path.name for path in broker.directory.iterdir()} == {"data", "broker.log"}


@pytest.mark.parametrize("name", ["x" * 128, "a", "A.b_c-9", "_", "0"])
def test_a_valid_topic_name_is_accepted(flowing, name):
    flowing.create(name, "file")
    flowing.delete(name)


BAD_SETTINGS = [("ring_bytes", -1), ("ring_bytes", 1), ("ring_bytes", 1 << 62), ("ring_bytes", "64"), ("ring_bytes", 1e9 + .5),
                ("ring_bytes", 1e30), ("segment_bytes", 1), ("segment_bytes", 1 << 40), ("segment_bytes", None),
                ("retention_bytes", -5), ("retention_ms", "x"), ("overflow", "explode"), ("overflow", 5), ("open", "yes"),
                # The last one is invalid because a durable topic has no ring.
                ("broker_type", "Queue"), ("broker_type", "queue "), ("ring_bytes", 1 << 20)]


@pytest.mark.parametrize("name,value", BAD_SETTINGS)
def test_a_setting_out_of_its_range_is_refused(flowing, name, value):
    reply = flowing.send_raw(json.dumps({**CREATE, "broker_type": "file", name: value}).encode())
    assert reply.get("code") == "invalid_request", reply
    assert name in reply["description"], reply


def test_leaving_an_endpoint_without_a_join_is_an_error(flowing):
    for uri in ("tcp://127.0.0.1:1", "tcp://1.2.3.4:99999", "ipc:///etc/passwd", "nonsense", "x" * 10_000):
        reply = flowing("leave", topic="flow", user_id=USER, password=PASSWORD, bind_uri=uri)
        assert reply.get("code") in ("endpoint_not_found", "invalid_request"), reply


@pytest.mark.parametrize("garbage", [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4096])
def test_garbage_on_the_control_port_does_no_harm(broker, flowing, garbage):
    host, port = broker.control_uri.removeprefix("tcp://").split(":")
    strangers = [plain.create_connection((host, int(port)), timeout=DEADLINE) for _ in range(5)]
    for stranger in strangers:
        try:
            stranger.sendall(garbage)
        except (BrokenPipeError, ConnectionResetError):
            pass
    flowing.ok("ping")
    for stranger in strangers:
        stranger.close()


def test_odd_envelopes_on_the_control_socket_do_no_harm(broker, flowing):
    dealer = broker.socket(zmq.DEALER, broker.control_uri)
    for frames in ([b""], [b"x"], [b"", b""], [b"a", b"b", b"c"], [b""] * 50, [b"", b'{"cmd":"ping"}', b"more"]):
        dealer.send_multipart(frames)
        flowing.ok("ping")
    dealer.send_multipart([b"", b'{"cmd":"ping"}'])

    def answered():
        while dealer.poll(0):
            if b'"ok"' in dealer.recv_multipart()[-1]:
                return True
        return False

    until(answered, "the proper request's answer")
    dealer.close()


def test_a_client_that_never_reads_its_replies_blocks_no_other(broker, flowing):
    rude = broker.socket(zmq.DEALER, broker.control_uri, rcvhwm=1, sndhwm=0, rcvbuf=4096)
    for _ in range(20_000):
        rude.send_multipart([b"", b'{"cmd":"version"}'], zmq.NOBLOCK)
    flowing.ok("ping")
    rude.close()


def test_many_wrong_passwords_do_not_stop_the_others(broker, flowing):
    strangers = [broker.socket(zmq.REQ, broker.control_uri) for _ in range(30)]
    for index, stranger in enumerate(strangers):
        stranger.send(json.dumps({**JOIN, "password": f"guess{index}"}).encode())
    flowing.ok("ping")
    for stranger in strangers:
        assert stranger.poll(DEADLINE * 1000)
        assert json.loads(stranger.recv())["code"] in ("unauthorized_access", "busy")
        stranger.close()


def test_sockets_of_the_wrong_kind_on_a_data_port_do_no_harm(broker, flowing):
    uris = [flowing.join("flow", kind) for kind in ("push", "pull", "sub")]
    rude = [broker.socket(kind, uri) for uri in uris for kind in (zmq.REQ, zmq.DEALER, zmq.PUB, zmq.PAIR)]
    for socket in rude:
        try:
            socket.send(b"rude", zmq.NOBLOCK)
        except zmq.ZMQError:
            pass  # the broker did not admit it
    flowing.ok("ping")
    assert flowing.stats("flow")["messages_received"] == 1
    for socket in rude:
        socket.close()
    for uri in uris[1:]:
        flowing.leave("flow", uri)
