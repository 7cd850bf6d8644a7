"""Tests consumers that come late, leave, crash, stall, or never connect."""
import signal
import socket as plain
import subprocess
import sys
import threading

import pytest
import zmq

from support import (ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, number_of, numbered, present, receive, receive_topic,
                     silent, until)
from tcp_proxy import RecordingProxy

pytestmark = pytest.mark.one_broker

TYPES = ["queue", "file", "queue_file"]


def subscribers(control, count, topic="t"):
    until(lambda: control.stats(topic)["subscribers_count"] == count, f"{count} consumers connected")


@pytest.mark.parametrize("broker_type", TYPES)
def test_messages_sent_before_the_first_puller_wait_for_it(broker, control, broker_type):
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    sent = numbered(0, 5000, 30)
    for message in sent:
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 5000, "all received")
    assert control.stats("t")["queue_size"] == 5000
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 5000) == sent


def test_a_subscriber_starts_where_it_joined(broker, control):
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    producer.send(b"before")
    until(lambda: control.stats("t")["messages_received"] == 1, "the first message")
    uri = control.join("t", "sub")
    producer.send(b"after")
    until(lambda: control.stats("t")["messages_received"] == 2, "the second message")
    assert receive_topic(broker.socket(zmq.SUB, uri), "t", 1) == [b"after"]


def test_leave_reports_the_number_of_delivered_messages(broker, control):
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    uris = [control.join("t", "pull") for _ in range(2)]
    pullers = [broker.socket(zmq.PULL, uri) for uri in uris]
    subscribers(control, 2)
    for message in numbered(0, 1000):
        producer.send(message)
    until(lambda: control.stats("t")["queue_size"] == 0 and control.stats("t")["messages_received"] == 1000, "the end")
    received = []
    for uri, puller in zip(uris, pullers):
        handed = control.leave("t", uri)["messages_handed"]
        received += receive(puller, handed)
        assert silent(puller, 0.05)
    assert sorted(map(number_of, received)) == list(range(1000))


def test_an_endpoint_is_gone_after_leave(broker, control):
    control.create("t", "queue")
    uri = control.join("t", "pull")
    port = uri.rpartition(":")[2]
    assert broker.listens_on(port)
    control.leave("t", uri)
    control.fails("endpoint_not_found", "leave", topic="t", user_id=USER, password=PASSWORD, bind_uri=uri)
    assert not broker.listens_on(port)


def test_direct_holds_producers_until_a_consumer_is_connected(broker, control):
    control.create("t", "direct")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=1000)
    until(lambda: control.stats("t")["publishers_count"] == 1, "the producer's handshake")
    for message in numbered(0, 100):
        producer.send(message)
    stats = control.stats("t")
    assert (stats["messages_received"], stats["blocked_by"]) == (0, "nobody connected")
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [number_of(message) for message in receive(consumer, 100)] == list(range(100))


def test_direct_gives_late_comers_nothing_older(broker, control):
    control.create("t", "direct")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    first = broker.socket(zmq.SUB, control.join("t", "sub"))
    subscribers(control, 1)
    producer.send(b"1")
    assert receive_topic(first, "t", 1) == [b"1"]
    late = broker.socket(zmq.SUB, control.join("t", "sub"))
    puller = broker.socket(zmq.PULL, control.join("t", "pull"))
    subscribers(control, 3)
    producer.send(b"2")
    assert receive_topic(first, "t", 1) == receive_topic(late, "t", 1) == receive(puller, 1) == [b"2"]
    assert silent(late, 0.05) and silent(puller, 0.05)


def test_queue_file_serves_from_memory_and_lies_on_disk_after_a_clean_stop(broker, control):
    control.create("t", "queue_file", ring_bytes=256 * 1024)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    sent = numbered(0, 3000, 1000)  # ten times the ring: the oldest are read back from the file
    for message in sent:
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 3000, "all received")
    broker.restart()
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 3000) == sent


def test_a_puller_that_dies_loses_at_most_its_messages_in_transit(broker, control):
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    doomed = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=1, rcvbuf=4096)
    subscribers(control, 1)
    for message in numbered(0, 1000, 10_000):
        producer.send(message)
    first = receive(doomed, 1)
    doomed.close()
    subscribers(control, 0)
    # Messages that the system had not taken are delivered again.
    sent_to_doomed = control.stats("t")["groups"][0]["committed_offset"]
    heir = broker.socket(zmq.PULL, control.join("t", "pull"))
    rest = receive(heir, 1000 - sent_to_doomed)
    assert number_of(first[0]) == 0
    assert [number_of(message) for message in rest] == list(range(sent_to_doomed, 1000))
    assert sent_to_doomed < 900, "one stopped puller was handed nearly everything"


def test_a_client_gone_between_join_and_connect_holds_nothing_up(broker, control):
    control.create("t", "queue")
    for kind in ("push", "pull", "sub"):
        control.join(kind=kind, topic="t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    for message in numbered(0, 100):
        producer.send(message)
    assert [number_of(message) for message in receive(consumer, 100)] == list(range(100))


# --- Unauthenticated peers on a data port ----------------------------------------------------------------------------

GARBAGE = [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\xff\0\0\0\0\0\0\0\x01\x7f\x03",
           b"\x01\0hello", b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL" + b"\0" * 48 + b"\x02\xff" + b"\xff" * 8, b"x" * 100_000]


def knock(uri, payload):
    host, port = uri.removeprefix("tcp://").split(":")
    stranger = plain.create_connection((host, int(port)), timeout=DEADLINE)
    try:
        stranger.sendall(payload)
    except (BrokenPipeError, ConnectionResetError):
        pass  # closed already
    return stranger


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_an_unauthenticated_peer_is_not_counted_not_read_and_receives_nothing(broker, control, garbage):
    control.create("t", "queue")
    uris = {kind: control.join("t", kind) for kind in ("push", "pull", "sub")}
    strangers = [knock(uri, garbage) for uri in uris.values()]
    producer = broker.socket(zmq.PUSH, uris["push"])
    until(lambda: control.stats("t")["publishers_count"] == 1, "the producer's handshake")
    for message in numbered(0, 100):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 100, "the messages")
    stats = control.stats("t")
    assert (stats["publishers_count"], stats["subscribers_count"], stats["messages_sent"]) == (1, 0, 0)
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [number_of(message) for message in receive(consumer, 100)] == list(range(100))
    assert control.stats("t")["messages_received"] == 100
    for stranger in strangers:
        stranger.close()


def test_connections_are_counted_as_they_come_and_go(broker, control):
    control.create("t", "queue")
    producers = [broker.socket(zmq.PUSH, control.join("t", "push")) for _ in range(3)]
    pullers = [broker.socket(zmq.PULL, control.join("t", "pull")) for _ in range(2)]
    subs = [broker.socket(zmq.SUB, control.join("t", "sub")) for _ in range(4)]

    def counts():
        stats = control.stats("t")
        return stats["publishers_count"], stats["subscribers_count"]

    until(lambda: counts() == (3, 6), lambda: f"3 producers and 6 consumers, have {counts()}")
    producers[0].close()
    pullers[0].close()
    subs[0].close()
    until(lambda: counts() == (2, 4), lambda: f"2 producers and 4 consumers, have {counts()}")


# --- Ten producers and ten consumers at the same time ----------------------------------------------------------------

def test_ten_producers_and_ten_consumers_with_joins_and_leaves_lose_nothing(broker, control):
    control.create("t", "queue")
    per_producer, producers, consumers = 1000, 10, 10
    total = per_producer * producers
    received, lock, finished = [], threading.Lock(), threading.Event()
    failures = []

    def guarded(work, *arguments):
        def run():
            try:
                work(*arguments)
            except BaseException as failure:  # passed on to the thread of the test
                failures.append(failure)
                finished.set()
        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def produce(name, mine):
        sent = 0
        while sent < per_producer:  # a new connection for every 250 messages
            socket = broker.context.socket(zmq.PUSH)
            socket.linger = DEADLINE * 1000
            address = mine.join("t", "push")
            present(socket, address)
            socket.connect(address)
            for index in range(sent, sent + 250):
                socket.send(b"%d|" % (name * per_producer + index))
            socket.close()
            sent += 250

    def consume(mine, stays):
        while not finished.is_set():
            uri = mine.join("t", "pull")
            socket = broker.context.socket(zmq.PULL)
            socket.linger = 0
            present(socket, uri)
            socket.connect(uri)
            count = 0

            def take(messages):
                with lock:
                    received.extend(map(number_of, messages))
                return count + len(messages)

            while not finished.is_set() and (stays or count < 150):
                if socket.poll(20):
                    count = take([socket.recv()])
            handed = mine.leave("t", uri)["messages_handed"]
            count = take(receive(socket, handed - count))
            socket.close()

    helpers = [broker.control() for _ in range(producers + consumers)]
    threads = [guarded(consume, helpers[i], i < 3) for i in range(consumers)]
    threads += [guarded(produce, i, helpers[consumers + i]) for i in range(producers)]
    try:
        until(lambda: failures or len(received) >= total, lambda: f"{total} messages, have {len(received)}")
    finally:
        finished.set()
        for thread in threads:
            thread.join(DEADLINE)
    assert not failures, failures
    assert sorted(received) == list(range(total))


@pytest.mark.own_broker
def test_a_topic_in_use_can_be_deleted_and_made_anew(broker, control):
    def connect():
        uris = {kind: control.join("t", kind) for kind in ("push", "pull", "sub")}
        sockets = [broker.socket(kind, uri) for kind, uri in zip((zmq.PUSH, zmq.PULL, zmq.SUB), uris.values())]
        until(lambda: (s := control.stats("t"))["subscribers_count"] == 2 and s["publishers_count"] == 1, "handshakes")
        return set(uris.values()), sockets

    control.create("t", "file")
    before = broker.descriptors()
    old_uris, (old_producer, old_puller, old_subscriber) = connect()
    old_producer.send(b"old")
    assert receive(old_puller, 1) == [b"old"]
    assert receive_topic(old_subscriber, "t", 1) == [b"old"]
    control.delete("t")
    assert control.list() == []
    control.fails("topic_not_found", "stats", topic="t", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    until(lambda: broker.descriptors() <= before, lambda: f"{broker.descriptors()} descriptors, were {before}")
    control.create("t", "file")
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"], stats["queue_size"], stats["publishers_count"]) == (0, 0, 0, 0)
    new_uris, (producer, puller, subscriber) = connect()
    assert not new_uris & old_uris, "a client of the old topic would find itself at the new one"
    producer.send(b"new")
    assert receive(puller, 1) == [b"new"]
    assert receive_topic(subscriber, "t", 1) == [b"new"]
    assert silent(old_puller) and silent(old_subscriber)


def test_an_open_topic_asks_for_no_credentials(broker, control):
    control.ok("create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="public", broker_type="queue",
               open=True)
    control.create("closed", "queue")
    assert {topic["topic"]: topic.get("open", False) for topic in control.list()} == {"public": True, "closed": False}

    def join(topic, kind):
        return control("join", connection_type="zmq", type=kind, topic=topic)

    producer = broker.socket(zmq.PUSH, join("public", "push")["bind_uri"])
    producer.send(b"for all")
    assert receive(broker.socket(zmq.PULL, join("public", "pull")["bind_uri"]), 1) == [b"for all"]
    assert control.ok("stats", topic="public")["messages_received"] == 1
    assert join("closed", "push")["status"] == "error"


def test_an_unused_endpoint_closes_and_its_port_is_quarantined(make_broker):
    broker = make_broker(environment={"LIGHTQ_ENDPOINT_IDLE_MS": "200"})
    control = broker.control()
    control.create("t", "queue")
    uri = control.join("t", "sub")
    until(lambda: control.stats("t")["subscribers"] == [], "the endpoint's end")
    control.fails("endpoint_not_found", "leave", topic="t", user_id=USER, password=PASSWORD, bind_uri=uri)
    assert not broker.listens_on(uri.rpartition(":")[2])
    assert all(control.join("t", "sub") != uri for _ in range(20))


def test_an_endpoint_in_use_stays(make_broker):
    broker = make_broker(environment={"LIGHTQ_ENDPOINT_IDLE_MS": "100"})
    control = broker.control()
    control.create("t", "queue")
    kept = broker.socket(zmq.PULL, control.join("t", "pull"))
    subscribers(control, 1)
    spare = control.join("t", "sub")
    until(lambda: all(one["bind_uri"] != spare for one in control.stats("t")["subscribers"]), "the unused endpoint's end")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    producer.send(b"1")
    assert receive(kept, 1) == [b"1"]


PULLER = """
import sys, zmq
puller = zmq.Context().socket(zmq.PULL)
puller.plain_username, puller.plain_password = sys.argv[2].encode(), sys.argv[3].encode()
puller.heartbeat_ivl, puller.heartbeat_ttl = 100, 1000
puller.connect(sys.argv[1])
while True:
    print(puller.recv().decode(), flush=True)
"""


def test_a_puller_that_is_silent_for_longer_than_its_heartbeats_allow_is_closed(broker, control):
    """The stopped puller's socket is open, and its system takes the bytes that the broker sends. Only the TTL
    of the puller's PING (RFC 37) shows that it is dead."""
    control.create("t", "file")
    address = control.join("t", "pull")
    proxy = RecordingProxy(address)
    still = subprocess.Popen([sys.executable, "-c", PULLER, proxy.uri, address.ticket["id"], address.ticket["secret"]],
                             stdout=subprocess.PIPE)
    try:
        subscribers(control, 1)
        producer = broker.socket(zmq.PUSH, control.join("t", "push"))
        producer.send(b"0")
        assert still.stdout.readline() == b"0\n"
        until(lambda: b"PING" in proxy.seen(), "a heartbeat")
        still.send_signal(signal.SIGSTOP)
        subscribers(control, 0)
        other = broker.socket(zmq.PULL, control.join("t", "pull"), heartbeat_ivl=100, heartbeat_ttl=1000)
        subscribers(control, 1)
        for message in numbered(1, 10):
            producer.send(message)
        assert [number_of(message) for message in receive(other, 10)] == list(range(1, 11))
        still.send_signal(signal.SIGCONT)
        subscribers(control, 2)
    finally:
        still.kill()
        still.wait()
        still.stdout.close()
        proxy.close()
