"""Tests that no ticket appears in the broker's log, data directory, command line or environment, nor in its
answers to tickets that clients showed: right or wrong ones, in whole or in pieces."""
import itertools
import json
from socket import create_connection

import pytest
import zmq

from session_client import Session, hello_values, join, session_frames
from support import DEADLINE, PASSWORD, USER, Address, Secrets, keys_for, until
from test_bad_input import ZMTP_GREETING

KINDS = {"push": zmq.PUSH, "pull": zmq.PULL, "sub": zmq.SUB}
JOIN = json.dumps({"cmd": "join", "connection_type": "socket", "delivery": "session", "type": "push", "topic": "t",
                   "user_id": USER, "password": PASSWORD}).encode()
DEALER_READY = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
PLAIN_GREETING = ZMTP_GREETING.replace(b"NULL\0", b"PLAIN")
wrong_ones = itertools.count(1)


def wrong_secret():
    """Returns a wrong secret as long as a right one."""
    return Secrets.plant(f"{next(wrong_ones):08}wrong".ljust(56, "~") + "-planted")


class Shown:
    """A broker whose tickets the test shows to it. Control and `wrong_secret` plant each of them."""

    def __init__(self, broker):
        self.broker = broker
        self.control = broker.control()
        self.control.create("t", "file")
        self.control.create("other", "file")

    def plain(self, kind, topic="t", **more):
        """Returns the address of an endpoint, with its ticket or key."""
        return self.control.join(topic, kind, **more)

    def session(self, kind="push", topic="t", carrier="socket", **more):
        ticket = join(self.control, topic, kind, carrier, **more)
        key = self.broker.server_key
        return ticket._replace(options=keys_for(key)) if key and carrier == "zmq" else ticket

    def absent(self):
        self.broker.search_for_secrets()


@pytest.fixture(params=[[], ["--encrypt"]], ids=["clear", "encrypted"])
def shown(make_broker, request):
    return Shown(make_broker(*request.param))


@pytest.fixture
def clear(make_broker):
    return Shown(make_broker())


def test_joins_leave_no_ticket(shown):
    for kind in KINDS:
        shown.plain(kind)
        shown.session(kind)
    for _ in range(20):
        shown.session("sub")
    shown.absent()


def test_joins_whose_replies_wait_to_be_read_leave_no_ticket(shown):
    """A client asks often and reads late, so many answers wait to be sent. The broker may refuse some of the
    requests."""
    socket = shown.broker.socket(zmq.DEALER, shown.broker.control_uri, rcvhwm=1, rcvbuf=4096, **shown.control.options)
    count, given = 400, 0
    for _ in range(count):
        socket.send(JOIN)
    for _ in range(count):
        assert socket.poll(DEADLINE * 1000)
        given += "ticket" in Secrets.heard(json.loads(socket.recv()))
    assert given > 10
    shown.absent()


def test_a_client_that_leaves_before_its_replies_leaves_no_ticket(clear):
    host, port = clear.broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    frame = b"\x02" + len(JOIN).to_bytes(8, "big") + JOIN
    with create_connection((host, int(port)), DEADLINE) as stranger:
        stranger.sendall(ZMTP_GREETING + DEALER_READY + frame * 60)
        heard = b""
        while heard.count(b'"secret":"') < 3:
            part = stranger.recv(4096)
            assert part, heard
            heard += part
    secrets = [piece[:64].decode() for piece in heard.split(b'"secret":"')[1:] if len(piece) >= 64]
    assert secrets
    for secret in secrets:
        Secrets.plant(secret)
    clear.absent()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_plain_sockets_with_tickets_leave_none(clear, transport):
    for kind, kind_of_socket in KINDS.items():
        address = clear.plain(kind, transport=transport)
        assert gets_in(clear, kind_of_socket, address)
        wrong = Address(address)
        wrong.ticket = {**address.ticket, "secret": wrong_secret()}
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
def test_a_handshake_in_pieces_leaves_no_ticket(clear, cut):
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
def test_sessions_with_tickets_leave_none(shown, carrier):
    def ticket(kind="push", topic="t"):
        if carrier == "unix":
            return shown.session(kind, topic, transport="ipc")
        return shown.session(kind, topic, carrier)

    def wrong(good):
        return good._replace(text=good.text.split(".")[0] + "." + wrong_secret())

    for kind in ("push", "pull", "sub"):
        with Session(ticket(kind)) as session:
            assert session.request("present", ticket=ticket("pull", "other").text).op == "done"
            assert says_no_ticket(session.request("present", ticket=wrong(ticket("pull")).text)).op == "error"
    refused = wrong(ticket())
    with Session(refused, hello=False) as session:
        assert says_no_ticket(session.request("hello", **hello_values(ticket=refused.text))).op == "error"
    shown.absent()


def test_frames_in_pieces_leave_no_ticket(clear):
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


def says_no_ticket(frame):
    """Searches the frame for tickets, and returns it."""
    Secrets.absent_from(str(frame), "an answer of a session")
    return frame


def ended(session):
    try:
        session.read_some(0.1)
    except AssertionError:
        return True
    return False


def in_pieces(session, frame, size):
    for at in range(0, len(frame), size):
        session.send_raw(frame[at:at + size])
