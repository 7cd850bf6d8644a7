"""Pausing and purging, of topics and of groups: who is handed what meanwhile, and what of it outlives a broker."""
import threading

import pytest
import zmq

from session_client import GROUP, OWN, Session, everything, join
from support import (ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, files_below, number_of, numbered, receive,
                     receive_topic, silent, until)

KIB = 1024
TYPES = ["queue", "file", "queue_file"]
DURABLE = ["file", "queue_file"]
MINE = dict(user_id=USER, password=PASSWORD)


def pause(control, topic="t", **group):
    return control.ok("pause", topic=topic, **MINE, **group)


def resume(control, topic="t", **group):
    return control.ok("resume", topic=topic, **MINE, **group)


def purge(control, topic="t", **group):
    return control.ok("purge", topic=topic, **MINE, **group)["messages"]


def group_of(control, name="default", topic="t"):
    return next((group for group in control.stats(topic)["groups"] if group["group"] == name), None)


def fill(session, first, count, size=0, topic="t"):
    producer = session(topic).producer(topic)
    for at in range(first, first + count, 10):
        producer.produce(numbered(at, min(10, first + count - at), size))
    producer.wait_confirmed()
    return producer


def consumer_of(control, session, group="", mode=GROUP, topic="t", **more):
    kind = "pull" if mode == GROUP else "sub"
    return session(join(control, topic, kind)).consumer(topic, group, mode, **more)


def offsets(messages):
    return [message.offset for message in messages]


def numbers(messages):
    return [number_of(message) for message in messages]


def committed(control, group, offset):
    until(lambda: group_of(control, group)["committed_offset"] == offset, lambda: str(group_of(control, group)))


def end(broker, how):
    """Ends the broker and starts it again."""
    broker.kill() if how == "kill" else broker.stop()
    broker.start()


# --- Pausing ---

@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("name, mode", [("default", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_a_paused_group_is_handed_nothing_and_the_others_go_on(control, session, broker_type, name, mode):
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
    paused.acknowledge_all(before)  # is taken as ever
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
def test_of_a_paused_topic_nobody_is_handed_anything(broker, control, session, broker_type):
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


def test_acknowledge_timeouts_run_on_and_what_comes_back_waits(control, session):
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
def test_a_pause_outlives_the_broker(broker, control, session, broker_type, how):
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
def test_of_a_topic_in_memory_its_own_pause_outlives_the_broker_and_a_group_s_goes_with_the_group(
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


def test_a_group_that_was_deleted_is_not_paused_when_it_is_made_again(broker, control, session):
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
    count, come = 6000, {"group": [], "own": [], "sub": []}
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


# --- Purging ---

@pytest.mark.parametrize("broker_type", TYPES)
@pytest.mark.parametrize("name, mode", [("default", GROUP), ("billing", GROUP), ("mine", OWN)])
def test_a_purged_group_goes_on_at_the_end(control, session, broker_type, name, mode):
    control.create("t", broker_type)
    purged = consumer_of(control, session, name, mode, credit=(30, 1 << 40))
    other = consumer_of(control, session, "other")
    fill(session, 0, 100)
    before = purged.receive(30)
    purged.acknowledge((0, 10))
    committed(control, name, 10)
    assert purge(control, group=name) == 90
    after = group_of(control, name)
    assert (after["next_offset"], after["committed_offset"], after["lag"], after["unacknowledged"], after["lost"]) == (
        100, 100, 0, 0, 0)
    assert purge(control, group=name) == 0
    purged.acknowledge_all(before)  # too late, and no harm
    purged.give(1000)
    fill(session, 100, 10)
    assert offsets(purged.receive(10)) == list(range(100, 110)) and purged.is_silent()
    assert offsets(other.receive(110)) == list(range(110))


@pytest.mark.parametrize("broker_type", TYPES)
def test_a_purged_topic_has_nothing_left(broker, control, session, broker_type):
    control.create("t", broker_type, segment_bytes=64 * KIB) if broker_type in DURABLE else control.create("t")
    group = consumer_of(control, session, "g", credit=(30, 1 << 40))
    own = consumer_of(control, session, "mine", OWN, credit=(0, 0), holds=True)
    uri = control.join("t", "sub")
    subscriber = broker.socket(zmq.SUB, uri)
    until(lambda: control.stats("t")["subscribers"][0]["connected"], "the subscriber")
    fill(session, 0, 400, size=KIB)
    assert len(group.receive(30)) == 30
    assert numbers(receive_topic(subscriber, "t", 400)) == list(range(400))
    assert control.stats("t")["log_bytes"] > 300 * KIB
    assert purge(control) == 400
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"], stats["log_bytes"], stats["queue_size"]) == (400, 400, 0, 0)
    assert [(each["next_offset"], each["committed_offset"], each["lost"], each["lag"]) for each in stats["groups"]] == [
        (400, 400, 0, 0)] * 2
    assert (stats["subscribers"][0]["lost"], stats["dropped"], stats["unclaimed_dropped"]) == (0, 0, 0)
    assert purge(control) == 0
    assert session(join(control, "t", "sub")).read("t") == ([], 400)
    group.give(100)
    own.give(100, 1 << 30)
    assert group.is_silent() and own.is_silent()
    fresh = consumer_of(control, session, "fresh")
    fill(session, 400, 20)
    for consumer in (group, own, fresh):
        assert offsets(consumer.receive(20)) == list(range(400, 420))
    assert numbers(receive_topic(subscriber, "t", 20)) == list(range(400, 420))


@pytest.mark.parametrize("broker_type", DURABLE)
@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("messages", [3, 300])
def test_what_was_purged_does_not_come_back(broker, control, session, broker_type, how, messages):
    control.create("t", broker_type, segment_bytes=64 * KIB)
    producer = fill(session, 0, messages, size=KIB)
    consumer_of(control, session, "g", credit=(2, 1 << 40)).receive(2)
    uri = control.join("t", "sub")
    assert purge(control) == messages
    end(broker, how)
    stats = control.stats("t")
    assert (stats["first_offset"], stats["next_offset"], stats["log_bytes"]) == (messages, messages, 0)
    assert [(each["next_offset"], each["lost"]) for each in stats["groups"]] == [(messages, 0)]
    subscriber = broker.socket(zmq.SUB, uri)
    until(lambda: control.stats("t")["subscribers"][0]["connected"], "the subscriber")
    again = session("t").producer("t", producer.id, producer.epoch + 1)
    assert again.next == messages, "the producer is known still"
    again.produce(numbered(messages, 10))
    again.wait_confirmed()
    for name in ("g", "fresh"):
        assert offsets(consumer_of(control, session, name).receive(10)) == list(range(messages, messages + 10))
    assert numbers(receive_topic(subscriber, "t", 10)) == list(range(messages, messages + 10))
    end(broker, how)
    assert control.stats("t")["first_offset"] == messages
    assert numbers(everything(broker, control, "t", 10)) == list(range(messages, messages + 10))


@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_purged_group_goes_on_at_the_end_after_a_kill_too(broker, control, session, broker_type):
    control.create("t", broker_type)
    consumer_of(control, session, "g", credit=(20, 1 << 40)).receive(0)
    fill(session, 0, 50)
    assert purge(control, group="g") == 50
    broker.kill()
    broker.start()
    assert group_of(control, "g")["next_offset"] == min(50, control.stats("t")["next_offset"])
    assert consumer_of(control, session, "g").is_silent()
    next_offset = control.stats("t")["next_offset"]
    fill(session, next_offset, 5)
    come = consumer_of(control, session, "fresh").receive(next_offset + 5)
    assert offsets(come) == list(range(next_offset + 5))


def test_a_purge_frees_the_files_and_makes_room_for_who_is_held(broker, control, session):
    control.create("t", "file", segment_bytes=64 * KIB, capacity_bytes=512 * KIB)
    consumer_of(control, session, "g", credit=(0, 0))
    producer = session("t").producer("t")
    for at in range(0, 600):
        producer.produce(numbered(at, 1, KIB))
    until(lambda: control.stats("t")["blocked_by"] == "group:g", "the full topic")

    def segments():
        return [path for path in files_below(broker.data_dir / "topics") if path.suffix == ".seg"]

    full = len(segments())
    purged = purge(control)
    producer.wait_confirmed()
    assert 400 < purged < 600 and control.stats("t")["next_offset"] == 600
    assert control.stats("t")["first_offset"] == purged
    until(lambda: len(segments()) < full or full <= 2, lambda: f"{len(segments())} of {full} files are left")


@pytest.mark.parametrize("broker_type", TYPES)
def test_purged_while_producers_run_each_message_is_purged_or_delivered(broker, control, session, broker_type):
    settings = dict(segment_bytes=64 * KIB) if broker_type in DURABLE else {}
    control.create("t", broker_type, **settings)
    producers, each = 3, 1500
    group = consumer_of(control, session, "g", automatic=True)
    threads = [threading.Thread(target=produce, args=(join(control, "t"), index, each)) for index in range(producers)]
    for thread in threads:
        thread.start()
    come, boundaries = [], []

    def take():
        group.session.read_some(0.002)
        taken, group.messages = group.messages, []
        come.extend(taken)

    while any(thread.is_alive() for thread in threads):
        take()
        pause(control, group="g")  # so that there is something to be purged
        purge(control)
        boundaries.append(control.stats("t")["first_offset"])
        resume(control, group="g")
    for thread in threads:
        thread.join()
    total = producers * each
    assert control.stats("t")["next_offset"] == total, "all were confirmed"
    last = boundaries[-1]
    until(lambda: take() or not come or come[-1].offset == total - 1 or last == total, "the last")
    until(lambda: take() or group_of(control, "g")["lag"] == 0, "the rest")
    while not group.is_silent():
        take()
    take()
    got = offsets(come)
    assert got == sorted(set(got)), "in order, each once"
    missing = sorted(set(range(total)) - set(got))
    assert all(offset < last for offset in missing), "what came behind the last purge is delivered"
    for index in range(producers):
        mine = [int(message.payload.split(b"|")[1]) for message in come
                if int(message.payload.split(b"|")[0]) == index]
        assert mine == sorted(mine), "in each producer's order"
    assert group_of(control, "g")["lost"] == 0


def produce(ticket, index, count):
    with Session(ticket) as session:
        producer = session.producer("t")
        for at in range(0, count, 5):
            producer.produce([f"{index}|{number}|".encode() + bytes(200) for number in range(at, at + 5)])
            producer.wait_confirmed(max(0, at - 50))
        producer.wait_confirmed()


def test_a_paused_topic_is_purged_and_stays_paused(control, session):
    control.create("t", "file")
    consumer = consumer_of(control, session, "g")
    pause(control)
    fill(session, 0, 10)
    assert purge(control) == 10
    fill(session, 10, 10)
    assert control.stats("t")["paused"] and consumer.is_silent()
    resume(control)
    assert offsets(consumer.receive(10)) == list(range(10, 20))


# --- What is refused ---

@pytest.mark.parametrize("cmd", ["pause", "resume", "purge"])
def test_who_may_ask_and_of_what(broker, control, cmd):
    control.create("t")
    control.create("d", "direct")
    admin = dict(admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    control.fails("group_not_found", cmd, topic="t", group="absent", **MINE)
    control.fails("group_not_found", cmd, topic="t", group="default", **MINE)  # nobody has joined
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
