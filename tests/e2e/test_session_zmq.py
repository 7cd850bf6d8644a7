"""Tests sessions over ZeroMQ: valid and invalid messages around the frames. The other files test everything
else of sessions over ZeroMQ too; see CMakeLists.txt."""
import pytest
import zmq

import session_frames
from session_client import Session, Ticket, hello_values, join, open_values
from session_wire import ZmqWire
from support import PASSWORD, SANITIZED, USER, until

pytestmark = pytest.mark.one_broker

KIB, MIB = 1 << 10, 1 << 20


def hello_of(ticket):
    return session_frames.encode("hello", hello_values(ticket=ticket.text), request=1)


def frame(op, **more):
    values = {name: more.pop(name) for name in list(more) if name not in ("channel", "request", "flags", "body")}
    return session_frames.encode(op, values, **more)


@pytest.fixture
def ticket(control):
    control.create("t")
    return join(control, "t", carrier="zmq")


@pytest.fixture
def over_zmq(control):
    """Makes sessions over ZeroMQ that are closed at the end of the test."""
    made = []

    def make(where, **changed):
        made.append(Session(where, **changed))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_messages_go_through_and_are_confirmed_and_acknowledged(control, over_zmq, transport):
    control.create("t", "file")
    producer = over_zmq(join(control, "t", carrier="zmq", transport=transport)).producer("t")
    consumer = over_zmq(join(control, "t", "pull", carrier="zmq", transport=transport)).consumer("t")
    sent = [b"message %d" % number for number in range(1000)]
    for first in range(0, 1000, 50):
        producer.produce(sent[first:first + 50])
    producer.wait_confirmed()
    come = consumer.receive(1000)
    assert [message.payload for message in come] == sent
    consumer.acknowledge_all(come)
    until(lambda: control.stats("t")["groups"][0]["committed_offset"] == 1000, "the commit")


def test_zmq_is_the_default_connection_type(control):
    control.create("t")
    by_default = control.ok("join", topic="t", type="push", delivery="session", user_id=USER, password=PASSWORD)
    assert by_default["bind_uri"] == join(control, "t", carrier="zmq").uri
    assert by_default["bind_uri"] != join(control, "t", carrier="socket").uri


def test_a_message_may_contain_many_frames(ticket, over_zmq):
    one = over_zmq(ticket, hello=False)
    opening = frame("produce_open", request=2, producer_id=0, producer_epoch=0, level=0, topic="t")
    one.send_raw(hello_of(ticket) + opening)
    for request, op in ((1, "welcome"), (2, "produce_opened")):
        assert one.take(lambda come: come.request == request, op).op == op
    producer, batches = one.producer("t"), []
    for number in range(100):
        batches.append(producer.frame_of([b"%d" % number]))
        producer.next += 1
    one.send_raw(b"".join(batches))
    producer.wait_confirmed(100)


@pytest.mark.parametrize("size", [60 * KIB, 64 * KIB, 65 * KIB, 900 * KIB])
def test_large_frames_come_and_go(control, over_zmq, size):
    control.create("t")
    producer = over_zmq(join(control, "t", carrier="zmq")).producer("t")
    consumer = over_zmq(join(control, "t", "pull", carrier="zmq")).consumer("t")
    sent = [bytes([number]) * size for number in range(8)]
    for payload in sent:
        producer.produce([payload])
    # Two frames in one message: a small one, and a large one at its end.
    small = producer.frame_of([b"small"])
    producer.next += 1
    large = producer.frame_of([b"large" * (size // 5)])
    producer.next += 1
    producer.session.send_raw(small + large)
    producer.wait_confirmed()
    assert [message.payload for message in consumer.receive(10)] == [*sent, b"small", b"large" * (size // 5)]


def lives_on(control, over_zmq):
    producer = over_zmq(join(control, "t", carrier="zmq")).producer("t")
    producer.produce([b"goes on"])
    producer.wait_confirmed()


@pytest.mark.parametrize("parts", [[b""], [b"", b"hello"], [b"one", b"two"], ["half"], ["head"], ["more"], ["one byte more"]],
                         ids=["empty", "delimiter", "parts", "half a frame", "half a header", "half a second frame",
                              "a byte behind"])
def test_a_message_with_an_incomplete_frame_ends_the_session(ticket, control, over_zmq, parts):
    one = over_zmq(ticket, hello=False)
    hello, beat = hello_of(ticket), frame("heartbeat")
    known = {"half": hello[:30], "head": hello[:7], "more": hello + beat[:11], "one byte more": hello + b"\0"}
    one.wire.send_parts([known.get(part, part) for part in parts])
    assert one.goodbye() == "invalid_frame"
    lives_on(control, over_zmq)


def test_frames_do_not_continue_in_the_next_message(ticket, control, over_zmq):
    one = over_zmq(ticket)
    producer = one.producer("t")
    whole = producer.frame_of([b"never stored" * 10])
    for part in whole[:60], whole[60:]:
        one.socket.send(part)
    assert one.goodbye() == "invalid_frame"
    assert control.stats("t")["next_offset"] == 0
    lives_on(control, over_zmq)


@pytest.mark.parametrize("kind", [zmq.PUSH, zmq.PULL, zmq.SUB, zmq.REQ, zmq.ROUTER], ids=lambda kind: kind.name)
def test_only_a_dealer_is_admitted(ticket, control, over_zmq, kind):
    stranger = ZmqWire(ticket.uri, kind)
    assert stranger.monitor.poll(10_000), "it is still connected"
    stranger.close()
    lives_on(control, over_zmq)


def test_sessions_with_and_without_zeromq_refuse_each_others_data(control, over_zmq):
    control.create("t")
    over_zmq_uri, plain_uri = (join(control, "t", carrier=carrier).uri for carrier in ("zmq", "socket"))
    plain = over_zmq(Ticket(over_zmq_uri, "", "socket"), hello=False)
    plain.send_raw(bytes(64))
    until(lambda: plain.wire.receive(1) == b"" or None, "the end")
    dealer = ZmqWire(plain_uri)
    assert dealer.receive(10) == b""
    dealer.close()
    lives_on(control, over_zmq)


def test_a_connection_without_a_hello_is_closed(ticket, control, over_zmq):
    silent = ZmqWire(ticket.uri)
    assert silent.receive(10) == b""  # after a second
    silent.close()
    lives_on(control, over_zmq)


def test_the_library_s_heartbeats_are_answered_and_are_no_sign_of_the_client_s(make_broker):
    broker = make_broker("--session-heartbeat-ms", "400")
    control = broker.control()
    control.create("t")
    ticket = join(control, "t", carrier="zmq")
    wire = ZmqWire(ticket.uri, heartbeat_ivl=20, heartbeat_timeout=5000)
    wire.send(hello_of(ticket))
    session_frames.decode(wire.receive(10))
    until(lambda: session_frames.decode(wire.receive(10))[0] == "goodbye", "goodbye: nothing was heard of the client")
    wire.close()
    answered = Session(ticket, hello=False)
    answered.wire.close()
    # Ends the connection if there are no answers.
    answered.wire = ZmqWire(ticket.uri, heartbeat_ivl=20, heartbeat_timeout=2000)
    answered.send_raw(hello_of(ticket))
    answered.take(lambda come: come.op == "welcome", "welcome")
    for _ in range(25):
        answered.send("heartbeat")
        answered.is_silent(0.1)  # raises if the connection ends
    answered.close()


def test_a_client_receives_heartbeats_while_its_library_pings_too(ticket):
    wire = ZmqWire(ticket.uri, heartbeat_ivl=20, heartbeat_timeout=5000)
    one = Session(ticket, hello=False)
    one.wire.close()
    one.wire = wire
    one.send_raw(session_frames.encode("hello", hello_values(ticket=ticket.text, heartbeat_ms=200), request=1))
    one.wait(lambda: one.heartbeats >= 5, "heartbeats")
    one.close()


def test_a_session_that_waits_for_space_answers_its_library(control, over_zmq):
    control.create("full", ring_bytes=64 * KIB)
    ticket = join(control, "full", carrier="zmq")
    one = over_zmq(ticket, hello=False)
    one.wire.close()
    one.wire = ZmqWire(ticket.uri, heartbeat_ivl=100, heartbeat_timeout=1000)
    one.send_raw(hello_of(ticket))
    one.take(lambda come: come.op == "welcome", "welcome")
    producer = one.producer("full")
    for _ in range(4):
        producer.produce([b"x" * 30 * KIB])
    one.wait(lambda: producer.received >= 2, "the confirms of what has room")
    one.is_silent(2.5)  # raises if the connection ends
    control.ok("purge", topic="full", user_id=USER, password=PASSWORD)
    producer.wait_confirmed()


def test_plain_sockets_and_sessions_of_both_kinds_share_a_topic(broker, control, over_zmq):
    control.create("t")
    plain = broker.socket(zmq.PUSH, control.join("t", "push"))
    over_stream = over_zmq(join(control, "t", carrier="socket")).producer("t")
    over_dealer = over_zmq(join(control, "t", carrier="zmq")).producer("t")
    subscribers = [over_zmq(join(control, "t", "sub", carrier=carrier)).consumer("t", f"own-{carrier}", 2)
                   for carrier in ("socket", "zmq")]
    for number in range(10):
        plain.send(b"plain %d" % number)
        over_stream.produce([b"stream %d" % number])
        over_dealer.produce([b"dealer %d" % number])
    expected = sorted(b"%s %d" % (kind, number) for kind in (b"plain", b"stream", b"dealer") for number in range(10))
    for subscriber in subscribers:
        assert sorted(message.payload for message in subscriber.receive(30)) == expected


@pytest.mark.own_broker
def test_a_dealer_that_does_not_read_is_not_buffered_for(broker, control, over_zmq):
    control.create("t", "file")
    stalled_ticket = join(control, "t", "pull", carrier="zmq")
    stalled = ZmqWire(stalled_ticket.uri, rcvhwm=1, rcvbuf=1 << 16)
    stalled.send(hello_of(stalled_ticket)
                 + frame("consume_open", request=2, **open_values("t", credit=(1 << 20, 1 << 40))))
    producer = over_zmq(join(control, "t", carrier="zmq")).producer("t")
    before = broker.anonymous_bytes()
    for number in range(64):
        producer.produce([b"%d|" % number + b"x" * 900_000])
    producer.wait_confirmed()
    assert control.stats("t")["groups"][0]["next_offset"] < 32
    # Sanitizers keep records of the mapped file's bytes in memory of their own.
    assert SANITIZED or broker.anonymous_bytes() - before < 16 * MIB
    stalled.close()
