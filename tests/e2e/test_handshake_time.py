"""Tests how long a connection may take to authenticate: `handshake_ms`."""
import contextlib
import socket as plain
import threading
import time

import pytest
import zmq

import session_client
from session_client import Session
from support import DEADLINE, SANITIZED, Control, until
from tcp_proxy import RecordingProxy

SHORT_MS = 400


def seconds_until_closed(uri):
    """Returns how long the broker keeps a connection that sends nothing."""
    if uri.startswith("ipc://"):
        silent = plain.socket(plain.AF_UNIX)
        silent.connect(uri.removeprefix("ipc://"))
    else:
        host, _, port = uri.removeprefix("tcp://").rpartition(":")
        silent = plain.create_connection((host, int(port)))
    began = time.monotonic()
    silent.settimeout(DEADLINE)
    while silent.recv(4096):  # the broker's greeting
        pass
    silent.close()
    return time.monotonic() - began


@pytest.mark.parametrize("flags", [[], ["--encrypt"]], ids=["clear", "encrypted"])
def test_a_silent_connection_lasts_as_long_as_the_setting(make_broker, flags):
    broker = make_broker("--handshake-ms", str(SHORT_MS), *flags)
    control = broker.control()
    control.create("t")
    doors = [broker.control_uri, control.join("t", "push"), control.join("t", "pull", transport="ipc"),
             session_client.join(control, "t", carrier="socket").uri, session_client.join(control, "t", carrier="zmq").uri]
    for door in doors:
        lasted = seconds_until_closed(door)
        assert 0.9 * SHORT_MS / 1000 < lasted < (5 if not SANITIZED else 15), door  # the default is 5 s


def test_a_session_without_a_first_frame_ends_too(make_broker):
    broker = make_broker("--handshake-ms", str(SHORT_MS))
    control = broker.control()
    control.create("t")
    # The connection is made, over TLS with its handshake.
    with Session(session_client.join(control, "t"), hello=False):
        until(lambda: f"no hello within {SHORT_MS} ms" in broker.log(), "the session's end")


def test_a_remote_encrypted_client_is_admitted(make_broker):
    broker = make_broker("--encrypt")
    slow = RecordingProxy(broker.control_uri, delay=0.25)  # three round trips of half a second
    control = Control(broker.context, slow.uri, broker.server_key)
    began = time.monotonic()
    control.ok("ping")
    assert time.monotonic() - began > 1, "else the line is not slow"
    control.close()
    slow.close()


def test_a_slow_handshake_ends_at_the_setting(make_broker):
    broker = make_broker("--encrypt", "--handshake-ms", str(SHORT_MS), "--log-level", "debug")
    slow = RecordingProxy(broker.control_uri, delay=0.25)
    far = broker.socket(zmq.DEALER, slow.uri, **broker.control().options)
    far.send_multipart([b"", b'{"cmd":"ping"}'])
    until(lambda: f"no handshake within {SHORT_MS} ms" in broker.log(), "the broker to give up")
    assert not far.poll(0)
    far.close()
    slow.close()


@contextlib.contextmanager
def strangers_who_come_and_go(host, port):
    """Opens and closes connections, as fast as one thread can."""
    enough = threading.Event()

    def come_and_go():
        while not enough.is_set():
            with contextlib.suppress(OSError):
                plain.create_connection((host, port), DEADLINE).close()

    crowd = threading.Thread(target=come_and_go)
    crowd.start()
    try:
        yield
    finally:
        enough.set()
        crowd.join()


@pytest.mark.parametrize("door", ["control", "plain", "session"])
def test_during_a_flood_a_peer_with_malformed_data_waits_until_its_time_is_over(make_broker, door):
    """Without a crowd the broker closes such a peer immediately: test_bad_input."""
    handshake_ms = 1000 if not SANITIZED else 3000
    broker = make_broker("--handshake-ms", str(handshake_ms), "--accepts-per-second", "100000")
    control = broker.control()
    control.create("t")
    uri = {"control": lambda: broker.control_uri, "plain": lambda: control.join("t", "push"),
           "session": lambda: session_client.join(control, "t", carrier="socket").uri}[door]()
    host, port = str(uri).removeprefix("tcp://").rsplit(":", 1)

    def lasted():
        with plain.create_connection((host, int(port)), DEADLINE) as stranger:
            began = time.monotonic()
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 4)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(4096):
                    pass
            return time.monotonic() - began

    with strangers_who_come_and_go(host, int(port)):
        until(lambda: lasted() >= 0.9 * handshake_ms / 1000, "one to be kept waiting")
        control.ok("ping")
