"""Tests `lightq mirror` between two brokers, with interruptions of the command and of both brokers."""
import json

import pytest

from cli_support import CommandLine, lightq  # noqa: F401 (a fixture)
from support import until

MESSAGES = 3000


@pytest.fixture
def source(make_broker):
    command_line = CommandLine(make_broker(admin=False))
    yield command_line
    command_line.close()


@pytest.fixture
def mirror(lightq, source, tmp_path):  # noqa: F811
    """A function that runs or begins a mirror from the source's broker to that of `lightq`."""
    def run(*flags, begin=False, code=0):
        arguments = ["mirror", "t", "--from", source.broker.control_uri, "--from-data-dir", str(source.broker.data_dir),
                     "--state", str(tmp_path / "state.json"), *flags]
        if begin:
            return lightq.begin(*arguments)
        return json.loads(lightq(*arguments, "--until-end", "--json", code=code).stdout)
    return run


def exported(command_line):
    return [json.loads(line) for line in command_line("export", "t").stdout.splitlines()]


def test_a_mirror_keeps_keys_headers_times_and_order(lightq, source, mirror):  # noqa: F811
    for each in (lightq, source):
        each("topic", "create", "t", "--type", "file")
    source("produce", "t", "--key", "tea", "--header", "a=1", "--header", "b=", stdin=b"one\ntwo\n")
    source("produce", "t", "--compression", "lz4", "-n", "100")
    source("import", "t", stdin=b'{"payload":"timed","producer_time_us":1700000000000000}\n{"payload_base64":"/w=="}\n')
    shown = mirror()
    assert (shown["status"], shown["messages"], shown["lost"], shown["next_offset"]) == ("ok", 104, 0, 104)
    of_message = ("payload", "payload_base64", "key", "headers")
    was, copied = exported(source), exported(lightq)
    assert [[each.get(name) for name in of_message] for each in copied] == [[each.get(name) for name in of_message] for each in was]
    assert copied[102]["producer_time_us"] == 1700000000000000
    assert copied[0]["producer_time_us"] == was[0]["time_us"], "a message without a time gets that of its append"
    assert mirror()["messages"] == 0, "nothing is copied twice"
    source("produce", "t", stdin=b"new\n")
    assert mirror()["messages"] == 1


def test_a_mirror_that_is_killed_again_and_again_stores_each_message_once(lightq, source, mirror):  # noqa: F811
    for each in (lightq, source):
        each("topic", "create", "t", "--type", "file")
    source("produce", "t", "-n", str(MESSAGES), "--size", "2000")
    killed = 0
    for number in range(6):
        seen = lightq.stats("t")["next_offset"]
        running = mirror(begin=True)
        until(lambda: lightq.stats("t")["next_offset"] > seen or running.poll() is not None, "the mirror at work")
        if number == 2:
            lightq.broker.kill()
            lightq.broker.start()
        elif number == 3:
            source.broker.kill()
            source.broker.start()
        killed += running.poll() is None
        running.kill()
        running.wait()
        source("produce", "t", "-n", str(MESSAGES), "--size", "2000")
    assert killed == 6, "a mirror has ended by itself"
    shown = mirror()
    assert shown["next_offset"] == 7 * MESSAGES
    assert [each["payload"] for each in exported(lightq)] == [each["payload"] for each in exported(source)]


def test_a_mirror_says_what_the_source_dropped(lightq, source, mirror):  # noqa: F811
    source("topic", "create", "t", "--type", "file", "--segment-bytes", "64KiB", "--retention-messages", "100")
    lightq("topic", "create", "t", "--type", "file")
    source("produce", "t", "-n", "10")
    assert mirror()["messages"] == 10
    source("produce", "t", "-n", "5000", "--size", "200")
    until(lambda: source.stats("t")["first_offset"] > 10, "messages to be dropped")
    first = source.stats("t")["first_offset"]
    shown = mirror(code=1)
    assert shown["lost"] >= first - 10 and shown["messages"] + shown["lost"] == 5000
    assert lightq.stats("t")["next_offset"] == 10 + shown["messages"]
    assert mirror()["messages"] == 0


def test_a_mirror_stops_where_it_would_have_to_guess(lightq, source, mirror):  # noqa: F811
    for each in (lightq, source):
        each("topic", "create", "t")
    source("produce", "t", "-n", "10")
    assert mirror()["messages"] == 10
    lightq.broker.restart()  # the topic is in memory, and forgets its producers
    assert lightq("mirror", "t", "--from", source.broker.control_uri, "--from-data-dir", str(source.broker.data_dir),
                  "--state", str(source.broker.directory / "other.json"), "--from-topic", "nowhere", code=1).stderr
    running = mirror(begin=True)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 1 and b"--begin" in told, told
    assert mirror("--begin", "4")["messages"] == 6
    assert [each["payload"] for each in exported(lightq)] == [each["payload"] for each in exported(source)][4:]
