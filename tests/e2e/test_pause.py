"""Tests pausing topics and groups: which consumers receive messages meanwhile, and which effects survive a
restart of the broker."""
import pytest
import zmq

from pause_support import DURABLE, KIB, MINE, TYPES, committed, consumer_of, end, fill, group_of, pause, resume
from session_client import GROUP, OWN, join
from session_support import numbers, offsets
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, USER, numbered, number_of, receive, receive_topic, silent, until

pytestmark = pytest.mark.one_broker


@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("name, mode", [("default", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_a_paused_group_receives_nothing_and_the_others_continue(control, session, broker_type, name, mode):
    control.create("t", broker_type)
    paused = consumer_of(control, session, name, mode)
    other = consumer_of(control, session, "other")
    fill(session, 0, 100)
    before = paused.receive(100)
    assert pause(control, group=name) == {"cmd": "pause", "status": "ok"}
    pause(control, group=name)
    assert group_of(control, name)["paused"] and not control.stats("t")["paused"]
    assert not group_of(control, "other")["paused"]
    fill(session, 100, 100)
    assert offsets(other.receive(200)) == list(range(200))
    assert paused.is_silent()
    paused.acknowledge_all(before)  # acknowledgements are accepted during the pause
    committed(control, name, 100)
    late = consumer_of(control, session, name, mode) if mode == GROUP else paused
    assert group_of(control, name)["lag"] == 100 and late.is_silent()
    assert resume(control, group=name) == {"cmd": "resume", "status": "ok"}
    resume(control, group=name)
    assert not group_of(control, name)["paused"]
    come = []

    def all_come():
        for consumer in {paused, late}:
            consumer.session.read_some(0.005)
            come.extend(consumer.messages)
            consumer.messages = []
        return len(come) >= 100

    until(all_come, lambda: f"the rest, at {len(come)}")
    assert sorted(offsets(come)) == list(range(100, 200))
    assert {message.delivery for message in come} == {1}


@pytest.mark.parametrize("broker_type", TYPES)
def test_a_paused_topic_delivers_nothing(broker, control, session, broker_type):
    control.create("t", broker_type)
    group = consumer_of(control, session, "billing")
    own = consumer_of(control, session, "", OWN)
    puller = broker.socket(zmq.PULL, control.join("t", "pull"))
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"))
    until(lambda: control.stats("t")["subscribers_count"] == 4, "everybody")
    pause(control)
    pause(control)
    stats = control.stats("t")
    assert stats["paused"] and not any(each["paused"] for each in stats["groups"])
    fill(session, 0, 50)
    assert control.stats("t")["messages_received"] == 50, "producers are not concerned"
    assert group.is_silent() and own.is_silent() and silent(puller) and silent(subscriber)
    assert [message.offset for message in session(join(control, "t", "sub")).read("t")[0]] == list(range(50))
    pause(control, group="billing")
    resume(control)
    assert numbers(receive(puller, 50)) == list(range(50))
    assert numbers(receive_topic(subscriber, "t", 50)) == list(range(50))
    assert offsets(own.receive(50)) == list(range(50))
    assert group.is_silent(), "the group's own pause is another thing"
    resume(control, group="billing")
    assert offsets(group.receive(50)) == list(range(50))
    stats = control.stats("t")
    assert not stats["paused"] and [each["lost"] for each in stats["groups"] + stats["subscribers"]] == [0] * 4


def test_acknowledge_timeouts_continue_during_a_pause_and_requeued_messages_wait(control, session):
    control.create("t")
    consumer = consumer_of(control, session, "g", ack_timeout_ms=50)
    fill(session, 0, 10)
    pause(control, group="g")
    consumer.receive(10)
    until(lambda: group_of(control, "g")["unacknowledged"] == 0, "the timeout")
    assert consumer.is_silent() and group_of(control, "g")["committed_offset"] == 0
    resume(control, group="g")
    again = consumer.receive(10)
    assert offsets(again) == list(range(10)) and {message.delivery for message in again} == {2}


def test_a_paused_group_holds_the_log_and_seeks(control, session):
    control.create("t", ring_bytes=64 * KIB)
    consumer = consumer_of(control, session, "g")
    fill(session, 0, 30, size=KIB)
    consumer.acknowledge_all(consumer.receive(30))
    committed(control, "g", 30)
    pause(control, group="g")
    producer = session("t").producer("t")
    for at in range(30, 180):
        producer.produce(numbered(at, 1, KIB))
    until(lambda: control.stats("t")["blocked_by"] == "group:g", "the full topic")
    assert consumer.is_silent()
    resume(control, group="g")
    come = []

    def all_come():
        producer.session.read_some(0.005)
        consumer.session.read_some(0.005)
        taken, consumer.messages = consumer.messages, []
        consumer.acknowledge_all(taken)
        come.extend(taken)
        return len(come) >= 150

    until(all_come, lambda: f"the rest, at {len(come)}")
    assert numbers(message.payload for message in come) == list(range(30, 180))
    producer.wait_confirmed()
    committed(control, "g", 180)
    pause(control, group="g")
    fill(session, 180, 5)
    assert consumer.seek("next") == 185
    fill(session, 185, 5)
    assert consumer.is_silent()
    resume(control, group="g")
    assert numbers(message.payload for message in consumer.receive(5)) == list(range(185, 190))


@pytest.mark.parametrize("broker_type", DURABLE)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_pause_survives_a_restart_of_the_broker(broker, control, session, broker_type, how):
    control.create("t", broker_type)
    uris = {name: control.join("t", name) for name in ("pull", "sub")}
    puller = broker.socket(zmq.PULL, uris["pull"])
    subscriber = broker.socket(zmq.SUB, uris["sub"])
    until(lambda: control.stats("t")["subscribers_count"] == 2, "both")
    for name, mode in (("billing", GROUP), ("mine", OWN), ("free", GROUP)):
        consumer_of(control, session, name, mode)
    pause(control, group="billing")
    pause(control, group="mine")
    pause(control)
    end(broker, how)
    stats = control.stats("t")
    assert stats["paused"]
    assert {each["group"]: each["paused"] for each in stats["groups"]} == {
        "default": False, "billing": True, "mine": True, "free": False}
    fill(session, 0, 20)
    free = consumer_of(control, session, "free")
    until(lambda: control.stats("t")["subscribers_count"] == 3, "the others again")
    assert free.is_silent() and silent(puller) and silent(subscriber)
    resume(control)
    resume(control, group="mine")
    end(broker, how)
    stats = control.stats("t")
    assert not stats["paused"]
    assert {each["group"] for each in stats["groups"] if each["paused"]} == {"billing"}
    assert numbers(receive(puller, 20)) == list(range(20))
    assert numbers(receive_topic(subscriber, "t", 20)) == list(range(20))
    billing, mine, free = (consumer_of(control, session, name, mode)
                           for name, mode in (("billing", GROUP), ("mine", OWN), ("free", GROUP)))
    assert offsets(mine.receive(20)) == offsets(free.receive(20)) == list(range(20))
    assert billing.is_silent()
    resume(control, group="billing")
    assert offsets(billing.receive(20)) == list(range(20))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_pause_of_a_transient_topic_survives_a_restart_and_a_groups_ends_with_the_group(
        broker, control, session, how):
    control.create("t")
    consumer_of(control, session, "billing")
    pause(control, group="billing")
    pause(control)
    end(broker, how)
    assert control.stats("t")["paused"] and control.stats("t")["groups"] == []
    consumer = consumer_of(control, session, "billing")
    fill(session, 0, 10)
    assert not group_of(control, "billing")["paused"] and consumer.is_silent()
    resume(control)
    assert offsets(consumer.receive(10)) == list(range(10))


def test_a_deleted_group_is_not_paused_when_it_is_created_again(broker, control, session):
    control.create("t", "file")
    consumer_of(control, session, "g").session.close()
    pause(control, group="g")
    until(lambda: group_of(control, "g")["consumers"] == 0, "the consumer's end")
    control.ok("delete_group", topic="t", group="g", **MINE)
    fill(session, 0, 10)
    assert offsets(consumer_of(control, session, "g").receive(10)) == list(range(10))
    assert not group_of(control, "g")["paused"]


@pytest.mark.parametrize("broker_type", TYPES)
def test_under_load_nothing_is_lost_or_doubled_by_pauses(broker, control, session, broker_type):
    control.create("t", broker_type)
    count, come = 3000, {"group": [], "own": [], "sub": []}
    group = consumer_of(control, session, "g", credit=(100, 1 << 40))
    own = consumer_of(control, session, "", OWN)
    subscriber = broker.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=0)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=0)
    until(lambda: control.stats("t")["subscribers_count"] == 3, "everybody")
    orders = [pause, resume, lambda control: pause(control, group="g"), lambda control: resume(control, group="g")]
    sent = 0

    def all_come():
        nonlocal sent
        for _ in range(100):
            if sent < count:
                producer.send(numbered(sent, 1)[0])
                sent += 1
        if sent < count:
            orders[sent // 100 % 4](control)
        for consumer, name in ((group, "group"), (own, "own")):
            consumer.session.read_some(0.001)
            taken, consumer.messages = consumer.messages, []
            consumer.acknowledge_all(taken)
            if taken and consumer is group:
                consumer.give(len(taken))
            come[name] += taken
        while subscriber.poll(0):
            come["sub"].append(number_of(subscriber.recv_multipart()[1]))
        if sent == count:
            resume(control)
            resume(control, group="g")
        return all(len(each) >= count for each in come.values())

    until(all_come, lambda: str({name: len(each) for name, each in come.items()}), 3 * DEADLINE)
    for name in ("group", "own"):
        assert offsets(come[name]) == list(range(count))
        assert numbers(message.payload for message in come[name]) == list(range(count))
        assert {message.delivery for message in come[name]} == {1}
    assert come["sub"] == list(range(count))
    assert group.is_silent() and own.is_silent() and silent(subscriber)


@pytest.mark.parametrize("cmd", ["pause", "resume", "purge"])
def test_each_command_checks_its_topic_group_and_user(broker, control, cmd):
    control.create("t")
    control.create("d", "direct")
    admin = dict(admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    control.fails("group_not_found", cmd, topic="t", group="absent", **MINE)
    control.fails("group_not_found", cmd, topic="t", group="default", **MINE)  # no client has joined
    control.fails("not_supported", cmd, topic="d", **MINE)
    control.fails("not_supported", cmd, topic="d", group="default", **MINE)
    control.fails("unauthorized_access", cmd, topic="t", user_id=USER, password="wrong")
    control.fails("unauthorized_access", cmd, topic="t")
    control.fails("topic_not_found", cmd, topic="absent", **admin)
    control.fails("topic_not_found", cmd, topic="absent", **MINE)
    control.fails("invalid_request", cmd, topic="t", group="", **MINE)
    control.fails("invalid_request", cmd, topic="t", group=7, **MINE)
    control.fails("invalid_request", cmd, **MINE)
    control.ok(cmd, topic="t", **admin)
    assert control.stats("t")["paused"] == (cmd == "pause")
    control.join("t", "pull")
    control.ok(cmd, topic="t", group="default", **MINE)
    control.delete("t")
    control.create("t")
    assert not control.stats("t")["paused"], "another topic of that name"
