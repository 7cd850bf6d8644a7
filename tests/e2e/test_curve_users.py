"""Tests users of a broker that encrypts: each registered key belongs to the user that registered it."""
import pytest
import zmq

from curve_support import CurveBroker, keys_for, try_out
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, until
from test_curve import LET_IN, REFUSED, make  # noqa: F401

ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


@pytest.fixture
def broker(make):  # noqa: F811
    return make(kind=CurveBroker)


@pytest.fixture
def control(broker):
    control = broker.control()
    for user in ("ann", "bob"):
        control.ok("create_user", **ADMINISTRATOR, user_id=user, password=PASSWORD,
                   rights=[{"topic": "*", "rights": ["produce", "consume"]}])
    control.create("t")
    return control


def joined(broker, control, kind, user):
    uri, keys = control.joined("t", {zmq.PUSH: "push", zmq.PULL: "pull", zmq.SUB: "sub"}[kind], user_id=user)
    return broker.socket(kind, uri, **keys)


@pytest.mark.parametrize("kind", [zmq.PUSH, zmq.PULL, zmq.SUB], ids=["push", "pull", "sub"])
@pytest.mark.parametrize("how", ["revoke", "delete_user", "set_password"])
def test_a_revoked_right_ends_open_connections(broker, control, kind, how):
    count = "publishers_count" if kind == zmq.PUSH else "subscribers_count"
    joined(broker, control, kind, "ann")
    joined(broker, control, kind, "bob")
    until(lambda: control.stats("t")[count] == 2, "both")
    more = {"revoke": {"topic": "*", "rights": ["produce" if kind == zmq.PUSH else "consume"]},
            "set_password": {"new_password": PASSWORD + "-new"}, "delete_user": {}}[how]
    control.ok(how, **ADMINISTRATOR, user_id="ann", **more)
    assert control.stats("t")[count] == 1, "in force when it is answered"
    until(lambda: control.stats("t")["refused_connections"] >= 1, "the one that comes again to be refused")
    assert control.stats("t")[count] == 1


def test_a_revocation_survives_a_kill_of_the_broker(broker, control):
    pair = zmq.curve_keypair()
    uri, _ = control.joined("t", "push", pair, user_id="ann")
    control.ok("revoke", **ADMINISTRATOR, user_id="ann", topic="*", rights=["produce"])
    broker.kill()
    broker.start()
    assert try_out(broker, zmq.PUSH, uri, **keys_for(broker.server_key, pair))[0] == REFUSED


def test_places_at_an_endpoint_count_for_the_user_of_the_key(make):  # noqa: F811
    broker = make("--connections-per-endpoint-max", "8")
    control = broker.control()
    for user in ("ann", "bob"):
        control.ok("create_user", **ADMINISTRATOR, user_id=user, password=PASSWORD,
                   rights=[{"topic": "*", "rights": ["produce"]}])
    control.create("t")
    uri, keys = control.joined("t", "push", user_id="ann")  # while there is space
    anns = [joined(broker, control, zmq.PUSH, "ann") for _ in range(7)]
    until(lambda: control.stats("t")["publishers_count"] == 7, "all but the last eighth")
    refused = control.fails("limit_reached", "join", topic="t", type="push", user_id="ann", password=PASSWORD,
                            client_key=zmq.curve_keypair()[0].decode())
    assert "connections_per_endpoint_max" in refused["description"]
    anns.append(broker.socket(zmq.PUSH, uri, **keys))
    anns[-1].send(b"of ann")
    until(lambda: control.broker_stats()["limits_reached"]["connections_per_endpoint_max"] > 0, "it to be turned away")
    joined(broker, control, zmq.PUSH, "bob").send(b"of bob")
    until(lambda: control.stats("t")["messages_received"] == 1, "another user")
    assert control.stats("t")["publishers_count"] == 8 and control.broker_stats()["refused_connections"] == 0
    for each in anns[:2]:
        each.close()
    until(lambda: control.stats("t")["messages_received"] == 2, "a place for the one that was turned away")


def test_a_user_cannot_register_anothers_key(broker, control):
    pair = zmq.curve_keypair()
    uri, keys = control.joined("t", "push", pair, user_id="ann")
    credentials = {"topic": "t", "type": "push", "password": PASSWORD, "client_key": pair[0].decode()}
    refused = control.fails("invalid_request", "join", **credentials, user_id="bob")
    assert "another user" in refused["description"]
    control.ok("join", **credentials, user_id="ann")  # renews a key of the same user
    # With another role the key counts as another one.
    control.ok("join", **{**credentials, "type": "pull"}, user_id="bob")
    control.ok("delete_user", **ADMINISTRATOR, user_id="bob")
    assert try_out(broker, zmq.PUSH, uri, **keys)[0] == LET_IN
