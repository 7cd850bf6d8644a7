"""Tests every kind of ticket on every way to a topic. Only a client with the right ticket passes a byte, in
either direction. The expired tickets are from an earlier life of the same broker, with the same key."""
import contextlib
import itertools
import os
import pathlib
import shutil
import tempfile
import time

import pytest
import zmq

import session_client
from session_client import (GROUP, OWN, Ended, Session, Ticket, certificate_of, hello_values, messages_of, open_values,
                            session_frames)
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, Address, present, receive, receive_topic, running, silent, until

TICKETS = ["none", "wrong_secret", "expired", "foreign_topic", "foreign_role", "foreign_mode", "other_broker", "revoked",
           "valid"]
WAYS = ["produce", "pull", "sub", "session_produce", "session_pull", "session_sub"]
CARRIERS = {"zmq_tcp": ("zmq", "tcp"), "zmq_ipc": ("zmq", "ipc"), "socket_tcp": ("socket", "tcp"),
            "unix_socket": ("socket", "ipc")}
KINDS = {"produce": "push", "pull": "pull", "sub": "sub"}
FOREIGN_ROLE = {"push": "pull", "pull": "push", "sub": "push"}
FOREIGN_MODE = {"pull": "sub", "sub": "pull"}


def exists(way, carrier, ticket):
    """Returns False for cells that do not exist: plain clients without ZeroMQ show no ticket, and a producer
    has no mode."""
    plain = not way.startswith("session_")
    return not (plain and CARRIERS[carrier][0] == "socket") and not (ticket == "foreign_mode" and way.endswith("produce"))


ALL = list(itertools.product(WAYS, CARRIERS, TICKETS))
CELLS = [cell for cell in ALL if exists(*cell)]
VALID = [cell for cell in CELLS if cell[2] == "valid"]


def test_every_combination_is_counted():
    assert (len(ALL), len(CELLS), len(VALID)) == (216, 156, 18)
    assert {ticket for _, _, ticket in CELLS} == set(TICKETS)


def kind_of(way):
    return KINDS[way.removeprefix("session_")]


def topic_of(cell):
    return "-".join(cell)


def join(control, topic, kind, way, carrier, user=USER):
    connection_type, transport = CARRIERS[carrier]
    return control.ok("join", topic=topic, type=kind, user_id=user, password=PASSWORD, transport=transport,
                      connection_type=connection_type, delivery="session" if way.startswith("session_") else "plain")


def revoked(control, topic, kind, way, carrier):
    """Returns a ticket that a user got by a right which it has no more."""
    administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    right = {"topic": topic, "rights": ["produce" if kind == "push" else "consume"]}
    control.ok("create_user", **administrator, user_id=topic, password=PASSWORD, rights=[right])
    ticket = join(control, topic, kind, way, carrier, user=topic)["ticket"]
    control.ok("revoke", **administrator, user_id=topic, **right)
    return ticket


def make_topics(control, cells):
    for cell in cells:
        control.create(topic_of(cell))
    control.create("foreign")


class World:
    """The broker, another broker with topics of the same ids, and the expired tickets."""

    def __init__(self, broker, other, expired):
        self.broker, self.other, self.expired = broker, other, expired
        self.control, self.other_control = broker.control(), other.control()

    def ticket(self, cell):
        """Returns the answer to a join of the client's own, which has the address, and the ticket that the
        client shows, or None."""
        way, carrier, which = cell
        topic, kind = topic_of(cell), kind_of(way)
        own = join(self.control, topic, kind, way, carrier)
        if which == "none":
            return own, None
        if which == "wrong_secret":
            another = join(self.control, "foreign", kind, way, carrier)
            return own, {**own["ticket"], "secret": another["ticket"]["secret"]}
        if which == "expired":
            return own, self.expired[cell]
        if which == "foreign_topic":
            return own, join(self.control, "foreign", kind, way, carrier)["ticket"]
        if which == "foreign_role":
            return own, join(self.control, topic, FOREIGN_ROLE[kind], way, carrier)["ticket"]
        if which == "foreign_mode":
            return own, join(self.control, topic, FOREIGN_MODE[kind], way, carrier)["ticket"]
        if which == "other_broker":
            return own, join(self.other_control, topic, kind, way, carrier)["ticket"]
        if which == "revoked":
            return own, revoked(self.control, topic, kind, way, carrier)
        return own, own["ticket"]


@contextlib.contextmanager
def world_of(cells, *flags):
    # Short: the path of a socket has at most 107 bytes.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    os.makedirs(directory / "a")
    os.makedirs(directory / "b")
    try:
        with running(directory / "a", *flags, environment={"LIGHTQ_TICKET_MS": "100"}) as broker:
            control = broker.control()
            make_topics(control, cells)
            # Tickets of sessions are valid for longer. The ticket of a plain join has the same format.
            expired = {cell: control.join(topic_of(cell), kind_of(cell[0])).ticket for cell in cells
                       if cell[2] == "expired"}
            last = max(ticket["expires_ms"] for ticket in expired.values())
            until(lambda: time.time() * 1000 > last, "the end of the tickets")
            broker.stop()
            broker.environment["LIGHTQ_TICKET_MS"] = ""
            broker.start()
            with running(directory / "b", *flags) as other:
                make_topics(other.control(), cells)
                yield World(broker, other, expired)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def world():
    with world_of(CELLS) as made:
        yield made


def fill(world, topic):
    """Sends a message from a producer that is admitted, and waits for its confirm."""
    before = world.control.stats(topic)["messages_received"]
    with Session(session_client.join(world.control, topic)) as session:
        producer = session.producer(topic)
        producer.produce([b"kept"])
        producer.wait_confirmed()
    assert world.control.stats(topic)["messages_received"] == before + 1
    until(lambda: world.control.stats(topic)["publishers_count"] == 0, "its producer's end")
    return producer


def connect(world, kind, uri, ticket):
    address = Address(uri)
    address.ticket = ticket
    socket = world.broker.context.socket({"push": zmq.PUSH, "pull": zmq.PULL, "sub": zmq.SUB}[kind])
    world.broker.clients.append(socket)
    socket.linger = 0
    if kind == "sub":
        socket.subscribe(b"")
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH |
                                        zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    present(socket, address)
    socket.connect(address)
    return socket, monitor


def event_of(monitor):
    until(lambda: monitor.poll(0), "what becomes of the connection")
    return int.from_bytes(monitor.recv_multipart()[0][:2], "little")


def plain(world, cell):
    topic, kind = topic_of(cell), kind_of(cell[0])
    own, ticket = world.ticket(cell)
    if kind == "pull":
        fill(world, topic)
    before = world.control.stats(topic)
    socket, monitor = connect(world, kind, own["bind_uri"], ticket)
    if kind == "push":
        # The socket may have been refused by now, and then nothing takes the message.
        with contextlib.suppress(zmq.Again):
            socket.send(b"sent", 0 if cell[2] == "valid" else zmq.NOBLOCK)
    if cell[2] == "valid":
        assert event_of(monitor) == zmq.EVENT_HANDSHAKE_SUCCEEDED
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
        assert event_of(monitor) != zmq.EVENT_HANDSHAKE_SUCCEEDED
        until(lambda: world.control.stats(topic)["refused_connections"] == 1, "its being refused")
        if kind == "sub":
            fill(world, topic)
            before["messages_received"] += 1
        stats = world.control.stats(topic)
        assert stats["messages_received"] == before["messages_received"]
        assert (stats["publishers_count"], stats["subscribers_count"], stats["deliveries"]) == (0, 0, 0)
        assert kind == "push" or silent(socket, 0.05)
        assert not monitor.poll(0), "libzmq does not try again"
    socket.disable_monitor()
    socket.close()


def frames_behind_hello(topic, kind, producer):
    """Returns the frame that opens the first channel, and the frame that uses it. Both can be sent before any
    answer. `producer` is one that the topic knows."""
    if kind != "push":
        opening = open_values(topic, "g", GROUP if kind == "pull" else OWN)
        return session_frames.encode("consume_open", opening, request=2), b""
    known = dict(producer_id=producer.id, producer_epoch=producer.epoch + 1, level=0, topic=topic)
    batch = session_frames.batch([b"sent"], producer.id, producer.epoch + 1, producer.next)
    produce = session_frames.encode("produce", dict(batch=batch.hex()), channel=1)
    return session_frames.encode("produce_open", known, request=2), produce


def answer_to(session, request):
    return session.take(lambda frame: frame.request == request, f"the answer to request {request}")


def let_nothing_pass(session, foreign, use):
    """Continues after a refusal as if there were none, and checks all later frames. A session with a valid
    ticket for something else may stay open."""
    with contextlib.suppress(OSError):  # the session has ended by now
        if use:
            session.send_raw(use)
    with contextlib.suppress(Ended):
        if foreign:
            session.is_silent(0.05)
        else:
            session.wait(lambda: False, "its end")
    passed = {"produce_opened", "consume_opened", "confirm", "deliver"}
    assert not passed & {frame.op for frame in session.frames}, session.frames


def over_session(world, cell):
    """Sends everything at once, before the client can know of a refusal. Returns the certificate of the join,
    or None if there was no TLS."""
    way, carrier, which = cell
    topic, kind = topic_of(cell), kind_of(way)
    own, ticket = world.ticket(cell)
    opening, use = frames_behind_hello(topic, kind, fill(world, topic))
    before = world.control.stats(topic)["messages_received"]
    text = "" if ticket is None else f"{ticket['id']}.{ticket['secret']}"
    where = Ticket(own["bind_uri"], text, CARRIERS[carrier][0], certificate=certificate_of(own))
    with Session(where, hello=False) as session:
        session.send_raw(session_frames.encode("hello", hello_values(ticket=text), request=1) + opening + use)
        answer = answer_to(session, 1)
        if which == "valid":
            assert answer.op == "welcome", answer
            assert answer_to(session, 2).channel == 1
            if kind == "push":
                session.send_raw(use)  # again, because the channel was not open yet
                until(lambda: world.control.stats(topic)["messages_received"] == before + 1, "what was sent")
            else:
                delivered = session.take(lambda frame: frame.op == "deliver", "what is stored")
                assert [message.payload for message in messages_of(delivered)] == [b"kept"]
            return where.certificate
        # A valid ticket for something else opens a session. This topic cannot be opened on it.
        foreign = which.startswith("foreign_")
        if foreign:
            assert answer.op == "welcome", answer
            answer = answer_to(session, 2)
        assert (answer.op, answer.code) == ("error", "unauthorized_access"), answer
        let_nothing_pass(session, foreign, use)
    stats = world.control.stats(topic)
    assert stats["messages_received"] == before
    assert (stats["publishers_count"], stats["subscribers_count"], stats["deliveries"]) == (0, 0, 0)
    return where.certificate


@pytest.mark.parametrize("cell", CELLS, ids=topic_of)
def test_only_a_valid_ticket_is_accepted(world, cell):
    (over_session if cell[0].startswith("session_") else plain)(world, cell)
