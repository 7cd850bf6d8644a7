"""Tests users and their rights, from docs/protocol.md alone: every right and every command. A revoked right
is also taken from open connections."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
import zmq

from session_client import GROUP, OWN, Session, Ticket, certificate_of, open_values
from support import (ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, Address, keys_for, present, receive, receive_topic, running, until)

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
OWNER = {"user_id": USER, "password": PASSWORD}
ANN_PASSWORD = "planted-user-secret-2525"
ANN = {"user_id": "ann", "password": ANN_PASSWORD}
ANN_AS_ADMIN = {"admin_user_id": "ann", "admin_password": ANN_PASSWORD}
RIGHTS = ["produce", "consume", "manage"]
CARRIERS = {"zmq_tcp": ("zmq", "tcp"), "zmq_ipc": ("zmq", "ipc"), "socket_tcp": ("socket", "tcp"),
            "unix_socket": ("socket", "ipc")}


def right(topic, *words):
    return {"topic": topic, "rights": list(words)}


def add_ann(control, *rights, **more):
    control.ok("create_user", **ROOT, **ANN, rights=list(rights), **more)


@pytest.fixture(autouse=True)
def no_secret_in_the_log(make_broker, request):
    yield
    broker = request.node.funcargs.get("broker")
    if broker is not None:
        assert ANN_PASSWORD not in broker.log()


# The right that each command needs. For stats any right suffices. With encryption, each plain socket has a
# key.
def commands(control):
    def key():
        return {"client_key": zmq.curve_keypair()[0].decode()} if control.options else {}

    pulling = control.ok("join", topic="t", type="pull", **key(), **OWNER)["bind_uri"]
    control.ok("join", topic="t", type="push", **key(), **OWNER)
    return [
        ("produce", "join", dict(topic="t", type="push", **key(), **ANN)),
        ("produce", "join", dict(topic="t", type="pub", transport="ipc", **key(), **ANN)),
        ("produce", "join", dict(topic="t", type="push", delivery="session", connection_type="socket", **ANN)),
        ("consume", "join", dict(topic="t", type="pull", **key(), **ANN)),
        ("consume", "join", dict(topic="t", type="sub", **key(), **ANN)),
        ("consume", "join", dict(topic="t", type="sub", delivery="session", **ANN)),
        ("manage", "leave", dict(topic="t", bind_uri=pulling, **ANN)),  # an endpoint of another user
        ("any", "stats", dict(topic="t", **ANN)),
        ("any", "stats", dict(topic="t", **ANN_AS_ADMIN)),
        ("manage", "pause", dict(topic="t", **ANN)),
        ("manage", "resume", dict(topic="t", **ANN)),
        ("manage", "purge", dict(topic="t", **ANN)),
        ("manage", "delete_group", dict(topic="t", **ANN)),
        ("manage", "set_password", dict(topic="t", new_password=PASSWORD, **ANN_AS_ADMIN)),
        ("manage", "create_topic", dict(topic="new", broker_type="queue", **ANN_AS_ADMIN)),
        ("manage", "delete_topic", dict(topic="new", **ANN_AS_ADMIN)),
        ("admin", "stats", ANN_AS_ADMIN),
        ("admin", "list_users", ANN_AS_ADMIN),
        ("admin", "create_user", dict(user_id="new", password="pw", **ANN_AS_ADMIN)),
        ("admin", "grant", dict(user_id="new", topic="*", rights=["produce"], **ANN_AS_ADMIN)),
        ("admin", "revoke", dict(user_id="new", topic="*", rights=["produce"], **ANN_AS_ADMIN)),
        ("admin", "set_password", dict(user_id="new", new_password="other", **ANN_AS_ADMIN)),
        ("admin", "delete_user", dict(user_id="new", **ANN_AS_ADMIN)),
    ]


@pytest.mark.parametrize("flags", [[], ["--encrypt"]], ids=["clear", "encrypted"])
@pytest.mark.parametrize("has", ["nothing", *RIGHTS, "admin"])
def test_every_right_permits_its_commands_and_no_others(make_broker, flags, has):
    control = make_broker(*flags).control()
    assert bool(control.options) == bool(flags), "the control socket is CURVE's, or not"
    control.create("t")
    add_ann(control, *([right("*", has)] if has in RIGHTS else []), admin=has == "admin")
    done = refused = 0
    for needed, cmd, fields in commands(control):
        may = has == "admin" or needed == has or (needed == "any" and has in RIGHTS)
        reply = control(cmd, **fields)
        if may:
            assert reply["status"] == "ok" or reply["code"] == "group_in_use", (cmd, reply)
            done += 1
        else:
            # A user that knows the topic receives the error that there is no such endpoint.
            hidden = cmd == "leave" and has != "nothing"
            assert reply.get("code") == ("endpoint_not_found" if hidden else "unauthorized_access"), (cmd, fields, reply)
            refused += 1
    assert (done, refused) == {"nothing": (0, 23), "produce": (5, 18), "consume": (5, 18), "manage": (10, 13),
                               "admin": (23, 0)}[has]


def test_a_pattern_applies_to_topics_with_matching_names(control):
    for topic in ("orders.eu", "orders.us", "orders", "payments.eu"):
        control.create(topic)
    add_ann(control, right("orders.*", "produce"), right("*.eu", "consume"))
    joins = {(topic, kind): control("join", topic=topic, type=kind, **ANN)["status"] == "ok"
             for topic in ("orders.eu", "orders.us", "orders", "payments.eu", "none") for kind in ("push", "pull")}
    assert [what for what, may in joins.items() if may] == [
        ("orders.eu", "push"), ("orders.eu", "pull"), ("orders.us", "push"), ("payments.eu", "pull")]
    assert [each["topic"] for each in control.ok("list_topics", **ANN_AS_ADMIN)["topics"]] == [
        "orders.eu", "orders.us", "payments.eu"]
    control.create("orders.later")
    control.ok("join", topic="orders.later", type="push", **ANN)
    # A user without a right gets the same error whether or not the topic exists. A user with a right learns
    # that the topic does not exist.
    hidden = control.fails("unauthorized_access", "join", topic="orders", type="push", **ANN)
    assert "lightq user grant ann --produce orders" in hidden["description"]
    assert control.fails("unauthorized_access", "join", topic="none", type="push", **ANN) == {
        **hidden, "description": hidden["description"].replace("orders", "none")}
    control.fails("topic_not_found", "join", topic="orders.none", type="push", **ANN)


def test_users_are_distinguished_and_listed_without_secrets(control):
    control.create("t")
    add_ann(control, right("t", "produce"))
    control.fails("user_already_exists", "create_user", **ROOT, **ANN)
    control.fails("user_already_exists", "create_user", **ROOT, user_id=ADMIN, password="pw")
    control.fails("user_already_exists", "create_user", **ROOT, **OWNER)
    control.fails("user_already_exists", "create_topic", **ROOT, topic="u", broker_type="queue", **ANN)
    control.ok("create_user", **ROOT, user_id="chief", password="pw", admin=True)
    assert control.ok("list_users", **ROOT)["users"] == [
        {"user_id": "ann", "admin": False, "rights": [{"topic": "t", "rights": ["produce"]}]},
        {"user_id": "chief", "admin": True, "rights": []}]
    control.ok("delete_user", **ROOT, user_id="ann")
    control.fails("user_not_found", "delete_user", **ROOT, user_id="ann")
    control.fails("user_not_found", "grant", **ROOT, user_id="ann", topic="*", rights=["produce"])
    control.fails("invalid_request", "grant", **ROOT, user_id="chief", topic=".a", rights=["produce"])
    control.fails("invalid_request", "grant", **ROOT, user_id="chief", topic="*", rights=["fly"])
    control.fails("invalid_request", "revoke", **ROOT, user_id="chief", topic="*", rights=["produce"])


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_users_survive_a_restart_of_the_broker(broker, control, end):
    control.create("t", "file")
    add_ann(control, right("t", "produce", "consume"), right("u", "manage"))
    control.ok("create_user", **ROOT, user_id="gone", password="pw", rights=[right("*", "produce")])
    ticket = control.ok("join", topic="t", type="push", user_id="gone", password="pw")
    control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=["consume"])
    control.ok("set_password", user_id="ann", password=ANN_PASSWORD, new_password="another")
    control.ok("delete_user", **ROOT, user_id="gone")
    before = control.ok("list_users", **ROOT)["users"]
    if end == "kill":
        broker.kill()
        broker.start()
    else:
        broker.restart()
    assert control.ok("list_users", **ROOT)["users"] == before
    control.fails("unauthorized_access", "join", topic="t", type="push", **ANN)
    control.fails("unauthorized_access", "join", topic="t", type="pull", user_id="ann", password="another")
    mine = control.ok("join", topic="t", type="push", user_id="ann", password="another")
    producer = broker.socket(zmq.PUSH, Address.of(mine))
    producer.send(b"mine")
    until(lambda: control.stats("t")["messages_received"] == 1, "the message")
    # The ticket of a deleted user stays invalid, even if a new user has the same name.
    control.ok("create_user", **ROOT, user_id="gone", password="pw", rights=[right("*", "produce")])
    with Way(broker, control, "produce", "zmq_tcp", ticket) as way:
        way.is_refused()


def test_a_changed_password_is_in_force_at_once(broker, control):
    control.create("t")
    add_ann(control, right("t", "produce"))
    with Way(broker, control, "produce", "zmq_tcp") as old:
        old.works()
        control.ok("set_password", **ANN, new_password="another")
        old.is_ended()
    control.fails("unauthorized_access", "join", topic="t", type="push", **ANN)
    control.fails("unauthorized_access", "set_password", **ANN, new_password="a third")
    control.ok("set_password", **ROOT, user_id="ann", new_password=ANN_PASSWORD)
    with Way(broker, control, "produce", "zmq_tcp") as new:
        new.works()


def test_a_topics_own_user_gets_another_password(broker, control):
    control.create("t")
    control.create("other")
    with Way(broker, control, "pull", "zmq_tcp", user=OWNER) as way:
        way.works()
        control.ok("set_password", topic="t", **OWNER, new_password="another")
        way.is_ended()
    control.fails("unauthorized_access", "stats", topic="t", **OWNER)
    control.ok("stats", topic="other", **OWNER)
    control.ok("set_password", topic="t", **ROOT, new_password=PASSWORD)
    assert control.stats("t")["topic"] == "t"


class Way:
    """A client on one of the ways to the topic `t`. It has a ticket of its own unless one is given."""

    def __init__(self, broker, control, kind, carrier, joined=None, user=None):
        self.broker, self.control, self.kind = broker, control, kind
        self.connection_type, transport = CARRIERS[carrier]
        self.session_kind = kind.removeprefix("session_")
        self.over_session = kind.startswith("session_")
        self.type = {"produce": "push", "pull": "pull", "sub": "sub", "read": "sub"}[self.session_kind]
        # The key of a given join is not registered again.
        self.pair = zmq.curve_keypair() if control.options else None
        key = {"client_key": self.pair[0].decode()} if self.pair and not self.over_session else {}
        self.joined = joined or control.ok(
            "join", topic="t", type=self.type, transport=transport, connection_type=self.connection_type,
            delivery="session" if self.over_session else "plain", **key, **(ANN if user is None else user))
        # Each user has a named cursor of its own, because a cursor of another user is refused.
        self.cursor = f"{self.type}-{(ANN if user is None else user).get('user_id', 'uid')}"
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        uri = self.joined["bind_uri"]
        if self.over_session:
            ticket = self.joined["ticket"]
            keys = keys_for(self.joined["server_key"]) if "server_key" in self.joined else {}
            where = Ticket(uri, f"{ticket['id']}.{ticket['secret']}", self.connection_type, keys,
                           certificate_of(self.joined))
            self.session = self.stack.enter_context(Session(where))
            return self
        self.socket = self.broker.context.socket({"push": zmq.PUSH, "pull": zmq.PULL, "sub": zmq.SUB}[self.type])
        self.socket.linger = 0
        if self.type == "sub":
            self.socket.subscribe(b"")
        self.monitor = self.socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        self.broker.clients.append(self.socket)
        present(self.socket, Address.of(self.joined, self.pair))
        self.socket.connect(uri)
        return self

    def __exit__(self, *_):
        self.stack.close()
        if not self.over_session:
            self.socket.disable_monitor()
            self.socket.close()

    def event(self):
        until(lambda: self.monitor.poll(0), "what becomes of the connection")
        return int.from_bytes(self.monitor.recv_multipart()[0][:2], "little")

    def sends(self):
        before = self.control.stats("t")["messages_received"]
        with self.broker.socket(zmq.PUSH, self.control.join("t", "push")) as producer:
            producer.send(b"kept")
            until(lambda: self.control.stats("t")["messages_received"] == before + 1, "the message")
        until(lambda: self.control.stats("t")["publishers_count"] == 0, "its producer's end")

    def works(self):
        """Checks that a message passes from the producer to the consumer."""
        if not self.over_session:
            assert self.event() == zmq.EVENT_HANDSHAKE_SUCCEEDED
        before = self.control.ok("stats", topic="t", **ROOT)["messages_received"]
        if self.kind == "produce":
            self.socket.send(b"sent")
            until(lambda: self.control.ok("stats", topic="t", **ROOT)["messages_received"] == before + 1, "the message")
        elif self.kind == "session_produce":
            self.producer = self.session.producer("t")
            self.producer.produce([b"sent"])
            self.producer.wait_confirmed()
        elif self.kind == "session_read":
            self.sends()
            assert [message.payload for message in self.session.read("t")[0]][-1] == b"kept"
        elif self.over_session:
            as_group = self.type == "pull"
            self.consumer = self.session.consumer("t", self.type if as_group else self.cursor, GROUP if as_group else OWN)
            self.sends()
            self.held = self.consumer.receive(1)
            assert [message.payload for message in self.held] == [b"kept"]
        elif self.type == "sub":
            until(lambda: self.control.stats("t")["subscribers_count"] == 1, "the subscriber")
            self.sends()
            assert receive_topic(self.socket, "t", 1) == [b"kept"]
        else:
            self.sends()
            assert receive(self.socket, 1) == [b"kept"]

    def counts(self):
        stats = self.control.ok("stats", topic="t", **ROOT)
        return stats["publishers_count"], stats["subscribers_count"]

    def is_ended(self):
        """Checks that connections and channels have ended when the command is answered, and stay ended."""
        assert self.counts() == (0, 0)
        before = self.control.ok("stats", topic="t", **ROOT)
        if not self.over_session:
            assert self.event() != zmq.EVENT_HANDSHAKE_SUCCEEDED
            until(lambda: self.control.ok("stats", topic="t", **ROOT)["refused_connections"] == 1, "its being refused")
            if self.type == "push":
                with contextlib.suppress(zmq.Again):
                    self.socket.send(b"too late", zmq.NOBLOCK)
            assert not self.monitor.poll(50), "libzmq does not try again"
        else:
            if self.kind != "session_read":
                assert self.session.take(lambda frame: frame.op == "error", "the end").code == "unauthorized_access"
            assert self.session.goodbye() == "unauthorized_access", "it has no ticket left"
        after = self.control.ok("stats", topic="t", **ROOT)
        assert (after["messages_received"], after["deliveries"]) == (before["messages_received"], before["deliveries"])

    def is_refused(self):
        assert self.event() != zmq.EVENT_HANDSHAKE_SUCCEEDED


KINDS = {"produce": "produce", "pull": "consume", "sub": "consume", "session_produce": "produce",
         "session_pull": "consume", "session_sub": "consume", "session_read": "consume"}
WAYS = [(kind, carrier) for kind in KINDS for carrier in CARRIERS
        if kind.startswith("session_") or CARRIERS[carrier][0] == "zmq"]


@pytest.mark.parametrize("how", ["revoke", "delete", "password"])
@pytest.mark.parametrize("kind,carrier", WAYS)
def test_a_revoked_right_ends_use_on_open_connections(shared, kind, carrier, how):
    broker, control = shared
    control.create("t")
    add_ann(control, right("t*", "produce", "consume"), right("t", "manage"))
    try:
        with Way(broker, control, kind, carrier) as way, Way(broker, control, "session_sub", "socket_tcp",
                                                             user=OWNER) as owners:
            way.works()
            if how == "revoke":
                control.ok("revoke", **ROOT, user_id="ann", topic="t*", rights=[KINDS[kind]])
            elif how == "delete":
                control.ok("delete_user", **ROOT, user_id="ann")
            else:
                control.ok("set_password", **ROOT, user_id="ann", new_password="another")
            way.is_ended()
            if not kind.endswith("produce"):
                owners.works()  # another user's client is not affected
    finally:
        control.delete("t")
        control("delete_user", **ROOT, user_id="ann")


@pytest.fixture(scope="module", params=[[], ["--encrypt"]], ids=["clear", "encrypted"])
def shared(request):
    # Short: the path of a socket has at most 107 bytes.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    try:
        with running(directory, *request.param) as broker:
            yield broker, broker.control()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_messages_of_a_revoked_consumer_go_to_another(broker, control):
    control.create("t")
    add_ann(control, right("t", "consume"))
    with Way(broker, control, "session_pull", "socket_tcp") as way:
        way.works()
        with Way(broker, control, "session_pull", "socket_tcp", user=OWNER) as other:
            consumer = other.session.consumer("t", "pull", GROUP)
            assert consumer.is_silent(0.1), "another has it"
            control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=["consume"])
            assert [message.payload for message in consumer.receive(1)] == [b"kept"]
            assert way.session.take(lambda frame: frame.op == "error", "the end").code == "unauthorized_access"


def test_only_channels_of_the_revoked_right_end(broker, control):
    control.create("t")
    add_ann(control, right("t", "produce", "consume"), right("*", "produce"))
    with Way(broker, control, "session_produce", "socket_tcp") as producing:
        producing.works()
        control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=["consume"])
        producing.producer.produce([b"more"])
        producing.producer.wait_confirmed()
        control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=["produce"])
        producing.producer.produce([b"by the other pattern"])
        producing.producer.wait_confirmed()
        control.ok("revoke", **ROOT, user_id="ann", topic="*", rights=["produce"])
        producing.is_ended()
    control.ok("grant", **ROOT, user_id="ann", topic="t", rights=["produce"])
    with Way(broker, control, "session_produce", "socket_tcp") as again:
        again.works()


def test_many_password_guesses_are_answered_busy_and_other_users_are_not(broker, control):
    control.create("t")
    add_ann(control, right("t", "produce"))
    control.ok("stats", topic="t", **ANN)  # from here on the credential is remembered
    guesses = 320  # more than the broker lets wait
    attacker = broker.socket(zmq.DEALER, broker.control_uri)
    for number in range(guesses):
        attacker.send_multipart([b"", json.dumps({"cmd": "stats", "topic": "t", "user_id": "ann",
                                                  "password": f"guess {number}"}).encode()])
    control.ok("stats", topic="t", **ANN)
    codes = []
    while len(codes) < guesses:
        assert attacker.poll(DEADLINE * 1000), codes
        codes.append(json.loads(attacker.recv_multipart()[-1])["code"])
    assert set(codes) == {"busy", "unauthorized_access"}
    assert codes.count("unauthorized_access") >= 16
    stats = control.broker_stats()
    assert stats["throttled_requests"] == codes.count("busy")
    assert stats["auth_failures"] == codes.count("unauthorized_access")


def test_processes_of_a_users_uid_need_no_password_on_a_unix_socket(make_broker):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    try:
        broker = make_broker(control=f"ipc://{directory}/control")
        control = broker.control()
        control.create("t")
        control.ok("create_user", **ROOT, user_id="robot", uid=os.getuid(), rights=[right("t", "produce", "consume")])
        control.ok("create_user", **ROOT, user_id="other", uid=os.getuid() + 1, rights=[right("*", "manage")])
        control.fails("user_already_exists", "create_user", **ROOT, user_id="third", uid=os.getuid())
        control.fails("invalid_request", "create_user", **ROOT, user_id="neither")
        for kind, carrier in (("session_pull", "zmq_tcp"), ("produce", "zmq_ipc"), ("produce", "zmq_tcp")):
            with Way(broker, control, kind, carrier, user={}) as way:
                way.works()
        control.fails("unauthorized_access", "pause", topic="t")
        control.fails("unauthorized_access", "join", topic="none", type="push")
        control.fails("unauthorized_access", "join", topic="t", type="push", user_id="robot", password="guess")
        with Way(broker, control, "session_produce", "unix_socket", user={}) as way:
            way.works()
            control.ok("delete_user", **ROOT, user_id="robot")
            way.is_ended()
        control.fails("unauthorized_access", "join", topic="t", type="push")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


SENDER = """
import json, os, sys, zmq
os.setgid(65534)
os.setuid(65534)
control = zmq.Context.instance().socket(zmq.REQ)
control.connect(sys.argv[1])
control.send_json(dict(cmd="join", topic="t", type="pub", transport="ipc"))
assert control.poll(20000), "no answer"
reply = control.recv_json()
assert reply["status"] == "ok", reply
producer = zmq.Context.instance().socket(zmq.PUSH)
producer.plain_username = reply["ticket"]["id"].encode()
producer.plain_password = reply["ticket"]["secret"].encode()
producer.connect(reply["bind_uri"])
producer.send(b"from another uid")
producer.close(linger=20000)
control.close()
zmq.Context.instance().term()  # which waits for what has not left
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_processes_of_another_uid_than_the_brokers_reach_its_unix_sockets(make_broker):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    umask = os.umask(0o077)  # the broker inherits it
    try:
        directory.chmod(0o711)
        broker = make_broker("--ipc-dir", str(directory), control=f"ipc://{directory}/control")
        control = broker.control()
        control.create("t")
        consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
        sender = [sys.executable, "-c", SENDER, f"ipc://{directory}/control"]
        stranger = subprocess.run(sender, capture_output=True, text=True, timeout=DEADLINE)
        assert stranger.returncode != 0 and "unauthorized_access" in stranger.stderr, stranger
        control.ok("create_user", **ROOT, user_id="robot", uid=65534, rights=[right("t", "produce")])
        known = subprocess.run(sender, capture_output=True, text=True, timeout=DEADLINE)
        assert known.returncode == 0, known
        assert receive(consumer, 1) == [b"from another uid"]
    finally:
        os.umask(umask)
        shutil.rmtree(directory, ignore_errors=True)


def test_another_users_ticket_does_not_take_over_a_subscribers_cursor(broker, control):
    """A user who knows a subscriber's address and may consume the topic receives its messages from then on, and
    takes none from others."""
    control.ok("create_topic", **ROOT, **OWNER, topic="t", broker_type="file")
    for name in ("ann", "mallory"):
        control.ok("create_user", **ROOT, user_id=name, password=ANN_PASSWORD, rights=[right("t", "consume")])

    def subscriber(name, uri=None):
        joined = control.ok("join", topic="t", type="sub", user_id=name, password=ANN_PASSWORD)
        address = Address.of(joined)
        return address, Address.of({**joined, "bind_uri": uri or joined["bind_uri"]})

    push = broker.socket(zmq.PUSH, Address.of(control.ok("join", topic="t", type="push", **OWNER)))
    address, _ = subscriber("ann")

    def is_connected():
        return [s["connected"] for s in control.stats("t")["subscribers"] if s["bind_uri"] == address] == [True]

    anns = broker.socket(zmq.SUB, address)
    push.send(b"1")
    assert receive_topic(anns, "t", 1) == [b"1"]
    anns.close()
    until(lambda: not is_connected(), "ann's leave")
    _, stolen = subscriber("mallory", address)
    mallorys = broker.socket(zmq.SUB, stolen)
    until(lambda: control.stats("t")["subscribers_count"] >= 1, "mallory's socket")
    for text in (b"2", b"3"):
        push.send(text)
    assert receive_topic(mallorys, "t", 2) == [b"2", b"3"]
    again = broker.socket(zmq.SUB, address)
    assert receive_topic(again, "t", 2) == [b"2", b"3"]
