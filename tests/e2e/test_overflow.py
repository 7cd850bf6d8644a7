"""Tests a full log: which producers wait or are refused, which messages are dropped, and that memory stays
limited in bytes."""
import pytest
import zmq

from support import SANITIZED, USER, PASSWORD, number_of, numbered, receive, receive_topic, silent, until

pytestmark = pytest.mark.one_broker

KIB, MIB = 1024, 1024 * 1024


def settled(read, what, rounds=20):
    """Returns the value of read() once it has not changed for a while."""
    seen = []

    def steady():
        seen.append(read())
        return len(seen) > rounds and len(set(seen[-rounds:])) == 1

    until(steady, what)
    return seen[-1]


def push_until_held(producer, messages):
    """Sends until ZeroMQ's high-water mark stops it for half a second. Returns the number of messages sent."""
    sent = 0
    for message in messages:
        if not producer.poll(500, zmq.POLLOUT):
            return sent
        producer.send(message, zmq.NOBLOCK)
        sent += 1
    raise AssertionError("the producer was never held back")


def open_group(broker, control, topic):
    """Makes a group that exists without a consumer, so that the log keeps its messages."""
    uri = control.join(topic, "pull")
    consumer = broker.socket(zmq.PULL, uri)
    until(lambda: control.stats(topic)["subscribers_count"] == 1, "the puller's handshake")
    consumer.close()
    until(lambda: control.stats(topic)["subscribers_count"] == 0, "the puller's end")


@pytest.mark.parametrize("settings", [
    {"broker_type": "queue", "ring_bytes": 1 * MIB},
    {"broker_type": "file", "capacity_bytes": 2 * MIB, "segment_bytes": 256 * KIB},
    {"broker_type": "queue_file", "ring_bytes": 1 * MIB, "capacity_bytes": 2 * MIB, "segment_bytes": 256 * KIB},
], ids=lambda settings: settings["broker_type"])
@pytest.mark.own_broker
def test_block_holds_the_producer_back_and_loses_nothing(broker, control, settings):
    control.create("t", **settings)
    open_group(broker, control, "t")
    before = broker.resident_bytes()
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    sent = push_until_held(producer, numbered(0, 5000, 20 * KIB))
    stats = control.stats("t")
    assert stats["blocked_by"] == "group:default", stats
    assert (stats["dropped"], stats["rejected"], stats["unclaimed_dropped"]) == (0, 0, 0)
    if not SANITIZED:
        assert broker.resident_bytes() - before < 24 * MIB
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = receive(consumer, sent)
    assert [number_of(message) for message in received] == list(range(sent))
    until(lambda: control.stats("t")["blocked_by"] == "", "the producers' release")


@pytest.mark.parametrize("size", [100, 2000])
@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_producer_that_ends_during_back_pressure_loses_nothing(broker, control, transport, size):
    """The producer's last messages are in buffers of the system and the broker. The end of the connection
    follows them."""
    control.create("t", "file", capacity_bytes=64 * KIB, segment_bytes=64 * KIB)
    open_group(broker, control, "t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push", transport=transport))
    sent = push_until_held(producer, numbered(0, 100_000, size))
    producer.close(linger=20_000)
    consumer = broker.socket(zmq.PULL, control.join("t", "pull", transport=transport))
    received = receive(consumer, sent)
    assert [number_of(message) for message in received] == list(range(sent))


@pytest.mark.own_broker
def test_a_stopped_puller_bounds_the_brokers_memory_in_bytes(broker, control):
    control.create("t", "queue", ring_bytes=4 * MIB)
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=1)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the puller's handshake")
    before = broker.resident_bytes()
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=2)
    sent = push_until_held(producer, numbered(0, 5000, 64 * KIB))
    if not SANITIZED:
        assert broker.resident_bytes() - before < 32 * MIB
    assert [number_of(message) for message in receive(consumer, sent)] == list(range(sent))


@pytest.mark.parametrize("settings", [
    {"broker_type": "queue", "ring_bytes": 256 * KIB},
    {"broker_type": "file", "capacity_bytes": 512 * KIB, "segment_bytes": 64 * KIB},
], ids=lambda settings: settings["broker_type"])
def test_reject_refuses_and_counts_messages_that_do_not_fit(broker, control, settings):
    control.create("t", overflow="reject", **settings)
    open_group(broker, control, "t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 2000, KIB):
        producer.send(message)
    until(lambda: sum(control.stats("t")[name] for name in ("messages_received", "rejected")) == 2000, "all counted")
    stats = control.stats("t")
    assert stats["rejected"] > 0 and stats["messages_received"] > 0
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = [number_of(message) for message in receive(consumer, stats["messages_received"])]
    assert received == sorted(received) and received[0] == 0
    assert silent(consumer)


@pytest.mark.parametrize("settings", [
    {"broker_type": "queue", "ring_bytes": 256 * KIB},
    {"broker_type": "file", "capacity_bytes": 512 * KIB, "segment_bytes": 64 * KIB},
], ids=lambda settings: settings["broker_type"])
def test_drop_oldest_keeps_the_newest_and_counts_the_loss(broker, control, settings):
    control.create("t", overflow="drop_oldest", **settings)
    open_group(broker, control, "t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 2000, KIB):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 2000, "all received")
    stats = control.stats("t")
    assert stats["dropped"] > 0 and stats["groups"][0]["lost"] == stats["dropped"]
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = [number_of(message) for message in receive(consumer, 2000 - stats["dropped"])]
    assert received == list(range(stats["dropped"], 2000))


def test_a_topic_without_groups_overwrites_and_never_blocks(broker, control):
    control.create("t", "queue", ring_bytes=256 * KIB)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    for message in numbered(0, 2000, KIB):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == 2000, "all received")
    stats = control.stats("t")
    assert stats["unclaimed_dropped"] == stats["first_offset"] > 0 and stats["dropped"] == 0
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = [number_of(message) for message in receive(consumer, 2000 - stats["first_offset"])]
    assert received == list(range(stats["first_offset"], 2000))


def test_deleting_the_group_that_holds_the_log_sets_producers_free(broker, control):
    control.create("t", "queue", ring_bytes=256 * KIB)
    open_group(broker, control, "t")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    push_until_held(producer, numbered(0, 5000, 10 * KIB))
    control.fails("group_not_found", "delete_group", topic="t", user_id=USER, password=PASSWORD, group="other")
    control.ok("delete_group", topic="t", user_id=USER, password=PASSWORD, group="default")
    for message in numbered(5000, 500, 10 * KIB):
        assert producer.poll(5000, zmq.POLLOUT), "still held back"
        producer.send(message)
    until(lambda: control.stats("t")["blocked_by"] == "", "the producers' release")
    assert control.stats("t")["groups"] == []


def test_a_group_with_a_connected_consumer_is_not_deleted(broker, control):
    control.create("t", "queue")
    broker.socket(zmq.PULL, control.join("t", "pull"))
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the puller's handshake")
    control.fails("group_in_use", "delete_group", topic="t", user_id=USER, password=PASSWORD, group="default")


def test_a_stalled_puller_delays_only_pull_until_the_log_is_full(broker, control):
    control.create("t", "queue", ring_bytes=2 * MIB)
    broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=1)  # never reads
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=0)
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the handshakes")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    sent = push_until_held(producer, numbered(0, 5000, 10 * KIB))
    received = settled(lambda: control.stats("t")["messages_received"], "the log to fill")
    assert received > 100 and received <= sent
    assert [number_of(m) for m in receive_topic(subscriber, "t", received)] == list(range(received))
    assert control.stats("t")["blocked_by"] == "group:default"


def test_only_a_slow_subscriber_loses_messages_and_they_are_counted(broker, control):
    control.create("t", "queue", ring_bytes=512 * KIB)
    slow_uri, fast_uri = control.join("t", "sub"), control.join("t", "sub")
    slow = broker.socket(zmq.SUB, slow_uri, rcvhwm=1, rcvbuf=4096)
    fast = broker.socket(zmq.SUB, fast_uri, rcvhwm=0)
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the handshakes")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    total = 3000
    for start in range(0, total, 20):  # in step with the fast consumer, which is never a ring's length behind
        for message in numbered(start, 20, 10 * KIB):
            producer.send(message)
        assert [number_of(m) for m in receive_topic(fast, "t", 20)] == list(range(start, start + 20))

    def of(uri):
        return next(one for one in control.stats("t")["subscribers"] if one["bind_uri"] == uri)

    assert of(fast_uri)["lost"] == 0 and of(fast_uri)["delivered"] == total
    received = []

    def caught_up():
        while slow.poll(0):
            received.append(number_of(slow.recv_multipart()[1]))
        return received and received[-1] == total - 1

    until(caught_up, "the slow one to reach the newest message")
    assert received == sorted(set(received))
    assert of(slow_uri)["lost"] > 0
    assert of(slow_uri)["lost"] + len(received) == total


def test_a_message_that_never_fits_the_log_is_refused_and_counted(broker, control):
    control.create("t", "queue", ring_bytes=64 * KIB)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    producer.send(b"x" * 200 * KIB)
    producer.send(b"small")
    assert receive(consumer, 1) == [b"small"]
    assert control.stats("t")["refused"] == 1
