"""Tests limits for all topics together, and for each topic, endpoint and session, as the broker's settings
give them."""
import pytest
import zmq

import session_client
from session_client import Session, hello_values, open_values
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, until

MIB = 1 << 20


def fill(broker, control, topic, payload=b"x" * 65536):
    """Sends to the topic until the broker stops reading from the producer for lack of disk space."""
    push = broker.socket(zmq.PUSH, control.join(topic, "push"), sndhwm=4)
    sent = 0

    def held():
        nonlocal sent
        for _ in range(64):
            try:
                push.send(payload, zmq.DONTWAIT)
                sent += 1
            except zmq.Again:
                break
        return control.stats(topic)["blocked_by"] == "disk"

    until(held, "the quota to be reached")
    return push


def reached(control):
    """Returns the limits that were reached, and how often."""
    return {name: count for name, count in control.broker_stats()["limits_reached"].items() if count}


def bytes_of_topics(broker):
    return sum(path.stat().st_size for path in (broker.data_dir / "topics").rglob("*") if path.is_file())


def test_topics_wait_at_the_quota_and_continue_when_another_is_deleted(make_broker):
    broker = make_broker("--disk-bytes-max", str(8 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    for topic in ("first", "second"):
        control.create(topic, "file", segment_bytes=MIB)
    fill(broker, control, "first")
    assert bytes_of_topics(broker) <= 8 * MIB + MIB  # the segments, and the files beside them
    kept = control.stats("first")["messages_received"]
    assert kept > 60  # messages of 65,536 bytes

    broker.logged("the last eighth of 8388608 is reserved for logs that have little")
    second = fill(broker, control, "second", b"y" * 4096)
    got = control.stats("second")["messages_received"]
    assert got > 0  # from the part that the first topic may not use
    control.create("third", "file", segment_bytes=MIB)
    fill(broker, control, "third").close()
    assert control.stats("third")["messages_received"] > 0, "each has its part of the last eighth"
    assert reached(control)["disk_bytes_max"] >= 3, "and each was told that there is no more"
    assert bytes_of_topics(broker) <= 8 * MIB + MIB

    pull = broker.socket(zmq.PULL, control.join("first", "pull"))
    assert pull.recv() == b"x" * 65536  # existing messages can be read
    control.delete("first")
    until(lambda: control.stats("second")["messages_received"] > got, "the other topic to go on")


def test_several_topics_that_fill_the_quota_keep_no_other_from_it(make_broker):
    broker = make_broker("--disk-bytes-max", str(80 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    anns = [f"ann{i}" for i in range(4)]
    for topic in (*anns, "bobs"):
        control.create(topic, "file", segment_bytes=MIB)
    for topic in anns:
        fill(broker, control, topic)
    assert reached(control) == {"disk_bytes_max": 4}
    push = broker.socket(zmq.PUSH, control.join("bobs", "push"))
    for _ in range(10):  # however they are batched, their segments fit into a fifth of the last eighth
        push.send(b"x" * 65536)
    until(lambda: control.stats("bobs")["messages_received"] == 10, "another topic's messages")


def test_a_topic_that_fills_the_quota_does_not_block_other_users(make_broker):
    """This also holds while the topic's files are in the pool and wait to be used again."""
    broker = make_broker("--disk-bytes-max", str(16 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    for topic in ("anns", "bobs"):
        control.create(topic, "file", segment_bytes=MIB)
    fill(broker, control, "anns")
    until(lambda: reached(control) == {"disk_bytes_max": 1}, "it to be counted")
    push = broker.socket(zmq.PUSH, control.join("bobs", "push"))
    for _ in range(10):
        push.send(b"x" * 65536)
    until(lambda: control.stats("bobs")["messages_received"] == 10, "another topic's messages")
    stats = control.stats("anns")
    assert stats["blocked_by"] == "disk" and reached(control) == {"disk_bytes_max": 1}, "it waits still"
    kept = stats["messages_received"]
    control.ok("purge", topic="anns", user_id=ADMIN, password=ADMIN_PASSWORD)
    until(lambda: control.stats("anns")["messages_received"] > kept, "it to go on")


@pytest.mark.parametrize("broker_type", ["file", "queue_file"])
def test_a_topic_that_drops_its_oldest_continues_at_its_capacity_with_any_share(make_broker, broker_type):
    broker = make_broker("--disk-bytes-max", str(32 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    # One topic may use 7/8 of the limit, which are 28 MiB.
    control.create("t", broker_type, segment_bytes=MIB, capacity_bytes=29 * MIB, overflow="drop_oldest")
    push = broker.socket(zmq.PUSH, control.join("t", "push"), sndtimeo=20_000)
    for _ in range(1000):
        push.send(b"x" * 65_536)
    until(lambda: control.stats("t")["messages_received"] == 1000, "twice what there is room for")
    until(lambda: control.stats("t")["blocked_by"] == "", "nothing to be in its way")
    assert bytes_of_topics(broker) <= 32 * MIB + MIB


def test_the_floor_is_counted_by_its_own_name(make_broker):
    broker = make_broker("--min-free-bytes", str(1 << 60))
    control = broker.control()
    control.create("t", "file")
    push = broker.socket(zmq.PUSH, control.join("t", "push"))
    push.send(b"waits")
    until(lambda: control.stats("t")["blocked_by"] == "disk", "it to wait")
    assert reached(control) == {"min_free_bytes": 1}


def test_rings_of_one_user_leave_an_eighth_to_others(make_broker):
    broker = make_broker("--memory-bytes-max", str(16 * MIB))
    control = broker.control()
    administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    for name in ("ann", "bob"):
        control.ok("create_user", **administrator, user_id=name, password=PASSWORD,
                   rights=[{"topic": f"{name}*", "rights": ["manage"]}])

    def create(name, topic, ring_bytes=2 * MIB):
        return control("create_topic", admin_user_id=name, admin_password=PASSWORD if name != ADMIN else ADMIN_PASSWORD,
                       topic=topic, broker_type="queue", ring_bytes=ring_bytes).get("code", "ok")

    # A single large topic is refused too.
    assert create("ann", "ann0", 15 * MIB) == "limit_reached"
    assert [create("ann", f"ann{i}") for i in range(9)] == ["ok"] * 7 + ["limit_reached"] * 2
    assert control.fails("limit_reached", "create_topic", admin_user_id="ann", admin_password=PASSWORD, topic="ann9",
                         broker_type="queue", ring_bytes=2 * MIB)["description"].endswith("of 16777216 is reserved for users with less")
    assert reached(control) == {"memory_bytes_max": 4}
    assert create("bob", "bob", MIB) == "ok"
    assert create(ADMIN, "roots", MIB) == "ok"
    assert create(ADMIN, "more", MIB) == "limit_reached"  # the whole limit holds for every user
    control.ok("delete_topic", **administrator, topic="ann0")
    assert create("ann", "ann-again") == "limit_reached"  # 16 of 16 MiB again
    control.ok("delete_topic", **administrator, topic="ann1")
    assert create("ann", "ann-again") == "ok"


def test_the_quota_counts_files_of_an_earlier_life(make_broker):
    broker = make_broker("--disk-bytes-max", str(4 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    control.create("t", "file", segment_bytes=MIB)
    fill(broker, control, "t").close()
    before = control.stats("t")["messages_received"]
    broker.restart()
    until(lambda: control.stats("t")["next_offset"] >= before, "the topic to be there")
    fill(broker, control, "t")
    assert bytes_of_topics(broker) <= 5 * MIB


def test_rings_and_topics_are_bounded_in_all(make_broker):
    broker = make_broker("--memory-bytes-max", str(3 * MIB), "--topics-max", "4")
    control = broker.control()
    credentials = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    control.create("one", ring_bytes=MIB)
    control.create("two", "queue_file", ring_bytes=2 * MIB)
    refused = control.fails("limit_reached", "create_topic", **credentials, topic="three", broker_type="queue",
                            ring_bytes=65536)
    assert str(3 * MIB) in refused["description"]
    control.create("three", "file")  # a durable topic has no ring
    control.delete("one")
    control.create("four", ring_bytes=MIB)
    control.create("five", "file")
    refused = control.fails("limit_reached", "create_topic", **credentials, topic="six", broker_type="file")
    assert "4 topics" in refused["description"]
    control.delete("five")
    broker.restart()
    control.fails("limit_reached", "create_topic", **credentials, topic="seven", broker_type="queue")
    control.create("six", "file")


def test_connections_are_limited_for_each_user_separately(make_broker):
    broker = make_broker("--connections-per-user", "3")
    control = broker.control()
    control.create("t")
    administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    for name in ("ann", "bob"):
        control.ok("create_user", **administrator, user_id=name, password=PASSWORD,
                   rights=[{"topic": "*", "rights": ["produce", "consume"]}])

    def push(user, join=None):
        return broker.socket(zmq.PUSH, join or control.join("t", "push", user_id=user))

    def ticket(user):
        return session_client.join(control, "t", user_id=user)

    def connected():
        return control.stats("t")["publishers_count"]

    first, _ = push("ann"), push("ann")
    until(lambda: connected() == 2, "two plain connections")
    while_there_is_room = control.join("t", "push", user_id="ann")
    with Session(ticket("ann")):
        late = ticket("ann")
        with Session(late, hello=False) as refused:
            answer = refused.request("hello", **hello_values(ticket=late.text))
            assert answer.op == "error" and answer.code == "limit_reached"
            assert refused.goodbye() == "limit_reached"
        before = control.stats("t")["refused_connections"]
        push("ann", while_there_is_room)
        until(lambda: control.stats("t")["refused_connections"] > before, "the plain one to be refused")
        refused = control.fails("limit_reached", "join", topic="t", type="push", user_id="ann", password=PASSWORD)
        assert "connections_per_user" in refused["description"]
        broker.logged("more connections than a user may have")
        push("bob")
        until(lambda: connected() == 3, "another user's")
    # A connection that ends makes space. The refused one is then admitted, because its library tries again.
    with Session(ticket("ann")):
        first.close()
        until(lambda: connected() == 2, "the end of one")
        push("ann")
        until(lambda: connected() == 3, "one in its place")


def test_endpoints_and_groups_are_limited_for_each_topic_separately(make_broker):
    broker = make_broker("--endpoints-per-topic-max", "1", "--groups-per-topic-max", "1")
    control = broker.control()
    control.create("t")
    control.create("other")
    control.join("t", "push")
    control.join("t", "push")  # gets the same endpoint
    asked = {"topic": "t", "connection_type": "zmq", "type": "pull", "user_id": USER, "password": PASSWORD}
    control.fails("limit_reached", "join", **asked)
    control.join("other", "pull")
    with Session(session_client.join(control, "other", "pull")) as session:
        session.consumer("other")  # the plain pullers' group exists there already
        assert session.error_of("consume_open", **open_values("other", "second")) == "limit_reached"
        session.present(session_client.join(control, "t", "pull"))
        session.consumer("t", "first")
        assert session.error_of("consume_open", **open_values("t", "second")) == "limit_reached"


def test_the_connections_of_an_endpoint_and_the_sessions_of_a_thread_are_bounded(make_broker):
    broker = make_broker("--connections-per-endpoint-max", "2", "--reactors", "1")
    control = broker.control()
    control.create("t")
    uri = control.join("t", "push")
    pushers = [broker.socket(zmq.PUSH, uri) for _ in range(3)]
    until(lambda: control.stats("t")["publishers_count"] == 2, "as many as there may be")
    pushers[0].close()
    pushers[1].close()
    pushers[2].send(b"in")  # if it was the third one, it tries again by itself
    until(lambda: control.stats("t")["messages_received"] == 1, "the third in their place")

    ticket = session_client.join(control, "t")
    with Session(ticket) as first, Session(ticket):
        with Session(ticket, hello=False) as third:
            third.send("hello", request=1, **hello_values(ticket=ticket.text))
            assert third.take(lambda frame: frame.op == "error", "an error").code == "limit_reached"
            assert third.goodbye() == "limit_reached"
        first.producer("t").produce([b"there still"])
    until(lambda: control.stats("t")["messages_received"] == 2, "those that are in to go on")


def test_the_channels_of_a_session_are_bounded(make_broker):
    broker = make_broker("--session-channels-max", "2")
    control = broker.control()
    for topic in ("t", "u", "v"):
        control.create(topic)
    tickets = [session_client.join(control, topic) for topic in ("t", "u", "v")]
    with Session(tickets[0]) as session:
        assert session.welcome["channels_max"] == 2
        one = session.producer("t")
        session.producer("t")
        produce_open = {"producer_id": 0, "producer_epoch": 0, "level": 0, "topic": "t"}
        assert session.error_of("produce_open", **produce_open) == "limit_reached"
        assert one.close().op == "done"
        session.producer("t")
        assert session.present(tickets[1]).op == "done"
        refused = session.present(tickets[2])
        assert refused.op == "error" and refused.code == "limit_reached"
