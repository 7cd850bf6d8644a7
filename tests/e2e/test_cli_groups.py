"""Tests `lightq group` and `lightq dlq` with a real broker: their effect, their output and their exit codes."""
import datetime
import time

import pytest

from batch_bytes import Message

from cli_support import CommandLine
from dead_letter_support import act, dead_of, member, set_group
from log_support import LogFiles
from session_support import fill, group_of
from support import numbered, until


@pytest.fixture
def command(broker):
    return CommandLine(broker)


def told(done):
    assert done.stdout == b""
    return done.stderr.decode()


def settings_of(control):
    return group_of(control, "t")["settings"]


def test_group_set_changes_only_the_given_settings(command, control):
    for topic in ("t", "dead"):
        control.create(topic)
    control.join("t", "pull")  # makes the group `default`
    assert told(command("group", "set", "t", "default", "--max-attempts", "5", "--backoff", "500ms,10s,1m")) == \
        "lightq: topic 't' group 'default' has these settings now\n"
    assert (settings_of(control)["max_attempts"], settings_of(control)["backoff_ms"]) == (5, [500, 10_000, 60_000])
    assert command.json("group", "set", "t", "default", "--dead-letter-topic", "dead", "--dead-waiting-max", "1k", "--pause-when-failing",
                        "--processing-timeout", "0") == {"cmd": "set_group", "status": "ok", "topic": "t", "group": "default"}
    assert settings_of(control) == {"max_attempts": 5, "backoff_ms": [500, 10_000, 60_000], "dead_letter_topic": "dead", "dead_waiting_max": 1000,
                                    "processing_timeout_ms": 0, "pause_when_failing": True, "dead_letter_expired": False}
    command("group", "set", "t", "default", "--park", "--backoff", "none", "--no-pause-when-failing", "--processing-timeout", "default",
            "--quiet")
    assert settings_of(control) == {"max_attempts": 5, "backoff_ms": [], "dead_letter_topic": "", "dead_waiting_max": 1000,
                                    "pause_when_failing": False, "dead_letter_expired": False}


@pytest.mark.parametrize("arguments, says", [
    (["t"], "group is required"), (["t", "g"], "give at least one setting to change"),
    (["t", "g", "--dead-letter-topic", ""], "--park removes the dead-letter topic"),
    (["t", "g", "--backoff", "1s,,2s"], "--backoff: '1s,,2s' is not a TIME,..."), (["t", "g", "--backoff", "fast"], "'fast' is not a TIME,..."),
    (["t", "g", "--max-attempts", "5G"], "--max-attempts: '5G' is not a COUNT"),
    (["t", "g", "--park", "--dead-letter-topic", "d"], "--dead-letter-topic excludes --park"),
    (["t", "g", "--processing-timeout", "soon"], "--processing-timeout: 'soon' is not a TIME")])
def test_group_set_refuses_wrong_usage(command, control, arguments, says):
    control.create("t")
    assert says in told(command("group", "set", *arguments, code=2))


def test_group_set_tells_the_reason_of_the_broker(command, control):
    control.create("t")
    assert "a topic cannot be its own dead-letter topic" in told(command("group", "set", "t", "g", "--dead-letter-topic", "t", code=1))
    missing = told(command("group", "set", "t", "g", "--dead-letter-topic", "none", code=1))
    assert "there is no topic 'none'" in missing and missing.endswith("\n  create it:  lightq topic create none\n")


def test_dlq_lists_counts_retries_and_purges(command, control, session):
    control.create("t")
    set_group(control, max_attempts=1)
    fill(session, "t", numbered(0, 8))
    consumer = member(control, session)
    consumer.receive(8)
    consumer.start((0, 8))
    consumer.reject((0, 3))
    consumer.reject_dead((3, 8), reason="tab\there \x1b[1m")
    until(lambda: group_of(control, "t")["parked"] == 8, "the deaths")
    lines = command("dlq", "list", "t", "--group", "default").stdout.decode().splitlines()
    assert [line.split("\t")[:4] for line in lines] == [
        [str(offset), "parked", "attempts" if offset < 3 else "rejected", "1"] for offset in range(8)]
    assert all(line.endswith("\\u0009here \\u001b[1m") for line in lines[3:]), lines
    some = command("dlq", "list", "t", "--group", "default", "-n", "2", "--cause", "rejected")
    assert [line.split(b"\t")[0] for line in some.stdout.splitlines()] == [b"3", b"4"] and b"--count" in some.stderr
    page = command.json("dlq", "list", "t", "--group", "default", "--offsets", "1,5-6", "--state", "parked")
    assert [dead["offset"] for dead in page["messages"]] == [1, 5, 6]
    assert told(command("dlq", "list", "t", "--group", "default", "--state", "dead_waiting")) == "lightq: no such dead messages\n"
    assert told(command("dlq", "purge", "t", "--group", "default", "--offsets", "0-1,7", "--preview")) == \
        "lightq: 3 messages would be given up\n"
    assert told(command("dlq", "purge", "t", "--group", "default", "--offsets", "0-1,7")) == "lightq: 3 messages given up\n"
    assert told(command("dlq", "retry", "t", "--group", "default", "--cause", "attempts")) == "lightq: 1 message delivered again\n"
    assert [dead["offset"] for dead in dead_of(control)] == [3, 4, 5, 6]
    assert act(control, "purge_dead") == 4
    row = command("stats", "t").stdout.decode()
    assert "dead 8" in row and "parked" not in row


def test_dlq_selects_by_key_and_by_the_time_of_the_death(command, control, session):
    control.create("t", "file")
    fill(session, "t", [Message(b"order", key=key) for key in (b"tea", b"", b"milk", b"tea")])
    consumer = member(control, session)
    consumer.receive(4)
    consumer.start((0, 4))
    consumer.reject_dead((0, 3))
    until(lambda: group_of(control, "t")["parked"] == 3, "the first deaths")
    last = max(dead["last_failure_ms"] for dead in dead_of(control))
    until(lambda: time.time() * 1000 > last + 2, "a later time")
    consumer.reject_dead(3)
    until(lambda: group_of(control, "t")["parked"] == 4, "the last death")
    between = f"{datetime.datetime.fromtimestamp((last + 1) / 1000, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%f}Z"

    def selected(*options):
        return [dead["offset"] for dead in command.json("dlq", "list", "t", "--group", "default", *options)["messages"]]
    assert selected("--key", "tea") == [0, 3]
    assert selected("--key", "") == [1]
    assert selected("--failed-since", between) == [3]
    assert selected("--failed-until", between) == [0, 1, 2]
    assert selected("--failed-since", "1h", "--failed-until", between, "--key", "tea") == [0]
    assert selected("--failed-until", "1h") == []
    assert told(command("dlq", "retry", "t", "--group", "default", "--key", "tea", "--failed-until", between, "--preview")) == \
        "lightq: 1 message would be delivered again\n"
    assert selected() == [0, 1, 2, 3], "a preview moves nothing"
    assert told(command("dlq", "retry", "t", "--group", "default", "--key", "tea", "--failed-until", between)) == \
        "lightq: 1 message delivered again\n"
    assert told(command("dlq", "purge", "t", "--group", "default", "--failed-since", between)) == "lightq: 1 message given up\n"
    assert selected() == [1, 2]


def test_dlq_counts_messages_that_cannot_be_read(command, broker, control, session):
    control.create("t", "file")
    for payload in (b"sound", b"spoilt"):
        fill(session, "t", [Message(payload, key=b"tea")])
    consumer = member(control, session)
    consumer.receive(2)
    consumer.start((0, 2))
    consumer.reject_dead((0, 2))
    until(lambda: group_of(control, "t")["parked"] == 2, "the deaths")
    consumer.session.close()
    broker.stop()
    segment = LogFiles(next((broker.data_dir / "topics").iterdir())).segments[0]
    segment.write_bytes(segment.read_bytes().replace(b"spoilt", b"spoils"))
    broker.start()
    unreadable = "lightq: 1 message could not be read, so the key is not known\n"
    page = command.json("dlq", "list", "t", "--group", "default", "--key", "tea")
    assert ([dead["offset"] for dead in page["messages"]], page["unreadable"]) == ([0], 1)
    listed = command("dlq", "list", "t", "--group", "default", "--key", "tea")
    assert listed.stdout.startswith(b"0\t") and listed.stderr.decode() == unreadable
    assert told(command("dlq", "purge", "t", "--group", "default", "--key", "tea")) == "lightq: 1 message given up\n" + unreadable
    assert [dead["offset"] for dead in command.json("dlq", "list", "t", "--group", "default")["messages"]] == [1], "it stays"


def test_produce_refuses_headers_of_the_broker(command, control):
    control.create("t")
    said = told(command("produce", "t", "--header", "lightq-dead-cause=expired", code=2))
    assert "only the broker sets headers that begin with lightq-dead-" in said


def test_dlq_shows_a_message(command, control, session):
    control.create("t")
    fill(session, "t", [b"one", b"two"])
    consumer = member(control, session)
    consumer.receive(2)
    consumer.start((0, 2))
    consumer.reject_dead(1, reason="no")
    until(lambda: group_of(control, "t")["parked"] == 1, "the death")
    record, message = command("dlq", "show", "t", "1", "--group", "default").stdout.decode().splitlines()
    assert record.split("\t")[:4] == ["1", "parked", "rejected", "1"] and record.endswith("\tno")
    assert message.split("\t")[0] == "1" and message.endswith("\ttwo")
    assert told(command("dlq", "show", "t", "0", "--group", "default", code=1)) == "lightq: message 0 is not dead\n"


@pytest.mark.parametrize("arguments, code, says", [
    (["list", "t", "--group", "default", "--cause", "age"], 2, "'age' is not one of attempts|rejected|expired"),
    (["list", "t", "--group", "default", "--state", "gone"], 2, "'gone' is not one of parked|dead_waiting"),
    (["purge", "t", "--group", "default", "--state", "gone"], 2, "'gone' is not one of parked|dead_waiting"),
    (["list", "t", "--group", "default", "--failed-since", "yesterday"], 2, "'yesterday' is neither a time in UTC nor a TIME"),
    (["purge", "t", "--group", "default", "--failed-until", "first"], 2, "'first' is neither a time in UTC nor a TIME"),
    (["purge", "t", "--group", "default", "--key", "k" * 1025], 1, "key: must be a text of 0 to 1024 bytes"),
    (["retry", "t", "--group", "default", "--offsets", "5-3"], 2, "--offsets: '5-3' is not"), (["show", "t"], 2, "offset is required"),
    (["lst", "t"], 2, "did you mean 'dlq list'"), (["list", "t", "--group", "none"], 1, "topic t has no group none"),
    (["list", "none", "--group", "g"], 1, "topic not found (topic 'none'")])
def test_dlq_explains_what_is_wrong(command, control, arguments, code, says):
    control.create("t")
    control.join("t", "pull")
    assert says in told(command("dlq", *arguments, code=code))
