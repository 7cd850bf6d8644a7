"""Tests many topics, few descriptors, and a deadline for the end. Run alone: it measures processor time and
rates."""
import json
import signal
import socket as plain
import time

import pytest
import zmq

from support import (ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, SANITIZED, USER, number_of, numbered, receive, until)

@pytest.fixture
def broker(make_broker):
    """A broker that accepts as many requests as these tests make, however fast the machine is."""
    return make_broker("--requests-per-second", "1000000")


CREATE = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD, "broker_type": "queue",
          "user_id": USER, "password": PASSWORD}


def pipelined(broker, requests, window=200, seconds=60):
    """Sends requests without waiting for each answer. Returns the answers in order of arrival."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri)
    answers, sent = [], 0
    deadline = time.monotonic() + seconds * (6 if SANITIZED else 1)
    while len(answers) < len(requests):
        while sent < len(requests) and sent - len(answers) < window:
            dealer.send_multipart([b"", json.dumps(requests[sent]).encode()])
            sent += 1
        assert dealer.poll(int(max(deadline - time.monotonic(), 0) * 1000)), f"{len(answers)} of {len(requests)} answers"
        answers.append(json.loads(dealer.recv_multipart()[-1]))
    dealer.close()
    return answers


def test_ten_thousand_topics_can_be_created_listed_and_deleted(broker, control):
    count = 2000 if SANITIZED else 10_000
    control.create("warm-up")  # the passwords are verified once here, which is slow
    control.delete("warm-up")
    descriptors, memory = broker.descriptors(), broker.resident_bytes()
    begun = time.monotonic()
    answers = pipelined(broker, [{**CREATE, "topic": f"t{index}"} for index in range(count)])
    rate = count / (time.monotonic() - begun)
    assert all(answer["status"] == "ok" for answer in answers), next(a for a in answers if a["status"] != "ok")
    print(f"{rate:.0f} topics/s created")
    assert rate >= (25 if SANITIZED else 500)
    assert broker.descriptors() <= descriptors + 4
    if not SANITIZED:
        assert (broker.resident_bytes() - memory) / count < 64 * 1024
    assert len(control.list()) == count
    delete = {"cmd": "delete_topic", "admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    answers = pipelined(broker, [{**delete, "topic": f"t{index}"} for index in range(count)])
    assert all(answer["status"] == "ok" for answer in answers)
    assert control.list() == []
    until(lambda: broker.descriptors() <= descriptors + 4, "the descriptors' return")


def test_a_thousand_idle_topics_take_less_than_a_hundredth_of_a_core(broker, control):
    pipelined(broker, [{**CREATE, "topic": f"t{i}", "broker_type": "file" if i % 10 == 0 else "queue"} for i in range(1000)])
    kept = []
    for index in range(0, 40, 4):  # some topics were used and are idle now
        kept.append(broker.socket(zmq.PUSH, control.join(f"t{index}", "push")))
        kept[-1].send(b"x")
        until(lambda topic=f"t{index}": control.stats(topic)["messages_received"] == 1, "the message")
    seconds = 3
    time.sleep(0.3)  # until the messages just sent are flushed
    before = broker.processor_seconds()
    time.sleep(seconds)  # the test measures the use over this time
    used = broker.processor_seconds() - before
    assert used / seconds < (0.1 if SANITIZED else 0.01), f"{used:.3f} s of processor in {seconds} s"


def test_the_descriptor_limit_is_a_clear_error_to_the_requesting_client(make_broker):
    broker = make_broker("--endpoints-max", "1000", prefix=["prlimit", "--nofile=256:256"])
    control = broker.control()
    control.create("flow", "queue")
    producer = broker.socket(zmq.PUSH, control.join("flow", "push"))
    consumer = broker.socket(zmq.PULL, control.join("flow", "pull"))
    producer.send(b"before")
    assert receive(consumer, 1) == [b"before"]
    opened, refusal = [], None
    for index in range(200):
        control.create(f"t{index}", "queue")
        reply = control("join", connection_type="zmq", type="pull", topic=f"t{index}", user_id=USER, password=PASSWORD)
        if reply["status"] == "error":
            refusal = reply
            break
        opened.append((f"t{index}", reply["bind_uri"]))
    assert refusal is not None and refusal["code"] == "limit_reached", refusal
    assert opened, "not even one endpoint was possible"
    producer.send(b"during")
    assert receive(consumer, 1) == [b"during"]
    for topic, uri in opened:
        control.leave(topic, uri)
    again = until(lambda: (r := control("join", connection_type="zmq", type="pull", topic="t0", user_id=USER,
                                        password=PASSWORD))["status"] == "ok" and r, "room for an endpoint again")
    assert again["bind_uri"].startswith("tcp://")


def test_more_connections_than_descriptors_do_not_end_the_broker(make_broker):
    broker = make_broker(prefix=["prlimit", "--nofile=256:256"])
    control = broker.control()
    control.create("t", "queue")
    uri = control.join("t", "push")
    crowd = [broker.socket(zmq.PUSH, uri) for _ in range(400)]
    until(lambda: control.stats("t")["publishers_count"] > 20, "the first of the crowd")
    control.ok("ping")
    for socket in crowd:
        socket.close()
    until(lambda: control.stats("t")["publishers_count"] == 0, "the crowd's end")
    producer = broker.socket(zmq.PUSH, uri)
    producer.send(b"1")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 1) == [b"1"]


def test_unauthenticated_peers_take_a_part_of_few_descriptors(make_broker):
    broker = make_broker("--reactors", "1", prefix=["prlimit", "--nofile=256:256"])
    control = broker.control()
    control.broker_stats()  # a request with a password authenticates the connection
    host, port = broker.control_uri.removeprefix("tcp://").split(":")
    before, share = broker.descriptors(), (256 - 128) // 4
    crowd = [plain.create_connection((host, int(port)), timeout=DEADLINE) for _ in range(100)]
    until(lambda: control.broker_stats()["evicted_connections"] >= len(crowd) - share, "the crowd to make room")
    assert broker.descriptors() <= before + share
    for stranger in crowd:
        stranger.close()


def test_more_peers_at_the_control_port_than_descriptors_do_not_end_the_broker(make_broker):
    broker = make_broker("--handshakes-max", "512", prefix=["prlimit", "--nofile=256:256"])
    control = broker.control()
    control.create("t", "queue")
    host, port = broker.control_uri.removeprefix("tcp://").split(":")
    crowd = []
    for _ in range(400):
        crowd.append(plain.create_connection((host, int(port)), timeout=DEADLINE))
    made_room = 400 - (256 - 64)
    until(lambda: control.broker_stats()["evicted_connections"] >= made_room, "the crowd to fill the table, and to make room")
    assert control.broker_stats()["limits_reached"]["descriptors_reserved"] > 0, "the table was full"
    assert broker.descriptors() <= 256 - 64 + 2, "what is reserved for files is left alone"
    control.ok("ping")
    for stranger in crowd:
        stranger.close()
    newcomer = broker.control()
    newcomer.ok("ping")
    producer = broker.socket(zmq.PUSH, newcomer.join("t", "push"))
    producer.send(b"1")
    assert receive(broker.socket(zmq.PULL, newcomer.join("t", "pull")), 1) == [b"1"]


@pytest.mark.skipif(bool(SANITIZED), reason="the sanitizers' own memory would be measured")
def test_an_idle_ring_of_a_tebibyte_costs_next_to_nothing(broker, control):
    control.create("warm-up", "queue", ring_bytes=1 << 40)
    before, count = broker.resident_bytes(), 100
    for index in range(count):
        control.create(f"t{index}", "queue", ring_bytes=1 << 40)
    assert (broker.resident_bytes() - before) / count < 64 * 1024
    producer = broker.socket(zmq.PUSH, control.join("t7", "push"))
    producer.send(b"and it works")
    assert receive(broker.socket(zmq.PULL, control.join("t7", "pull")), 1) == [b"and it works"]


def test_endpoints_come_and_go_without_leaking_descriptors(broker, control):
    control.create("t", "queue")
    control.leave("t", control.join("t", "pull"))
    before = broker.descriptors()
    for _ in range(200):
        for kind in ("pull", "sub"):
            control.leave("t", control.join("t", kind))
    until(lambda: broker.descriptors() <= before + 2, lambda: f"{broker.descriptors()} descriptors, were {before}")


def test_sigterm_flushes_and_ends_well_with_messages_under_way(broker, control):
    control.create("t", "file")
    uri = control.join("t", "push")
    producer = broker.socket(zmq.PUSH, uri)
    for message in numbered(0, 5000, 100):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] > 0, "the first messages")
    broker.stop()
    broker.start()
    until(lambda: control.stats("t")["publishers_count"] == 1, "the producer's return")
    kept = control.stats("t")["next_offset"]
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    received = [number_of(message) for message in receive(consumer, kept)]
    assert received == sorted(set(received)) and received[0] == 0


@pytest.mark.parametrize("broker_type", ["queue", "file"])
def test_sigterm_ends_within_the_deadline_without_a_reader(broker, control, broker_type):
    control.create("t", broker_type, **{"ring_bytes": 1 << 20} if broker_type == "queue" else {})
    broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=1, rcvbuf=4096)
    broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=1, rcvbuf=4096)
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the handshakes")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    for message in numbered(0, 400, 10_000):
        if not producer.poll(200, zmq.POLLOUT):
            break
        producer.send(message)
    begun = time.monotonic()
    broker.stop()
    assert time.monotonic() - begun < (30 if SANITIZED else 10)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_sigint_end_an_idle_broker_at_once(broker, by):
    begun = time.monotonic()
    broker.stop(by)
    assert time.monotonic() - begun < (10 if SANITIZED else 2)
    broker.logged(f"stopping on {by.name}")


def test_delivered_messages_leave_before_the_broker_ends(broker, control):
    control.create("t", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0)
    for message in numbered(0, 2000, 100):
        producer.send(message)
    until(lambda: control.stats("t")["messages_sent"] == 2000, "all handed over")
    broker.stop()
    assert [number_of(message) for message in receive(consumer, 2000)] == list(range(2000))
