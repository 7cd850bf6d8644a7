"""Tests of failures, dead messages and the commands for them: docs/protocol.md, "set_group", and docs/session.md,
"Dead messages". Their consumers know only these documents."""
import time

import pytest

from batch_bytes import Message
from dead_letter_support import ALL, act, check_states, dead_of, member, set_group
from session_client import KNOWS_DEAD_LETTERS
from session_support import fill, group_of, offsets, until_committed
from support import ADMIN, ADMIN_PASSWORD, numbered, until


@pytest.mark.parametrize("kind", ["file", "queue"])
def test_a_message_that_fails_too_often_is_parked_and_given_back(control, session, kind):
    control.create("t", kind)
    set_group(control, max_attempts=3)
    fill(session, "t", numbered(0, 2))
    consumer = member(control, session, credit=(1, 1 << 20))
    for attempt in range(1, 4):
        message, = consumer.receive(1)
        assert (message.offset, message.delivery) == (0, attempt)
        consumer.start(0)
        consumer.reject(0)
        consumer.give(1)
    message, = consumer.receive(1)
    assert message.offset == 1, "the others go on"
    consumer.acknowledge(1)
    stats = until(lambda: (group := group_of(control, "t"))["parked"] == 1 and group["in_flight"] == 0 and group, "the death")
    check_states(stats)
    assert (stats["dead"], stats["failed"], stats["acknowledged"], stats["pending"]) == (1, 3, 1, 1)
    dead, = dead_of(control)
    assert (dead["offset"], dead["state"], dead["cause"], dead["attempts"]) == (0, "parked", "attempts", 3)
    assert dead["first_failure_ms"] <= dead["last_failure_ms"] and "reason" not in dead
    assert act(control, "retry_dead", preview=True) == 1
    assert act(control, "retry_dead") == 1
    assert dead_of(control) == []
    consumer.give(1)
    again, = consumer.receive(1)
    assert (again.offset, again.delivery) == (0, 1), "as if it had never failed"
    consumer.start(0)
    consumer.acknowledge(0)
    until_committed(control, "t", 2)


def test_a_consumer_rejects_messages_as_dead_with_a_reason(control, session):
    control.create("t", "file")
    fill(session, "t", numbered(0, 6))
    consumer = member(control, session)
    assert consumer.dead_letters
    consumer.receive(6)
    consumer.start((0, 6))
    consumer.reject_dead((1, 3), 4, reason="not an order")
    consumer.acknowledge(0, 3, 5)
    until(lambda: group_of(control, "t")["parked"] == 3, "the deaths")
    assert [(dead["offset"], dead["cause"], dead["reason"]) for dead in dead_of(control)] == [
        (offset, "rejected", "not an order") for offset in (1, 2, 4)]
    assert dead_of(control, cause="attempts") == []
    assert [dead["offset"] for dead in dead_of(control, ranges=[[2, 9]])] == [2, 4]
    assert act(control, "purge_dead", offsets=[1], preview=True) == 1
    assert act(control, "purge_dead", offsets=[1]) == 1
    assert [dead["offset"] for dead in dead_of(control)] == [2, 4]
    assert act(control, "purge_dead", cause="rejected") == 2
    until_committed(control, "t", 6)
    check_states(group_of(control, "t"))


def test_a_client_that_does_not_know_dead_messages_works_as_before(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    consumer = member(control, session, codecs=ALL & ~KNOWS_DEAD_LETTERS)
    assert not consumer.dead_letters
    consumer.receive(2)
    consumer.reject_dead(0, reason="x")
    assert consumer.take_error().code == "not_supported"


def test_a_malformed_death_ends_the_channel(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    for values in [dict(ms=1, reason="x"), dict(ms=0, reason="x" * 257)]:
        consumer = member(control, session)
        consumer.receive(2)
        consumer._request("reject", flags=1, ranges=[(0, 1)], **values)
        assert consumer.take_error().code == "invalid_frame"
        consumer.session.close()


def test_failures_wait_for_the_back_off(control, session):
    control.create("t")
    set_group(control, backoff_ms=[60_000])
    fill(session, "t", numbered(0, 4))
    consumer = member(control, session)
    consumer.receive(4)
    consumer.start((0, 3))
    consumer.reject(0)
    consumer.release(3)
    again = consumer.receive(1)
    assert [(each.offset, each.delivery) for each in again] == [(3, 1)], "a release is no failure"
    stats = until(lambda: (group := group_of(control, "t"))["retrying"] == 1 and group, "the rejection")
    check_states(stats)
    set_group(control, backoff_ms=[])
    consumer.reject(1, hand_out=1)
    assert [(each.offset, each.delivery) for each in consumer.receive(1)] == [(1, 2)]


def test_settings_and_dead_messages_survive_a_restart(broker, control, session):
    control.create("t", "file")
    set_group(control, max_attempts=2, dead_waiting_max=7)
    fill(session, "t", numbered(0, 4))
    consumer = member(control, session)
    consumer.receive(4)
    consumer.start((0, 3))
    consumer.reject((0, 2))
    again = consumer.receive(2)
    assert [(each.offset, each.delivery) for each in again] == [(0, 2), (1, 2)]
    consumer.start(0)
    consumer.reject(0)
    consumer.reject_dead(2, reason="broken", hand_out=1)
    until(lambda: group_of(control, "t")["parked"] == 2, "the deaths")
    before = dead_of(control)
    consumer.session.close()
    until(lambda: group_of(control, "t")["consumers"] == 0, "the end of the consumer")
    broker.restart()
    control.connect(broker.control_uri)
    assert dead_of(control) == before
    stats = group_of(control, "t")
    check_states(stats)
    assert (stats["parked"], stats["settings"]["max_attempts"], stats["settings"]["dead_waiting_max"]) == (2, 2, 7)
    consumer = member(control, session)
    rest = {each.offset: each.delivery for each in consumer.receive(1)}
    assert rest == {1: 2}, "the attempts of the others survive, too"
    consumer.start(1)
    consumer.reject(1)
    assert offsets(consumer.receive(1)) == [3]
    until(lambda: group_of(control, "t")["parked"] == 3, "the last attempt of message 1")


def test_a_group_has_its_settings_from_its_first_message_on(control, session):
    control.create("t")
    set_group(control, group="later", max_attempts=1)
    fill(session, "t", numbered(0, 2))
    consumer = member(control, session, group="later")
    assert offsets(consumer.receive(2)) == [0, 1]
    consumer.start(0)
    consumer.reject(0)
    assert [(dead["offset"], dead["attempts"]) for dead in until(lambda: dead_of(control, group="later"), "the death")] == [(0, 1)]
    assert control.ok("delete_topic", topic="t", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)


def test_a_message_with_half_of_its_attempts_is_delivered_alone(control, session):
    control.create("t")
    set_group(control, max_attempts=4)
    fill(session, "t", numbered(0, 3))
    consumer = member(control, session)
    for failures, frames in [(0, 1), (1, 2), (2, 5)]:
        messages = consumer.receive(3)
        assert [(each.offset, each.delivery) for each in messages] == [(offset, failures + 1) for offset in range(3)]
        assert len(consumer.batches) == frames
        if failures < 2:
            consumer.start((0, 3))
            consumer.reject((0, 3))


def test_dead_messages_are_selected_by_key_and_time(control, session):
    control.create("t", "file")
    keys = [b"tea", b"", b"milk", b"tea", "grüner Tee".encode()]
    fill(session, "t", [Message(b"order", key=key) for key in keys])
    consumer = member(control, session)
    consumer.receive(5)
    consumer.start((0, 5))
    consumer.reject_dead((0, 3))
    until(lambda: group_of(control, "t")["parked"] == 3, "the first deaths")
    first = max(dead["last_failure_ms"] for dead in dead_of(control))
    until(lambda: time.time() * 1000 > first + 2, "a later time")
    consumer.reject_dead((3, 5))
    until(lambda: group_of(control, "t")["parked"] == 5, "the other deaths")

    def selected(**by):
        return [dead["offset"] for dead in dead_of(control, **by)]
    assert selected(key="tea") == [0, 3]
    assert selected(key="") == [1]
    assert selected(key="grüner Tee") == [4]
    assert selected(key="te") == []
    assert selected(failed_since_ms=first + 1) == [3, 4]
    assert selected(failed_until_ms=first + 1) == [0, 1, 2]
    assert selected(failed_until_ms=first + 1, key="tea") == [0]
    assert act(control, "retry_dead", key="tea", preview=True) == 2
    assert selected() == [0, 1, 2, 3, 4], "a preview moves nothing"
    assert act(control, "retry_dead", key="tea", failed_since_ms=first + 1) == 1
    assert [(each.offset, each.delivery) for each in consumer.receive(1)] == [(3, 1)]
    assert act(control, "purge_dead", failed_until_ms=first + 1) == 3
    assert selected() == [4]


def test_a_lost_session_counts_for_what_was_started(control, session):
    control.create("t")
    set_group(control, max_attempts=10)
    fill(session, "t", numbered(0, 6))
    lost = member(control, session)
    lost.receive(6)
    lost.start(2)
    lost.session.close()
    until(lambda: group_of(control, "t")["lost_with_session"] == 1, "the end of the consumer")
    stats = group_of(control, "t")
    check_states(stats)
    assert (stats["released"], stats["failed"]) == (5, 0)
    other = member(control, session)
    assert sorted((each.offset, each.delivery) for each in other.receive(6)) == [
        (offset, 2 if offset == 2 else 1) for offset in range(6)]


def test_statistics_show_the_settings(control):
    control.create("t")
    set_group(control, group="billing", max_attempts=5, backoff_ms=[1000, 60_000], processing_timeout_ms=0)
    control.join("t", "pull")
    assert group_of(control, "t")["settings"] == {
        "max_attempts": 0, "backoff_ms": [], "dead_letter_topic": "", "dead_waiting_max": 10_000, "pause_when_failing": False,
        "dead_letter_expired": False}
    set_group(control, max_attempts=5, backoff_ms=[1000, 60_000], processing_timeout_ms=0)
    assert group_of(control, "t")["settings"] == {
        "max_attempts": 5, "backoff_ms": [1000, 60_000], "dead_letter_topic": "", "dead_waiting_max": 10_000,
        "processing_timeout_ms": 0, "pause_when_failing": False,
        "dead_letter_expired": False}
