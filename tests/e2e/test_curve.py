"""Tests a broker with `encrypt`: plain ZeroMQ clients written from docs/protocol.md, and which peers are
refused."""
import pathlib
import re
import shutil
import socket as plain_sockets
import stat
import subprocess
import sys
import tempfile
import time

import pytest
import zmq

from curve_support import CurveBroker, CurveControl, Recorder, keys_for, try_out
from session_client import OWN, Session, Ticket
from support import (ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, PASSWORD, USER, Broker, Control, number_of, numbered, receive,
                     receive_topic, until)

LET_IN, REFUSED, NOT_SPOKEN = (zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_HANDSHAKE_FAILED_AUTH,
                               zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)


@pytest.fixture
def make():
    made = []

    def one(*flags, start=True, kind=CurveBroker, **options):
        # Short: the path of a socket has at most 107 bytes.
        directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
        made.append(kind(directory, *flags, **options))
        return made[-1].start() if start else made[-1]

    yield one
    for broker in reversed(made):
        try:
            broker.close()
        finally:
            shutil.rmtree(broker.directory, ignore_errors=True)


@pytest.fixture
def broker(make):
    return make()


@pytest.fixture
def control(broker):
    return broker.control()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_messages_pass_in_order_and_whole(broker, control, transport):
    control.create("t", "file")
    control.create("other")
    push = broker.connected(control, zmq.PUSH, "t", transport=transport, sndhwm=10)
    subscriber = broker.connected(control, zmq.SUB, "t", transport=transport, rcvhwm=200_000)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the subscriber")
    small = numbered(0, 20_000, 40)
    large = [bytes([65 + i]) * size for i, size in enumerate((1 << 20, 200_000, 65_536, 255, 256, 222, 223, 0, 1, 16 << 20))]
    for message in small + large:
        push.send(message)
    puller = broker.connected(control, zmq.PULL, "t", transport=transport)
    assert receive(puller, len(small) + len(large)) == small + large
    assert receive_topic(subscriber, "t", len(small) + len(large)) == small + large
    stats = control.stats("t")
    assert (stats["messages_received"], stats["refused"], stats["refused_connections"]) == (len(small) + len(large), 0, 0)


def test_stats_and_the_log_say_that_all_is_encrypted(broker, control):
    stats = control.broker_stats()
    assert (stats["encrypted"], stats["insecure"]) == (True, False)
    assert "level=warning" not in broker.log()


def test_every_address_may_be_bound(make):
    broker = make("--bind", "0.0.0.0", "--advertise", "127.0.0.1")
    control = broker.control()
    control.create("t")
    push = broker.connected(control, zmq.PUSH, "t")
    push.send(b"1")
    assert receive(broker.connected(control, zmq.PULL, "t"), 1) == [b"1"]


def test_the_servers_key_is_made_once_and_printed(make):
    broker = make(start=False)

    def printed(code=0, command=("broker", "key", "--data-dir", str(broker.data_dir))):
        done = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=DEADLINE,
                              env=broker.environment)
        assert done.returncode == code, done
        return done.stdout.strip() if code == 0 else done.stderr

    key = printed()
    assert len(key) == 40
    file = broker.data_dir / "curve.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size == 32
    assert printed() == key, "it is there"
    assert printed(command=("broker", "--data-dir", str(broker.data_dir), "key")) == key, "before the word"
    broker.start(wait=False)
    until(broker._ready, "the start")
    assert broker.server_key == key == printed()
    broker.stop()
    file.chmod(0o640)
    assert "chmod 600" in printed(code=1)
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1
    broker.process = None
    broker.logged("curve.key contains the broker's secret key and is open to other users")


def test_a_broker_without_encryption_prints_no_key(make):
    broker = make(kind=Broker)
    done = subprocess.run([BINARY, "broker", "key", "--data-dir", str(broker.data_dir)], capture_output=True, text=True,
                          timeout=DEADLINE, env=broker.environment)
    assert done.returncode == 1 and "does not encrypt" in done.stderr, done
    assert not (broker.data_dir / "curve.key").exists()
    control = broker.control()
    control.create("t")
    assert "server_key" not in control.ok("join", topic="t", type="push", user_id=USER, password=PASSWORD)


def test_a_plain_join_needs_a_key_but_of_an_open_topic(broker, control):
    control.create("t")
    control.create("open", open=True)
    asked = {"user_id": USER, "password": PASSWORD}
    assert "client_key" in control.fails("invalid_request", "join", topic="t", type="push", **asked)["description"]
    for bad in "short", "x" * 41, " " * 40, "~" * 40, 7:
        control.fails("invalid_request", "join", topic="t", type="push", client_key=bad, **asked)
    reply = control.ok("join", topic="open", type="push", **asked)
    event, push = try_out(broker, zmq.PUSH, reply["bind_uri"], **keys_for(reply["server_key"]))
    assert event == LET_IN, "any key"
    push.send(b"x")
    uri, keys = control.joined("open", "pull")
    assert receive(broker.socket(zmq.PULL, uri, **keys), 1) == [b"x"]
    control.fails("not_supported", "join", topic="open", type="pull", connection_type="socket", **asked)
    raw = control.ok("join", topic="open", type="pull", connection_type="socket", transport="ipc", **asked)
    assert raw["bind_uri"].startswith("ipc://") and "server_key" not in raw


def doors(control):
    """Yields the address and socket type of every ZeroMQ endpoint, with options that are admitted there."""
    control.create("t")
    control.create("open", open=True)
    own = {"user_id": USER, "password": PASSWORD}
    for kind, word in (zmq.PUSH, "push"), (zmq.PULL, "pull"), (zmq.SUB, "sub"):
        for transport in "tcp", "ipc":
            for topic in "t", "open":
                yield kind, *control.joined(topic, word, transport=transport), f"{word} {transport} {topic}"
    for transport in "tcp", "ipc":
        reply = control.ok("join", topic="t", type="push", delivery="session", transport=transport, **own)
        yield zmq.DEALER, reply["bind_uri"], keys_for(reply["server_key"]), f"session {transport}"
    yield zmq.REQ, control.uri, keys_for(control.options["curve_serverkey"].decode()), "control"


def test_a_client_without_encryption_or_the_right_server_key_is_refused_everywhere(broker, control):
    ticket = None
    for kind, uri, keys, name in doors(control):
        ticket = ticket or control.ok("join", topic="open", type="push", user_id=USER, password=PASSWORD)["ticket"]
        as_plain = {"plain_username": ticket["id"].encode(), "plain_password": ticket["secret"].encode()}
        foreign = {**keys, "curve_serverkey": zmq.curve_keypair()[0]}
        assert try_out(broker, kind, uri)[0] == NOT_SPOKEN, f"NULL, {name}"
        assert try_out(broker, kind, uri, **as_plain)[0] == NOT_SPOKEN, f"PLAIN, {name}"
        assert try_out(broker, kind, uri, **foreign)[0] == REFUSED, f"another server's key, {name}"
        assert try_out(broker, kind, uri, **keys)[0] == LET_IN, name
    # Three unauthenticated peers at each of the six endpoints of t. All producers of a transport share one
    # endpoint.
    assert control.stats("t")["refused_connections"] == 18


def test_raw_consumers_of_an_earlier_life_over_tcp_are_closed(make):
    broker = make(kind=Broker)
    control = broker.control()
    control.create("open", open=True)
    raw = control.ok("join", topic="open", type="pull", connection_type="socket", user_id=USER, password=PASSWORD)
    host, port = raw["bind_uri"].removeprefix("tcp://").split(":")
    plain_sockets.create_connection((host, int(port)), DEADLINE).close()
    assert broker.listens_on(port)
    broker.stop()
    broker.controls.clear()
    broker.flags.append("--encrypt")
    broker.start(wait=False)
    until(broker._ready, "the start")
    assert not broker.listens_on(port)


def test_registered_keys_survive_a_kill_of_the_broker(make):
    broker = make("--port-quarantine-ms", "0")
    control = broker.control()
    control.create("t", "file")
    pair = zmq.curve_keypair()
    push = broker.connected(control, zmq.PUSH, "t", pair=pair, reconnect_ivl=20, reconnect_ivl_max=100)
    push.send(b"0|before")
    until(lambda: control.stats("t")["messages_received"] == 1, "the message")
    endpoint = push.last_endpoint.decode()
    broker.kill()
    broker.start()
    until(lambda: control.stats("t")["publishers_count"] == 1, "that libzmq comes back by itself")
    push.send(b"1|after")
    until(lambda: control.stats("t")["messages_received"] == 1, "the second message")
    late, _ = try_out(broker, zmq.PUSH, endpoint, **keys_for(broker.server_key, pair))
    assert late == LET_IN, "the key is still registered"
    puller = broker.connected(control, zmq.PULL, "t")
    assert [number_of(message) for message in receive(puller, 2)] == [0, 1]
    # The key is removed with its topic, from the catalogue too.
    control.delete("t")
    control.create("t", "file")
    uri, _ = control.joined("t", "push")
    broker.kill()
    broker.start()
    assert try_out(broker, zmq.PUSH, uri, **keys_for(broker.server_key, pair))[0] == REFUSED


def test_a_key_ends_with_its_ticket_and_is_renewed_by_another_join(make):
    broker = make("--ticket-ms", "300")
    control = broker.control()
    control.create("t")
    pair = zmq.curve_keypair()
    reply = control.ok("join", topic="t", type="push", client_key=pair[0].decode(), user_id=USER, password=PASSWORD)
    keys = keys_for(reply["server_key"], pair)
    until(lambda: time.time() * 1000 > reply["ticket"]["expires_ms"], "its end")
    assert try_out(broker, zmq.PUSH, reply["bind_uri"], **keys)[0] == REFUSED

    def renewed():
        control.joined("t", "push", pair)
        return try_out(broker, zmq.PUSH, reply["bind_uri"], **keys)[0] == LET_IN
    until(renewed, "a connection within 300 ms of the join")


def test_only_allowed_keys_reach_the_control_socket(make):
    broker = make(start=False)
    allowed, stranger = zmq.curve_keypair(), zmq.curve_keypair()
    file = broker.directory / "allowed"
    file.write_text(f"# who may\n{allowed[0].decode()} # the operator\n")
    broker.flags += ["--allowed-client-keys", str(file)]
    broker.start(wait=False)
    until(broker._ready, "the start")
    control = broker.control(pair=allowed)
    control.ok("ping")
    assert try_out(broker, zmq.REQ, broker.control_uri, **keys_for(broker.server_key, stranger))[0] == REFUSED
    control.create("t")
    assert broker.connected(control, zmq.PUSH, "t") is not None
    broker.stop()
    broker.flags.remove("--encrypt")
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1
    broker.process = None
    broker.logged("allowed_client_keys: only a broker that encrypts knows the keys of clients")
    broker.flags.append("--encrypt")
    for bad, words in ("x\n", "allowed:1: not a public key"), (None, "cannot read"):
        file.unlink() if bad is None else file.write_text(bad)
        broker.start(wait=False)
        assert broker.process.wait(DEADLINE) == 1
        broker.process = None
        broker.logged(words)


def test_sessions_over_zeromq_are_encrypted_and_show_their_ticket_inside(broker, control):
    control.create("t", "file")
    own = {"topic": "t", "delivery": "session", "user_id": USER, "password": PASSWORD}

    def ticket(kind):
        reply = control.ok("join", type=kind, **own)
        return Ticket(reply["bind_uri"], "{id}.{secret}".format(**reply["ticket"]), "zmq", keys_for(reply["server_key"]))

    large = b"L" * 900_000
    with Session(ticket("push")) as session:
        producer = session.producer("t")
        producer.produce([b"one", large, b"three"])
        producer.wait_confirmed()
    with Session(ticket("sub"), frame_bytes_max=4 << 20) as session:
        consumer = session.consumer("t", "g", OWN, start="first")
        assert [message.payload for message in consumer.receive(3)] == [b"one", large, b"three"]


def test_a_slow_consumer_holds_an_encrypted_producer_and_nothing_is_lost(broker, control):
    control.create("t", ring_bytes=64 << 10)
    push = broker.connected(control, zmq.PUSH, "t", sndhwm=5)
    pull = broker.connected(control, zmq.PULL, "t", rcvhwm=5)
    messages = numbered(0, 3000, 5000)
    got = []
    for message in messages:
        while not push.poll(1, zmq.POLLOUT):
            if len(got) < len(messages):
                got += receive(pull, 1)
        push.send(message)
    got += receive(pull, len(messages) - len(got))
    assert got == messages


def test_heartbeats_are_answered_over_shared_memory(broker, control):
    control.create("t", ring_bytes=64 << 10)
    # There is no puller, so the ring fills up and the broker stops reading. It must still answer heartbeats.
    push = broker.connected(control, zmq.PUSH, "t", heartbeat_ivl=100, heartbeat_timeout=500, sndhwm=5)
    for message in numbered(0, 100, 5000):
        if not push.poll(200, zmq.POLLOUT):
            break
        push.send(message)
    subscriber = broker.connected(control, zmq.SUB, "t", heartbeat_ivl=100, heartbeat_timeout=500)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the subscriber")
    monitors = [each.get_monitor_socket(zmq.EVENT_DISCONNECTED) for each in (push, subscriber)]
    assert not any(monitor.poll(1000) for monitor in monitors), "taken for dead"
    for each in push, subscriber:
        each.disable_monitor()


def test_the_examples_of_the_document_run(broker):
    """Runs the examples about encryption after the first example, which has the code that all of them need."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/protocol.md").read_text(encoding="utf-8")
    common = re.search(r"^```python\n(.*?)^```$", text, re.S | re.M).group(1)
    common = re.sub(r"^(control = .*|control\.connect.*|assert .*)\n", "", common, flags=re.M)
    blocks = re.findall(r"^```python encrypted\n(.*?)^```$", text, re.S | re.M)
    assert blocks and "def ask" in common
    program = (common + "".join(blocks)).replace("tcp://127.0.0.1:5000", broker.control_uri)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE,
                          env={**broker.environment, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD,
                               "LIGHTQ_SERVER_KEY": broker.server_key})
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "in clear"])
def test_nothing_of_a_session_over_zeromq_passes_in_clear(make, encrypted):
    broker = make(kind=CurveBroker if encrypted else Broker)
    control = broker.control()
    control.create("planted-topic")
    replies = [control.ok("join", topic="planted-topic", type=kind, user_id=USER, password=PASSWORD, delivery="session",
                          connection_type="zmq") for kind in ("push", "pull")]
    texts = [f"{reply['ticket']['id']}.{reply['ticket']['secret']}" for reply in replies]
    wire = Recorder(int(replies[0]["bind_uri"].rsplit(":", 1)[1]))
    options = keys_for(replies[0]["server_key"]) if encrypted else {}
    try:
        with Session(Ticket(wire.uri(), texts[0], "zmq", options), name="planted-name") as session:
            assert session.present(Ticket(wire.uri(), texts[1])).op == "done"
            producer, consumer = session.producer("planted-topic"), session.consumer("planted-topic")
            producer.produce([b"planted-payload"])
            producer.wait_confirmed()
            assert consumer.receive(1)[0].payload == b"planted-payload"
        seen = {text: wire.has(text) for text in ("planted-payload", "planted-topic", "planted-name", *texts)}
        assert len(wire.recorded) > 500 and not any(seen.values()) if encrypted else all(seen.values()), seen
    finally:
        wire.close()


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "in clear"])
def test_nothing_is_sent_unencrypted(make, encrypted):
    broker = make(kind=CurveBroker if encrypted else Broker)
    control_wire = Recorder(int(broker.control_uri.rsplit(":", 1)[1]))
    wires = [control_wire]
    try:
        if encrypted:
            control = CurveControl(broker.context, control_wire.uri(), broker.server_key)
        else:
            control = Control(broker.context, control_wire.uri())
        broker.controls.append(control)
        control.create("planted-topic")
        tickets = []
        sockets = {}
        for kind, word in (zmq.PULL, "pull"), (zmq.SUB, "sub"), (zmq.PUSH, "push"):
            pair = zmq.curve_keypair()
            asked = {"client_key": pair[0].decode()} if encrypted else {}
            reply = control.ok("join", topic="planted-topic", type=word, user_id=USER, password=PASSWORD, **asked)
            tickets.append(reply["ticket"])
            wires.append(Recorder(int(reply["bind_uri"].rsplit(":", 1)[1])))
            options = keys_for(reply["server_key"], pair) if encrypted else {
                "plain_username": reply["ticket"]["id"].encode(), "plain_password": reply["ticket"]["secret"].encode()}
            sockets[kind] = broker.socket(kind, wires[-1].uri(), **options)
        until(lambda: control.stats("planted-topic")["subscribers_count"] == 2, "the consumers")
        sockets[zmq.PUSH].send(b"planted-payload")
        assert receive(sockets[zmq.PULL], 1) == receive_topic(sockets[zmq.SUB], "planted-topic", 1) == [b"planted-payload"]
        seen = {text: [wire.has(text) for wire in wires] for text in
                ("planted-payload", "planted-topic", PASSWORD, ADMIN_PASSWORD, ADMIN, USER, "create_topic", "bind_uri",
                 *(ticket["secret"] for ticket in tickets), *(ticket["id"] for ticket in tickets))}
        if encrypted:
            assert not any(any(where) for where in seen.values()), seen
            assert all(len(wire.recorded) > 500 for wire in wires), "it has all passed here"
        else:
            assert all(any(where) for where in seen.values()), f"this test can fail: {seen}"
    finally:
        broker.close_clients()
        for each in broker.controls:
            each.close()
        broker.controls.clear()
        for wire in wires:
            wire.close()
