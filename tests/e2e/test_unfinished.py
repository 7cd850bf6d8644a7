"""Tests large messages that are never completed, and large answers that are never read: all of them together
are limited, and none delays other clients."""
import socket as plain

import pytest
import zmq

import session_client
from session_client import Session
from support import DEADLINE, SANITIZED, numbered, number_of, receive, until

MIB = 1024 * 1024
HEAD = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01"
READY = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH"


def begun(uri, size):
    """Returns a producer without a ticket that has sent all but the last byte of its message."""
    host, port = uri.removeprefix("tcp://").split(":")
    peer = plain.create_connection((host, int(port)), timeout=DEADLINE)
    peer.sendall(HEAD + b"NULL".ljust(52, b"\0") + READY)
    try:
        peer.sendall(b"\x02" + size.to_bytes(8, "big") + b"x" * (size - 1))
    except (ConnectionError, BrokenPipeError):
        pass  # closed already
    return peer


def is_closed(peer):
    """Returns True if the broker has closed the connection. Does not wait."""
    peer.setblocking(False)
    try:
        while peer.recv(4096):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def ended(control):
    return control.broker_stats()["limits_reached"]["unfinished_bytes_total"]


@pytest.fixture(name="small")
def small_broker(make_broker):
    return make_broker("--message-bytes-max", "1MiB", "--unfinished-bytes-total", "8MiB")


def test_unauthenticated_peers_that_stop_in_the_middle_stay_within_the_limit(small):
    control = small.control()
    control.create("t", "queue", open=True, ring_bytes=4 * MIB)
    uri = str(control.join("t", "push"))
    before = small.anonymous_bytes()
    consumer = small.socket(zmq.PULL, control.join("t", "pull"))
    producer = small.socket(zmq.PUSH, control.join("t", "push"))
    peers = []
    for number in range(60):
        peers.append(begun(uri, MIB))
        if number % 10 == 9:  # an authenticated producer continues meanwhile
            for message in numbered(number, 3, MIB):
                producer.send(message)
            assert [number_of(message) for message in receive(consumer, 3)] == list(range(number, number + 3))
    until(lambda: sum(is_closed(peer) for peer in peers) >= 50, "those beyond the bound to be closed")
    assert ended(control) >= 50
    if not SANITIZED:
        assert small.anonymous_bytes() - before < 32 * MIB  # although the peers send up to 60 MiB
    for peer in peers:
        peer.close()


def test_sessions_that_stop_in_the_middle_end_and_others_continue(small):
    control = small.control()
    control.create("t")
    good = Session(session_client.join(control, "t"))
    stopped = [Session(session_client.join(control, "t")) for _ in range(30)]
    for session in stopped:
        session.send_raw(session.producer("t").frame_of([b"x" * (MIB - 200)])[:-1])
    until(lambda: ended(control) >= 20, "those beyond the bound to be ended")
    producer = good.producer("t")
    producer.produce([b"x" * (MIB - 200)])
    producer.wait_confirmed()


def test_subscribers_that_do_not_read_large_messages_end_and_readers_get_all(small):
    control = small.control()
    control.create("t", "file", segment_bytes=64 * MIB)
    reader = small.socket(zmq.SUB, control.join("t", "sub"), subscribe=b"")
    idle = [small.socket(zmq.SUB, control.join("t", "sub"), subscribe=b"", rcvhwm=1, rcvbuf=4096) for _ in range(30)]
    until(lambda: control.stats("t")["subscribers_count"] == 31, "all subscribers")
    producer = small.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 40, MIB):
        producer.send(message)
        reader.recv()  # the topic's name
        assert reader.poll(DEADLINE * 1000)
        reader.recv()
    until(lambda: ended(control) >= 1, "one of those that do not read to be ended")
    if not SANITIZED:
        assert small.anonymous_bytes() < 64 * MIB
    assert len(idle) == 30
