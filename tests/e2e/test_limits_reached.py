"""Tests that each limit that refuses something is counted in the broker's stats, and no other limit is. A
table lists how to reach each limit."""
import contextlib
import json
import socket

import pytest
import zmq

import session_client
from http_support import HTTP, RawPeer
from session_client import Session, open_values
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


def too_many_topics(broker, control):
    control.create("u")
    control.fails("limit_reached", "create_topic", **ROOT, topic="v", broker_type="direct")


def too_much_memory(broker, control):
    control.fails("limit_reached", "create_topic", **ROOT, topic="big", broker_type="queue", ring_bytes=1 << 28)


def a_long_request(broker, control):
    control.fails("request_too_large", "ping", more="x" * 70_000)


def a_request_beyond_all_bounds(broker, control):
    dealer = broker.socket(zmq.DEALER, broker.control_uri)
    dealer.send_multipart([b"", b"x" * ((1 << 20) + 1)])
    until(lambda: reached(control)["request_bytes_hard_max"] > 0, "the connection to be closed")
    dealer.close()


def a_deep_request(broker, control):
    answer = control.send_raw(b'{"cmd":"ping","more":' + b"[" * 40 + b"]" * 40 + b"}")
    assert answer["code"] == "invalid_json", answer


def many_rights(broker, control):
    rights = [{"topic": f"a{i}", "rights": ["produce"]} for i in range(257)]
    control.fails("limit_reached", "create_user", **ROOT, user_id="many", password="manys-password", rights=rights)


def fewer_rights(broker, control):
    rights = [{"topic": f"a{i}", "rights": ["produce"]} for i in range(4)]
    control.fails("limit_reached", "create_user", **ROOT, user_id="many", password="manys-password", rights=rights)
    control.ok("create_user", **ROOT, user_id="many", password="manys-password", rights=rights[:3])
    control.fails("limit_reached", "grant", **ROOT, user_id="many", **rights[3])


def many_endpoints(broker, control):
    for _ in range(4):
        control.join("t", "pull")
    control.fails("limit_reached", "join", topic="t", type="pull", user_id=USER, password=PASSWORD)


def no_memory_to_share(broker, control):
    with Session(session_client.join(control, "t", carrier="socket", transport="ipc")) as session:
        if session_client.MEMORY:
            return  # the session has already asked to share memory
        assert session.error_of("share", to_broker=4096, to_client=4096) == "limit_reached"


def many_groups(broker, control):
    with Session(session_client.join(control, "t", "pull")) as session:
        assert session.request("consume_open", **open_values("t", "one")).op == "consume_opened"
        assert session.request("consume_open", **open_values("t", "two")).op == "consume_opened"
        assert session.request("consume_open", **open_values("t", "three")).code == "limit_reached"


def many_channels(broker, control):
    with Session(session_client.join(control, "t")) as session:
        for _ in range(4):
            session.producer("t")
        refused = session.request("produce_open", producer_id=0, producer_epoch=0, level=0, topic="t")
        assert refused.code == "limit_reached", refused


def many_reads(broker, control):
    """No read is answered before the session's earlier answers are read."""
    with Session(session_client.join(control, "t", "push")) as session:
        producer = session.producer("t")
        producer.produce([b"x" * 50_000] * 100)
        producer.wait_confirmed()
    with Session(session_client.join(control, "t", "pull")) as session:
        for i in range(400):
            session.send("read", request=100 + i, begin=0, end=(1 << 64) - 1, bytes=1 << 23, topic="t")
        until(lambda: reached(control)["session_reads_max"] > 0, "a read to be refused")


def a_long_plain_message(broker, control):
    push = broker.socket(zmq.PUSH, control.join("t", "push"))
    push.send(b"x" * 200_000)
    until(lambda: reached(control)["message_bytes_max"] == 1, "it to be refused")
    push.close()


def a_long_message_of_a_session(broker, control):
    with Session(session_client.join(control, "t")) as session:
        producer = session.producer("t")
        producer.produce([b"x" * 200_000])
        assert producer.take_refuse().code == "too_large"


def a_silent_stranger(broker, control):
    host, port = session_client.join(control, "t").uri.removeprefix("tcp://").rsplit(":", 1)
    with contextlib.closing(socket.create_connection((host, int(port)), DEADLINE)) as silent:
        while silent.recv(4096):
            pass


def a_silent_stranger_at_an_endpoint(broker, control):
    host, port = str(control.join("t", "push")).removeprefix("tcp://").rsplit(":", 1)
    with contextlib.closing(socket.create_connection((host, int(port)), DEADLINE)) as silent:
        while silent.recv(4096):
            pass


def a_silent_stranger_at_the_control_socket(broker, control):
    host, port = broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    with contextlib.closing(socket.create_connection((host, int(port)), DEADLINE)) as silent:
        while silent.recv(4096):
            pass


def many_strangers_at_the_control_socket(broker, control):
    control.broker_stats()  # authenticated by this request
    host, port = broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    with contextlib.ExitStack() as there:
        for _ in range(20):
            there.enter_context(contextlib.closing(socket.create_connection((host, int(port)))))
            # One request per connection, because many new connections together would wait.
            control.broker_stats()
        until(lambda: reached(control)["handshakes_max"] > 0, "the oldest to make room")
        stats = control.broker_stats()
        assert stats["evicted_connections"] == stats["limits_reached"]["handshakes_max"]


def many_connections_of_a_user(broker, control):
    control.ok("create_user", **ROOT, user_id="ann", password="ann-password-1",
               rights=[{"topic": "t", "rights": ["produce"]}])
    ticket = session_client.join(control, "t", user_id="ann", password="ann-password-1")
    with Session(ticket), Session(ticket):
        third = Session(ticket, hello=False)
        with contextlib.closing(third):
            third.send("hello", request=1, **session_client.hello_values(ticket=ticket.text))
            assert third.take(lambda frame: frame.op == "error", "an error").code == "limit_reached"


def many_requests(broker, control):
    dealer = broker.socket(zmq.DEALER, broker.control_uri, sndhwm=0, rcvhwm=0)
    for _ in range(400):
        dealer.send_multipart([b"", json.dumps({"cmd": "ping"}).encode()])
    until(lambda: reached(control)["requests_per_second"] > 0, "one to be refused")
    dealer.close()


def many_requests_of_a_user(broker, control):
    """Sends requests from two addresses, with one under way at each."""
    dealers = [broker.socket(zmq.DEALER, broker.control_uri.replace("tcp://", f"tcp://127.0.0.{i}:0;")) for i in (2, 3)]
    asked = json.dumps({"cmd": "stats", "topic": "t", "user_id": USER, "password": PASSWORD}).encode()

    def refused():
        for dealer in dealers:
            dealer.send_multipart([b"", asked])
        answers = [answer_at(dealer) for dealer in dealers]
        assert {answer.get("code", "ok") for answer in answers} <= {"ok", "busy"}
        return reached(control)["requests_waiting_per_user_max"] > 0

    until(refused, "both to be under way at once")


def many_ports(broker, control):
    control.join("t", "pull")
    control.fails("limit_reached", "join", topic="t", type="pull", user_id=USER, password=PASSWORD)


def many_pieces(broker, control):
    with Session(session_client.join(control, "t", "push")) as session:
        producer = session.producer("t")
        producer.produce([b"x"] * 12)
        producer.wait_confirmed()
    with Session(session_client.join(control, "t", "pull")) as session:
        consumer = session.consumer("t")
        while reached(control)["outstanding_ranges_max"] == 0:
            messages = consumer.receive(12)
            consumer.acknowledge(*range(1, 12, 2))
            assert consumer.take_error().code == "limit_reached", messages


def many_ranges_requeued(broker, control):
    with Session(session_client.join(control, "t", "push")) as session:
        producer = session.producer("t")
        producer.produce([b"x"] * 12)
        producer.wait_confirmed()
    with Session(session_client.join(control, "t", "pull")) as session:
        consumer = session.consumer("t")
        consumer.receive(12)
        consumer.reject(0, 2, 4, ms=60_000)
        until(lambda: reached(control)["group_state_bytes_max"] > 0, "the group to be held back")


def many_newcomers(broker, control):
    host, port = broker.control_uri.removeprefix("tcp://").rsplit(":", 1)

    def waits():
        socket.create_connection((host, int(port)), DEADLINE).close()
        return reached(control)["accepts_per_second"] > 0

    until(waits, "one to wait")


def much_credit(broker, control):
    with Session(session_client.join(control, "t", "pull")) as session:
        answer = session.request("consume_open", **open_values("t", "one", credit=(1 << 30, 1 << 30)))
        for _ in range(2):
            session.send("credit", channel=answer.channel, messages=1 << 30, bytes=0)
        ended = session.take(lambda frame: frame.op == "error" and frame.channel == answer.channel, "its end")
        assert ended.code == "limit_reached"


def answer_at(dealer):
    assert dealer.poll(DEADLINE * 1000), "no answer"
    return json.loads(dealer.recv_multipart()[-1])


def many_passwords_to_be_kept(broker, control):
    dealer = broker.socket(zmq.DEALER, broker.control_uri, **control.options)
    for i in range(40):
        dealer.send_multipart([b"", json.dumps({"cmd": "create_user", **ROOT, "user_id": f"user{i}",
                                                "password": PASSWORD}).encode()])
    answers = [answer_at(dealer) for _ in range(40)]
    assert {answer.get("code", "ok") for answer in answers} == {"ok", "busy"}
    dealer.close()


def over_http(broker, text):
    """Sends bytes to the broker's HTTP. Returns the answer."""
    peer = RawPeer(broker)
    peer.say(text)
    answer = peer.hear()
    peer.close()
    return answer


def a_long_http_head(broker, control):
    assert over_http(broker, b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000).startswith(b"HTTP/1.1 431 ")


def a_long_http_body(broker, control):
    assert over_http(broker, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def a_slow_http_head(broker, control):
    assert over_http(broker, b"GET / HTTP/1.1\r\n").startswith(b"HTTP/1.1 408 ")


def many_http_connections(broker, control):
    peers = [RawPeer(broker) for _ in range(5)]
    assert peers[0].hear() == b"", "the one that is idle longest"
    for peer in peers:
        peer.close()


LONG = ["--handshake-ms", "60000"]
CASES = {
    too_many_topics: ("topics_max", ["--topics-max", "2"]),
    too_much_memory: ("memory_bytes_max", ["--memory-bytes-max", "200000000"]),
    a_long_request: ("request_bytes_max", []),
    a_request_beyond_all_bounds: ("request_bytes_hard_max", []),
    a_deep_request: ("json_depth_max", []),
    fewer_rights: ("rights_per_user_max", ["--rights-per-user-max", "3"]),
    many_ports: ("ports", ["--ports", "PORT"]),
    many_pieces: ("outstanding_ranges_max", ["--outstanding-ranges-max", "4"]),
    many_ranges_requeued: ("group_state_bytes_max", ["--group-state-bytes-max", "3"]),
    many_newcomers: ("accepts_per_second", ["--accepts-per-second", "1", "--handshakes-max", "16"] + LONG),
    much_credit: ("in_flight_messages_max", []),
    many_passwords_to_be_kept: ("passwords_waiting_per_source_max", []),
    many_rights: ("rights_per_user_max", []),
    many_endpoints: ("endpoints_per_topic_max", ["--endpoints-per-topic-max", "4"]),
    no_memory_to_share: ("shared_bytes_total", ["--shared-bytes-total", "0"]),
    many_groups: ("groups_per_topic_max", ["--groups-per-topic-max", "2"]),
    many_channels: ("session_channels_max", ["--session-channels-max", "4"]),
    many_reads: ("session_reads_max", []),
    a_long_plain_message: ("message_bytes_max", ["--message-bytes-max", "100000"]),
    a_long_message_of_a_session: ("message_bytes_max", ["--message-bytes-max", "100000"]),
    a_silent_stranger: ("handshake_ms", ["--handshake-ms", "500"]),
    a_silent_stranger_at_an_endpoint: ("handshake_ms", ["--handshake-ms", "500"]),
    a_silent_stranger_at_the_control_socket: ("handshake_ms", ["--handshake-ms", "500"]),
    many_strangers_at_the_control_socket: ("handshakes_max",
                                           ["--handshakes-max", "16", "--accepts-per-second", "1000000"] + LONG),
    many_connections_of_a_user: ("connections_per_user", ["--connections-per-user", "2"]),
    many_requests_of_a_user: ("requests_waiting_per_user_max", ["--requests-waiting-max", "4"]),
    a_long_http_head: ("http_head_bytes_max", HTTP),
    a_long_http_body: ("http_body_bytes_max", HTTP),
    a_slow_http_head: ("http_head_ms", HTTP),
    many_http_connections: ("http_connections_max", [*HTTP, "--http-connections-max", "4"]),
    many_requests: ("requests_per_second", ["--requests-per-second", "1"]),
}


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return str(listening.getsockname()[1])


def reached(control):
    return control.broker_stats()["limits_reached"]


@pytest.mark.parametrize("reach", CASES, ids=lambda reach: reach.__name__)
def test_a_reached_limit_is_counted_by_its_name(make_broker, reach):
    name, flags = CASES[reach]
    flags = [free_port() if flag == "PORT" else flag for flag in flags]
    broker = make_broker("--reactors", "1", *flags)
    control = broker.control()
    control.create("t")
    assert not any(reached(control).values())
    reach(broker, control)
    until(lambda: reached(control)[name] > 0, "it to be counted")
    assert [each for each, count in reached(control).items() if count > 0] == [name]
