"""Tests which users may close an endpoint. Its address is no secret: the topic's stats show it."""
import json
import subprocess

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, PASSWORD, SANITIZERS, USER, receive, receive_topic, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


def add(control, name, *rights):
    control.ok("create_user", **ROOT, user_id=name, password=PASSWORD, rights=[{"topic": "*", "rights": list(rights)}])
    return {"user_id": name, "password": PASSWORD}


def committed_on_disk(broker, group="default"):
    """Returns the offset before which the group's cursor on disk has everything; None if there is no such cursor."""
    done = subprocess.run([BINARY, "log", "dump", "--cursors", "--json", str(broker.data_dir / "topics" / "1")],
                          env=SANITIZERS, capture_output=True, timeout=DEADLINE)
    cursors = [json.loads(line) for line in done.stdout.splitlines()]
    return next((one["committed"] for one in cursors if one["name"] == f"group:{group}"), None)


def test_a_user_cannot_close_anothers_endpoint(broker, control):
    control.create("t")
    ann, bob = add(control, "ann", "consume"), add(control, "bob", "produce", "consume")
    address = control.join("t", "sub", **ann)
    subscriber = broker.socket(zmq.SUB, address)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the subscriber")
    seen = control.ok("stats", topic="t", **bob)["subscribers"][0]["bind_uri"]
    assert seen == address, "every consumer of the topic may see it"
    refused = control.fails("endpoint_not_found", "leave", topic="t", bind_uri=seen, **bob)
    nowhere = control.fails("endpoint_not_found", "leave", topic="t", bind_uri="tcp://127.0.0.1:1", **bob)
    assert refused["description"].replace(seen, "URI") == nowhere["description"].replace("tcp://127.0.0.1:1", "URI")
    broker.socket(zmq.PUSH, control.join("t", "push")).send(b"still here")
    assert receive_topic(subscriber, "t", 1) == [b"still here"]
    assert control.ok("leave", topic="t", bind_uri=address, **ann)["messages_handed"] == 1
    control.fails("endpoint_not_found", "leave", topic="t", bind_uri=address, **ann)


@pytest.mark.parametrize("who", ["manager", "owner", "administrator"])
def test_a_manager_of_the_topic_may_move_its_groups(control, who):
    control.create("t")
    ann = add(control, "ann", "consume")
    credentials = {"manager": lambda: add(control, "max", "manage"), "administrator": lambda: ROOT,
                   "owner": lambda: {"user_id": USER, "password": PASSWORD}}[who]()
    control.ok("leave", topic="t", bind_uri=control.join("t", "pull", **ann), **credentials)


def test_an_endpoint_belongs_to_its_user_after_a_restart_and_a_new_password(broker, control):
    control.create("t", "file")
    ann, bob = add(control, "ann", "consume"), add(control, "bob", "consume")
    address = control.join("t", "pull", **ann)
    broker.kill()
    broker.start()
    control.fails("endpoint_not_found", "leave", topic="t", bind_uri=address, **bob)
    control.ok("set_password", **ann, new_password="another one")
    control.ok("leave", topic="t", bind_uri=address, user_id="ann", password="another one")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_an_endpoint_stays_left_over_a_restart(broker, control, end):
    """The sockets stay open and try to connect again by themselves. Still they receive no message beyond the
    count in the reply to `leave`."""
    control.create("t", "file")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    pulled = control.join("t", "pull")
    puller = broker.socket(zmq.PULL, pulled)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the puller")
    subscribed = control.join("t", "sub")
    subscriber = broker.socket(zmq.SUB, subscribed)
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the subscriber")
    producer.send(b"1")
    assert receive(puller, 1) == [b"1"] and receive_topic(subscriber, "t", 1) == [b"1"]
    for address in pulled, subscribed:
        assert control.leave("t", address)["messages_handed"] == 1
    until(lambda: control.stats("t")["durable_offset"] == 1, "the disk")
    until(lambda: committed_on_disk(broker) == 1, "the group's cursor on disk, or a kill would repeat the message")
    events = {socket: socket.get_monitor_socket(zmq.EVENT_CONNECT_RETRIED | zmq.EVENT_CONNECTED) for socket in (puller, subscriber)}
    getattr(broker, end)()
    broker.start()
    for address in pulled, subscribed:
        control.fails("endpoint_not_found", "leave", topic="t", user_id=USER, password=PASSWORD, bind_uri=address)
    for message in (b"2", b"3"):
        producer.send(message)
    other = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert receive(other, 2) == [b"2", b"3"], "they are nobody else's"
    # Both sockets have tried to connect again, and nothing listens at their addresses.
    for socket, monitor in events.items():
        while monitor.poll(0):
            assert int.from_bytes(monitor.recv_multipart()[0][:2], "little") == zmq.EVENT_CONNECT_RETRIED
        until(lambda: monitor.poll(0), "another try to connect")
        socket.disable_monitor()
        assert not socket.poll(0)
    assert control.stats("t")["subscribers_count"] == 1


def test_an_endpoint_of_a_deleted_user_has_no_owner(control):
    control.create("t")
    ann = add(control, "ann", "consume")
    address = control.join("t", "pull", **ann)
    control.ok("delete_user", **ROOT, user_id="ann")
    add(control, "ann", "consume")  # another user with the same name
    control.fails("endpoint_not_found", "leave", topic="t", bind_uri=address, **ann)
    control.ok("leave", topic="t", bind_uri=address, **ROOT)


def test_producers_share_an_endpoint_and_leave_it_open(broker, control):
    control.create("t")
    ann, bob = add(control, "ann", "produce"), add(control, "bob", "produce", "consume")
    eve = add(control, "eve", "consume")
    address = control.join("t", "push", **ann)
    assert control.ok("leave", topic="t", bind_uri=address, **bob)["messages_handed"] == 0
    control.fails("endpoint_not_found", "leave", topic="t", bind_uri=address, **eve)
    broker.socket(zmq.PUSH, address).send(b"as before")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull", **bob)), 1) == [b"as before"]


def test_on_an_open_topic_without_users_all_clients_are_equal(control):
    control.ok("create_topic", **ROOT, topic="t", broker_type="queue", open=True)
    address = control.ok("join", topic="t", type="pull")["bind_uri"]
    control.ok("leave", topic="t", bind_uri=address)


def test_wrong_credentials_reveal_nothing(control):
    control.create("t")
    add(control, "ann", "consume")
    address = control.join("t", "pull")
    asked = [dict(topic="t", bind_uri=address), dict(topic="t", bind_uri="tcp://127.0.0.1:1"),
             dict(topic="none", bind_uri=address)]
    answers = {tuple(sorted(control("leave", **fields, user_id=name, password=f"guess {at}").items()))
               for name in (USER, "ann", "nobody") for at, fields in enumerate(asked)}
    assert answers == {(("cmd", "leave"), ("code", "unauthorized_access"), ("description", "unauthorized_access"),
                        ("status", "error"))}, answers
