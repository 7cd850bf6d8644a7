"""Tests tickets of plain ZeroMQ clients: after restarts, byte by byte, on open topics, and the broker's key."""
import os
import socket as plain
import struct

import pytest
import zmq

from support import (ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, Address, present, receive, receive_topic, silent,
                     until)

HEAD = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01"
NULL = HEAD + b"NULL".ljust(52, b"\0")
PLAIN = HEAD + b"PLAIN".ljust(52, b"\0")
PLAIN_SERVER = HEAD + b"PLAIN".ljust(20, b"\0") + b"\x01" + b"\0" * 31


def command(name, data=b""):
    body = bytes([len(name)]) + name + data
    assert len(body) < 256
    return b"\x04" + bytes([len(body)]) + body


def metadata(kind):
    return b"\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind


def hello(ticket):
    data = b""
    for text in (ticket["id"].encode(), ticket["secret"].encode()):
        data += bytes([len(text)]) + text
    return command(b"HELLO", data)


class Peer:
    """A peer that sends ZMTP by hand."""

    def __init__(self, uri):
        host, port = uri.removeprefix("tcp://").split(":")
        self.socket = plain.create_connection((host, int(port)), timeout=DEADLINE)
        self.socket.setsockopt(plain.IPPROTO_TCP, plain.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def says(self, data):
        for index in range(len(data)):
            self.socket.sendall(data[index:index + 1])
        return self

    def hears(self, expected):
        """Reads until these bytes have arrived, and perhaps more later."""
        come = b""
        while len(come) < len(expected):
            part = self.socket.recv(len(expected) - len(come))
            assert part, f"the end, after {come!r}"
            come += part
        assert come == expected
        return self

    def hears_the_end(self):
        assert self.socket.recv(1) == b""


def kinds_of(control, topic):
    return {kind: control.join(topic, kind) for kind in ("push", "pull", "sub")}


def test_a_peer_may_come_byte_by_byte(broker, control):
    control.create("t")
    address = control.join("t", "push")
    with Peer(address) as peer:
        peer.hears(HEAD).says(PLAIN).hears(PLAIN_SERVER[len(HEAD):])
        peer.says(hello(address.ticket)).hears(command(b"WELCOME"))
        peer.says(command(b"INITIATE", metadata(b"PUSH"))).hears(command(b"READY", metadata(b"PULL")))
        peer.says(b"\0\x05first" + b"\0\x06second")
        assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 2) == [b"first", b"second"]


def test_a_refused_client_receives_the_reason_and_is_counted(broker, control):
    control.create("t")
    address = control.join("t", "push")
    wrong = {**address.ticket, "secret": "0" * 64}
    with Peer(address) as peer:
        peer.says(PLAIN + hello(wrong)).hears(PLAIN_SERVER).hears(command(b"ERROR", b"\x03400")).hears_the_end()
    assert control.stats("t")["refused_connections"] == 1
    with Peer(address) as peer:
        peer.says(NULL).hears(PLAIN_SERVER).hears_the_end()
    assert control.stats("t")["refused_connections"] == 2
    with Peer(address) as peer:  # not a ZMTP peer, so it is not counted
        peer.says(b"GET / HTTP/1.1\r\n\r\n"[:1]).hears(HEAD).hears_the_end()
    stats = control.stats("t")
    assert (stats["refused_connections"], stats["messages_received"], stats["publishers_count"]) == (2, 0, 0)
    log = until(lambda: "did not issue" in (text := broker.log()) and "no ticket" in text and text, "the log's words")
    assert address.ticket["secret"] not in log and address.ticket["id"] not in log


UNEXPECTED_COMMAND, MECHANISM_MISMATCH = 0x10000001, 0x11000002  # zmq.h: ZMQ_PROTOCOL_ERROR_ZMTP_…


@pytest.mark.parametrize("ticket, value", [({"id": "x", "secret": "y"}, UNEXPECTED_COMMAND), (None, MECHANISM_MISMATCH)])
def test_the_library_reports_a_refusal_only_to_its_monitor(broker, control, ticket, value):
    """The events are as docs/protocol.md, "Tickets", describes for the versions of libzmq in these tests.
    Later versions may recognize `ERROR`."""
    control.create("t")
    address = Address(control.join("t", "push"))
    address.ticket = ticket
    refused = broker.context.socket(zmq.PUSH)
    broker.clients.append(refused)
    refused.linger = 0
    present(refused, address)
    monitor = refused.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH |
                                         zmq.EVENT_HANDSHAKE_SUCCEEDED)
    refused.connect(address)
    until(lambda: monitor.poll(0), "what becomes of the connection")
    event, told = struct.unpack("=hi", monitor.recv_multipart()[0])
    refused.disable_monitor()
    assert (event, told) == (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, value)


def test_an_open_topic_answers_each_mechanism_with_its_own(broker, control):
    control.ok("create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="t", broker_type="queue",
               open=True)
    uri = control.ok("join", topic="t", type="push")["bind_uri"]
    ready = command(b"READY", metadata(b"PULL"))
    with Peer(uri) as peer:
        peer.hears(HEAD).says(NULL).hears(NULL[len(HEAD):])
        peer.says(command(b"READY", metadata(b"PUSH"))).hears(ready).says(b"\0\x04null")
        until(lambda: control.ok("stats", topic="t")["messages_received"] == 1, "a message without a ticket")
    with Peer(uri) as peer:
        peer.hears(HEAD).says(PLAIN).hears(PLAIN_SERVER[len(HEAD):])
        peer.says(hello({"id": "any", "secret": ""})).hears(command(b"WELCOME"))
        peer.says(command(b"INITIATE", metadata(b"PUSH"))).hears(ready).says(b"\0\x05plain")
        until(lambda: control.ok("stats", topic="t")["messages_received"] == 2, "a message with some ticket")
    stats = control.ok("stats", topic="t")
    assert (stats["open"], stats["open_by_broker"], stats["refused_connections"]) == (True, False, 0)


def test_a_ticket_survives_a_kill_of_the_broker(broker, control):
    """A plain client, which knows nothing of joins, reconnects by itself with its ticket."""
    control.create("t", "file")
    addresses = kinds_of(control, "t")
    producer = broker.socket(zmq.PUSH, addresses["push"])
    puller = broker.socket(zmq.PULL, addresses["pull"])
    subscriber = broker.socket(zmq.SUB, addresses["sub"])
    for index, end in enumerate((broker.stop, broker.kill, broker.kill)):
        until(lambda: (s := control.stats("t"))["publishers_count"] == 1 and s["subscribers_count"] == 2, "all three")
        producer.send(b"%d" % index)
        # After a kill, consumers may receive messages of the last second again.
        until(lambda: receive(puller, 1) == [b"%d" % index], "the message at the puller")
        until(lambda: receive_topic(subscriber, "t", 1) == [b"%d" % index], "the message at the subscriber")
        end()
        broker.start()
    fresh = broker.socket(zmq.PUSH, addresses["push"])
    fresh.send(b"the old ticket, a new connection")
    until(lambda: receive_topic(subscriber, "t", 1) == [b"the old ticket, a new connection"], "its message")


def test_without_the_ticket_key_issued_tickets_end(broker, control):
    control.create("t", "file")
    addresses = kinds_of(control, "t")
    broker.stop()
    (broker.data_dir / "ticket.key").unlink()
    broker.start()
    producer = broker.socket(zmq.PUSH, addresses["push"])
    producer.send(b"refused")
    until(lambda: control.stats("t")["refused_connections"] == 1, "its being refused")
    broker.socket(zmq.PUSH, control.join("t", "push")).send(b"let in")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 1) == [b"let in"]


@pytest.mark.parametrize("spoil, words", [
    (lambda file: os.truncate(file, 31), "ticket.key is not a ticket key: it has 31 bytes"),
    (lambda file: file.chmod(0o640), "ticket.key contains the key of all tickets and is open to other users"),
    (lambda file: (file.unlink(), file.mkdir()), "cannot read"),
], ids=["short", "open to others", "a directory"])
def test_a_broker_does_not_start_with_an_invalid_storage_key(make_broker, spoil, words):
    broker = make_broker()
    file = broker.data_dir / "ticket.key"
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size == 32
    broker.stop()
    spoil(file)
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1
    broker.process = None
    broker.logged(words)


def test_with_open_topics_no_ticket_is_needed(make_broker):
    broker = make_broker("--open-topics")
    control = broker.control()
    control.create("t", "file")
    addresses = kinds_of(control, "t")
    assert all(address.ticket for address in addresses.values()), "a client need not know"
    [listed] = control.list()
    assert (listed["open"], listed["open_by_broker"], listed["settings"]["open"]) == (True, True, False)
    stats = control.stats("t")
    assert (stats["open"], stats["open_by_broker"], stats["settings"]["open"]) == (True, True, False)
    broker.logged('level=warning msg="open_topics:')

    subscriber = broker.socket(zmq.SUB, str(addresses["sub"]))
    with_ticket = broker.socket(zmq.SUB, control.join("t", "sub"))
    until(lambda: control.stats("t")["subscribers_count"] == 2, "both subscribers")
    broker.socket(zmq.PUSH, str(addresses["push"])).send(b"for all")
    assert receive(broker.socket(zmq.PULL, str(addresses["pull"])), 1) == [b"for all"]
    assert receive_topic(subscriber, "t", 1) == receive_topic(with_ticket, "t", 1) == [b"for all"]

    raw = control.ok("join", topic="t", type="pull", connection_type="socket", user_id=USER, password=PASSWORD)
    assert "ticket" not in raw, "a raw consumer has no way to show one"
    host, port = raw["bind_uri"].removeprefix("tcp://").split(":")
    with plain.create_connection((host, int(port)), timeout=DEADLINE):
        until(lambda: control.stats("t")["subscribers_count"] == 4, "the raw consumer")
    assert broker.listens_on(port)

    # Without the flag, remembered endpoints ask for tickets again. Those of raw consumers are closed.
    broker.close_clients()
    broker.stop()
    broker.flags.remove("--open-topics")
    broker.start()
    stranger = broker.socket(zmq.PUSH, str(addresses["push"]))
    stranger.send(b"too late")
    until(lambda: control.stats("t")["refused_connections"] == 1, "its being refused")
    assert not broker.listens_on(port)
    stats = control.stats("t")
    assert (stats["open"], stats["open_by_broker"], stats["messages_received"]) == (False, False, 0)
    control.fails("not_supported", "join", topic="t", type="pull", connection_type="socket", user_id=USER,
                  password=PASSWORD)


@pytest.mark.parametrize("how", [{"flags": ["--open-topics"]}, {"environment": {"LIGHTQ_OPEN_TOPICS": "true"}}],
                         ids=["flag", "environment"])
@pytest.mark.parametrize("more", [[], ["--insecure"], ["--encrypt"]], ids=["", "insecure", "encrypted"])
@pytest.mark.parametrize("setting", ["control", "bind", "advertise"])
def test_open_topics_needs_loopback(make_broker, how, setting, more):
    control = "tcp://0.0.0.0:0" if setting == "control" else "tcp://127.0.0.1:0"
    where = {"control": [], "bind": ["--bind", "0.0.0.0", "--advertise", "127.0.0.1"], "advertise": ["--advertise", "192.0.2.1"]}
    broker = make_broker(*how.get("flags", []), *where[setting], *more, control=control, start=False,
                         environment=how.get("environment"))
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1
    broker.process = None
    broker.logged(f"open_topics: permitted on loopback only, but {setting}: ")
    assert not (broker.data_dir / "ticket.key").exists(), "refused before anything is made"


def warnings_of_open_topics(broker):
    return [line.split('msg="')[1].rstrip('"') for line in broker.log().splitlines()
            if "level=warning" in line and "open" in line]


def test_the_log_names_the_open_topics(broker, control):
    made = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD, "broker_type": "direct"}
    control.ok("create_topic", **made, topic="shut")
    broker.restart()
    assert warnings_of_open_topics(broker) == []
    for i in range(22):
        control.ok("create_topic", **made, topic=f"free{i:02}", open=True)
    said = [f"topic free{i:02} is open: plain clients that reach its endpoints need no ticket" for i in range(22)]
    until(lambda: warnings_of_open_topics(broker) == said, lambda: broker.log())
    broker.restart()
    names = ", ".join(f"free{i:02}" for i in range(20))
    said.append(f"plain clients of these open topics need no ticket: {names} and 2 more")
    until(lambda: warnings_of_open_topics(broker) == said, lambda: broker.log())


def test_a_ticket_of_a_deleted_topic_is_invalid_for_the_next_of_its_name(broker, control):
    control.create("t")
    old = control.join("t", "push").ticket
    control.delete("t")
    broker.kill()  # the used ids are remembered
    broker.start()
    control.create("t")
    address = Address(control.join("t", "push"))
    address.ticket = old
    broker.socket(zmq.PUSH, address).send(b"of the old topic")
    until(lambda: control.stats("t")["refused_connections"] == 1, "its being refused")
    assert control.stats("t")["messages_received"] == 0


def test_a_plain_ticket_permits_a_session_and_the_reverse(broker, control):
    control.create("t")
    address = Address(control.join("t", "push"))
    address.ticket = control.ok("join", topic="t", type="push", delivery="session", user_id=USER,
                                password=PASSWORD)["ticket"]
    broker.socket(zmq.PUSH, address).send(b"with a session's ticket")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 1) == [b"with a session's ticket"]


def test_a_refused_socket_continues_after_another_join(broker, control):
    """Follows the instructions of docs/protocol.md for plain clients: disconnect, show the new ticket,
    connect."""
    control.create("t")
    address = control.join("t", "push")
    producer = broker.context.socket(zmq.PUSH)
    broker.clients.append(producer)
    producer.linger = 0
    monitor = producer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    producer.plain_username, producer.plain_password = b"wrong", b"wrong"
    producer.connect(address)
    assert monitor.poll(DEADLINE * 1000), "it is not told"
    producer.disconnect(address)
    present(producer, address)
    producer.connect(address)
    producer.send(b"at last")
    puller = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert receive(puller, 1) == [b"at last"]
    assert silent(puller)
    producer.disable_monitor()
