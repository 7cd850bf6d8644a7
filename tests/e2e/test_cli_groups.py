"""Tests `lightq group` and `lightq dlq` with a real broker: their effect, their output and their exit codes."""
import pytest

from cli_support import CommandLine
from dead_letter_support import act, dead_of, member, set_group
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
                                    "processing_timeout_ms": 0, "pause_when_failing": True}
    command("group", "set", "t", "default", "--park", "--backoff", "none", "--no-pause-when-failing", "--processing-timeout", "default",
            "--quiet")
    assert settings_of(control) == {"max_attempts": 5, "backoff_ms": [], "dead_letter_topic": "", "dead_waiting_max": 1000,
                                    "pause_when_failing": False}


@pytest.mark.parametrize("arguments, says", [
    (["t"], "group"), (["t", "g"], "at least one setting"), (["t", "g", "--backoff", "1s,,2s"], "TIME"), (["t", "g", "--backoff", "fast"], "TIME"),
    (["t", "g", "--max-attempts", "5G"], "COUNT"), (["t", "g", "--park", "--dead-letter-topic", "d"], "excludes"),
    (["t", "g", "--processing-timeout", "soon"], "TIME")])
def test_group_set_refuses_wrong_usage(command, control, arguments, says):
    control.create("t")
    assert says in told(command("group", "set", *arguments, code=2))


def test_group_set_tells_the_reason_of_the_broker(command, control):
    control.create("t")
    assert "own dead-letter topic" in told(command("group", "set", "t", "g", "--dead-letter-topic", "t", code=1))
    assert "'none'" in told(command("group", "set", "t", "g", "--dead-letter-topic", "none", code=1))


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
    (["list", "t", "--group", "default", "--cause", "age"], 2, "attempts|rejected|expired"),
    (["list", "t", "--group", "default", "--state", "gone"], 2, "parked|dead_waiting"),
    (["retry", "t", "--group", "default", "--offsets", "5-3"], 2, "OFFSETS"), (["show", "t"], 2, "offset"), (["lst", "t"], 2, "did you mean"),
    (["list", "t", "--group", "none"], 1, "none"), (["list", "t"], 1, "group"), (["list", "none", "--group", "g"], 1, "none")])
def test_dlq_explains_what_is_wrong(command, control, arguments, code, says):
    control.create("t")
    control.join("t", "pull")
    assert says in told(command("dlq", *arguments, code=code))
