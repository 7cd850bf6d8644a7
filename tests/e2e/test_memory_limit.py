"""A broker whose address space is used up: who asks for memory that is not there ends, and nobody else."""
import contextlib
import re
import resource
import socket

import pytest
import zmq

from session_client import Ended, Session, join
from support import SANITIZED, until

pytestmark = pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without end")
MIB = 1 << 20


def address_space(broker):
    status = open(f"/proc/{broker.process.pid}/status").read()
    return int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) * 1024


@contextlib.contextmanager
def limited(broker, more):
    """So many bytes more than it has now, and no more."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(broker.process.pid, resource.RLIMIT_AS, (address_space(broker) + more, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(broker.process.pid, resource.RLIMIT_AS, unlimited)


def ends(session):
    """The broker closes it, soon; what came before counts for nothing."""
    try:
        while session.read_some(0.05):
            pass
    except (Ended, AssertionError, OSError):
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
        frames = [session.producer("t").frame_of([bytes(15 * MIB)]) for session in hungry]
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


def test_requests_and_connections_without_memory_end_and_the_broker_goes_on(make_broker):
    broker = make_broker("--reactors", "1")
    control = broker.control()
    control.create("t", "queue")
    with Session(join(control, "t")) as session:
        producer = session.producer("t")
        producer.produce([b"before"])
        producer.wait_confirmed()
        address = tuple(broker.control_uri.removeprefix("tcp://").rsplit(":", 1))
        with contextlib.ExitStack() as opened, limited(broker, 0):
            for _ in range(300):
                peer = opened.enter_context(socket.create_connection(address, timeout=5))
                with contextlib.suppress(OSError):
                    peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48))
            producer.produce([b"meanwhile"] * 10)
            producer.wait_confirmed()
            assert broker.process.poll() is None
        assert control.stats("t")["messages_received"] == 11
    push = broker.socket(zmq.PUSH, control.join("t", "push"))
    push.send(b"afterwards")
    until(lambda: control.stats("t")["messages_received"] == 12, "the message")
