"""Tests that a user who fills a limit leaves a part to others: producers, groups, topics, sessions.
Unauthenticated peers fill none of them."""
import contextlib
import json
import socket

import pytest
import zmq

import session_client
from session_client import Session, hello_values, open_values
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
NEW_PRODUCER = {"topic": "t", "producer_id": 0, "producer_epoch": 0, "level": 0}


def credentials(name):
    return {"user_id": name, "password": f"{name}-password-1"}


def as_admin(name):
    return {"admin_user_id": name, "admin_password": f"{name}-password-1"}


def join(control, name, kind="push"):
    return session_client.join(control, "t", kind, **credentials(name))


@pytest.fixture
def of_two(make_broker):
    """Makes a broker with a topic `t` and the users ann and bob, who may do everything with topics that begin
    with `t`."""
    def make(*flags, broker_type="queue"):
        broker = make_broker("--reactors", "1", *flags)
        control = broker.control()
        control.create("t", broker_type)
        for name in ("ann", "bob"):
            control.ok("create_user", **ROOT, **credentials(name),
                       rights=[{"topic": "t*", "rights": ["produce", "consume", "manage"]}])
        return broker, control
    return make


def refused_at_hello(ticket):
    """Returns the codes of the error and the goodbye after hello, or None if the session begins."""
    session = Session(ticket, hello=False)
    with contextlib.closing(session):
        session.send("hello", request=1, **hello_values(ticket=ticket.text))
        answer = session.take(lambda frame: frame.op in ("error", "welcome"), "an answer")
        if answer.op == "welcome":
            return None
        return answer.code, session.take(lambda frame: frame.op == "goodbye", "goodbye").code


@pytest.mark.parametrize("broker_type", ["queue", "file"])
def test_thousands_of_producers_of_others_evict_none_of_a_connected_user(of_two, broker_type):
    _, control = of_two(broker_type=broker_type)
    with Session(join(control, "bob")) as bobs, Session(join(control, "ann")) as anns:
        producer = bobs.producer("t")
        producer.produce([b"one"])
        producer.wait_confirmed()
        silent = bobs.producer("t")  # has stored nothing yet
        for _ in range(10_001):
            anns.last_request += 1
            anns.send("produce_open", request=anns.last_request, **NEW_PRODUCER)
            opened = anns.take(lambda frame: frame.op in ("produce_opened", "error"), "an answer")
            assert opened.op == "produce_opened", opened
            anns.last_request += 1
            anns.send("close", channel=opened.channel, request=anns.last_request)
            anns.take(lambda frame: frame.op == "done", "done")
        for each in (producer, silent):
            each.produce([b"two"])
            each.wait_confirmed()
    assert control.stats("t")["messages_received"] == 3


def test_groups_that_one_user_makes_leave_an_eighth_to_others(of_two):
    _, control = of_two("--groups-per-topic-max", "16")
    with Session(join(control, "ann", "pull")) as session:
        made = 0
        while session.request("consume_open", **open_values("t", f"ann{made}")).op != "error":
            made += 1
    assert made == 14
    with Session(join(control, "bob", "pull")) as session:
        assert session.request("consume_open", **open_values("t", "bob")).op == "consume_opened"
    with Session(join(control, "bob", "sub")) as session:
        assert session.request("consume_open", **open_values("t", "", session_client.OWN)).op == "consume_opened"
    assert control.broker_stats()["limits_reached"]["groups_per_topic_max"] == 1


def test_a_share_belongs_to_the_user_of_the_ticket_that_opens_it(of_two):
    """The ticket of the hello does not count, because it may be another user's."""
    _, control = of_two("--groups-per-topic-max", "16")
    control.create("other")
    with Session(session_client.join(control, "other", "pull")) as session:
        assert session.present(join(control, "ann", "pull")).op == "done"
        made = 0
        while session.request("consume_open", **open_values("t", f"ann{made}")).op != "error":
            made += 1
    assert made == 14


def test_sessions_of_one_user_leave_an_eighth_to_others(of_two):
    _, control = of_two("--connections-per-endpoint-max", "16")
    with contextlib.ExitStack() as open_ones:
        anns, bobs = join(control, "ann"), join(control, "bob")
        for _ in range(14):
            open_ones.enter_context(Session(anns))
        assert refused_at_hello(anns) == ("limit_reached", "limit_reached")
        for _ in range(2):
            open_ones.enter_context(Session(bobs))
        assert refused_at_hello(bobs) == ("limit_reached", "limit_reached")
        assert control.broker_stats()["limits_reached"]["connections_per_endpoint_max"] == 2
    until(lambda: refused_at_hello(anns) is None, "a place is free again")


def test_plain_connections_of_one_user_leave_an_eighth_to_others(of_two):
    broker, control = of_two("--connections-per-endpoint-max", "16")
    of = {name: control.join("t", "push", **credentials(name)) for name in ("ann", "bob")}
    assert str(of["ann"]) == str(of["bob"]), "producers share an endpoint"
    anns = [broker.socket(zmq.PUSH, of["ann"]) for _ in range(14)]
    until(lambda: control.stats("t")["publishers_count"] == 14, "seven eighths")
    anns.append(broker.socket(zmq.PUSH, of["ann"]))
    anns[-1].send(b"of ann")
    until(lambda: control.broker_stats()["limits_reached"]["connections_per_endpoint_max"] > 0, "one to be turned away")
    for _ in range(2):
        broker.socket(zmq.PUSH, of["bob"]).send(b"of bob")
    until(lambda: control.stats("t")["messages_received"] == 2, "two of another user")
    assert control.stats("t")["publishers_count"] == 16
    reached = control.broker_stats()["limits_reached"]
    assert [name for name, count in reached.items() if count] == ["connections_per_endpoint_max"]
    assert control.broker_stats()["refused_connections"] == 0, "its ticket is good"
    for each in anns[:3]:
        each.close()
    until(lambda: control.stats("t")["messages_received"] == 3, "a place for the one that was turned away")


def test_a_session_counts_for_the_user_of_each_ticket(of_two):
    """The ticket with which the session began does not matter: that of an open topic, which has no user, or
    that of another user."""
    _, control = of_two("--connections-per-user", "2")
    control.ok("create_topic", **ROOT, topic="free", broker_type="queue", open=True)
    nobodys, anns, bobs = session_client.join(control, "free"), join(control, "ann"), join(control, "bob")
    with Session(nobodys) as first, Session(nobodys) as second, Session(bobs) as third:
        assert first.present(anns).op == "done"
        assert first.present(join(control, "ann")).op == "done", "it is counted once"
        assert second.present(anns).op == "done"
        assert third.present(anns).code == "limit_reached"
        assert refused_at_hello(anns) == ("limit_reached", "limit_reached")
        third.producer("t")  # the third session continues, with its earlier permissions
        with Session(bobs):
            assert refused_at_hello(bobs) == ("limit_reached", "limit_reached")
        assert refused_at_hello(nobodys) == ("limit_reached", "limit_reached"), "strangers have what one user has"
        assert control.broker_stats()["limits_reached"]["connections_per_user"] == 4
    until(lambda: refused_at_hello(anns) is None, "a place is free again")


def test_anonymous_sessions_become_a_users_and_leave_an_eighth_to_others(of_two):
    _, control = of_two("--connections-per-endpoint-max", "16")
    control.ok("create_topic", **ROOT, topic="free", broker_type="queue", open=True)
    nobodys, anns = session_client.join(control, "free"), join(control, "ann")
    with contextlib.ExitStack() as open_ones:
        sessions = [open_ones.enter_context(Session(nobodys)) for _ in range(14)]
        admins = session_client.join(control, "t", **ROOT)
        sessions += [open_ones.enter_context(Session(admins)) for _ in range(2)]
        answers = [each.present(anns) for each in sessions]
        assert [answer.op for answer in answers] == ["done"] * 8 + ["error"] * 8
        assert {answer.code for answer in answers[8:]} == {"limit_reached"}
        assert control.broker_stats()["limits_reached"]["connections_per_endpoint_max"] == 8
    until(lambda: refused_at_hello(anns) is None, "places are free again")


@pytest.fixture
def of_strangers(of_two):
    """Makes the broker of `of_two` with an open topic `free`."""
    def make(*flags):
        broker, control = of_two(*flags)
        control.ok("create_topic", **ROOT, topic="free", broker_type="queue", open=True)
        return broker, control
    return make


def stranger_joins(control, **more):
    return control("join", topic="free", **{"type": "push", "connection_type": "zmq", **more})


def test_anonymous_sessions_leave_an_eighth_to_users(of_strangers):
    _, control = of_strangers("--connections-per-endpoint-max", "16")
    answer = stranger_joins(control, connection_type="socket", delivery="session")
    ticket = session_client.Ticket(answer["bind_uri"], f"{answer['ticket']['id']}.{answer['ticket']['secret']}", "socket")
    with contextlib.ExitStack() as open_ones:
        for _ in range(14):
            open_ones.enter_context(Session(ticket))
        assert refused_at_hello(ticket) == ("limit_reached", "limit_reached")
        with Session(join(control, "ann")) as anns:
            anns.producer("t")
            assert refused_at_hello(session_client.join(control, "t", **ROOT)) is None, "nor does the administrator"


def test_anonymous_producers_and_groups_leave_an_eighth_to_others(of_strangers):
    _, control = of_strangers("--producers-max", "16", "--groups-per-topic-max", "16")
    with Session(session_client.join(control, "free")) as strangers, \
            Session(session_client.join(control, "free", **ROOT)) as admins:
        opened = [strangers.request("produce_open", **{**NEW_PRODUCER, "topic": "free"}).op for _ in range(15)]
        assert opened == ["produce_opened"] * 14 + ["error"]
        admins.producer("free")
    with Session(session_client.join(control, "free", "pull")) as strangers, \
            Session(session_client.join(control, "free", "pull", **ROOT)) as admins:
        opened = [strangers.request("consume_open", **open_values("free", f"g{i}")).op for i in range(15)]
        assert opened == ["consume_opened"] * 14 + ["error"]
        assert admins.request("consume_open", **open_values("free", "admins")).op == "consume_opened"


def test_anonymous_plain_connections_are_limited_like_one_user(of_strangers):
    broker, control = of_strangers("--connections-per-user", "3")
    uri = stranger_joins(control)["bind_uri"]
    there = [broker.socket(zmq.PUSH, uri) for _ in range(3)]
    until(lambda: control.stats("free")["publishers_count"] == 3, "as many as one user may have")
    refused = stranger_joins(control)
    assert refused["code"] == "limit_reached" and "anonymous clients" in refused["description"], refused
    assert stranger_joins(control, type="pull", connection_type="socket")["code"] == "limit_reached"
    broker.socket(zmq.PUSH, uri).send(b"one too many")
    until(lambda: control.broker_stats()["limits_reached"]["connections_per_user"] >= 3, "it to be turned away")
    broker.socket(zmq.PUSH, control.join("t", "push", **credentials("ann"))).send(b"ann's")
    broker.socket(zmq.PUSH, control.join("free", "push", **ROOT)).send(b"the administrator's")
    until(lambda: control.stats("t")["messages_received"] == 1, "a user to be let in")
    until(lambda: control.stats("free")["messages_received"] == 1, "the administrator to be let in")
    there.pop().close()
    until(lambda: control.stats("free")["messages_received"] == 2, "the fourth to be let in")


def test_unauthenticated_connections_do_not_use_up_all_descriptors(make_broker):
    """Neither one user nor the clients without a user: the broker has 272 descriptors for connections, and
    each of the two may have 90."""
    broker = make_broker("--reactors", "1", prefix=["prlimit", "--nofile=400:400"])
    control = broker.control()
    broker.logged("a user can have 90 data connections, not connections_per_user (4000)")
    control.create("t")
    control.ok("create_topic", **ROOT, topic="free", broker_type="queue", open=True)
    for name in ("ann", "bob"):
        control.ok("create_user", **ROOT, **credentials(name), rights=[{"topic": "t", "rights": ["produce"]}])
    answer = stranger_joins(control, connection_type="socket", delivery="session")
    ticket = session_client.Ticket(answer["bind_uri"], f"{answer['ticket']['id']}.{answer['ticket']['secret']}", "socket")
    with contextlib.ExitStack() as open_ones:
        for each in (ticket, join(control, "ann")):
            for _ in range(90):
                open_ones.enter_context(Session(each))
            assert refused_at_hello(each) == ("limit_reached", "limit_reached")
        with Session(join(control, "bob")) as bobs:
            bobs.producer("t")
    assert control.broker_stats()["limits_reached"]["descriptors_reserved"] == 0


def test_a_plain_join_reports_that_its_connection_has_no_place(of_two):
    broker, control = of_two("--connections-per-endpoint-max", "2", "--connections-per-user", "2")
    anns = control.join("t", "push", **credentials("ann"))
    there = [broker.socket(zmq.PUSH, anns)]
    until(lambda: control.stats("t")["publishers_count"] == 1, "one of ann")
    control.join("t", "push", **credentials("ann"))  # there is space for another user
    there.append(broker.socket(zmq.PUSH, anns))
    until(lambda: control.stats("t")["publishers_count"] == 2, "both of ann")
    reached = control.broker_stats()["limits_reached"]
    assert not any(reached.values()), reached
    of = {"type": "push", "topic": "t", "connection_type": "zmq"}
    assert "(connections_per_user)" in control.fails("limit_reached", "join", **of, **credentials("ann"))["description"]
    assert "(connections_per_endpoint_max)" in control.fails("limit_reached", "join", **of,
                                                             **credentials("bob"))["description"]
    control.join("t", "pull", **credentials("bob"))  # has an endpoint of its own
    reached = control.broker_stats()["limits_reached"]
    assert {name: count for name, count in reached.items() if count} == \
        {"connections_per_endpoint_max": 1, "connections_per_user": 1}
    there.pop().close()
    until(lambda: control("join", **of, **credentials("bob"))["status"] == "ok", "a place to be free")


def test_topics_created_concurrently_count_while_their_passwords_are_hashed(of_two):
    broker, control = of_two("--topics-max", "17")
    dealer = broker.socket(zmq.DEALER, broker.control_uri, **control.options)
    for i in range(16):
        dealer.send_multipart([b"", json.dumps({"cmd": "create_topic", "topic": f"t{i}", "broker_type": "direct",
                                                "user_id": f"u{i}", "password": PASSWORD, **as_admin("ann")}).encode()])
    answers = []
    while len(answers) < 16:
        assert dealer.poll(DEADLINE * 1000), answers
        answers.append(json.loads(dealer.recv_multipart()[-1]))
    assert sorted(answer.get("code", "ok") for answer in answers) == ["limit_reached"] * 2 + ["ok"] * 14
    control.ok("create_topic", topic="t-bob", broker_type="direct", **as_admin("bob"))
    control.ok("delete_topic", topic="t-bob", **ROOT)
    for topic in control.list():
        control.delete(topic["topic"])
    control.ok("create_topic", topic="t-again", broker_type="direct", user_id="again", password=PASSWORD, **as_admin("ann"))


def test_topics_of_one_user_leave_an_eighth_to_others(of_two):
    broker, control = of_two("--topics-max", "17")
    made = 0
    while control("create_topic", topic=f"t{made}", broker_type="direct", **as_admin("ann"))["status"] == "ok":
        made += 1
    assert made == 14  # 15 of 17 with `t`
    control.fails("limit_reached", "create_topic", topic="t-more", broker_type="direct", **as_admin("ann"))
    assert control.broker_stats()["limits_reached"]["topics_max"] == 2
    control.ok("create_topic", topic="t-bob", broker_type="direct", **as_admin("bob"))
    control.ok("create_topic", topic="t-admin", broker_type="direct", **ROOT)
    control.fails("limit_reached", "create_topic", topic="t-admin2", broker_type="direct", **ROOT)
    control.ok("delete_topic", topic="t-bob", **ROOT)
    control.fails("limit_reached", "create_topic", topic="t-more", broker_type="direct", **as_admin("ann"))


class Strangers:
    """Silent connections to an address, `count` of them. A connection that the broker closes is made again."""

    def __init__(self, uri, count):
        host, port = uri.removeprefix("tcp://").rsplit(":", 1)
        self.where, self.count, self.live = (host, int(port)), count, []

    def fill(self):
        def is_open(each):
            try:
                while each.recv(4096):
                    pass
                return False
            except BlockingIOError:
                return True
            except OSError:
                return False
        kept = []
        for each in self.live:
            if is_open(each):
                kept.append(each)
            else:
                each.close()
        while len(kept) < self.count:
            kept.append(socket.create_connection(self.where))
            kept[-1].setblocking(False)
        self.live = kept

    def close(self):
        for each in self.live:
            each.close()


def test_unauthenticated_peers_fill_no_endpoint(make_broker):
    """The endpoint permits fewer connections than there are unauthenticated peers. These count only for
    handshakes_max."""
    broker = make_broker("--reactors", "1", "--connections-per-endpoint-max", "20", "--handshake-ms", "60000")
    control = broker.control()
    control.create("t")
    plain, ticket = control.join("t", "push"), session_client.join(control, "t")
    with contextlib.closing(Strangers(str(plain), 40)) as at_endpoint, contextlib.closing(Strangers(ticket.uri, 40)) as at_door:
        for strangers in (at_endpoint, at_door):
            strangers.fill()
        push = broker.socket(zmq.PUSH, plain)
        push.send(b"in")
        until(lambda: control.stats("t")["messages_received"] == 1, "a producer with a ticket to be let in")
        for _ in range(20):
            for strangers in (at_endpoint, at_door):
                strangers.fill()
            assert refused_at_hello(ticket) is None
        reached = control.broker_stats()["limits_reached"]
        assert (reached["connections_per_endpoint_max"], reached["handshakes_max"]) == (0, 0), reached


def test_a_full_endpoint_accepts_the_next_connection_when_one_leaves(make_broker):
    broker = make_broker("--reactors", "1", "--connections-per-endpoint-max", "3")
    control = broker.control()
    control.create("t")
    uri = control.join("t", "push")
    there = [broker.socket(zmq.PUSH, uri) for _ in range(3)]
    until(lambda: control.stats("t")["publishers_count"] == 3, "three producers")
    late = broker.socket(zmq.PUSH, uri)
    late.send(b"late")
    until(lambda: control.broker_stats()["limits_reached"]["connections_per_endpoint_max"] > 0, "one to be turned away")
    assert control.stats("t")["messages_received"] == 0
    until(lambda: "refusing connections" in broker.log(), "a line of the log")
    assert broker.logged("refusing connections").count("refusing connections") == 1
    there.pop().close()
    until(lambda: control.stats("t")["messages_received"] == 1, "the fourth to be let in")
    assert control.stats("t")["publishers_count"] == 3
