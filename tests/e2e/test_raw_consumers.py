"""Tests raw consumers, which receive lengths and payloads over plain sockets, with a real broker."""
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, number_of, numbered, receive, until

pytestmark = pytest.mark.one_broker

KIB, MIB = 1024, 1024 * 1024


class RawConsumer:
    """A plain socket, with nothing of LightQ or ZeroMQ."""

    def __init__(self, uri, receive_buffer=0):
        scheme, address = uri.split("://")
        self.socket = socket.socket(socket.AF_INET if scheme == "tcp" else socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.come = bytearray()  # received and not returned yet
        host, _, port = address.rpartition(":")
        self.socket.connect((host, int(port)) if scheme == "tcp" else address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def has(self, count):
        """Waits for `count` bytes. Returns False if the stream ends before."""
        while len(self.come) < count:
            part = self.socket.recv(MIB)
            if not part:
                return False
            self.come += part
        return True

    def message(self):
        assert self.has(4), "the stream has ended"
        (length,) = struct.unpack_from("<I", self.come)
        assert self.has(4 + length), "the stream ended within a message"
        payload = bytes(self.come[4:4 + length])
        del self.come[:4 + length]
        return payload

    def messages(self, count):
        return [self.message() for _ in range(count)]

    def ended(self):
        """Waits for the end of the stream. Returns True if no further byte arrives before it."""
        seen = len(self.come)
        try:
            return not self.has(seen + 1)
        except ConnectionResetError:
            return len(self.come) == seen

    def silent(self, seconds=0.15):
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(DEADLINE)
        return False


def create_open(control, topic="t", broker_type="queue", **settings):
    control.ok("create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic=topic, broker_type=broker_type,
               open=True, **settings)


def join_raw(control, topic="t", **more):
    return control.ok("join", topic=topic, type="pull", connection_type="socket", **more)["bind_uri"]


def join_open(control, kind, topic="t"):
    return control.ok("join", topic=topic, type=kind)["bind_uri"]


def producer_of(broker, control, topic="t"):
    return broker.socket(zmq.PUSH, join_open(control, "push", topic), sndhwm=0)


def stats_of(control, topic="t"):
    return control.ok("stats", topic=topic)


def connected(control, count):
    until(lambda: stats_of(control)["subscribers_count"] == count, lambda: f"{count} consumers: {stats_of(control)}")


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("broker_type", ["queue", "file", "queue_file"])
def test_everything_arrives_as_it_was_sent_in_order(broker, control, broker_type, transport):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sent = [chance.randbytes(chance.choice([0, 1, 4, 255, 256, 1000, 70_000])) for _ in range(500)]
    create_open(control, "t", broker_type)
    uri = join_raw(control, transport=transport)
    assert uri.startswith(f"{transport}://")
    producer = producer_of(broker, control)
    with RawConsumer(uri) as consumer:
        for message in sent:
            producer.send(message)
        assert consumer.messages(len(sent)) == sent
        assert consumer.silent()
        stats = stats_of(control)
    assert (stats["messages_sent"], stats["deliveries"], stats["queue_size"]) == (500, 500, 0)
    assert stats["total_bytes_read"] == sum(map(len, sent))
    assert (stats["subscribers_count"], stats["groups"][0]["consumers"]) == (1, 1)
    connected(control, 0)


def test_the_largest_and_the_smallest_message(broker, control):
    create_open(control)
    producer = producer_of(broker, control)
    large = random.Random(16).randbytes(16 * MIB)
    for message in (b"", large, b"", b"x"):
        producer.send(message)
    with RawConsumer(join_raw(control)) as consumer:
        assert consumer.message() == b""
        assert consumer.message() == large
        assert consumer.messages(2) == [b"", b"x"]


@pytest.mark.parametrize("endpoints", [1, 2])
def test_two_consumers_share_by_whole_messages(broker, control, endpoints):
    create_open(control)
    uris = [join_raw(control) for _ in range(endpoints)]
    with RawConsumer(uris[0]) as first, RawConsumer(uris[-1]) as second:
        connected(control, 2)
        producer = producer_of(broker, control)
        sent = numbered(0, 1000, 100)
        for message in sent:
            producer.send(message)
        parts = [first.messages(500), second.messages(500)]
        assert all(part == sorted(part, key=number_of) for part in parts)
        assert sorted(parts[0] + parts[1], key=number_of) == sent
        assert first.silent() and second.silent()


def test_raw_and_zeromq_pullers_of_a_topic_take_turns(broker, control):
    create_open(control)
    puller = broker.socket(zmq.PULL, join_open(control, "pull"))
    with RawConsumer(join_raw(control)) as consumer:
        connected(control, 2)
        producer = producer_of(broker, control)
        sent = numbered(0, 1000, 100)
        for message in sent:
            producer.send(message)
        parts = [consumer.messages(500), receive(puller, 500)]
    assert sorted(parts[0] + parts[1], key=number_of) == sent


def test_messages_sent_before_the_first_raw_consumer_wait_for_it(broker, control):
    create_open(control)
    producer = producer_of(broker, control)
    producer.send(b"early")
    until(lambda: stats_of(control)["messages_received"] == 1, "the message")
    with RawConsumer(join_raw(control)) as consumer:
        assert consumer.message() == b"early"


HALF_A_MESSAGE = """
import socket, sys, time
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
connection.connect((sys.argv[1], int(sys.argv[2])))
left = 1 << 20
while left > 0:
    left -= len(connection.recv(min(left, 4096)))
print("half", flush=True)
time.sleep(600)
"""


def test_a_consumer_killed_during_a_message_does_not_lose_it(broker, control):
    create_open(control)
    host, port = join_raw(control).removeprefix("tcp://").split(":")
    doomed = subprocess.Popen([sys.executable, "-c", HALF_A_MESSAGE, host, port], stdout=subprocess.PIPE)
    try:
        connected(control, 1)
        producer = producer_of(broker, control)
        large = random.Random(5).randbytes(16 * MIB)
        producer.send(large)
        assert doomed.stdout.readline() == b"half\n"
        assert stats_of(control)["groups"][0]["committed_offset"] == 0
        with RawConsumer(join_raw(control)) as heir:
            connected(control, 2)
            os.kill(doomed.pid, signal.SIGKILL)
            connected(control, 1)
            producer.send(b"newer")
            assert heir.message() == large
            assert heir.message() == b"newer"
            assert heir.silent()
    finally:
        doomed.kill()
        doomed.wait()
        doomed.stdout.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_port_and_the_place_are_kept_over_a_restart(broker, control, end):
    create_open(control, broker_type="file")
    uri = join_raw(control)
    producer = producer_of(broker, control)
    for message in numbered(0, 100):
        producer.send(message)
    with RawConsumer(uri) as consumer:
        assert consumer.messages(100) == numbered(0, 100)
        getattr(broker, end)()
        assert consumer.ended()
    broker.start()
    for message in numbered(100, 100):
        producer.send(message)
    seen = []
    with RawConsumer(uri) as consumer:
        while not seen or seen[-1] != 199:
            seen.append(number_of(consumer.message()))
    # A killed broker may repeat the messages of its last second. No message is skipped.
    assert seen == list(range(seen[0], 200)) and seen[0] <= 100
    assert end == "kill" or seen[0] == 100
    control.ok("leave", topic="t", bind_uri=uri)


def test_the_ipc_path_is_kept_over_a_restart(broker, control):
    create_open(control, broker_type="file")
    uri = join_raw(control, transport="ipc")
    broker.restart()
    producer_of(broker, control).send(b"1")
    with RawConsumer(uri) as consumer:
        assert consumer.message() == b"1"


def test_a_message_in_transit_during_a_kill_is_delivered_whole_afterwards(broker, control):
    create_open(control, broker_type="file")
    uri = join_raw(control)
    large = random.Random(7).randbytes(16 * MIB)
    producer_of(broker, control).send(large)
    with RawConsumer(uri, receive_buffer=4096) as consumer:
        assert consumer.has(4)
        broker.kill()
        with pytest.raises((AssertionError, ConnectionResetError)):
            consumer.message()
    broker.start()
    with RawConsumer(uri) as consumer:
        assert consumer.message() == large


def test_a_topic_that_is_not_open_has_no_raw_consumers(control):
    control.create("closed")
    raw = {"topic": "closed", "type": "pull", "connection_type": "socket"}
    user = {"user_id": USER, "password": PASSWORD}
    reply = control.fails("not_supported", "join", **raw, **user)
    assert "open" in reply["description"]
    control.fails("not_supported", "join", **raw, admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    control.fails("unauthorized_access", "join", **raw)
    assert control.stats("closed")["groups"] == []


def test_only_pull_has_raw_consumers(control):
    create_open(control)
    for kind in ("pub", "push", "sub"):
        reply = control.fails("invalid_request", "join", topic="t", type=kind, connection_type="socket")
        assert "pull" in reply["description"]
    control.ok("join", topic="t", type="pull", connection_type="zmq", delivery="session")
    control.fails("invalid_request", "join", topic="t", type="pull", connection_type="socket", delivery="pigeon")
    control.ok("join", topic="t", type="pull", connection_type="socket", delivery="plain")
    assert stats_of(control)["publishers_count"] == 0


def test_only_a_consumer_that_sends_data_is_disconnected(broker, control):
    create_open(control)
    uri = join_raw(control)
    with RawConsumer(uri) as talking, RawConsumer(uri) as quiet:
        connected(control, 2)
        talking.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert talking.ended()
        connected(control, 1)
        producer = producer_of(broker, control)
        for message in numbered(0, 100):
            producer.send(message)
        assert quiet.messages(100) == numbered(0, 100)


def test_a_raw_consumer_that_shuts_down_its_sending_side_has_left(broker, control):
    create_open(control)
    with RawConsumer(join_raw(control)) as consumer:
        connected(control, 1)
        consumer.socket.shutdown(socket.SHUT_WR)
        assert consumer.ended()
        connected(control, 0)


def test_a_stalled_consumer_costs_little_and_delays_no_other(broker, control):
    create_open(control, broker_type="file")
    uri = join_raw(control)
    count, size = 5000, 10_000
    with RawConsumer(uri, receive_buffer=4096) as stalled, RawConsumer(uri) as reading:
        connected(control, 2)
        producer = producer_of(broker, control)
        for message in numbered(0, count, size):
            producer.send(message)
        until(lambda: stats_of(control)["messages_received"] == count, "the messages")
        # The reading consumer receives all messages except the few that were sent to the stalled one before
        # its buffers were full.
        others = stalled_share(control, reading, count)
        assert len(others) * size < 8 * MIB
        assert sorted(map(number_of, stalled.messages(len(others)))) == others


def stalled_share(control, reading, count):
    """Reads until everything is delivered. Returns the numbers of the messages that the reader did not
    receive."""
    seen = []
    reading.socket.settimeout(0.3)
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            seen.append(number_of(reading.message()))
        except TimeoutError:
            if stats_of(control)["queue_size"] == 0:
                break
        assert time.monotonic() < deadline
    reading.socket.settimeout(DEADLINE)
    assert seen == sorted(seen)
    return sorted(set(range(count)) - set(seen))


def test_unauthenticated_peers_that_do_not_read_cost_little_each(broker, control):
    create_open(control, broker_type="file")
    uri = join_raw(control, transport="ipc")  # a Unix socket buffers about 200 KiB; TCP may buffer 4 MiB
    count, size = 5000, 10_000
    strangers = [RawConsumer(uri) for _ in range(40)]
    try:
        connected(control, len(strangers))
        producer = producer_of(broker, control)
        for message in numbered(0, count, size):
            producer.send(message)
        until(lambda: stats_of(control)["messages_received"] == count, "the messages")
        with RawConsumer(uri) as reading:
            others = stalled_share(control, reading, count)
        assert len(others) * size < len(strangers) * 512 * KIB
    finally:
        for stranger in strangers:
            stranger.socket.close()
    connected(control, 0)


def test_leave_returns_the_number_of_messages_to_wait_for(broker, control):
    create_open(control)
    uri = join_raw(control)
    with RawConsumer(uri) as consumer:
        connected(control, 1)
        producer = producer_of(broker, control)
        for message in numbered(0, 10):
            producer.send(message)
        until(lambda: stats_of(control)["messages_sent"] == 10, "the messages")
        assert control.ok("leave", topic="t", bind_uri=uri)["messages_handed"] == 10
        producer.send(b"for the next one")
        assert consumer.messages(10) == numbered(0, 10)
        assert consumer.silent()
    with RawConsumer(join_raw(control)) as consumer:
        assert consumer.message() == b"for the next one"


def test_an_endpoint_without_consumers_closes_and_one_in_use_stays(make_broker):
    broker = make_broker(environment={"LIGHTQ_ENDPOINT_IDLE_MS": "200"})
    control = broker.control()
    create_open(control)
    with RawConsumer(join_raw(control)) as kept:
        connected(control, 1)
        spare = join_raw(control)
        until(lambda: f"{spare} closes" in broker.log(), "the unused endpoint's end")
        assert refuses(spare)
        producer_of(broker, control).send(b"1")
        assert kept.message() == b"1"


def refuses(uri):
    host, port = uri.removeprefix("tcp://").split(":")
    with socket.socket() as attempt:
        attempt.settimeout(DEADLINE)
        return attempt.connect_ex((host, int(port))) != 0
