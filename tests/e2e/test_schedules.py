"""Tests recurring schedules with a real broker: `lightq schedule`, firings over kills, and the guide's page. The broker's clock
is shifted to just before a full minute (tests/support/clock_shift.cpp)."""
import json
import pathlib
import time

import pytest

from cli_support import lightq  # noqa: F401
from guide_support import TIME, blocks, run, transcript
from support import SANITIZED, until
from test_clock_steps import SHIFT, SteppedClock

BEFORE = 3  # seconds from to_minute to the next full minute of the broker's clock


@pytest.fixture
def clock(tmp_path):
    assert pathlib.Path(SHIFT).exists(), f"there is no {SHIFT}: LIGHTQ_CLOCK_SHIFT names the built library"
    clock = SteppedClock(tmp_path / "shift")
    clock.to_minute = lambda minutes=0: clock.off_by(60 - BEFORE - int(time.time()) % 60 + 60 * minutes)
    return clock


@pytest.fixture
def make_broker(make_broker, clock):
    if SANITIZED:  # its own library has to be loaded first
        return make_broker

    def make(*flags, **options):
        return make_broker(*flags, environment={"LD_PRELOAD": SHIFT, "CLOCK_SHIFT_FILE": str(clock.path)}, **options)
    return make


@pytest.fixture
def commands(lightq):  # noqa: F811
    del lightq.environment["LD_PRELOAD"]
    return lightq


def told(done):
    assert done.stdout == b""
    return done.stderr.decode()


def messages(commands):
    lines = commands("peek", "t", "-n", "1000", "--format", "%p\\n").stdout.decode().splitlines()
    return lines


def ids(commands):
    lines = commands("peek", "t", "-n", "1000", "--format", "json").stdout.decode().splitlines()
    return [header["value"] for line in lines for header in json.loads(line)["headers"] if header["name"] == "lightq-id"]


def begin_again(commands):
    commands.broker.start()
    commands.environment["LIGHTQ_BROKER"] = commands.broker.control_uri


needs_clock = pytest.mark.skipif(SANITIZED, reason="needs the shifted clock")


@needs_clock
@pytest.mark.parametrize("kind", ["file", "queue_file"])
def test_no_firing_is_published_twice_over_kills(commands, clock, kind):
    commands("topic", "create", "t", "--type", kind)
    clock.to_minute()
    commands("schedule", "set", "tick", "t", "--cron", "* * * * *", "--missed", "once", "go")
    until(lambda: messages(commands) == ["go"], "the first firing")
    for count in range(2, 5):
        time_of_last = commands.json("schedule", "show", "tick", "t")["schedules"][0]["last_ms"]
        until(lambda: commands.stats("t")["durable_offset"] == count - 1, "the message to be on disk")
        commands.broker.kill()
        clock.to_minute(3 * count)  # some minutes pass meanwhile
        begin_again(commands)
        until(lambda: len(messages(commands)) == count, "the last firing that was missed")
        until(lambda: commands.json("schedule", "show", "tick", "t")["schedules"][0]["last_ms"] > time_of_last, "its time")
    found = ids(commands)
    assert len(set(found)) == len(found) and found == sorted(found), found
    assert all(each.startswith("schedule/tick/") and each.endswith(":00Z") for each in found), found


@needs_clock
def test_missed_times_are_left_out_by_default(commands, clock):
    commands("topic", "create", "t", "--type", "file")
    clock.to_minute()
    commands("schedule", "set", "tick", "t", "--cron", "* * * * *", "go")
    until(lambda: messages(commands) == ["go"], "the first firing")
    commands.broker.stop()
    clock.to_minute(60)
    begin_again(commands)
    until(lambda: len(messages(commands)) == 2, "the next firing")
    assert len(messages(commands)) == 2


def test_the_verbs_set_show_and_remove_schedules(lightq, tmp_path):  # noqa: F811
    lightq("topic", "create", "t", "--type", "file")
    assert told(lightq("schedule", "list")) == "lightq: there are no schedules\n"
    assert told(lightq("schedule", "set", "n", "t", "--cron", "0 9 * * MON-FRI", "--zone", "Europe/Berlin", "--key", "k", "--header",
                       "a=b", "go")) == "lightq: schedule 'n' of topic 't' is set\n"
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    assert lightq.json("schedule", "set", "m", "t", "--cron", "*/5 * * * *", "--file", str(file)) == \
        {"cmd": "set_schedule", "status": "ok", "topic": "t", "name": "m"}
    lines = [line.split("\t") for line in lightq("schedule", "list", "t").stdout.decode().splitlines()]
    assert [line[:3] + line[4:] for line in lines] == [["t", "m", "active", "UTC", "*/5 * * * *"],
                                                       ["t", "n", "active", "Europe/Berlin", "0 9 * * MON-FRI"]]
    shown = lightq("schedule", "show", "n", "t", "-n", "2").stdout.decode()
    assert [line.split()[0] for line in shown.splitlines()] == \
        ["cron", "zone", "missed", "state", "fired", "next", "next", "key", "header", "payload"]
    assert lightq.json("schedule", "show", "m", "t")["schedules"][0]["payload_base64"] == "AP8="
    assert told(lightq("schedule", "pause", "n", "t")) == "lightq: schedule 'n' of topic 't' is paused\n"
    assert [each["paused"] for each in lightq.json("schedule", "list")["schedules"]] == [False, True]
    assert told(lightq("schedule", "resume", "n", "t")) == "lightq: schedule 'n' of topic 't' is active\n"
    lightq("schedule", "remove", "m", "t", "--quiet")
    assert [each["name"] for each in lightq.json("schedule", "list")["schedules"]] == ["n"]
    assert "schedule not found" in told(lightq("schedule", "remove", "m", "t", code=1))


@pytest.mark.parametrize("arguments, code, says", [
    (["set", "n", "t", "go"], 2, "--cron is required"),
    (["set", "n", "t", "--cron", "* * * * *"], 2, "give a PAYLOAD or --file"),
    (["set", "n", "t", "--cron", "* * * * *", "--file", "f", "go"], 2, "give a PAYLOAD or --file"),
    (["set", "n", "t", "--cron", "* * * * *", "--missed", "twice", "go"], 2, "'twice' is not one of once|skip"),
    (["set", "n", "t", "--cron", "* * * *", "go"], 1, "a rule has five"),
    (["set", "n", "t", "--cron", "* * * * *", "--zone", "Mars", "go"], 1, "there is no time zone 'Mars'"),
    (["set", "n", "q", "--cron", "* * * * *", "--missed", "once", "go"], 1, "once needs a topic on disk"),
    (["set", "n", "none", "--cron", "* * * * *", "go"], 1, "topic"),
    (["fire", "n", "t"], 2, "there is no command 'schedule fire'")])
def test_wrong_usage_is_refused_with_a_reason(lightq, arguments, code, says):  # noqa: F811
    lightq("topic", "create", "t", "--type", "file")
    lightq("topic", "create", "q")
    assert says in told(lightq("schedule", *arguments, code=code))


def test_the_page_about_schedules_runs_as_it_is_printed(broker):
    heading = "Every weekday at nine"
    run(broker, blocks(heading, "sh")[0])
    for command, printed in transcript(blocks(heading, "console")[0]):
        assert run(broker, command) == [TIME.sub("TIME", line) for line in printed], command
