"""Tests groups and cursors over sessions: which consumers receive which messages, and which state outlives
consumers and brokers."""
import multiprocessing
import os
import random
import signal

import pytest
import zmq

from session_client import GROUP, OWN, STARTS, Session, join, open_values
from session_support import consumer_of, fill_numbered, group_of, offsets
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, number_of, numbered, receive, silent, until

pytestmark = pytest.mark.one_broker

KIB = 1024
DURABLE = ["file", "queue_file"]


def shared(consumers, count, seconds=20):
    """Reads for all consumers until they have `count` messages together. Acknowledges them as they arrive."""
    come = {consumer: [] for consumer in consumers}

    def all_come():
        for consumer in consumers:
            consumer.session.read_some(0.005)
            taken, consumer.messages = consumer.messages, []
            consumer.acknowledge_all(taken)
            come[consumer] += taken
        return sum(map(len, come.values())) >= count

    until(all_come, lambda: f"{count} messages, at {sum(map(len, come.values()))}", seconds)
    return [come[consumer] for consumer in consumers]


# --- Delivery to groups ---


@pytest.mark.parametrize("broker_type", ["queue", *DURABLE])
def test_each_group_gets_everything_and_its_members_share_it(control, session, broker_type):
    control.create("t", broker_type)
    groups = {name: [consumer_of(control, session, "t", name) for _ in range(3)] for name in ("", "billing", "audit")}
    owns = [consumer_of(control, session, "t", name, OWN) for name in ("", "", "mine")]
    fill_numbered(session, "t", 0, 600)
    for members in groups.values():
        come = shared(members, 600)
        assert sorted(sum(map(offsets, come), [])) == list(range(600))
        assert all(offsets(each) == sorted(offsets(each)) for each in come), "in order"
        assert all(come), "each has its turn"
    for own in owns:
        assert offsets(own.receive(600)) == list(range(600))
    assert control.stats("t")["subscribers_count"] == 12


def test_plain_pullers_and_sessions_share_the_default_group(broker, control, session):
    control.create("t")
    uris = [control.join("t", "pull") for _ in range(2)]
    plain = [broker.socket(zmq.PULL, uri) for uri in uris]
    until(lambda: control.stats("t")["subscribers_count"] == 2, "the pullers")
    consumers = [consumer_of(control, session, "t", name, credit=(20, 1 << 40)) for name in ("", "default")]
    assert group_of(control, "t")["consumers"] == 4
    fill_numbered(session, "t", 0, 2000)
    come, count = [[], [], [], []], 0

    def all_come():
        for index, socket in enumerate(plain):
            while socket.poll(0):
                come[index].append(number_of(socket.recv()))
        for index, consumer in enumerate(consumers):
            consumer.session.read_some(0.002)
            taken, consumer.messages = consumer.messages, []
            consumer.acknowledge_all(taken)
            if taken:
                consumer.give(len(taken))
            come[2 + index] += [number_of(message.payload) for message in taken]
        return sum(map(len, come)) >= 2000

    until(all_come, lambda: f"everything: {list(map(len, come))}")
    assert sorted(sum(come, [])) == list(range(2000)) and all(come)
    until(lambda: group_of(control, "t")["committed_offset"] == 2000, lambda: str(group_of(control, "t")))
    assert all(silent(socket) for socket in plain)


def test_unacknowledged_messages_of_a_session_go_to_a_plain_puller(broker, control, session):
    control.create("t")
    consumer = consumer_of(control, session, "t", credit=(50, 1 << 40))
    fill_numbered(session, "t", 0, 100)
    consumer.receive(50)
    consumer.acknowledge((10, 40))
    until(lambda: group_of(control, "t")["unacknowledged"] == 20, "the acknowledgement")
    consumer.session.close()
    plain = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [number_of(message) for message in receive(plain, 70)] == [*range(10), *range(40, 100)]
    until(lambda: group_of(control, "t")["committed_offset"] == 100, lambda: str(group_of(control, "t")))


def test_a_group_holds_the_log_and_a_cursor_of_one_s_own_only_if_asked(control, session):
    for topic, mode, holds in (("group", GROUP, False), ("held", OWN, True), ("loose", OWN, False)):
        control.create(topic, ring_bytes=64 * KIB, overflow="drop_oldest" if topic == "loose" else "block")
        reader = consumer_of(control, session, topic, "reader", mode, holds=holds, credit=(0, 0))
        producer = session(topic).producer(topic)
        for first in range(0, 200, 10):
            producer.produce(numbered(first, 10, 800))
        if topic == "loose":
            producer.wait_confirmed()
            assert control.stats(topic)["first_offset"] > 0
            continue
        until(lambda: control.stats(topic)["blocked_by"] != "", "the topic to be full")
        assert producer.confirmed < 200
        reader.give(1000, 1 << 40)
        come = reader.receive(50)
        reader.acknowledge_all(come)
        rest = []
        while len(rest) < 150:
            taken = reader.receive(1)
            reader.acknowledge_all(taken)
            rest += taken
        assert offsets(come + rest) == list(range(200)) and reader.lost == 0
        producer.wait_confirmed()


def test_a_second_consumer_takes_a_named_cursor_over(control, session):
    control.create("t", "file")
    fill_numbered(session, "t", 0, 30)
    first = consumer_of(control, session, "t", "mine", OWN, credit=(20, 1 << 40))
    first.receive(20)
    first.acknowledge((0, 10))
    until(lambda: group_of(control, "t", "mine")["committed_offset"] == 10, "the acknowledgement")
    second = consumer_of(control, session, "t", "mine", OWN)
    assert first.take_error().code == "fenced"
    again = second.receive(20)
    assert [(message.offset, message.delivery) for message in again] == [
        *((offset, 2) for offset in range(10, 20)), *((offset, 1) for offset in range(20, 30))]
    first.acknowledge((10, 20))  # ignored
    second.acknowledge_all(again)
    until(lambda: group_of(control, "t", "mine")["committed_offset"] == 30, "the second's")
    assert group_of(control, "t", "mine")["consumers"] == 1


def test_a_name_belongs_to_one_group_of_one_mode(control, session):
    control.create("t")
    shared_one, own = consumer_of(control, session, "t", "g"), consumer_of(control, session, "t", "o", OWN)
    assert shared_one.session.error_of("consume_open", **open_values("t", "o")) == "not_supported"
    assert own.session.error_of("consume_open", **open_values("t", "g", OWN)) == "not_supported"
    modes = {group["group"]: group["mode"] for group in control.stats("t")["groups"]}
    assert modes["g"] == "group" and modes["o"] == "own"


def test_there_are_at_most_1024_groups(control, session):
    control.create("t")
    one = consumer_of(control, session, "t").session
    for number in range(895):
        one.consumer("t", f"g{number}")
    # The rest is for other users.
    assert one.error_of("consume_open", **open_values("t", "one-too-many")) == "limit_reached"
    with Session(join(control, "t", "pull", user_id=ADMIN, password=ADMIN_PASSWORD)) as other:
        for number in range(895, 1023):
            other.consumer("t", f"g{number}")
        for each in (one, other):
            assert each.error_of("consume_open", **open_values("t", "one-too-many")) == "limit_reached"
    one.consumer("t", "g7")  # this group exists already


def test_statistics_show_lag_and_messages_in_flight(control, session):
    control.create("t", "file")
    fill_numbered(session, "t", 0, 100)
    consumer = consumer_of(control, session, "t", "g", credit=(40, 1 << 40))
    consumer.receive(40)
    consumer.acknowledge((0, 15))
    until(lambda: group_of(control, "t", "g")["committed_offset"] == 15, "the acknowledgement")
    group = group_of(control, "t", "g")
    assert (group["next_offset"], group["lag"], group["unacknowledged"], group["redelivered"], group["lost"]) == (
        40, 60, 25, 0, 0)
    assert group["consumers"] == 1 and group["oldest_ms"] > 0
    consumer.reject((20, 30))
    consumer.give(10)
    consumer.receive(10)
    assert group_of(control, "t", "g")["redelivered"] == 10
    consumer.give(60)
    consumer.receive(60)
    consumer.acknowledge_before(1000)
    until(lambda: group_of(control, "t", "g")["committed_offset"] == 100, "everything")
    group = group_of(control, "t", "g")
    assert (group["lag"], group["unacknowledged"], group["oldest_ms"]) == (0, 0, 0)


def test_an_unused_named_group_of_either_mode_can_be_deleted(control, session):
    control.create("t", "file")
    fill_numbered(session, "t", 0, 10)
    for name, mode in (("g", GROUP), ("o", OWN)):
        consumer = consumer_of(control, session, "t", name, mode)
        consumer.acknowledge_all(consumer.receive(10))
        delete = dict(topic="t", user_id=USER, password=PASSWORD, group=name)
        control.fails("group_in_use", "delete_group", **delete)
        consumer.close()
        until(lambda: group_of(control, "t", name)["consumers"] == 0, "its end")
        control.ok("delete_group", **delete)
        assert group_of(control, "t", name) is None
        control.fails("group_not_found", "delete_group", **delete)
        assert offsets(consumer_of(control, session, "t", name, mode).receive(10)) == list(range(10)), "a new one"


def test_a_cursor_without_a_name_is_forgotten_at_its_end(control, session):
    control.create("t", "file")
    own = consumer_of(control, session, "t", "", OWN)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "it")
    own.close()
    until(lambda: control.stats("t")["subscribers_count"] == 0, "its end")
    assert not [group for group in control.stats("t")["groups"] if group["mode"] == "own"]


def test_a_direct_topic_keeps_nothing_for_a_group_without_consumers(control, session):
    control.create("t", "direct")
    first = consumer_of(control, session, "t", "g", start="first")
    producer = fill_numbered(session, "t", 0, 20)
    first.receive(20)
    assert offsets(consumer_of(control, session, "t", "late", start="first").messages) == []
    first.close()
    other = consumer_of(control, session, "t", "other")  # a group, so that the topic takes messages
    producer.produce(numbered(20, 10))
    producer.wait_confirmed()
    assert offsets(other.receive(10)) == list(range(20, 30))
    again = consumer_of(control, session, "t", "g")
    producer.produce(numbered(30, 10))
    assert offsets(again.receive(10)) == list(range(30, 40)) and again.is_silent()


# --- Consumers that end without a word ---


def stopped_member(ticket, topic, ready):
    """The main function of a process that is a member. It sends heartbeats and acknowledges nothing, until it
    is stopped."""
    one = Session(ticket)
    one.consumer(topic, credit=(30, 1 << 40)).receive(30)
    ready.set()
    while True:
        one.send("heartbeat")
        one.read_some(0.05)


def test_messages_of_a_stopped_process_go_to_others(make_broker):
    broker = make_broker("--session-heartbeat-ms", "500")
    control = broker.control()
    control.create("t", "file")
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    with Session(join(control, "t")) as producing, Session(join(control, "t", "pull")) as other:
        producer = producing.producer("t")
        producer.produce(numbered(0, 50))
        producer.wait_confirmed()
        member = fork.Process(target=stopped_member, args=(join(control, "t", "pull"), "t", ready), daemon=True)
        member.start()
        try:
            assert ready.wait(20)
            consumer = other.consumer("t")

            def all_come():
                other.send("heartbeat")
                other.read_some(0.05)
                return len(consumer.messages) >= 20

            until(all_come, "what it had not been handed")
            assert offsets(consumer.messages) == list(range(30, 50))
            os.kill(member.pid, signal.SIGSTOP)

            def again():
                all_come()
                return len(consumer.messages) >= 50

            until(again, "what the stopped one had")
            assert [(message.offset, message.delivery) for message in consumer.messages[20:]] == [
                (offset, 2) for offset in range(30)]
            assert group_of(control, "t")["consumers"] == 1
        finally:
            os.kill(member.pid, signal.SIGKILL)
            member.join()


def test_a_stopped_process_is_noticed_during_a_flood_to_it(make_broker):
    """Its output buffer is full, and the broker must still notice that it sends nothing."""
    broker = make_broker("--session-heartbeat-ms", "500")
    control = broker.control()
    control.create("t", "file")
    with Session(join(control, "t")) as producing:
        mute = Session(join(control, "t", "pull", transport="ipc"))
        mute.send("consume_open", request=7, **open_values("t"))
        mute.take(lambda frame: frame.request == 7, "consume_opened")
        producer = producing.producer("t")

        def gone():
            if producer.next < 40:
                producer.produce([b"x" * 50_000])
            producing.send("heartbeat")
            producing.read_some(0.01)
            return producer.next >= 40 and group_of(control, "t")["consumers"] == 0

        until(gone, "the mute one's end")
        mute.close()
    with Session(join(control, "t", "pull")) as other:
        consumer = other.consumer("t")

        def all_come():
            other.send("heartbeat")
            other.read_some(0.02)
            return len(consumer.messages) >= 40

        until(all_come, "what the mute one had")
        assert sorted(offsets(consumer.messages)) == list(range(40))


def test_connections_that_break_lose_nothing(control, session):
    control.create("t", "file")
    fill_numbered(session, "t", 0, 500)
    done, seed = set(), 7
    dice = random.Random(seed)
    for _ in range(12):
        consumer = consumer_of(control, session, "t", credit=(60, 1 << 40))
        come = consumer.receive(dice.randrange(1, 40))
        assert not done & set(offsets(come)), "what was acknowledged came again"
        consumer.acknowledge_all(come)
        left = group_of(control, "t")
        until(lambda: group_of(control, "t")["unacknowledged"] <= 60 - len(come), lambda: str(left))
        done |= set(offsets(come))
        consumer.session.close()
        until(lambda: group_of(control, "t")["consumers"] == 0, "its end")
    last = consumer_of(control, session, "t")
    assert sorted(offsets(last.receive(500 - len(done)))) == sorted(set(range(500)) - done)
    assert last.is_silent()


# --- Users and each other's groups ---


def test_users_with_only_consume_cannot_move_or_block_each_others_groups(control, session):
    control.create("t")
    root = dict(admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)

    def joined(name, group, mode=GROUP, rights=("consume",)):
        if name not in users:
            users[name] = dict(user_id=name, password=f"the password of {name}")
            control.ok("create_user", **root, **users[name], rights=[{"topic": "t", "rights": list(rights)}])
        kind = "pull" if mode == GROUP else "sub"
        client = session(join(control, "t", kind, **users[name]))
        return client.consumer("t", group, mode), client

    users = {}
    alice, _ = joined("alice", "hers")
    mallory, _ = joined("mallory", "hers")
    fill_numbered(session, "t", 0, 20)

    def seek(consumer):
        return consumer.session.request("seek", channel=consumer.channel, start=STARTS["next"], start_value=0)

    refused = seek(mallory)
    assert (refused.op, refused.code) == ("error", "unauthorized_access")
    for postpone in (mallory.extend, joined("mallory", "hers")[0].reject):
        postpone((0, 20), ms=49 * 24 * 3600 * 1000)
        assert postpone.__self__.take_error().code == "limit_reached"
    until(lambda: group_of(control, "t", "hers")["consumers"] == 1, "the end of the channels")
    assert group_of(control, "t", "hers")["pending"] == 20, "she has lost nothing"
    assert seek(alice).op == "done", "alone she may"
    joined("mia", "theirs", rights=("consume", "manage"))
    manager, _ = joined("mia", "hers")
    assert seek(manager).op == "done"
    joined("alice", "cursor", OWN)
    taking = session(join(control, "t", "sub", **users["mallory"]))
    answer = taking.request("consume_open", **open_values("t", "cursor", OWN))
    assert (answer.op, answer.code) == ("error", "unauthorized_access") and "belongs to another user" in str(answer.values)
