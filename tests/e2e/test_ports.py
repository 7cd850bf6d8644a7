"""Tests the ports and numbers of endpoints: a user that joins again and again, or uses up everything, keeps
no other user out."""
import json
import os
import random
import socket as plain

import pytest
import zmq

import session_client
from session_client import Session
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, receive, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
PORTS = 64
PLACES = PORTS - 2  # sessions have one address for each of their carriers
ROUNDS = 40


def credentials(name):
    return {"user_id": name, "password": f"{name}-password-1"}


def free_ports():
    """Returns a range of free ports, outside those that the system assigns by itself."""
    def is_free(port):
        with plain.socket() as probe:
            probe.setsockopt(plain.SOL_SOCKET, plain.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True
    while True:
        first = random.Random(os.urandom(8)).randrange(10_000, 30_000)
        if all(is_free(port) for port in range(first, first + PORTS)):
            return f"{first}-{first + PORTS - 1}"


@pytest.fixture
def crowd(make_broker):
    """Makes a broker with one topic each for ann and bob, who may use no other, and two open topics."""
    def make(*flags, ports=True, **options):
        broker = make_broker("--reactors", "1", *(["--ports", free_ports()] if ports else []), *flags, **options)
        control = broker.control()
        control.ok("create_topic", **ROOT, topic="open", broker_type="queue", open=True)
        control.ok("create_topic", **ROOT, topic="open2", broker_type="queue", open=True)
        for name in ("ann", "bob"):
            control.ok("create_topic", **ROOT, topic=f"{name}s", broker_type="queue")
            control.ok("create_user", **ROOT, **credentials(name),
                       rights=[{"topic": f"{name}s", "rights": ["produce", "consume"]}])
            # The password is verified and remembered from now on.
            control.join(f"{name}s", "push", transport="ipc", **credentials(name))
        return broker, control
    return make


def stats(control, topic):
    return control.ok("stats", topic=topic, **ROOT)


def reached(control):
    return {name: count for name, count in control.broker_stats()["limits_reached"].items() if count > 0}


def burst(broker, *requests):
    """Sends all requests at once. Returns their answers."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri)
    for request in requests:
        dealer.send_multipart([b"", json.dumps(request).encode()])
    answers = []
    for _ in requests:
        assert dealer.poll(DEADLINE * 1000), "no answer"
        answers.append(json.loads(dealer.recv_multipart()[-1]))
    dealer.close()
    return answers


def a_join(topic, kind, who, transport="tcp"):
    return {"cmd": "join", "topic": topic, "type": kind, "transport": transport, **who}


def uris_of(answers):
    return [each["bind_uri"] for each in answers if each["status"] == "ok"]


def refusals_in(answers):
    return [each for each in answers if each["status"] != "ok"]


def join_and_leave(broker, topic, kind, who, rounds=ROUNDS, at_once=40, transport="tcp"):
    for _ in range(rounds):
        joined = burst(broker, *[a_join(topic, kind, who, transport)] * at_once)
        assert not refusals_in(joined), refusals_in(joined)[0]
        left = burst(broker, *({"cmd": "leave", "topic": topic, "bind_uri": uri, **who} for uri in uris_of(joined)))
        assert not refusals_in(left), refusals_in(left)[0]


def others_join(broker, control, transport="tcp"):
    """Checks that bob can produce and consume over new endpoints and sessions, and the administrator too."""
    bob = credentials("bob")
    pulling = control.join("bobs", "pull", transport=transport, **bob)
    puller = broker.socket(zmq.PULL, pulling)
    pusher = broker.socket(zmq.PUSH, control.join("bobs", "push", transport=transport, **bob))
    pusher.send(b"through")
    assert receive(puller, 1) == [b"through"]
    for connection_type in ("socket", "zmq"):
        control.ok("join", topic="bobs", type="push", connection_type=connection_type, delivery="session", **bob)
    with Session(session_client.join(control, "bobs", "push", **bob)) as session:
        session.producer("bobs")
    uri = control.ok("join", topic="bobs", type="sub", transport=transport, **ROOT)["bind_uri"]
    for each in (puller, pusher):
        each.close()
    for each in (uri, pulling):
        control.ok("leave", topic="bobs", bind_uri=each, **ROOT)


WHO = {"a user": ("anns", credentials("ann")), "strangers": ("open", {})}


@pytest.mark.parametrize("topic, who", WHO.values(), ids=WHO)
def test_repeated_joins_and_leaves_use_up_nothing(crowd, topic, who):
    broker, control = crowd()
    for kind in ("sub", "pull"):
        join_and_leave(broker, topic, kind, who)
    assert reached(control) == {}
    others_join(broker, control)
    control.ok("join", topic="open2", type="sub")
    broker.restart()
    control = broker.control()
    others_join(broker, control)
    control.ok("join", topic="open2", type="sub")
    assert reached(control) == {}


@pytest.mark.parametrize("topic, who", WHO.values(), ids=WHO)
def test_ports_that_one_holds_leave_an_eighth_to_others(crowd, topic, who):
    broker, control = crowd()
    answers = burst(broker, *[a_join(topic, "sub", who)] * 100)
    assert len(uris_of(answers)) == PLACES - PLACES // 8
    refused = refusals_in(answers)
    assert refused[0]["code"] == "limit_reached" and "TCP ports for endpoints" in refused[0]["description"], refused[0]
    assert reached(control) == {"ports": len(refused)}
    assert broker.logged("a join was refused").count("a join was refused") == 1
    for _ in range(30):  # an endpoint that one user leaves may be used by another immediately
        others_join(broker, control)


def test_an_endpoint_without_a_connection_is_evicted(crowd):
    broker, control = crowd()
    ann = credentials("ann")
    pulling = broker.socket(zmq.PULL, control.join("anns", "pull", **ann))
    until(lambda: stats(control, "anns")["subscribers_count"] == 1, "the consumer to be there")
    answers = burst(broker, *[a_join("anns", "sub", ann)] * 100, *[a_join("bobs", "sub", ROOT)] * 20)
    held, rest = uris_of(answers[:100]), uris_of(answers[100:])
    assert len(held) + len(rest) + 1 == PLACES
    uri = []
    def gets_in():
        answer = control("join", topic="bobs", type="pull", **credentials("bob"))
        uri.append(answer.get("bind_uri"))
        return answer["status"] == "ok"
    until(gets_in, "one of ann's to be old enough")
    left = {each["bind_uri"] for each in stats(control, "anns")["subscribers"]}
    assert set(held) - left == {uri[-1]} == {held[0]}, "the oldest, and its port"
    broker.socket(zmq.PUSH, control.join("anns", "push", transport="ipc", **ann)).send(b"for ann")
    assert receive(pulling, 1) == [b"for ann"]


def test_producers_reconnect_to_the_address_that_was_closed(crowd):
    broker, control = crowd("--endpoint-idle-ms", "200")
    uri = control.join("bobs", "push", **credentials("bob"))
    anns = control.join("anns", "push", **credentials("ann"))
    until(lambda: all(f"{each} closes: no client was connected" in broker.log() for each in (uri, anns)), "the endpoints' end")
    assert control.join("bobs", "push", **credentials("bob")) == uri


def test_sessions_have_addresses_before_the_first_join(crowd):
    broker, control = crowd()
    until(lambda: broker.log().count("msg=\"sessions") == 2, "one for each carrier")
    answers = burst(broker, *[a_join("anns", "sub", credentials("ann"))] * 100, *[a_join("bobs", "sub", ROOT)] * 20)
    assert len(uris_of(answers)) == PLACES
    with Session(session_client.join(control, "bobs", "push", **credentials("bob"))) as session:
        session.producer("bobs")


@pytest.mark.parametrize("topic, who", WHO.values(), ids=WHO)
def test_all_endpoints_have_a_limit_with_a_reserve(crowd, topic, who):
    broker, control = crowd("--endpoints-max", "34", ports=False)  # two endpoints exist already
    answers = burst(broker, *[a_join(topic, "sub", who, "ipc")] * 100)
    refused = refusals_in(answers)
    assert len(uris_of(answers)) == 34 - 34 // 8 - 2
    assert refused[0]["code"] == "limit_reached" and "(endpoints_max)" in refused[0]["description"], refused[0]
    assert reached(control) == {"endpoints_max": len(refused)}
    assert broker.logged("a join was refused").count("a join was refused") == 1
    for uri in uris_of(answers):
        control.ok("leave", topic=topic, bind_uri=uri, **who)
    join_and_leave(broker, topic, "pull", who, rounds=10, at_once=25, transport="ipc")
    join_again = burst(broker, *[a_join(topic, "sub", who, "ipc")] * 100)
    # If that took long, some of the user's endpoints were evicted again for others of his.
    assert len(uris_of(join_again)) >= len(uris_of(answers))
    for _ in range(10):
        others_join(broker, control, "ipc")
    broker.restart()
    others_join(broker, broker.control(), "ipc")


def test_joins_without_a_free_descriptor_are_counted_and_logged_once(crowd):
    broker, control = crowd("--endpoints-max", "1000", ports=False, prefix=["prlimit", "--nofile=256:256"])
    for transport in ("tcp", "ipc"):
        before = reached(control).get("descriptors_reserved", 0)
        refused = refusals_in(burst(broker, *[a_join("anns", "sub", credentials("ann"), transport)] * 200))
        assert refused[0]["code"] == "limit_reached" and "file descriptors" in refused[0]["description"], refused[0]
        assert reached(control)["descriptors_reserved"] - before == len(refused)
    assert set(reached(control)) == {"descriptors_reserved"}
    assert broker.logged("a join was refused").count("a join was refused") == 1


def test_by_default_endpoints_leave_half_of_the_descriptors_to_connections(crowd):
    broker, control = crowd(ports=False, prefix=["prlimit", "--nofile=256:256"])
    answers = burst(broker, *[a_join("anns", "sub", credentials("ann"), "ipc")] * 100)
    assert len(uris_of(answers)) == 64 - 64 // 8 - 2  # two endpoints exist already
    assert refusals_in(answers)[0]["code"] == "limit_reached"
    others_join(broker, control)
    assert set(reached(control)) == {"endpoints_max"}
