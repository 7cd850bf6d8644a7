"""Tests a broker with no address space left: connections that need memory end, and no others."""
import contextlib
import re
import resource
import socket

import pytest
import zmq

# First, because it adds the path of the vectors.
from session_client import OWN, Ended, Session, join, open_values
import session_frames
from support import SANITIZED, until

pytestmark = pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without end")
MIB = 1 << 20


def address_space(broker):
    status = open(f"/proc/{broker.process.pid}/status").read()
    return int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) * 1024


@contextlib.contextmanager
def limited(broker, more):
    """Limits the broker to so many bytes more than it has now."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(broker.process.pid, resource.RLIMIT_AS, (address_space(broker) + more, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(broker.process.pid, resource.RLIMIT_AS, unlimited)


def ends(session):
    """Waits a short time. Returns True if the broker closes the session. Frames that arrive before are
    ignored."""
    try:
        while session.read_some(0.05):
            pass
    except (Ended, OSError):
        return True
    return False


@pytest.mark.parametrize("more", [0, 2 * MIB, 20 * MIB], ids=["nothing", "little", "some"])
def test_long_messages_without_memory_end_their_sessions_and_no_other(make_broker, more):
    broker = make_broker("--reactors", "1")
    control = broker.control()
    control.create("t", "queue")
    with contextlib.ExitStack() as opened:
        ticket = join(control, "t")
        producer = opened.enter_context(Session(ticket)).producer("t")
        consumer = opened.enter_context(Session(join(control, "t", "pull"))).consumer("t")
        producer.produce([b"before"])
        producer.wait_confirmed()
        hungry = [opened.enter_context(Session(ticket)) for _ in range(12)]
        frames = [session_frames.encode("produce", {}, channel=session.producer("t").channel, body=bytes(15 * MIB))
                  for session in hungry]
        with limited(broker, more):
            ended = set()
            for session, frame in zip(hungry, frames):
                with contextlib.suppress(OSError):
                    session.wire.socket.settimeout(5)
                    session.send_raw(frame[:12 * MIB])
            def some_have_ended():
                ended.update(index for index, session in enumerate(hungry) if index not in ended and ends(session))
                return len(ended) >= 3
            until(some_have_ended, "the end of those that find no memory")
            producer.produce([b"meanwhile"] * 100)
            producer.wait_confirmed()
            assert [message.payload for message in consumer.receive(101)] == [b"before"] + [b"meanwhile"] * 100
            assert broker.process.poll() is None
        with Session(join(control, "t")) as session:
            last = session.producer("t")
            last.produce([bytes(MIB // 2)])
            last.wait_confirmed()
    assert broker.process.poll() is None


def test_unread_messages_of_slow_consumers_end_them_without_memory(make_broker):
    broker = make_broker("--reactors", "1", "--log-level", "debug")
    control = broker.control()
    control.create("t", "queue")
    control.create("other", "queue")
    with contextlib.ExitStack() as opened:
        long = opened.enter_context(Session(join(control, "t"))).producer("t")
        long.produce([bytes(12 * MIB)])
        long.wait_confirmed()
        long.session.close()
        slow = [opened.enter_context(Session(join(control, "t", "sub"), frame_bytes_max=16 * MIB)) for _ in range(8)]
        producer = opened.enter_context(Session(join(control, "other"))).producer("other")
        consumer = opened.enter_context(Session(join(control, "other", "pull"))).consumer("other")
        producer.produce([b"before"])  # so that the topic has its memory
        producer.wait_confirmed()
        with limited(broker, 0):
            for session in slow:
                session.send("consume_open", request=9, **open_values("t", mode=OWN))
            until(lambda: "the broker has too little memory for the connection's data" in broker.log(), "the end of one")
            producer.produce([b"meanwhile"] * 100)
            producer.wait_confirmed()
            assert len(consumer.receive(101)) == 101
            assert broker.process.poll() is None
    assert broker.process.poll() is None


# Makes malloc use one heap for all threads and return free memory, so that every allocation may reach the
# limit.
ONE_HEAP = {"MALLOC_ARENA_MAX": "1", "MALLOC_TOP_PAD_": "0", "MALLOC_TRIM_THRESHOLD_": "0"}


def test_connections_without_memory_end_and_the_broker_continues(make_broker):
    broker = make_broker("--reactors", "1", environment=ONE_HEAP)
    control = broker.control()
    control.create("t", "queue")
    with Session(join(control, "t")) as session:
        producer = session.producer("t")
        producer.produce([b"before"])
        producer.wait_confirmed()
        ticket = join(control, "t")
        address = tuple(broker.control_uri.removeprefix("tcp://").rsplit(":", 1))
        with contextlib.ExitStack() as opened, limited(broker, 0):
            for number in range(600):
                where = address if number % 2 else tuple(ticket.uri.removeprefix("tcp://").rsplit(":", 1))
                with contextlib.suppress(OSError):
                    peer = opened.enter_context(socket.create_connection(where, timeout=1))
                    peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48))
            producer.produce([b"meanwhile"] * 10)
            producer.wait_confirmed()
            assert broker.process.poll() is None
        until(lambda: control.stats("t")["messages_received"] == 11, "an answer")
    push = broker.socket(zmq.PUSH, control.join("t", "push"))
    push.send(b"afterwards")
    until(lambda: control.stats("t")["messages_received"] == 12, "the message")
