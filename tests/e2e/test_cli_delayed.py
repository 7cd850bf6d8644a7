"""Tests `lightq delayed` and the flags of `lightq produce` for delayed messages, with a real broker."""
import re

import pytest

from cli_support import CommandLine
from delayed_support import now_us, stats_of, waiting
from session_support import consumer_of
from support import until

HOUR_US = 3_600_000_000


@pytest.fixture
def command(broker):
    return CommandLine(broker)


def told(done):
    assert done.stdout == b""
    return done.stderr.decode()


def produce(command, text, *flags, **more):
    return command("produce", "t", "--quiet", *flags, stdin=text, **more)


def payloads(messages):
    return [message.payload for message in messages]


def test_produce_delays_messages(command, control, session):
    control.create("t")
    consumer = consumer_of(control, session, "t")
    begin = now_us()
    produce(command, b"soon\n", "--delay", "100ms", "--key", "k", "--header", "a=b")
    soon, = consumer.receive(1)
    assert (soon.payload, soon.said.key, soon.said.headers) == (b"soon", b"k", ((b"a", b"b"),))
    assert now_us() >= begin + 100_000
    begin = now_us()
    produce(command, b"in an hour\n", "--delay", "1h")
    produce(command, b"in half an hour\n", "--deliver-at", "+30m")
    end = now_us()
    sooner, later = waiting(control)
    assert begin + HOUR_US // 2 <= sooner["due_us"] <= end + HOUR_US // 2
    assert begin + HOUR_US <= later["due_us"] <= end + HOUR_US


def test_produce_says_that_messages_are_scheduled(command, control):
    control.create("t", "file")
    said = command("produce", "t", "--delay", "1h", stdin=b"a\nb\n").stderr.decode()
    assert re.match(r"lightq: 2 messages scheduled and written to the broker's disk, 2 B in ", said), said
    control.create("q")
    assert b"1 message scheduled, 1 B in " in command("produce", "q", "--delay", "0", stdin=b"a\n").stderr


@pytest.mark.parametrize("zone, variables", [("Europe/Berlin", {}), (None, {"TZ": "Europe/Berlin"})])
def test_produce_delivers_at_a_local_time(command, control, zone, variables):
    control.create("t")
    year = 1970 + now_us() // 31_556_952_000_000 + 1
    flags = ["--deliver-at", f"{year}-07-01T09:00", *(["--zone", zone] if zone else [])]
    produce(command, b"m\n", *flags, variables=variables)
    produce(command, b"m\n", "--deliver-at", f"{year}-07-01T07:00:00Z")
    first, second = waiting(control)
    assert first["due_us"] == second["due_us"]


def test_a_past_time_means_now(command, control, session):
    control.create("t")
    produce(command, b"past\n", "--deliver-at", "2020-01-01T00:00Z")
    assert payloads(consumer_of(control, session, "t").receive(1)) == [b"past"]


def test_an_id_is_a_header_of_messages_that_are_not_delayed_too(command, control, session):
    control.create("t")
    produce(command, b"m\n", "--id", "order 7")
    message, = consumer_of(control, session, "t").receive(1)
    assert message.said.headers == ((b"lightq-id", b"order 7"),)


@pytest.mark.parametrize("flags, says", [
    (["--delay", "soon"], "--delay: 'soon' is not a TIME"), (["--delay", "3654d"], "at most ten years"),
    (["--deliver-at", "tomorrow"], "'tomorrow' is not a time, such as"), (["--deliver-at", "+3654d"], "at most ten years"),
    (["--deliver-at", "2030-01-01T09:00", "--zone", "Nowhere"], "--zone: 'Nowhere' is not a time zone"),
    (["--zone", "Nowhere"], "is not a time zone"), (["--delay", "1s", "--deliver-at", "+1s"], "excludes"),
    (["--id", "i" * 129], "--id: an id has at most 128 bytes"), (["--delay", "1s", "--plain"], "--plain: does not work with --delay"),
    (["--id", "i", "--no-wait"], "--no-wait: does not work with")])
def test_produce_refuses_wrong_usage(command, control, flags, says):
    control.create("t")
    done = command("produce", "t", *flags, stdin=b"m\n", code=2)
    assert says in told(done)
    assert stats_of(control) is None


def test_produce_to_a_topic_without_a_schedule_fails(command, control):
    control.create("t", "direct")
    assert "direct" in told(command("produce", "t", "--delay", "1s", stdin=b"m\n", code=1))


def test_list_shows_messages_by_due_time(command, control):
    control.create("t")
    produce(command, b"b\n", "--deliver-at", "2035-01-01T00:00:00.5Z", "--id", "order\t7")
    produce(command, b"aa\n", "--deliver-at", "2034-01-01T00:00Z", "--key", "tea")
    first, second = waiting(control)
    assert command("delayed", "list", "t").stdout.decode().splitlines() == [
        f"{first['number']}\t2034-01-01T00:00:00.000000Z\twaiting\t{first['bytes']}\t-\ttea",
        f"{second['number']}\t2035-01-01T00:00:00.500000Z\twaiting\t{second['bytes']}\torder\\t7\t-"] or \
        b"order" in command("delayed", "list", "t").stdout
    assert command.json("delayed", "list", "t")["messages"] == [first, second]
    assert command.json("delayed", "list", "t", "--id", "order\t7")["messages"] == [second]
    assert command.json("delayed", "list", "t", "--due-until", "2034-06-01T00:00Z")["messages"] == [first]
    assert command.json("delayed", "list", "t", "--due-from", "2034-06-01T00:00", "--zone", "Asia/Tokyo")["messages"] == [second]
    assert command.json("delayed", "list", "t", "--numbers", str(second["number"]))["messages"] == [second]
    one = command("delayed", "list", "t", "-n", "1")
    assert len(one.stdout.splitlines()) == 1 and b"there may be more; see --count" in one.stderr
    assert told(command("delayed", "list", "t", "--id", "none")) == "lightq: no such delayed messages\n"
    shown, = command.json("delayed", "show", "t", str(first["number"]))["messages"]
    assert {name: value for name, value in shown.items() if not name.startswith("payload")} == first
    assert (shown["payload"], shown["payload_bytes"]) == ("aa", 2)
    assert b"\ttea\n" in command("delayed", "show", "t", str(first["number"])).stdout
    assert told(command("delayed", "show", "t", "900", code=1)) == "lightq: message 900 does not wait\n"


def test_show_prints_the_payload(command, control):
    control.create("t", "file")
    produce(command, b"tab\there\n", "--delay", "1h")
    produce(command, b"\xff\x00\n", "--delay", "2h")
    command("produce", "t", "-n", "1", "--size", "40000", "--delay", "3h", "--quiet")
    text, binary, long = [str(message["number"]) for message in waiting(control)]
    assert command("delayed", "show", "t", text).stdout.splitlines()[1:] == [rb"tab\there"]
    shown, = command.json("delayed", "show", "t", binary)["messages"]
    assert (shown["payload_base64"], shown["payload_bytes"]) == ("/wA=", 2)
    done = command("delayed", "show", "t", long)
    assert len(done.stdout.splitlines()[1]) >= 32_768
    assert done.stderr == b"lightq: these are the first 32768 of 40000 bytes\n"


def test_list_reads_many_pages(command, control):
    control.create("t", "file")
    command("produce", "t", "-n", "2500", "--size", "8", "--delay", "1h", "--quiet")
    assert len(command("delayed", "list", "t", "-n", "10k").stdout.splitlines()) == 2500
    assert len(command("delayed", "list", "t").stdout.splitlines()) == 100


def test_messages_are_cancelled_hurried_and_rescheduled(command, control, session):
    control.create("t")
    produce(command, b"0\n1\n2\n", "--delay", "1h", "--id", "order 7")
    produce(command, b"3\n", "--delay", "1h")
    numbers = [str(message["number"]) for message in waiting(control)]
    assert told(command("delayed", "cancel", "t", "--id", "order 7", "--preview")) == "lightq: 3 messages would be cancelled\n"
    assert told(command("delayed", "cancel", "t", "--numbers", numbers[0])) == "lightq: 1 message cancelled\n"
    assert told(command("delayed", "hurry", "t", "--numbers", numbers[1])) == "lightq: 1 message delivered now\n"
    consumer = consumer_of(control, session, "t")
    assert payloads(consumer.receive(1)) == [b"1"]
    assert told(command("delayed", "reschedule", "t", "--id", "order 7", "--deliver-at", "+2h")) == "lightq: 1 message rescheduled\n"
    assert [message["number"] for message in waiting(control)] == [int(numbers[3]), int(numbers[2])]
    assert command.json("delayed", "reschedule", "t", "--numbers", numbers[2], "--delay", "100ms") == {
        "cmd": "reschedule_delayed", "status": "ok", "messages": 1, "too_late": 0, "unknown": 0}
    assert payloads(consumer.receive(1)) == [b"2"]
    late = command("delayed", "cancel", "t", "--numbers", f"{numbers[1]},900", code=1).stderr.decode()
    assert late.splitlines() == ["lightq: 0 messages cancelled", "lightq: 1 message not changed: too late, already delivered",
                                 "lightq: 1 message not changed: the schedule does not have them"]
    assert told(command("delayed", "cancel", "t", "--all")) == "lightq: 1 message cancelled\n"
    until(lambda: stats_of(control)["messages"] == 0, "an empty schedule")
    shown = command("stats", "t").stdout.decode()
    assert re.search(r"^delayed +waiting 0, 0 B, moved 2, cancelled 2", shown, re.M), shown


@pytest.mark.parametrize("arguments, says", [
    (["cancel", "t"], "name messages, or give --all"), (["hurry", "t"], "name messages, or give --all"),
    (["reschedule", "t", "--all"], "give --deliver-at or --delay"), (["cancel", "t", "--numbers", "5-"], "is not a NUMBERS"),
    (["cancel", "t", "--due-from", "now"], "'now' is not a time"), (["cancel", "t", "--id", ""], "an id has 1 to 128 bytes"),
    (["show", "t"], "number is required"), (["lost", "t"], "there is no command 'delayed lost'")])
def test_delayed_refuses_wrong_usage(command, control, arguments, says):
    control.create("t")
    assert says in told(command("delayed", *arguments, code=2))


def test_a_purge_can_cancel_delayed_messages(command, control):
    control.create("t")
    produce(command, b"a\nb\n", "--delay", "1h")
    assert told(command("topic", "purge", "t", "--yes")) == "lightq: topic 't' is purged: 0 messages\n"
    assert told(command("topic", "purge", "t", "--delayed", "--yes")) == "lightq: topic 't' is purged: 2 messages\n"
    assert "excludes" in told(command("topic", "purge", "t", "--delayed", "--group", "g", code=2))


def test_commands_tell_the_reason_of_the_broker(command, control):
    assert "topic not found" in told(command("delayed", "list", "none", code=1))
    control.create("d", "direct")
    assert "direct" in told(command("delayed", "cancel", "d", "--all", code=1))
