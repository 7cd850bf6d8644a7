"""Tests limits on the requests of one client, as the settings give them."""
import collections
import json
import os

import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, Secrets, silent, until

ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


def asked_at_once(broker, request, count):
    """Sends `count` copies of a request on one connection without waiting for answers. Returns how often each
    code, or `ok`, was the answer."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri, sndhwm=0, rcvhwm=0)
    for _ in range(count):
        dealer.send_multipart([b"", json.dumps(request).encode()])
    answers = collections.Counter()
    for _ in range(count):
        assert dealer.poll(DEADLINE * 1000), f"{answers.total()} of {count} answers"
        answer = json.loads(dealer.recv_multipart()[-1])
        answers[answer.get("code", "ok")] += 1
    dealer.close()
    return answers


def test_the_setting_limits_the_requests_of_one_source(make_broker):
    broker = make_broker("--requests-per-second", "1")
    # As many requests as the free allowance permits in half a minute.
    answers = asked_at_once(broker, {"cmd": "version"}, 3000)
    assert answers["ok"] >= 100 and answers["busy"] > 0 and answers.total() == answers["ok"] + answers["busy"], answers
    stats = broker.control().broker_stats()
    assert stats["throttled_requests"] == answers["busy"]


def test_a_source_with_a_high_rate_is_refused_nothing(make_broker):
    broker = make_broker("--requests-per-second", "1000000")
    assert asked_at_once(broker, {"cmd": "version"}, 30_000) == {"ok": 30_000}
    stats = broker.control().ok("stats", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    assert stats["throttled_requests"] == 0


def from_elsewhere(broker):
    """A client with another address of the loopback network."""
    host, port = broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    dealer = broker.context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(f"tcp://127.0.0.2:0;{host}:{port}")
    return dealer


def limits_reached(broker):
    """Returns how often all limits together have refused something."""
    return sum(broker.control().broker_stats()["limits_reached"].values())


def test_the_setting_limits_the_length_of_a_request(make_broker):
    short, long = make_broker("--request-bytes-max", "4KiB"), make_broker("--request-bytes-max", "1MiB")
    for broker, fits, too_long in (short, 4096, 4097), (long, 1 << 20, None):
        def padded(size):
            empty = json.dumps({"cmd": "ping", "x": ""})
            return json.dumps({"cmd": "ping", "x": "y" * (size - len(empty))}).encode()

        control = broker.control()
        assert control.send_raw(padded(fits))["status"] == "ok"
        if too_long:
            assert control.send_raw(padded(too_long))["code"] == "request_too_large"
            control.ok("ping")
        assert limits_reached(broker) == (1 if too_long else 0)


def test_a_source_gets_a_quarter_of_the_waiting_requests(make_broker):
    broker = make_broker("--requests-waiting-max", "4")
    stats = {"cmd": "stats", "topic": "t", "user_id": "u", "password": Secrets.plant("a wrong one, hashed")}
    elsewhere = from_elsewhere(broker)
    dealer = broker.socket(zmq.DEALER, broker.control_uri)
    dealer.send(json.dumps(stats).encode())
    for _ in range(20):
        dealer.send(b'{"cmd":"stats","topic":"t","user_id":"u","password":"wrong"}')
    elsewhere.send(b'{"cmd":"ping"}')
    codes = collections.Counter()
    for _ in range(21):
        assert dealer.poll(DEADLINE * 1000)
        codes[json.loads(dealer.recv())["code"]] += 1
    assert codes["unauthorized_access"] >= 1 and codes["busy"] >= 1 and codes.total() == 21, codes
    assert elsewhere.poll(DEADLINE * 1000) and json.loads(elsewhere.recv())["status"] == "ok"
    elsewhere.close()
    assert limits_reached(broker) == codes["busy"]


def test_credentials_are_remembered_up_to_the_setting(make_broker):
    """A credential that is not remembered is verified again, which takes 20 ms each time."""
    spent = {}
    for most in "2", "65536":
        broker = make_broker("--credentials-remembered-max", most)
        control = broker.control()
        control.create("t")
        for user in ("ann", "bob"):
            control.ok("create_user", **ADMINISTRATOR, user_id=user, password=PASSWORD,
                       rights=[{"topic": "t", "rights": ["consume"]}])
            control.ok("stats", topic="t", user_id=user, password=PASSWORD)
        before = broker.processor_seconds()
        for user in ("ann", "bob") * 15:
            control.ok("stats", topic="t", user_id=user, password=PASSWORD)
        spent[most] = broker.processor_seconds() - before
    assert spent["2"] > 0.2 and spent["2"] > 4 * spent["65536"], spent


def test_users_and_rings_are_bounded(make_broker):
    broker = make_broker("--users-max", "2", "--ring-bytes-max", "128KiB")
    control = broker.control()
    for user in ("ann", "bob"):
        control.ok("create_user", **ADMINISTRATOR, user_id=user, password=PASSWORD)
    refused = control.fails("limit_reached", "create_user", **ADMINISTRATOR, user_id="cy", password=PASSWORD)
    assert "2 users" in refused["description"]
    control.ok("delete_user", **ADMINISTRATOR, user_id="ann")
    control.ok("create_user", **ADMINISTRATOR, user_id="cy", password=PASSWORD)

    for settings in {}, {"ring_bytes": 131073}, {"broker_type": "queue_file", "ring_bytes": 1 << 20}:
        asked = {"topic": "t", "broker_type": "queue", **settings}
        refused = control.fails("limit_reached", "create_topic", **ADMINISTRATOR, **asked)
        assert "ring_bytes_max of 131072" in refused["description"]
    control.create("t", ring_bytes=131072)
    control.create("u", "file")  # a durable topic has no ring
    # A user who may not create topics receives no error about rings.
    control.fails("unauthorized_access", "create_topic", admin_user_id="bob", admin_password=PASSWORD, topic="v",
                  broker_type="queue")
    control.fails("unauthorized_access", "create_user", admin_user_id="bob", admin_password=PASSWORD, user_id="dan",
                  password=PASSWORD)
    assert limits_reached(broker) == 4


def test_keys_of_a_topics_clients_are_bounded(make_broker):
    broker = make_broker("--encrypt", "--client-keys-per-topic-max", "2")
    control = broker.control()
    control.create("t")
    control.create("u")
    for user in ("ann", "bob", "cy"):
        control.ok("create_user", **ADMINISTRATOR, user_id=user, password=PASSWORD,
                   rights=[{"topic": "*", "rights": ["produce"]}])

    def asked(topic, user):
        return {"topic": topic, "type": "push", "user_id": user, "password": PASSWORD,
                "client_key": zmq.curve_keypair()[0].decode()}

    control.ok("join", **asked("t", "ann"))
    control.ok("join", **asked("t", "ann"))  # replaces the first one
    control.ok("join", **asked("t", "bob"))
    control.fails("limit_reached", "join", **asked("t", "cy"))
    control.fails("unauthorized_access", "join", **{**asked("t", "cy"), "password": "wrong"})
    control.ok("join", **asked("u", "cy"))
    control.ok("join", **asked("t", "bob"))
    broker.restart()
    control.fails("limit_reached", "join", **asked("t", "cy"))
    assert limits_reached(broker) == 1  # since the start


def test_connections_to_the_control_socket_are_bounded(make_broker):
    """A client that fills the limit causes the connections that were idle longest to be evicted. It keeps no
    other client out."""
    broker = make_broker("--control-connections-max", "2")
    hogs = [broker.control() for _ in range(5)]
    descriptors = f"/proc/{broker.process.pid}/fd"
    for hog in hogs:
        hog.ok("list_topics", **ADMINISTRATOR)
    many = len(os.listdir(descriptors))
    other = broker.socket(zmq.DEALER, broker.control_uri)
    for _ in range(3):
        other.send(json.dumps({"cmd": "list_topics", **ADMINISTRATOR}).encode())
        assert other.poll(DEADLINE * 1000) and json.loads(other.recv())["status"] == "ok"
    until(lambda: broker.control().broker_stats()["limits_reached"]["control_connections_max"] >= 4, "others to go")
    assert len(os.listdir(descriptors)) <= many + 2
    for hog in hogs:
        hog.close()


TOPICS = 300
LIST = {"cmd": "list_topics", **ADMINISTRATOR}


def with_long_answers(make_broker, *flags):
    """A broker with a list of topics of some 50 KiB, on a Unix socket, which buffers little."""
    broker = make_broker(*flags, start=False)
    broker.control_uri = f"ipc://{broker.directory}/control"
    broker.start()
    control = broker.control()
    for index in range(TOPICS):
        control.ok("create_topic", **ADMINISTRATOR, topic=f"topic-{index:05}", broker_type="direct")
    return broker, control


def hog(broker):
    """Asks for more lists of topics than its socket takes, and reads none."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri, rcvhwm=1, sndhwm=0)
    for _ in range(40):
        dealer.send(json.dumps(LIST).encode())
    return dealer


def test_a_client_that_does_not_read_its_answers_is_closed(make_broker):
    broker, control = with_long_answers(make_broker, "--answers-unread-bytes-max", "64KiB")
    assert hog(broker)
    until(lambda: limits_reached(broker) >= 1, "its end")
    for _ in range(20):
        assert len(control.list()) == TOPICS, "one at a time"


def test_unread_replies_of_one_source_are_limited_together(make_broker):
    broker, control = with_long_answers(make_broker, "--answers-unread-bytes-total", "2MiB")
    hogs = []
    for count in range(1, 40):
        hogs.append(hog(broker))
        assert len(control.list()) == TOPICS, "who reads its answers gets them"
        if limits_reached(broker) > 0:
            break
    assert 4 < count < 30, "they hold some 100 KiB each, of 512"
    hogs += [hog(broker) for _ in range(10)]
    for _ in range(50):
        assert len(control.list()) == TOPICS
    until(lambda: limits_reached(broker) > 5, "others to be closed, too")


def test_unread_replies_are_only_limited_when_they_are_many(make_broker):
    broker, control = with_long_answers(make_broker)
    hogs = [hog(broker) for _ in range(40)]
    for _ in range(20):
        assert len(control.list()) == TOPICS
    for each in hogs:
        for _ in range(40):
            assert each.poll(DEADLINE * 1000) and len(json.loads(each.recv())["topics"]) == TOPICS
    assert limits_reached(broker) == 0
