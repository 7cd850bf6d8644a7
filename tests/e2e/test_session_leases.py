"""Tests consumers with leases: docs/session.md, "Leases". Their client knows only that document."""
import multiprocessing
import os
import signal

import pytest

from pause_support import purge
from session_client import HEARS_LATE, KNOWS_LEASES, MAY_BE_BUSY, STARTS, Session, join
from session_support import consumer_of, fill, group_of, offsets, until_committed
from support import numbered, until

ALL = KNOWS_LEASES | MAY_BE_BUSY | HEARS_LATE
PROCESSING_TIMEOUT, SILENT, SEEK, PURGE = 1, 2, 3, 4


@pytest.fixture
def broker(make_broker, request):
    return make_broker("--session-heartbeat-ms", "500", *getattr(request, "param", ()))


def member(control, session, **more):
    return consumer_of(control, session, "t", codecs=ALL, **more)


def speak(*consumers):
    """Lets the clients give signs of life."""
    for consumer in consumers:
        consumer.session.send("heartbeat")
        consumer.session.read_some(0.05)


def test_a_client_that_knows_leases_has_them(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 3))
    with_leases, without = member(control, session, group="a"), consumer_of(control, session, "t", group="b")
    assert with_leases.leases and with_leases.opened["ack_timeout_ms"] == 1_800_000
    assert not without.leases and without.opened["ack_timeout_ms"] == 30_000
    automatic = member(control, session, group="c", automatic=True)
    assert not automatic.leases
    with_leases.receive(3)
    with_leases.acknowledge((0, 3))
    until_committed(control, "t", 3, "a")


def test_a_silent_client_keeps_only_what_it_has_started(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 10))
    silent = member(control, session)
    silent.receive(10)
    silent.start((0, 2))
    other = member(control, session)

    def all_come():
        speak(other)
        return len(other.messages) >= 8

    until(all_come, "the messages that were not started")
    assert [(each.offset, each.delivery) for each in other.messages] == [(offset, 1) for offset in range(2, 10)]
    revoked = silent.take_revoked()
    assert (revoked["cause"], revoked["ranges"], revoked["hand_outs_before"]) == (SILENT, [[2, 10]], 2)
    silent.acknowledge((0, 10))
    assert silent.take_late() == [[2, 10]]
    other.acknowledge((2, 10))
    until_committed(control, "t", 10)
    assert group_of(control, "t")["consumers"] == 2, "the session lasts"


def test_a_message_that_timed_out_is_counted_and_its_acknowledgement_is_late(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    slow = member(control, session, ack_timeout_ms=300)
    slow.receive(2)
    slow.start(0)
    again = slow.receive(1)
    assert [(each.offset, each.delivery, each.hand_out) for each in again] == [(0, 2, 2)]
    assert slow.take_revoked()["cause"] == PROCESSING_TIMEOUT
    slow.acknowledge(0, hand_out=1)
    assert slow.take_late() == [[0, 1]]
    slow.acknowledge(1, hand_out=1)
    until(lambda: group_of(control, "t")["unacknowledged"] == 1, "the acknowledgement of 1")
    assert group_of(control, "t")["committed_offset"] == 0
    slow.acknowledge(0, hand_out=2)
    until_committed(control, "t", 2)


def test_a_seek_and_a_purge_revoke(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 4))
    first, second = (member(control, session, credit=(2, 1 << 20)) for _ in range(2))
    first.receive(2)
    second.receive(2)
    assert first.seek("first") == 0
    assert (first.take_revoked()["cause"], second.take_revoked()["cause"]) == (SEEK, SEEK)
    second.acknowledge((0, 4))
    assert len(second.take_late()) == 1
    first.give(2)
    first.receive(2)
    purge(control)
    assert first.take_revoked()["cause"] == PURGE


def test_the_consumer_that_seeks_learns_of_its_revoked_messages_before_the_answer(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    one = member(control, session, credit=(2, 1 << 20))
    one.receive(2)
    one.session.send("seek", channel=one.channel, request=99, start=STARTS["first"], start_value=0)
    one.session.wait(lambda: any(frame.op == "done" for frame in one.session.frames), "the answer")
    assert [frame.op for frame in one.session.frames] == ["revoked", "done"]


@pytest.mark.parametrize("op, values", [("acknowledge", {}), ("reject", dict(ms=0)), ("extend", dict(ms=1))])
def test_a_request_that_names_no_hand_out_ends_the_channel(control, session, op, values):
    control.create("t")
    fill(session, "t", numbered(0, 1))
    one = member(control, session)
    one.receive(1)
    one.session.send(op, channel=one.channel, ranges=[(0, 1)], **values)
    assert one.take_error().code == "invalid_frame"


@pytest.mark.parametrize("broker", [("--outstanding-ranges-max", "4")], indirect=True)
def test_starts_in_too_many_ranges_end_the_channel(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 10))
    one = member(control, session)
    one.receive(10)
    one.start(0, 2, 4)
    assert one.take_error().code == "limit_reached"


@pytest.mark.parametrize("broker", [("--redelivery-ms-max", "60000")], indirect=True)
def test_a_longer_timeout_of_a_consumer_counts_as_the_longest_allowed(control, session):
    control.create("t")
    assert member(control, session, ack_timeout_ms=90_000).opened["ack_timeout_ms"] == 60_000
    assert member(control, session).opened["ack_timeout_ms"] == 1_800_000, "the broker's own is not bounded"


def test_a_release_is_not_counted(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    one = member(control, session, credit=(2, 1 << 20))
    one.receive(2)
    one.start((0, 2))
    one.release(0)
    one.reject(1)
    one.give(2)
    assert [(each.offset, each.delivery) for each in one.receive(2)] == [(0, 1), (1, 2)]


def test_a_client_that_dies_loses_one_delivery_of_what_it_has_started(control, session):
    control.create("t", "file")
    fill(session, "t", numbered(0, 4))
    dying = session(join(control, "t", "pull"), codecs=ALL)
    consumer = dying.consumer("t")
    consumer.receive(4)
    consumer.start(0)
    until(lambda: group_of(control, "t")["unacknowledged"] == 4, "the deliveries")
    dying.close()
    other = member(control, session)
    assert [(each.offset, each.delivery) for each in other.receive(4)] == [(0, 2), (1, 1), (2, 1), (3, 1)]


def stopped_member(ticket, ready, resumed, parent):
    with Session(ticket, codecs=ALL) as session:
        consumer = session.consumer("t", credit=(4, 1 << 20))
        consumer.receive(4)
        consumer.start(0)
        session.send("heartbeat")
        ready.set()
        resumed.wait(30)
        parent.send(consumer.take_revoked()["ranges"])
        consumer.acknowledge(0)
        session.send("heartbeat")
        session.wait(lambda: False, "the end of this process", 30)


def test_a_stopped_process_keeps_what_it_has_started(broker, control, session):
    control.create("t")
    fill(session, "t", numbered(0, 4))
    fork = multiprocessing.get_context("fork")
    ready, resumed, (child, parent) = fork.Event(), fork.Event(), fork.Pipe()
    stopped = fork.Process(target=stopped_member, args=(join(control, "t", "pull"), ready, resumed, parent), daemon=True)
    stopped.start()
    try:
        assert ready.wait(20)
        os.kill(stopped.pid, signal.SIGSTOP)
        other = member(control, session)

        def all_come():
            speak(other)
            return len(other.messages) >= 3

        until(all_come, "what the stopped process has not started")
        assert offsets(other.messages) == [1, 2, 3] and group_of(control, "t")["unacknowledged"] == 4
        os.kill(stopped.pid, signal.SIGCONT)
        resumed.set()
        assert child.poll(30) and child.recv() == [[1, 4]]
        until(lambda: group_of(control, "t")["committed_offset"] == 1, "its acknowledgement")
    finally:
        os.kill(stopped.pid, signal.SIGKILL)
        stopped.join()
