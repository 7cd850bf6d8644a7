"""Tests of `trace`: docs/protocol.md, "trace"."""
import time

import pytest

from batch_bytes import Message
from cli_support import CommandLine
from dead_letter_support import ADMINISTRATOR, member, set_group
from http_support import HTTP, HttpClient, basic
from session_support import fill, until_committed
from support import Secrets, until

PASSWORD = Secrets.plant("planted-trace-secret-7751")


def trace(control, offset, topic="t", **asker):
    return control.ok("trace", topic=topic, offset=offset, **(asker or ADMINISTRATOR))


def in_group(control, offset, group="default"):
    reply = trace(control, offset)
    return next(each for each in reply["groups"] if each["group"] == group)


def state_of(control, offset, group="default"):
    return in_group(control, offset, group)["state"]


def until_state(control, offset, state, group="default"):
    until(lambda: state_of(control, offset, group) == state, f"{offset} {state}, not {in_group(control, offset, group)}")
    return in_group(control, offset, group)


@pytest.fixture(params=["queue", "file"])
def kind(request):
    return request.param


def test_each_state_of_a_message_in_a_group(control, session, kind):
    control.create("t", kind)
    control.create("letters", kind)
    set_group(control, max_attempts=5)
    before_us = int(time.time() * 1e6)
    fill(session, "t", [b"zero", Message(b"payload", key=b"customer 7", headers=((b"tenant", b"a"),), time_us=1_700_000_000_000_000)]
         + [b"%d" % number for number in range(2, 8)])
    reply = trace(control, 1)
    assert reply["groups"] == [] and reply["state"] == "stored" and reply["durable"] in (False, kind == "file")
    assert (reply["topic"], reply["offset"], reply["size"], reply["key"]) == ("t", 1, 7, "customer 7")
    assert reply["headers"] == [{"name": "tenant", "value": "a"}] and reply["time_us"] == 1_700_000_000_000_000
    assert before_us - 60_000_000 < reply["stored_us"] < before_us + 60_000_000 and not reply["expired"]

    consumer = member(control, session, credit=(6, 1 << 20))
    consumer.receive(6)
    consumer.start((0, 5))
    consumer.acknowledge(0)
    consumer.reject(1, ms=3_600_000)
    consumer.reject_dead(2, reason="no such customer")
    done = until_state(control, 0, "done")
    assert done == {"group": "default", "state": "done"}
    retrying = until_state(control, 1, "retrying")
    assert retrying["deliveries"] == 1
    assert abs(retrying["due_ms"] - (time.time() + 3600) * 1000) < 120_000
    parked = until_state(control, 2, "parked")
    assert (parked["death"]["cause"], parked["death"]["attempts"]) == ("rejected", 1)
    assert parked["death"]["reason"] == "no such customer" and parked["death"]["offset"] == 2
    in_flight = in_group(control, 3)
    assert (in_flight["state"], in_flight["deliveries"], in_flight["started"]) == ("in_flight", 1, True)
    number, = [each["number"] for each in control.ok("stats", topic="t", members_max=9, **ADMINISTRATOR)["groups"][0]["members"]]
    assert in_flight["consumer"] == number
    assert {**in_group(control, 5), "due_ms": 0} == {**in_flight, "started": False, "due_ms": 0}
    assert in_group(control, 7) == {"group": "default", "state": "ready", "deliveries": 0}


def test_a_letter_is_found_in_the_dead_letter_topic(control, session, kind):
    control.create("t", kind)
    control.create("letters", kind)
    set_group(control, dead_letter_topic="letters")
    fill(session, "letters", [b"no letter"])
    fill(session, "t", [b"a", b"b"])
    consumer = member(control, session)
    consumer.receive(2)
    consumer.start((0, 2))
    consumer.acknowledge(0)
    consumer.reject_dead(1, reason="unreadable")
    until_committed(control, "t", 2)
    letter = until_state(control, 1, "dead_letter")
    assert (letter["letter_topic"], letter["letter_offset"]) == ("letters", 1)
    assert letter["death"]["reason"] == "unreadable" and "source_topic" not in letter["death"]
    assert in_group(control, 0) == {"group": "default", "state": "done"}
    control.ok("create_user", user_id="ann", password=PASSWORD, rights=[{"topic": "t", "rights": ["consume"]}], **ADMINISTRATOR)
    seen, = trace(control, 1, user_id="ann", password=PASSWORD)["groups"]
    assert seen == {"group": "default", "state": "done", "letter_topic": "letters"}, "without a right on the letters"
    control.ok("purge_dead", topic="letters", **ADMINISTRATOR)
    assert in_group(control, 1) == {"group": "default", "state": "done"}


def test_moves_of_a_group_are_told(control, session, kind):
    control.create("t", kind)
    keep = member(control, session, group="keeps")
    fill(session, "t", [b"%d" % number for number in range(10)])
    keep.receive(10)
    consumer = member(control, session)
    consumer.receive(10)
    consumer.start((0, 10))
    consumer.acknowledge((0, 3))
    until_state(control, 2, "done")
    control.ok("seek_group", topic="t", group="default", offset=8, **ADMINISTRATOR)
    consumer.session.close()
    assert in_group(control, 2) == {"group": "default", "state": "done"}
    for offset in (3, 7):
        assert in_group(control, offset) == {"group": "default", "state": "skipped", "moved_by": "seek"}
    control.ok("seek_group", topic="t", group="default", offset=5, **ADMINISTRATOR)
    assert in_group(control, 4)["state"] == "skipped"
    again = in_group(control, 6)
    assert again["state"] in ("ready", "in_flight") and again["moved_by"] == "seek"
    control.ok("purge", topic="t", group="default", **ADMINISTRATOR)
    assert in_group(control, 6) == {"group": "default", "state": "skipped", "moved_by": "purge"}


def test_a_group_that_begins_later_has_not_had_earlier_messages(control, session, kind):
    control.create("t", kind)
    keep = member(control, session, group="keeps", credit=(1, 1 << 20))
    fill(session, "t", [b"a", b"b"])
    keep.receive(1)
    member(control, session, group="late", start="next")
    assert state_of(control, 1, "late") == "before_group"
    assert state_of(control, 1, "keeps") == "ready"


def test_expired_and_dropped_messages(control, session, kind):
    control.create("t", kind)
    member(control, session, group="slow", credit=(0, 0))
    fill(session, "t", [Message(b"short", headers=((b"lightq-ttl-ms", b"1"),)), b"b"])
    until_state(control, 0, "expired", "slow")
    assert trace(control, 0)["expired"] is True
    assert state_of(control, 1, "slow") == "ready"
    control.ok("purge", topic="t", **ADMINISTRATOR)
    reply = until(lambda: (got := trace(control, 0))["state"] == "dropped" and got, "the drop")
    assert "stored_us" not in reply and reply["groups"][0]["state"] == "skipped"


def test_wrong_offsets_and_rights(control, session):
    control.create("t", "file")
    control.create("live", "direct")
    fill(session, "t", [b"a"])
    fails = control.fails("invalid_request", "trace", topic="t", offset=1, **ADMINISTRATOR)
    assert fails["description"] == "offset: the topic has no message 1 yet; the next one gets offset 1"
    for wrong in ({}, {"offset": -1}, {"offset": "0"}, {"offset": 1 << 63}, {"offset": 0.5}):
        assert "offset" in control.fails("invalid_request", "trace", topic="t", **wrong, **ADMINISTRATOR)["description"]
    control.fails("topic_not_found", "trace", topic="none", offset=0, **ADMINISTRATOR)
    control.fails("not_supported", "trace", topic="live", offset=0, **ADMINISTRATOR)
    for name, rights in {"ann": [{"topic": "t", "rights": ["produce"]}], "bob": [{"topic": "t:g", "rights": ["consume"]}]}.items():
        control.ok("create_user", user_id=name, password=PASSWORD, rights=rights, **ADMINISTRATOR)
        control.fails("unauthorized_access", "trace", topic="t", offset=0, user_id=name, password=PASSWORD)
    control.fails("unauthorized_access", "trace", topic="t", offset=0)


def test_the_command_and_the_resource_tell_the_same(make_broker):
    broker = make_broker(*HTTP)
    lightq = CommandLine(broker)
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "--key", "tea", "--header", "h=\x1b[31m", stdin=b"one\n")
    assert lightq("consume", "t", "--group", "g", "-n", "1").stdout == b"one\n"
    shown = lightq("trace", "t", "0").stdout.decode()
    assert "key\ttea" in shown and "g\tdone\t-" in shown and "\x1b" not in shown, shown
    document = lightq.json("trace", "t", "0")
    assert document["groups"] == [{"group": "g", "state": "done"}] and document["size"] == 3
    client = HttpClient(broker, basic())
    reply = client.get("/api/v1/topics/t/trace?offset=0")
    assert reply.status == 200 and {**reply.json(), "durable": True} == {**document, "durable": True}
    assert client.get("/api/v1/topics/t/trace").status == 400
    for place, told in ("earliest", b"moved back to it by a seek"), ("latest", b"moved past it by a seek"):
        lightq("group", "reset", "t", "g", "--to", place, "--yes")
        assert told in lightq("trace", "t", "0").stdout
    assert b"no message 7 yet" in lightq("trace", "t", "7", code=1).stderr
    lightq("trace", "t", "x", code=2)
