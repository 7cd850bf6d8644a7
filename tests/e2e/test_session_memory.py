"""Tests memory that a session shares with the broker: which clients receive it, invalid content in it, and
that it is released."""
import contextlib
import ctypes
import fcntl
import os
import random
import signal
import socket
import struct
import subprocess

import pytest

import session_frames
from session_client import Session, hello_values, join, open_values
from session_wire import MemoryWire
from shared_sessions import KIB, MIB, lives_on, plain_session, shared_session
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, SANITIZED, numbered, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


@pytest.fixture(params=["file", "queue"])  # a queue stores long batches directly in its log
def topic(request, control):
    control.create("t", request.param)
    return control


# --- Clients that receive it -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("carrier,transport", [("socket", "tcp"), ("zmq", "tcp"), ("zmq", "ipc")])
def test_shared_memory_needs_a_unix_socket(topic, carrier, transport):
    with plain_session(topic, carrier=carrier, transport=transport) as session:
        assert session.error_of("share", to_broker=4096, to_client=4096) == "not_supported"
        producer = session.producer("t")
        producer.produce([b"as before"])
        producer.wait_confirmed()


def test_a_session_may_change_to_shared_memory_during_use(topic):
    with plain_session(topic) as session, plain_session(topic, "pull") as other:
        producer = session.producer("t")
        producer.produce(numbered(0, 3))
        producer.wait_confirmed()
        consumer = other.consumer("t")
        consumer.receive(3)
        assert session.share(4096, 4096).op == other.share(4096, 8192).op == "shared"
        producer.produce([b"more"])
        producer.wait_confirmed()
        assert consumer.receive(1)[0].payload == b"more"


def test_a_message_may_be_longer_than_the_ring(topic):
    payload = random.Random(3).randbytes(3 * MIB)
    with shared_session(topic, sizes=(4096, 4096)) as session, shared_session(topic, "pull", (4096, 8192)) as other:
        other.takes = 8 * MIB
        producer = session.producer("t")
        producer.produce([payload])
        producer.wait_confirmed()
    with plain_session(topic, "pull") as other:
        pass
    with Session(join(topic, "t", "pull", carrier="socket", transport="ipc"), frame_bytes_max=8 * MIB) as other:
        assert other.share(4096, 4096).op == "shared"
        assert other.consumer("t").receive(1)[0].payload == payload


def test_a_second_share_frame_ends_the_session(topic):
    with shared_session(topic) as session:
        session.send("share", request=9, to_broker=4096, to_client=4096)
        assert session.goodbye() == "invalid_frame"
    lives_on(topic)


def test_bytes_after_the_share_frame_end_the_session(topic):
    with plain_session(topic) as session:
        share = session_frames.encode("share", dict(to_broker=4096, to_client=4096), request=9)
        session.send_raw(share + session_frames.encode("heartbeat", {}))
        wire = MemoryWire(session.wire.socket, 4096, 4096)
        session.come += wire.take_answer()
        session.wire = wire
        assert session.goodbye() == "invalid_frame"
    lives_on(topic)


def test_bytes_that_arrive_after_the_share_frame_end_the_session_when_they_are_found(topic):
    with plain_session(topic) as session:
        for _ in range(50):
            session.wire.socket.send(session_frames.encode("heartbeat", {}))
        share = session_frames.encode("share", dict(to_broker=4096, to_client=4096), request=9)
        session.wire.socket.send(share)
        for _ in range(50):
            session.wire.socket.send(session_frames.encode("heartbeat", {}))
        first = session.wire.socket.recv(1 << 16)
        assert first[0] in (21, 24)  # goodbye; or shared, if the later frames were found only after it


def limits_reached(control):
    return control.ok("stats", **ROOT)["limits_reached"]["shared_bytes_total"]


def test_without_shared_memory_a_session_continues_over_its_socket(make_broker):
    control = make_broker("--shared-bytes-total", "0").control()
    control.create("t")
    with plain_session(control) as session:
        assert session.error_of("share", to_broker=4096, to_client=4096) == "limit_reached"
        assert limits_reached(control) == 1
        producer = session.producer("t")
        producer.produce([b"as before"])
        producer.wait_confirmed()


def test_all_shared_memory_is_granted_and_released(make_broker):
    broker = make_broker("--shared-bytes-total", "100KiB")
    control = broker.control()
    control.create("t")
    for _ in range(5):  # 28 KiB each
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(shared_session(control, sizes=(16 * KIB, 8 * KIB)))
            with plain_session(control) as session:
                assert session.error_of("share", to_broker=16 * KIB, to_client=8 * KIB) == "limit_reached"
        until(lambda: connections_gone(control), "the sessions' end")
        until(lambda: memory_of(broker) == 0, "the end of the last one")


def connections_gone(control):
    with plain_session(control) as session:
        return session.share(64 * KIB, 16 * KIB).op == "shared"  # all the memory that one user may share


def test_a_user_with_half_of_the_shared_memory_leaves_some_to_others(make_broker):
    control = make_broker("--shared-bytes-total", "192KiB").control()
    control.create("t")
    secrets = {}
    for name in ("one", "other"):
        secrets[name] = {"user_id": name, "password": f"{name}s-password"}
        control.ok("create_user", **ROOT, **secrets[name], rights=[{"topic": "t", "rights": ["produce"]}])
    with contextlib.ExitStack() as stack:
        for _ in range(14):  # 12 KiB each: everything except an eighth
            stack.enter_context(shared_session(control, sizes=(4096, 4096), **secrets["one"]))
        with plain_session(control, **secrets["one"]) as session:
            assert session.error_of("share", to_broker=4096, to_client=4096) == "limit_reached"
        with shared_session(control, sizes=(4096, 4096), **secrets["other"]):
            pass


def test_shared_memory_is_limited(broker, topic):
    before = broker.resident_bytes()
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(plain_session(topic)) for _ in range(40)]
        shared = [session for session in sessions if session.share(MIB, MIB).op == "shared"]
        assert len(shared) == 6  # 2 MiB and 4 KiB each, of 16 MiB; the last eighth is for others
        for session in shared:
            producer = session.producer("t")
            for _ in range(6):
                producer.produce([bytes(300_000)])
            producer.wait_confirmed()
        assert SANITIZED or broker.resident_bytes() - before < 32 * MIB


# --- Invalid content -------------------------------------------------------------------------------------------------

NONSENSE = {
    "more than it holds": lambda wire: setattr(wire.out.written, "value", wire.out.size + 1),
    "as much as there is": lambda wire: setattr(wire.out.written, "value", (1 << 64) - 1),
    "half of all there is": lambda wire: setattr(wire.out.written, "value", 1 << 63),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_impossible_positions_end_the_session(topic, what):
    with shared_session(topic) as session:
        NONSENSE[what](session.wire)
        session.wire.wake()
        assert session.ended()
    lives_on(topic)


@pytest.mark.parametrize("taken", [1 << 20, 1 << 40, 1 << 63])
def test_impossible_positions_of_a_reader_end_the_session(topic, taken):
    """The broker reads this word when it needs space."""
    with shared_session(topic) as session:
        session.producer("t").produce([bytes(10_000)])
    with shared_session(topic, "pull", (4096, 4096)) as session:
        session.wire.come.taken.value = taken
        session.send("consume_open", request=9, **open_values("t"))
        until(lambda: session.wire.hear(0.05) is False, "the session's end")
    lives_on(topic)


def test_a_position_that_goes_back_ends_the_session(topic):
    with shared_session(topic) as session:
        producer = session.producer("t")
        producer.produce([b"x"])
        producer.wait_confirmed()
        session.wire.out.written.value -= 1
        session.wire.wake()
        assert session.ended()
    lives_on(topic)


def test_invalid_frames_in_shared_memory_are_answered_as_on_a_connection(topic):
    with shared_session(topic) as session:
        session.send_raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert session.goodbye() == "invalid_frame"
    lives_on(topic)


def test_random_bytes_in_shared_memory_harm_no_other_client(topic):
    numbers = random.Random(5)
    with shared_session(topic) as bystander:
        producer = bystander.producer("t")
        for _ in range(60):
            with shared_session(topic, sizes=(4096, 4096)) as session:
                ring = session.wire.out if numbers.random() < 0.5 else session.wire.come
                ring.bytes[:] = numbers.randbytes(ring.size)
                for word in (ring.written, ring.taken, ring.reader_waits, ring.writer_waits):
                    if numbers.random() < 0.5:
                        word.value = numbers.choice([0, 1, numbers.randrange(9000), numbers.randrange(1 << 64)])
                for _ in range(3):
                    with contextlib.suppress(OSError):
                        session.wire.wake()
            producer.produce([b"x"])
            producer.wait_confirmed()
    assert topic.ok("stats", topic="t", **ROOT)["messages_received"] == 60


@pytest.mark.parametrize("wakes_by_socket", [False, True])
def test_a_wake_contains_no_data(topic, wakes_by_socket):
    with shared_session(topic, wakes_by_socket=wakes_by_socket) as session:
        producer = session.producer("t")
        for _ in range(50):
            session.wire.wake()
            session.wire.socket.send(b"anything")
        producer.produce([b"x"])
        producer.wait_confirmed()


# The broker then reads both before it watches the socket.
@pytest.mark.parametrize("wakes_by_socket", [False, True])
def test_a_client_that_shares_memory_before_it_is_accepted_keeps_no_thread_busy(broker, topic, wakes_by_socket):
    where = join(topic, "t", transport="ipc", carrier="socket")
    broker.process.send_signal(signal.SIGSTOP)
    with Session(where, hello=False) as session:
        hello = session_frames.encode("hello", hello_values(ticket=where.text), request=1)
        share = session_frames.encode("share", {"to_broker": 4096, "to_client": 65536}, request=2, flags=wakes_by_socket)
        session.send_raw(hello + share)
        broker.process.send_signal(signal.SIGCONT)
        wire = MemoryWire(session.wire.socket, 4096, 65536, wakes_by_socket)
        while wire.out is None:
            session.come += wire.take_answer()
        session.wire = wire
        assert session.take(lambda frame: frame.request == 1, "welcome").op == "welcome"
        assert session.take(lambda frame: frame.request == 2, "shared").op == "shared"
        session.wire.socket.send(b"unread")
        producer = session.producer("t")
        producer.produce([b"x"])
        producer.wait_confirmed()
        until(lambda: all(broker.is_at_rest() for _ in range(100)), "its threads are at rest")
    lives_on(topic)


def make_waking_wait(session):
    """Makes a write to the client's descriptors wait, as far as a client can: they block, and their count is
    full."""
    for event in session.wire.events:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(event)
        fcntl.fcntl(event, fcntl.F_SETFL, 0)
    if session.wire.woken is not None:
        with contextlib.suppress(OSError):  # EINVAL: it is not an eventfd
            os.eventfd_write(session.wire.woken, (1 << 64) - 2)


@pytest.mark.parametrize("wakes_by_socket", [False, True])
def test_a_client_cannot_make_waking_it_wait(topic, wakes_by_socket):
    with plain_session(topic) as session:
        producer = session.producer("t")
        producer.produce([b"x"])
        producer.wait_confirmed()
    with shared_session(topic, "pull", wakes_by_socket=wakes_by_socket) as session:
        make_waking_wait(session)
        for request in range(100, 300):  # each answer wakes the client, which states each time that it waits
            session.wire.come.reader_waits.value = session.wire.come.writer_waits.value = 1
            session.send("read", request=request, begin=0, end=1, bytes=1, topic="t")
            session.wire.wake()
        lives_on(topic)
    lives_on(topic)  # the fixture checks that the broker also stops


def test_a_client_that_takes_no_wakes_delays_no_other(topic):
    """The socket holds a few hundred wakes. The broker drops the others."""
    with plain_session(topic) as session:
        session.producer("t").produce([b"x"])
    with shared_session(topic, "pull", wakes_by_socket=True) as session:
        for request in range(100, 2000):
            session.send("read", request=request, begin=0, end=1, bytes=1, topic="t")
            while not session.wire.come.take():
                session.wire.come.reader_waits.value = 1
        lives_on(topic)


def can_refuse_descriptors():
    with socket.socket(socket.AF_UNIX) as any_one, contextlib.suppress(OSError):
        any_one.setsockopt(socket.SOL_SOCKET, 83, 0)  # SO_PASSRIGHTS
        return True
    return False


@pytest.mark.skipif(not can_refuse_descriptors(), reason="Linux before 6.16 cannot refuse them: docs/security.md")
@pytest.mark.parametrize("share", [False, True])
def test_a_descriptor_passed_by_a_client_does_not_block_the_broker(topic, share):
    """The last close of a TCP connection with SO_LINGER and unsent bytes waits for the time of SO_LINGER."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as lingers:
        lingers.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
        lingers.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                lingers.send(bytes(1 << 16))
        with plain_session(topic) as session:
            if share:
                assert session.share(4096, 4096, wakes_by_socket=True).op == "shared"
            heartbeat = session_frames.encode("heartbeat", {})
            with pytest.raises(PermissionError):
                socket.send_fds(session.wire.socket, [heartbeat], [lingers.fileno()])
            lives_on(topic)
        lives_on(topic)
        # Otherwise the close in this test waits.
        lingers.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_descriptors_of_ended_sessions_are_closed(broker, topic):
    def descriptors():
        return len(os.listdir(f"/proc/{broker.process.pid}/fd"))
    with contextlib.ExitStack() as sessions:
        for _ in range(10):
            sessions.enter_context(shared_session(topic, sizes=(4096, 4096)))
        with_them = descriptors()
    # For each session, the socket and one descriptor for each direction.
    until(lambda: descriptors() <= with_them - 30, "the descriptors to be closed")


# --- Its end ---------------------------------------------------------------------------------------------------------

def test_messages_before_the_end_of_the_session_are_stored(topic):
    for i in range(20):
        with shared_session(topic) as session:
            producer = session.producer("t")
            for _ in range(10):
                producer.produce([b"last"])
            assert session.wire.out is not None
        until(lambda: topic.ok("stats", topic="t", **ROOT)["messages_received"] == 10 * (i + 1), "all of it to be stored")


def test_any_amount_of_messages_before_the_end_is_stored(broker, control):
    control.create("t")  # a transient topic: its confirms come immediately, when the client is gone already
    with shared_session(control, sizes=(MIB, 4096)) as session:
        producer = session.producer("t")
        broker.process.send_signal(signal.SIGSTOP)
        for _ in range(8):
            producer.produce([bytes(100_000)])
    broker.process.send_signal(signal.SIGCONT)
    until(lambda: control.ok("stats", topic="t", **ROOT)["messages_received"] == 8, "all of it to be stored")


def test_half_a_frame_at_the_end_is_ignored(topic):
    with shared_session(topic) as session:
        producer = session.producer("t")
        frame = producer.frame_of([b"whole"])
        session.send_raw(frame[:-1])
    lives_on(topic)
    assert topic.ok("stats", topic="t", **ROOT)["messages_received"] == 1


def test_a_client_that_is_gone_is_missed_while_it_is_not_read_from(make_broker):
    """The topic is full, so the broker does not read the client's frames."""
    broker = make_broker("--session-heartbeat-ms", "200")
    control = broker.control()
    control.create("full", ring_bytes=64 * KIB)
    with plain_session(control, "pull", "full"):
        pass  # the group makes the log keep its messages
    with shared_session(control, topic="full", sizes=(256 * KIB, 4096)) as session:
        producer = session.producer("full")
        for _ in range(40):
            producer.produce([bytes(4000)])
        until(lambda: control.ok("stats", topic="full", **ROOT)["publishers_count"] == 1, "the producer")
    until(lambda: control.ok("stats", topic="full", **ROOT)["publishers_count"] == 0, "its end")


def test_the_broker_sends_goodbye_over_shared_memory(broker, topic):
    with shared_session(topic) as session:
        broker.process.terminate()
        assert session.goodbye() == "shutting_down"
    broker.stop()  # the broker has ended, or will soon


def test_memory_that_a_client_keeps_mapped_is_released(broker, topic):
    kept = []
    for _ in range(20):
        with shared_session(topic, sizes=(MIB, MIB)) as session:
            for ring in session.wire.out, session.wire.come:
                ctypes.memset(ctypes.addressof(ring.bytes), 7, ring.size)
            kept.append(session.wire)
        # The broker empties the memory on a separate thread, and counts it until then.
        until(lambda: memory_of(broker) == 0, "the session's end")
    assert not any(any(bytes(wire.out.bytes)) or any(bytes(wire.come.bytes)) for wire in kept)


# --- The command line ------------------------------------------------------------------------------------------------

def memory_of(broker):
    """Returns how many pieces of shared memory the broker has mapped."""
    with open(f"/proc/{broker.process.pid}/maps") as maps:
        return sum("memfd:lightq" in line for line in maps)


def lightq(broker, *arguments, **more):
    environment = {**broker.environment, "LIGHTQ_DATA_DIR": str(broker.data_dir), "LIGHTQ_BROKER": broker.control_uri}
    return subprocess.Popen([BINARY, *arguments], env=environment, cwd=broker.directory, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def test_the_clients_of_this_machine_find_the_key_by_themselves(broker, topic):
    command = lightq(broker, "produce", "t")
    command.stdin.write(b"one\ntwo\n")
    command.stdin.flush()
    until(lambda: memory_of(broker) == 1, "memory to be shared")
    _, said = command.communicate(b"three\n", timeout=DEADLINE)
    assert command.returncode == 0, said
    until(lambda: memory_of(broker) == 0, "it to be given back")
    assert topic.ok("stats", topic="t", **ROOT)["messages_received"] == 3


def unix_connections(path):
    """Returns the number of the broker's connections at this socket, without its listener."""
    with open("/proc/net/unix") as sockets:
        lines = [line.split() for line in sockets]
    return sum(len(line) > 7 and line[7] == path and line[5] == "03" for line in lines)


def test_over_zeromq_clients_use_the_unix_socket_without_shared_memory(broker, topic):
    path = topic.ok("join", topic="t", type="push", delivery="session", transport="ipc", **ROOT)["bind_uri"][len("ipc://"):]
    command = lightq(broker, "produce", "--zmq", "t")
    command.stdin.write(b"one\n")
    command.stdin.flush()
    until(lambda: topic.ok("stats", topic="t", **ROOT)["messages_received"] == 1, "the message")
    assert unix_connections(path) == 1 and memory_of(broker) == 0
    _, said = command.communicate(b"two\n", timeout=DEADLINE)
    assert command.returncode == 0, said
    assert topic.ok("stats", topic="t", **ROOT)["messages_received"] == 2


@pytest.mark.parametrize("topic", ["file"], indirect=True)
def test_a_client_shares_memory_again_after_each_restart(broker, topic):
    command = lightq(broker, "produce", "t")
    for count in range(1, 4):
        command.stdin.write(b"one\n")
        command.stdin.flush()
        until(lambda: memory_of(broker) == 1, "memory to be shared")
        until(lambda: topic.ok("stats", topic="t", **ROOT)["next_offset"] == count, "the message")
        broker.kill()
        broker.start()
    _, said = command.communicate(b"last\n", timeout=DEADLINE)
    assert command.returncode == 0, said
    assert topic.ok("stats", topic="t", **ROOT)["next_offset"] == 4


def test_a_client_that_cannot_use_the_socket_uses_tcp(broker, topic):
    """File permissions do not stop root, so the test removes the socket instead."""
    with plain_session(topic) as session:
        os.rename(session.wire.socket.getpeername(), f"{broker.directory}/moved")
        command = lightq(broker, "produce", "t")
        command.stdin.write(b"one\n")
        command.stdin.flush()
        until(lambda: topic.ok("stats", topic="t", **ROOT)["publishers_count"] == 1, "the producer")
        assert memory_of(broker) == 0
        _, said = command.communicate(b"two\n", timeout=DEADLINE)
        assert command.returncode == 0, said
    assert topic.ok("stats", topic="t", **ROOT)["messages_received"] == 2
