"""Tests every kind of key on every way to a topic of a broker that encrypts. Only a client with the right key
passes a byte, in either direction. Sessions show their ticket inside the encryption, so their rows are
about tickets."""
import contextlib
import itertools
import os
import pathlib
import shutil
import tempfile
import time

import pytest
import zmq

from curve_support import CurveBroker, keys_for, try_out
from session_client import GROUP, OWN, Session, Ticket, hello_values, open_values
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, receive, receive_topic, silent, until
from test_ticket_matrix import FOREIGN_MODE, FOREIGN_ROLE, KINDS

KEYS = ["no", "wrong", "expired", "foreign_topic", "foreign_role", "foreign_mode", "other_broker", "revoked", "valid"]
WAYS = ["produce", "pull", "sub", "session_produce", "session_pull", "session_sub"]
TRANSPORTS = ["tcp", "ipc"]
SOCKETS = {"push": zmq.PUSH, "pull": zmq.PULL, "sub": zmq.SUB}

ALL = list(itertools.product(WAYS, TRANSPORTS, KEYS))
CELLS = [cell for cell in ALL if not (cell[2] == "foreign_mode" and cell[0].endswith("produce"))]


def test_every_combination_is_counted():
    assert (len(ALL), len(CELLS), sum(cell[2] == "valid" for cell in CELLS)) == (108, 104, 12)


def topic_of(cell):
    return "-".join(cell)


def kind_of(way):
    return KINDS[way.removeprefix("session_")]


def make_topics(control):
    for cell in CELLS:
        control.create(topic_of(cell))
    control.create("foreign")


def session_join(control, topic, kind, transport, user=USER):
    return control.ok("join", topic=topic, type=kind, delivery="session", transport=transport, user_id=user,
                      password=PASSWORD)


def by_a_right_that_is_gone(control, topic, kind, join):
    """Returns the result of a join by a user that has lost the right to it since."""
    administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    right = {"topic": topic, "rights": ["produce" if kind == "push" else "consume"]}
    control.ok("create_user", **administrator, user_id=topic, password=PASSWORD, rights=[right])
    given = join(topic)
    control.ok("revoke", **administrator, user_id=topic, **right)
    return given


class World:
    """The broker, another broker with topics of the same ids, and keys and tickets that have expired."""

    def __init__(self, broker, other, expired):
        self.broker, self.other, self.expired = broker, other, expired
        self.control, self.other_control = broker.control(), other.control()

    def keys(self, cell):
        """Returns the address to connect to, and the options of the socket."""
        way, transport, which = cell
        topic, kind = topic_of(cell), kind_of(way)
        pair = self.expired[cell] if which == "expired" else zmq.curve_keypair()
        uri, _ = self.control.joined(topic, kind, transport=transport)
        keys = keys_for(self.broker.server_key, pair)
        register = {"foreign_topic": ("foreign", kind), "foreign_role": (topic, FOREIGN_ROLE[kind]),
                    "foreign_mode": (topic, FOREIGN_MODE.get(kind)), "valid": (topic, kind)}
        if which == "no":
            return uri, {}
        # The key is registered there, and the client has that broker's server key.
        if which == "other_broker":
            self.other_control.joined(topic, kind, pair, transport=transport)
            return uri, keys_for(self.other.server_key, pair)
        if which == "revoked":
            by_a_right_that_is_gone(self.control, topic, kind, lambda user: self.control.joined(
                topic, kind, pair, transport=transport, user_id=user))
        if which in register:
            self.control.joined(*register[which], pair, transport=transport)
        return uri, keys

    def ticket(self, cell):
        """Returns the answer to a join, which has the address, and the text of the ticket to show."""
        way, transport, which = cell
        topic, kind = topic_of(cell), kind_of(way)
        own = session_join(self.control, topic, kind, transport)
        shown = {"foreign_topic": lambda: session_join(self.control, "foreign", kind, transport),
                 "foreign_role": lambda: session_join(self.control, topic, FOREIGN_ROLE[kind], transport),
                 "foreign_mode": lambda: session_join(self.control, topic, FOREIGN_MODE[kind], transport),
                 "other_broker": lambda: session_join(self.other_control, topic, kind, transport),
                 "revoked": lambda: by_a_right_that_is_gone(
                     self.control, topic, kind,
                     lambda user: session_join(self.control, topic, kind, transport, user)),
                 "expired": lambda: self.expired[cell], "valid": lambda: own, "no": lambda: None,
                 "wrong": lambda: {"ticket": {"id": own["ticket"]["id"], "secret": "0" * 64}}}[which]()
        return own, "" if shown is None else "{id}.{secret}".format(**shown["ticket"])


@pytest.fixture(scope="module")
def world():
    # Short: the path of a socket has at most 107 bytes.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    brokers = []
    for name in "a", "b":
        os.makedirs(directory / name)
        brokers.append(CurveBroker(directory / name))
    broker, other = brokers
    try:
        broker.environment["LIGHTQ_TICKET_MS"] = "100"
        broker.start()
        control = broker.control()
        make_topics(control)
        expired = {}
        last = 0
        for cell in CELLS:
            if cell[2] != "expired":
                continue
            pair = zmq.curve_keypair()
            # Tickets of sessions are valid for longer. The ticket of a plain join has the same format.
            reply = control.ok("join", topic=topic_of(cell), type=kind_of(cell[0]), client_key=pair[0].decode(),
                               transport=cell[1], user_id=USER, password=PASSWORD)
            expired[cell] = reply if cell[0].startswith("session_") else pair
            last = max(last, reply["ticket"]["expires_ms"])
        until(lambda: time.time() * 1000 > last, "the end of the keys")
        broker.stop()
        broker.environment["LIGHTQ_TICKET_MS"] = ""
        broker.start()
        other.start()
        make_topics(other.control())
        yield World(broker, other, expired)
    finally:
        for each in brokers:
            each.close()
        shutil.rmtree(directory, ignore_errors=True)


def fill(world, topic):
    """Sends a message from a producer that is admitted."""
    before = world.control.stats(topic)["messages_received"]
    with world.broker.connected(world.control, zmq.PUSH, topic) as producer:
        producer.send(b"kept")
        until(lambda: world.control.stats(topic)["messages_received"] == before + 1, "the message")
    until(lambda: world.control.stats(topic)["publishers_count"] == 0, "its producer's end")


def plain(world, cell):
    topic, kind = topic_of(cell), kind_of(cell[0])
    uri, options = world.keys(cell)
    if kind == "pull":
        fill(world, topic)
    before = world.control.stats(topic)
    event, socket = try_out(world.broker, SOCKETS[kind], uri, **options)
    if kind == "push":
        with contextlib.suppress(zmq.Again):  # a refused client has no connection left for it
            socket.send(b"sent", zmq.NOBLOCK)
    if cell[2] == "valid":
        assert event == zmq.EVENT_HANDSHAKE_SUCCEEDED
        if kind == "push":
            until(lambda: world.control.stats(topic)["messages_received"] == 1, "the message")
        elif kind == "pull":
            assert receive(socket, 1) == [b"kept"]
        else:
            until(lambda: world.control.stats(topic)["subscribers_count"] == 1, "the subscriber")
            fill(world, topic)
            assert receive_topic(socket, topic, 1) == [b"kept"]
        assert world.control.stats(topic)["refused_connections"] == 0
    else:
        assert event == (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL if cell[2] == "no" else zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        until(lambda: world.control.stats(topic)["refused_connections"] == 1, "its being refused")
        if kind == "sub":
            fill(world, topic)
            before["messages_received"] += 1
        stats = world.control.stats(topic)
        assert stats["messages_received"] == before["messages_received"]
        assert (stats["publishers_count"], stats["subscribers_count"], stats["deliveries"]) == (0, 0, 0)
        assert kind == "push" or silent(socket, 0.05)
    socket.close()


def over_session(world, cell):
    way, _, which = cell
    topic, kind = topic_of(cell), kind_of(way)
    own, text = world.ticket(cell)
    if kind != "push":
        fill(world, topic)
    before = world.control.stats(topic)["messages_received"]
    with Session(Ticket(own["bind_uri"], text, "zmq", keys_for(own["server_key"])), hello=False) as session:
        answer = session.request("hello", **hello_values(ticket=text))
        if which == "valid":
            assert answer.op == "welcome", answer
            if kind == "push":
                producer = session.producer(topic)
                producer.produce([b"sent"])
                producer.wait_confirmed()
                assert world.control.stats(topic)["messages_received"] == 1
            else:
                consumer = session.consumer(topic, "g", GROUP if kind == "pull" else OWN)
                assert [message.payload for message in consumer.receive(1)] == [b"kept"]
            return
        # A valid ticket for something else opens a session. This topic cannot be opened on it.
        if which.startswith("foreign_"):
            assert answer.op == "welcome", answer
            if kind == "push":
                answer = session.request("produce_open", producer_id=0, producer_epoch=0, level=0, topic=topic)
            else:
                answer = session.request("consume_open", **open_values(topic, "g", GROUP if kind == "pull" else OWN))
        assert (answer.op, answer.code) == ("error", "unauthorized_access"), answer
    stats = world.control.stats(topic)
    assert stats["messages_received"] == before
    assert (stats["publishers_count"], stats["subscribers_count"], stats["deliveries"]) == (0, 0, 0)


@pytest.mark.parametrize("cell", CELLS, ids=topic_of)
def test_only_a_registered_key_is_accepted(world, cell):
    (over_session if cell[0].startswith("session_") else plain)(world, cell)
