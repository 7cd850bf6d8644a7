"""Tests that no ticket stays in the broker's memory. This holds for tickets in answers, and for those that
clients showed: right or wrong ones, in whole or in pieces."""
import itertools
import json
from socket import create_connection

import pytest
import zmq

from memory_support import pieces_in_memory, places_in_memory
from session_client import Session, hello_values, join, session_frames
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, SANITIZED, USER, Address, keys_for, until
from test_bad_input import ZMTP_GREETING

pytestmark = pytest.mark.skipif(SANITIZED, reason="sanitizers keep what was freed, in memory without end")
ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
KINDS = {"push": zmq.PUSH, "pull": zmq.PULL, "sub": zmq.SUB}
DEALER_READY = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
PLAIN_GREETING = ZMTP_GREETING.replace(b"NULL\0", b"PLAIN")
wrong_ones = itertools.count(1)


def wrong_secret():
    """Returns a wrong secret as long as a right one."""
    return f"{next(wrong_ones):08}wrong".ljust(56, "~") + "-planted"


class Shown:
    """The tickets that a broker returned or was shown."""

    def __init__(self, broker):
        self.broker, self.secrets = broker, set()
        self.control = broker.control()
        self.control.create("t", "file")
        self.control.create("other", "file")

    def plain(self, kind, topic="t", **more):
        """Returns the address of an endpoint, with its ticket or key."""
        address = self.control.join(topic, kind, **more)
        self.note(address.ticket["secret"])
        return address

    def session(self, kind="push", topic="t", carrier="socket", **more):
        ticket = join(self.control, topic, kind, carrier, **more)
        self.note(ticket.text.split(".")[1])
        key = self.broker.server_key
        return ticket._replace(options=keys_for(key)) if key and carrier == "zmq" else ticket

    def note(self, secret):
        self.secrets.add(secret)
        return secret

    def absent(self):
        def left():
            return pieces_in_memory(self.broker.process, self.secrets)
        until(lambda: not left(), lambda: f"no piece of {len(self.secrets)} tickets in memory: {sorted(left())}")


@pytest.fixture(params=[[], ["--encrypt"]], ids=["clear", "encrypted"])
def shown(make_broker, request):
    return Shown(make_broker(*request.param))


@pytest.fixture
def clear(make_broker):
    return Shown(make_broker())


def test_no_copy_remains_after_joins(shown):
    for kind in KINDS:
        shown.plain(kind)
        shown.session(kind)
    for _ in range(20):
        shown.session("sub")
    shown.absent()


def test_secrets_in_memory_are_found(shown):
    """The broker keeps the name of a consumer, so a secret in the name must be found."""
    secret = shown.session().text.split(".")[1]
    with Session(shown.session(), name="name-" + secret):
        assert places_in_memory(shown.broker.process, secret) > 0
    shown.secrets.clear()


def test_no_copy_remains_after_replies_that_waited_to_be_read(shown):
    """A client asks often and reads late, so many answers wait to be sent. Some requests are not permitted."""
    socket = shown.broker.socket(zmq.DEALER, shown.broker.control_uri, rcvhwm=1, rcvbuf=4096, **shown.control.options)
    request = json.dumps({"cmd": "join", "connection_type": "socket", "delivery": "session", "type": "push", "topic": "t",
                          "user_id": USER, "password": PASSWORD}).encode()
    count, given = 400, 0
    for _ in range(count):
        socket.send(request)
    for _ in range(count):
        assert socket.poll(DEADLINE * 1000)
        reply = json.loads(socket.recv())
        if "ticket" in reply:
            given += 1
            shown.note(reply["ticket"]["secret"])
    assert given > 10
    shown.absent()


def test_no_copy_remains_after_a_client_that_left_before_its_replies(clear):
    host, port = clear.broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    request = json.dumps({"cmd": "join", "connection_type": "socket", "delivery": "session", "type": "push", "topic": "t",
                          "user_id": USER, "password": PASSWORD}).encode()
    frame = b"\x02" + len(request).to_bytes(8, "big") + request
    with create_connection((host, int(port)), DEADLINE) as stranger:
        stranger.sendall(ZMTP_GREETING + DEALER_READY + frame * 60)
        heard = b""
        while heard.count(b'"secret":"') < 3:
            part = stranger.recv(4096)
            assert part, heard
            heard += part
        for piece in heard.split(b'"secret":"')[1:]:
            if len(piece) >= 64:
                clear.note(piece[:64].decode())
    assert clear.secrets
    clear.absent()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_no_copy_remains_after_plain_sockets_with_tickets(clear, transport):
    for kind, kind_of_socket in KINDS.items():
        address = clear.plain(kind, transport=transport)
        assert gets_in(clear, kind_of_socket, address)
        wrong = Address(address)
        wrong.ticket = {**address.ticket, "secret": clear.note(wrong_secret())}
        assert not gets_in(clear, kind_of_socket, wrong)
        foreign = Address(address)
        foreign.ticket = clear.plain(kind, "other", transport=transport).ticket
        assert not gets_in(clear, kind_of_socket, foreign)
    clear.absent()


def gets_in(shown, kind, address):
    """Returns True if the socket is admitted with the address's ticket."""
    socket = shown.broker.context.socket(kind)
    socket.linger = 0
    socket.plain_username, socket.plain_password = address.ticket["id"].encode(), address.ticket["secret"].encode()
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH |
                                        zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    socket.connect(address)
    assert monitor.poll(DEADLINE * 1000), "neither let in nor refused"
    event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
    socket.disable_monitor()
    socket.close()
    return event == zmq.EVENT_HANDSHAKE_SUCCEEDED


def plain_hello(identity, secret):
    body = b"\x05HELLO" + bytes([len(identity)]) + identity.encode() + bytes([len(secret)]) + secret.encode()
    return b"\x04" + bytes([len(body)]) + body


@pytest.mark.parametrize("cut", [20, 100, 150])
def test_no_copy_remains_after_a_handshake_in_pieces(clear, cut):
    """Sends a hello without its last byte, a whole one, and one followed by an invalid command."""
    address = clear.plain("push")
    hello = plain_hello(address.ticket["id"], address.ticket["secret"])
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    assert 20 < len(hello) - 1 and hello[:2] == bytes([4, len(hello) - 2])
    for last in (hello[cut:-1], hello[cut:], hello[cut:] + b"\x04\x05\x04NONE"):
        with create_connection((host, int(port)), DEADLINE) as peer:
            peer.settimeout(DEADLINE)
            peer.sendall(PLAIN_GREETING)
            assert len(receive_exactly(peer, 64)) == 64
            for piece in (hello[:10], hello[10:cut], last):
                peer.sendall(piece)
            if last.startswith(hello[cut:]):
                assert receive_exactly(peer, 10).endswith(b"\x07WELCOME")
    clear.absent()


def receive_exactly(peer, count):
    come = b""
    while len(come) < count:
        part = peer.recv(count - len(come))
        assert part, come
        come += part
    return come


@pytest.mark.parametrize("carrier", ["socket", "unix", "zmq"])
def test_no_copy_remains_after_sessions_with_tickets(shown, carrier):
    def ticket(kind="push", topic="t"):
        if carrier == "unix":
            return shown.session(kind, topic, transport="ipc")
        return shown.session(kind, topic, carrier)

    def wrong(good):
        return good._replace(text=good.text.split(".")[0] + "." + shown.note(wrong_secret()))

    for kind in ("push", "pull", "sub"):
        with Session(ticket(kind)) as session:
            assert session.request("present", ticket=ticket("pull", "other").text).op == "done"
            assert session.request("present", ticket=wrong(ticket("pull")).text).op == "error"
    refused = wrong(ticket())
    with Session(refused, hello=False) as session:
        assert session.request("hello", **hello_values(ticket=refused.text)).op == "error"
    shown.absent()


def test_no_copy_remains_after_frames_in_pieces(clear):
    """A hello and a present arrive byte by byte, and a present arrives behind other frames in one message."""
    ticket, more, never = clear.session(), clear.session("pull"), clear.session("sub")
    with Session(ticket, hello=False) as session:
        in_pieces(session, session_frames.encode("hello", hello_values(ticket=ticket.text), request=1), 37)
        assert session.take(lambda frame: frame.request == 1, "the answer").op == "welcome"
        in_pieces(session, session_frames.encode("present", {"ticket": more.text}, request=2), 41)
        assert session.take(lambda frame: frame.request == 2, "the answer").op == "done"
        present = session_frames.encode("present", {"ticket": never.text}, request=3)
        session.send_raw(session_frames.encode("heartbeat", {}) + present[:-1])
        session.send_raw(present[-1:])
        assert session.take(lambda frame: frame.request == 3, "the answer").op == "done"
        clear.absent()
    with Session(ticket, hello=False) as session:
        session.send_raw(session_frames.encode("hello", hello_values(ticket=ticket.text), request=1)[:-3])
    with Session(ticket, hello=False) as session:
        damaged = bytearray(session_frames.encode("hello", hello_values(ticket=ticket.text), request=1))
        damaged[-1] ^= 1
        session.send_raw(bytes(damaged))
        until(lambda: ended(session), "the end of a session whose first frame is damaged")
    clear.absent()


def ended(session):
    try:
        session.read_some(0.1)
    except AssertionError:
        return True
    return False


def in_pieces(session, frame, size):
    for at in range(0, len(frame), size):
        session.send_raw(frame[at:at + size])
