"""Tests that a user who fills a limit of the control socket leaves a part to others: connections, requests
under way, answers."""
import json

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


def credentials(name):
    return {"user_id": name, "password": f"{name}-password-1"}


@pytest.fixture
def of_two(make_broker):
    """Makes a broker with a topic `t` and the users ann and bob. Each may do everything with topics that
    begin with `t`."""
    def make(*flags):
        broker = make_broker("--reactors", "1", *flags)
        control = broker.control()
        control.create("t")
        for name in ("ann", "bob"):
            control.ok("create_user", **ROOT, **credentials(name),
                       rights=[{"topic": "t*", "rights": ["produce", "consume", "manage"]}])
        return broker, control
    return make


class Asker:
    """A client that asks without waiting for answers, from an address of its own if `source` is given."""

    def __init__(self, broker, source=None):
        uri = broker.control_uri
        self.dealer = broker.socket(zmq.DEALER, uri.replace("tcp://", f"tcp://{source}:0;") if source else uri)

    def put(self, **request):
        self.dealer.send_multipart([b"", json.dumps(request).encode()])

    def get(self):
        assert self.dealer.poll(DEADLINE * 1000), "no answer"
        return json.loads(self.dealer.recv_multipart()[-1])

    def ask(self, **request):
        self.put(**request)
        return self.get()

    def stats(self, name):
        return self.ask(cmd="stats", topic="t", **credentials(name))


def test_connections_of_one_user_evict_no_other_users(of_two):
    broker, control = of_two("--control-connections-max", "8")
    bob = Asker(broker)
    ended = bob.dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    assert bob.stats("bob")["status"] == "ok"
    many = [Asker(broker) for _ in range(30)]
    for ann in many:
        assert ann.stats("ann")["status"] == "ok"
    reached = control.broker_stats()["limits_reached"]
    assert reached["control_connections_max"] >= 20, reached
    # When this request is answered, all earlier work is done.
    assert bob.stats("bob")["status"] == "ok"
    assert not ended.poll(0), "bob's was ended"
    bob.dealer.disable_monitor()
    assert many[0].stats("ann")["status"] == "ok", "what was ended comes back by itself"


def test_long_replies_are_limited_for_one_user_only(of_two):
    broker, control = of_two("--requests-per-second", "500")
    for i in range(60):
        control.ok("create_topic", **ROOT, topic=f"t{i:0119}", broker_type="direct")
    ann, bob = Asker(broker), Asker(broker)
    listed = {"cmd": "list_topics", "admin_user_id": "ann", "admin_password": "ann-password-1"}

    def refused():
        for _ in range(40):
            ann.put(**listed)
        answers = [ann.get() for _ in range(40)]
        assert {answer.get("code", "ok") for answer in answers} <= {"ok", "busy"}
        return any("long replies" in answer.get("description", "") for answer in answers)

    until(refused, "one to be too much")
    assert ann.ask(cmd="join", topic="t", type="push", **credentials("ann"))["status"] == "ok", "it is short"
    assert bob.stats("bob")["status"] == "ok", "another user at the same address"
    assert len(control.list()) == 61, "the administrator"
    assert control.broker_stats()["limits_reached"]["requests_per_second"] > 0
    until(lambda: ann.ask(**listed)["status"] == "ok", "it to be made up for")


def test_requests_of_one_user_leave_places_for_others_from_all_sources(of_two):
    broker, control = of_two("--requests-waiting-max", "8")
    addresses = [Asker(broker, f"127.0.0.{i}") for i in range(2, 8)]
    for each in addresses:
        assert each.stats("ann")["status"] == "ok"
    bob = Asker(broker, "127.0.0.9")
    for _ in range(30):
        for each in addresses:
            for _ in range(20):
                each.put(cmd="stats", topic="t", **credentials("ann"))
        assert bob.stats("bob")["status"] == "ok"
        answers = [each.get() for each in addresses for _ in range(20)]
        assert {answer.get("code", "ok") for answer in answers} <= {"ok", "busy"}
    until(lambda: control.broker_stats()["limits_reached"]["requests_waiting_max"] == 0, "no more than a part")


def test_requests_of_one_user_leave_places_for_others_of_the_same_source(of_two):
    broker, control = of_two("--requests-waiting-max", "32")
    ann, bob = Asker(broker), Asker(broker)
    assert ann.stats("ann")["status"] == "ok"
    assert bob.stats("bob")["status"] == "ok"
    for _ in range(50):
        for _ in range(40):
            ann.put(cmd="stats", topic="t", **credentials("ann"))
        assert bob.stats("bob")["status"] == "ok"
        assert {ann.get().get("code", "ok") for _ in range(40)} <= {"ok", "busy"}
    assert control.broker_stats()["limits_reached"]["requests_waiting_per_user_max"] > 0, "she asked for too much"
