"""Tests that every message sent is received: with every broker_type, in every way, in order, with any bytes."""
import pytest
import zmq

from support import SANITIZED, number_of, numbered, present, receive, receive_topic, silent, until

pytestmark = pytest.mark.one_broker

TYPES = ["queue", "file", "direct", "queue_file"]
COUNT = 3000


def connected(control, topic, consumers):
    until(lambda: control.stats(topic)["subscribers_count"] == consumers, "the consumers' handshakes")


@pytest.mark.parametrize("broker_type", TYPES)
def test_pull_gets_every_message_in_order(broker, control, broker_type):
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    connected(control, "t", 1)
    sent = numbered(0, COUNT, 50)
    for message in sent:
        producer.send(message)
    assert receive(consumer, COUNT) == sent
    assert silent(consumer)


@pytest.mark.parametrize("broker_type", TYPES)
def test_every_subscriber_gets_every_message_in_order(broker, control, broker_type):
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "pub"))
    consumers = [broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=0) for _ in range(3)]
    connected(control, "t", 3)
    sent = numbered(0, COUNT, 50)
    for message in sent:
        producer.send(message)
    for consumer in consumers:
        assert receive_topic(consumer, "t", COUNT) == sent
        assert silent(consumer)


@pytest.mark.parametrize("broker_type", TYPES)
def test_pull_and_sub_work_together(broker, control, broker_type):
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    pullers = [broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0) for _ in range(2)]
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=0)
    connected(control, "t", 3)
    sent = numbered(0, COUNT, 20)
    for message in sent:
        producer.send(message)
    assert receive_topic(subscriber, "t", COUNT) == sent
    shares = drain_until(pullers, COUNT)
    assert sorted(map(number_of, shares[0] + shares[1])) == list(range(COUNT))
    for share in shares:
        assert share, "one puller was given nothing"
        assert share == sorted(share, key=number_of)


def drain_until(sockets, count):
    shares = [[] for _ in sockets]

    def enough():
        for share, socket in zip(shares, sockets):
            while socket.poll(0):
                share.append(socket.recv())
        return sum(map(len, shares)) >= count

    until(enough, lambda: f"{count} messages, have {[len(share) for share in shares]}")
    return shares


@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_empty_messages_and_any_bytes_arrive_as_they_were(broker, control, broker_type, transport):
    control.create("t", broker_type)
    uri = control.join("t", "push", transport=transport)
    assert uri.startswith(transport + "://")
    producer = broker.socket(zmq.PUSH, uri)
    puller = broker.socket(zmq.PULL, control.join("t", "pull", transport=transport))
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub", transport=transport))
    connected(control, "t", 2)
    sent = [b"", b"\0", bytes(range(256)), b"", b"\xff\xfe", b'{"cmd":"ping"}', b"\r\n\r\n", b"x" * 255, b"x" * 256,
            b"y" * 8192, b"z" * 65535, b"w" * 65536, b"v" * 200000, b""]
    for message in sent:
        producer.send(message)
    assert receive(puller, len(sent)) == sent
    assert receive_topic(subscriber, "t", len(sent)) == sent


def test_each_producers_order_holds(broker, control):
    control.create("t", "queue")
    producers = [broker.socket(zmq.PUSH, control.join("t", "push")) for _ in range(4)]
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0)
    for index in range(1000):
        for name, producer in enumerate(producers):
            producer.send(b"%d:%d" % (name, index))
    received = [tuple(map(int, message.split(b":"))) for message in receive(consumer, 4000)]
    for name in range(4):
        assert [index for who, index in received if who == name] == list(range(1000))


def test_topics_do_not_mix(broker, control):
    for topic in "abc":
        control.create(topic, "queue")
    consumers = {topic: broker.socket(zmq.PULL, control.join(topic, "pull")) for topic in "abc"}
    producers = {topic: broker.socket(zmq.PUSH, control.join(topic, "push")) for topic in "abc"}
    for index in range(200):
        for topic, producer in producers.items():
            producer.send(b"%s%d" % (topic.encode(), index))
    for topic, consumer in consumers.items():
        assert receive(consumer, 200) == [b"%s%d" % (topic.encode(), index) for index in range(200)]


def test_subscribing_to_the_topics_name_receives_everything(broker, control):
    """The topic's name is the first frame. ZeroMQ filters on the beginning of that frame."""
    control.create("prices", "queue")
    producer = broker.socket(zmq.PUSH, control.join("prices", "push"))
    uri = control.join("prices", "sub")
    subscriber = broker.context.socket(zmq.SUB)
    broker.clients.append(subscriber)
    subscriber.linger = 0
    subscriber.subscribe(b"prices")
    present(subscriber, uri)
    subscriber.connect(uri)
    producer.send(b"1")
    assert receive_topic(subscriber, "prices", 1) == [b"1"]


def test_the_largest_message_arrives(broker, control):
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"))
    connected(control, "t", 2)
    large = bytes(range(256)) * (16 * 4096)
    assert len(large) == 16 * 1024 * 1024
    producer.send(large)
    producer.send(b"after")
    assert receive(consumer, 2) == [large, b"after"]
    assert receive_topic(subscriber, "t", 2) == [large, b"after"]


@pytest.mark.parametrize("broker_type,settings", [("queue", {"ring_bytes": 128 << 20}), ("file", {}), ("direct", {})])
def test_a_larger_limit_lets_larger_messages_through(make_broker, broker_type, settings):
    broker = make_broker(environment={"LIGHTQ_MESSAGE_BYTES_MAX": "64MiB"})
    control = broker.control()
    control.create("t", broker_type, **settings)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    connected(control, "t", 1)
    large = bytes(range(256)) * (40 * 4096)
    producer.send(large)
    producer.send(b"after")
    assert receive(consumer, 2) == [large, b"after"]
    assert control.stats("t")["refused"] == 0


@pytest.mark.parametrize("broker_type", ["queue", "file"])
def test_a_larger_message_is_refused_and_counted(make_broker, broker_type):
    broker = make_broker(environment={"LIGHTQ_MESSAGE_BYTES_MAX": "100000"})
    control = broker.control()
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    producer.send(b"before")
    producer.send(b"x" * 100001)
    producer.send(b"y" * 100000)
    producer.send(b"after")
    assert receive(consumer, 3) == [b"before", b"y" * 100000, b"after"]
    stats = control.stats("t")
    assert (stats["refused"], stats["messages_received"]) == (1, 3)


def test_a_far_larger_message_is_skipped_without_memory_for_it(make_broker):
    broker = make_broker(environment={"LIGHTQ_MESSAGE_BYTES_MAX": "100000"})
    control = broker.control()
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    before = broker.resident_bytes()
    producer.send(b"x" * 100_000_000)
    producer.send(b"after")
    assert receive(consumer, 1) == [b"after"]
    stats = control.stats("t")
    assert (stats["refused"], stats["messages_received"]) == (1, 1)
    if not SANITIZED:
        assert broker.resident_bytes() - before < 16 * 1024 * 1024


@pytest.mark.parametrize("broker_type", TYPES)
def test_a_message_of_several_parts_is_refused_and_counted_once(broker, control, broker_type):
    control.create("t", broker_type)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    connected(control, "t", 1)
    producer.send(b"1")
    producer.send_multipart([b"a", b"b"])
    producer.send_multipart([b"", b"", b"x" * 100000])
    producer.send(b"2")
    assert receive(consumer, 2) == [b"1", b"2"]
    assert control.stats("t")["refused"] == 2
    assert silent(consumer)
