"""Tests the catalogue's files while a broker runs: they stay small although clients cause many records, and
are sound whenever the broker is killed."""
import json
import os
import time

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, SANITIZED, files_below, keys_for, receive

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
ANN = {"user_id": "ann", "password": PASSWORD}
MIB = 1 << 20


def catalogue_bytes(broker):
    total = 0
    for path in files_below(broker.data_dir / "catalogue"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass  # a file of the log that has just been replaced
    return total


def generation(broker):
    return max(int(name) for name in os.listdir(broker.data_dir / "catalogue") if name.isdigit())


def renewing(broker, key, times, window=100):
    """Joins `times` times with one key, with many requests under way. Yields the number of answers after
    every few."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri, **broker.control().options)
    request = json.dumps({"cmd": "join", "topic": "t", "type": "push", "client_key": key, **ANN}).encode()
    sent = answered = 0
    try:
        while answered < times:
            while sent < times and sent - answered < window:
                dealer.send_multipart([b"", request])
                sent += 1
            for _ in range(window // 2):
                assert dealer.poll(DEADLINE * 1000), f"{answered} of {times} answers"
                answer = json.loads(dealer.recv_multipart()[-1])
                assert answer["status"] == "ok", answer
                answered += 1
            yield answered
    finally:
        dealer.close()


@pytest.fixture
def broker(make_broker):
    broker = make_broker("--encrypt", "--requests-per-second", "1000000")
    control = broker.control()
    control.ok("create_topic", **ROOT, topic="t", broker_type="queue")
    control.ok("create_user", **ROOT, **ANN, rights=[{"topic": "t", "rights": ["produce", "consume"]}])
    return broker


def test_repeated_joins_of_a_client_do_not_grow_the_broker(broker):
    pair = zmq.curve_keypair()
    longest = slowest = 0
    other = broker.control()
    for _ in renewing(broker, pair[0].decode(), 4000 if SANITIZED else 40_000):
        longest = max(longest, catalogue_bytes(broker))
        began = time.monotonic()
        other.ok("ping")
        slowest = max(slowest, time.monotonic() - began)
    print(f"{longest / MIB:.1f} MiB at most, the slowest answer after {slowest * 1000:.0f} ms")
    # 40,000 records of 250 bytes would be 10 MB and would grow with each join. The catalogue keeps some
    # thousands for a while.
    assert longest < 6 * MIB
    assert SANITIZED or generation(broker) > 3, "a few times it was compacted"


def test_a_kill_in_the_middle_loses_nothing_that_was_confirmed(broker):
    control = broker.control()
    pair = zmq.curve_keypair()
    key = pair[0].decode()
    for life in range(5):
        topics = 0
        joins = renewing(broker, key, 100_000)
        for answered in joins:  # more requests are under way at the end
            control.ok("create_topic", **ROOT, topic=f"life{life}.{topics}", broker_type="queue")
            topics += 1
            if answered > 4096 + 29 * life:  # about in the middle of the compaction
                break
        before = generation(broker)
        broker.kill()
        broker.start()
        names = {each["topic"] for each in control.ok("list_topics", **ROOT)["topics"]}
        joins.close()
        assert {f"life{life}.{number}" for number in range(topics)} <= names
        assert generation(broker) >= before
        assert not list((broker.data_dir / "catalogue").glob("*.new"))
    assert SANITIZED or generation(broker) > 2
    # The key that was registered last is still valid.
    uri = control.ok("join", topic="t", type="pull", client_key=key, **ANN)["bind_uri"]
    pull = broker.socket(zmq.PULL, uri, **keys_for(broker.server_key, pair))
    to = control.ok("join", topic="t", type="push", client_key=key, **ANN)["bind_uri"]
    broker.kill()
    broker.start()
    broker.socket(zmq.PUSH, to, **keys_for(broker.server_key, pair)).send(b"it lets in")
    assert receive(pull, 1) == [b"it lets in"]
