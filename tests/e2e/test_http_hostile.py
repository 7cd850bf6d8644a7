"""Tests of HTTP under hostile clients: many connections, slow contents, and requests that are given up."""
import json
import resource
import socket

import pytest

from cli_support import CommandLine
from http_support import HTTP, HttpClient, RawPeer, address_of, basic
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, MEMORY_FACTOR, until

ASKER = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
MESSAGES = "/api/v1/topics/orders/messages"
pytestmark = pytest.mark.clear


@pytest.fixture
def broker(make_broker):
    broker = make_broker(*HTTP)
    broker.control().ok("create_topic", **ASKER, topic="orders", broker_type="queue")
    return broker


def memory_most(broker):
    """Returns the most bytes of memory that the broker has had."""
    lines = open(f"/proc/{broker.process.pid}/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def login():
    return "".join(f"{name}: {value}\r\n" for name, value in basic().items())


def limit_of(client, name):
    """Returns how often a limit was reached, or 0 while the broker refuses the question as one of too many."""
    answer = client.get("/metrics")
    return answer.value("lightq_limits_reached_total", limit=name) or 0 if answer.status == 200 else 0


def test_ten_thousand_idle_connections_from_many_sources(broker):
    """Each source of the loopback network is another address. Their oldest idle connections are closed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    _, host, port = address_of(broker)
    kept = []
    for i in range(10_000):
        peer = socket.socket()
        peer.bind((f"127.0.1.{1 + i % 40}", 0))
        peer.connect((host, port))
        kept.append(peer)
        if len(kept) > 2_000:
            kept.pop(0).close()
    client = HttpClient(broker, basic())
    assert client.get("/healthz").status == 200, "in spite of all of them"
    assert client.get("/metrics").value("lightq_connections", kind="http") <= 1_024
    assert limit_of(client, "http_connections_max") >= 1
    for peer in kept:
        peer.close()
    until(lambda: HttpClient(broker, basic()).get("/metrics").value("lightq_connections", kind="http") <= 3, "their end")


def test_a_source_with_many_connections_keeps_others_out_no_more_than_its_share(broker):
    peers = [RawPeer(broker) for _ in range(400)]
    client = HttpClient(broker, basic())
    assert client.get("/metrics").value("lightq_connections", kind="http") <= 256
    assert limit_of(client, "http_connections_per_source_max") >= 1
    for peer in peers:
        peer.close()


def test_slow_contents_delay_nobody(broker):
    slow = [RawPeer(broker) for _ in range(100)]
    for peer in slow:
        peer.say(f"POST {MESSAGES} HTTP/1.1\r\nHost: localhost\r\n{login()}Content-Length: 1000\r\n\r\nx")
    client = HttpClient(broker, basic())
    for i in range(100):
        assert client.ask("POST", MESSAGES, b"fast").json()["first_offset"] == i
    for peer in slow:
        peer.close()
    assert client.ask("POST", MESSAGES, b"last").json()["first_offset"] == 100, "half a content is no message"


def test_many_requests_that_wait_and_are_given_up(broker):
    """Half of the clients go without a word, half reset their connections. No message stays with them."""
    control = broker.control()
    client = HttpClient(broker, basic())
    client.get(f"{MESSAGES}?group=g")
    waiting = [RawPeer(broker) for _ in range(100)]
    for peer in waiting:
        peer.say(f"GET {MESSAGES}?group=g&max=10&wait=25000 HTTP/1.1\r\nHost: localhost\r\n{login()}\r\n")
    until(lambda: control.ok("stats", **ASKER, topic="orders")["groups"][0]["consumers"] == 100, "the requests")
    for i, peer in enumerate(waiting):
        if i % 2 == 0:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
    until(lambda: HttpClient(broker, basic()).get("/metrics").value("lightq_connections", kind="http") <= 3, "their end")
    lines = "".join(json.dumps({"payload": f"m{i}"}) + "\n" for i in range(50))
    assert client.ask("POST", MESSAGES, lines.encode(), Content_Type="application/x-ndjson").status == 200
    found = []
    while len(found) < 50:
        taken = client.get(f"{MESSAGES}?group=g&max=50&wait=20000").json()
        assert taken["messages"], found
        found += [message["payload"] for message in taken["messages"]]
        assert {message["delivery"] for message in taken["messages"]} == {1}
        assert client.ask("POST", f"/api/v1/topics/orders/leases/{taken['lease']}/acknowledge").status == 200
    assert sorted(found) == sorted(f"m{i}" for i in range(50))


def test_leases_that_are_never_settled_reach_a_limit(broker):
    client = HttpClient(broker, basic())
    lines = '{"payload":"m"}\n' * 5_000
    assert client.ask("POST", MESSAGES, lines.encode(), Content_Type="application/x-ndjson").status == 200
    taken = []
    while (answer := client.get(f"{MESSAGES}?group=g&lease=600000")).status == 200:
        taken.append(answer.json()["lease"])
        assert len(taken) <= 4_096
    assert len(taken) > 2_000
    assert (answer.status, answer.json()["code"], answer.headers["Retry-After"]) == (429, "limit_reached", "1")
    assert limit_of(client, "members_per_group_max") >= 1
    assert client.ask("POST", f"/api/v1/topics/orders/leases/{taken[0]}/acknowledge").status == 200
    assert client.get(f"{MESSAGES}?group=g").status == 200
    assert client.get(f"{MESSAGES}?group=other").status == 200


def test_contents_that_are_expensive_to_read(broker):
    client = HttpClient(broker, basic())
    for content in (b"[" * 100_000, b'{"a":' * 50_000, b'{"headers":[' + b"{}," * 50_000 + b"{}]}", b'{"x":1}\n' * 100_000,
                    b'{"' + b"a" * 1_000_000 + b'":1}', b"\n" * 1_000_000, b'{"payload":"' + b"\\u0000" * 100_000 + b'"}' * 2):
        answer = client.ask("POST", MESSAGES, content, Content_Type="application/x-ndjson")
        assert answer.status == 400 and len(answer.body) < 1_000, answer.body[:500]
    assert client.ask("POST", MESSAGES, b"first").json()["first_offset"] == 0


def test_a_connection_that_sends_a_request_behind_one_that_waits(broker):
    """The second request waits in the socket, and is answered after the first one."""
    peer = RawPeer(broker)
    peer.say(f"GET {MESSAGES}?group=g&wait=500 HTTP/1.1\r\nHost: localhost\r\n{login()}\r\n")
    peer.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    heard = peer.hear()
    assert heard.count(b"HTTP/1.1 200 OK") == 2 and heard.endswith(b"ok\n"), heard


def test_many_requests_for_one_long_message_do_not_take_many_times_its_memory(broker, tmp_path):
    """Without a bound on copies this takes 190 times the message: 2.8 GiB."""
    file = tmp_path / "long"
    file.write_bytes(bytes(15 << 20))
    client = HttpClient(broker, basic())
    broker.control().ok("create_topic", **ASKER, topic="long", broker_type="file")
    CommandLine(broker)("produce", "long", "--file-per-message", str(file))
    before = memory_most(broker)
    peers = [RawPeer(broker) for _ in range(190)]
    for peer in peers:
        peer.say(f"GET /api/v1/topics/long/browse HTTP/1.1\r\nHost: localhost\r\n{login()}\r\n")
    until(lambda: limit_of(client, "http_responses_bytes_total") > 0, "the bound", 60)
    for peer in peers:
        peer.close()
    until(lambda: client.get("/healthz").status == 200, "the end of the copies", 60)
    assert memory_most(broker) - before < MEMORY_FACTOR * (1 << 30)
