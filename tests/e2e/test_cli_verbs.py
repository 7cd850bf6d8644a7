"""Tests each command with its flags and a real broker: its effect, its output on each stream, and its exit
code."""
import base64
import json
import re
import shlex
import signal
import subprocess
import xml.etree.ElementTree

import pytest

from cli_support import CommandLine, finish, lightq, on_terminal
from support import BINARY, DEADLINE, secret_file, until

pytestmark = pytest.mark.one_broker

ERASE = b"\x1b[K"  # ends a line that is rewritten in place


def lines(count):
    return b"".join(b"%d\n" % number for number in range(count))


# --- bench -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind,mode", [("queue", "pull"), ("queue", "sub"), ("file", "pull"), ("direct", "pull"),
                                       ("queue_file", "sub")])
def test_bench_receives_all_its_messages_and_leaves_nothing_behind(lightq, kind, mode):
    seen = lightq.json("bench", "--type", kind, "--mode", mode, "-n", "2k", "--size", "64")
    assert (seen["received"], seen["expected"], seen["out_of_order"], seen["size_bytes"]) == (2000, 2000, 0, 64)
    latency = [seen["latency_seconds"][name] for name in ("p50", "p90", "p99", "p999", "max")]
    assert latency == sorted(latency) and 0 < latency[0] and latency[-1] < DEADLINE
    assert seen["seconds"] > 0
    assert seen["messages_per_second"] == pytest.approx(1999 / seen["seconds"], rel=0.1)
    assert lightq.topics() == []


def test_bench_draws_each_message_into_its_histogram(lightq):
    out = lightq("bench", "-n", "2000").stdout.decode()
    assert out.startswith("received  2,000 of 2,000 messages of 100 B, in order\n")
    rows = re.findall(r"^  < [^#]+ #+ ([\d,]+)$", out, re.MULTILINE)
    assert sum(int(count.replace(",", "")) for count in rows) == 2000
    assert "#" not in lightq("bench", "-n", "2000", "--quiet").stdout.decode()


def test_bench_keeps_to_a_rate(lightq):
    # 2 s, less a late first message.
    assert lightq.json("bench", "-n", "2000", "--rate", "1k")["seconds"] > 0.25


def test_bench_on_a_topic_in_use_measures_its_own_messages_only(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "50")
    seen = lightq.json("bench", "--topic", "t", "-n", "100")
    assert (seen["received"], seen["out_of_order"]) == (100, 0)
    assert seen["latency_seconds"]["p50"] > 0
    assert lightq.stats("t")["messages_received"] == 250, "100 for the rate, and 100 for the latency"


def test_an_interrupted_bench_reports_and_deletes_its_topic(lightq):
    bench = lightq.begin("bench", "-n", "1G")
    until(lambda: lightq.stats()["messages_received"] > 1000, "its messages")
    out, _ = finish(bench)
    assert re.match(rb"received  [\d,]+ of 1,000,000,000 messages of 100 B, in order\n", out)
    assert lightq.topics() == []


def test_bench_reports_the_reason_of_missing_messages(lightq):
    told = lightq("bench", "-n", "2", "--size", "17MiB", code=1)
    assert told.stdout.startswith(b"received  0 of 2 ") and b"2 refused (too large)" in told.stderr


# --- topic -----------------------------------------------------------------------------------------------------------
def test_bench_measures_each_combination_and_compares_with_an_earlier_run(lightq, tmp_path):
    how = ["bench", "-n", "300", "--producers", "1,3", "--consumers", "2", "--transport", "plain,session", "--size", "64"]
    shown = lightq.json(*how)
    rows = shown["rows"]
    assert [(row["producers"], row["consumers"], row["transport"]) for row in rows] == [
        (1, 2, "plain"), (3, 2, "plain"), (1, 2, "session"), (3, 2, "session")]
    assert all((row["received"], row["out_of_order"]) == (300, 0) and row["latency_seconds"]["p50"] > 0 for row in rows)
    assert "received" not in shown, "it would be that of one row"
    earlier, image = tmp_path / "earlier.json", tmp_path / "latency.svg"
    earlier.write_text(json.dumps(shown))
    again = lightq.json(*how, "--compare", str(earlier), "--plot", str(image))["rows"]
    for before, after in zip(rows, again):
        ratio = after["messages_per_second"] / before["messages_per_second"]
        assert after["now_then"]["messages_per_second"] == pytest.approx(ratio, rel=0.01)
    svg = xml.etree.ElementTree.parse(image)
    assert len(svg.findall("{http://www.w3.org/2000/svg}polyline")) == 4
    table = lightq(*["session" if word == "plain,session" else word for word in how], "--compare", str(earlier), "--quiet").stdout.decode().splitlines()
    assert "RATE NOW/THEN" in table[0] and len(table) == 3
    assert lightq.topics() == []


def test_bench_over_sessions_confirms_and_gives_each_subscriber_every_message(lightq):
    seen = lightq.json("bench", "--type", "file", "--transport", "session", "--confirm", "received,flushed", "--mode", "sub",
                       "--consumers", "2", "--rate", "10k", "-n", "200")
    assert [(row["confirm"], row["received"], row["expected"]) for row in seen["rows"]] == [
        ("received", 400, 400), ("flushed", 400, 400)]


@pytest.mark.parametrize("typed,why", [("--producers 0", "COUNT"), ("--producers 101", "COUNT"), ("--transport tcp", "plain|session|zmq"),
                                       ("--size 1,,2", "SIZE"), ("--compare /nowhere", "cannot open"),
                                       ("--producers 1,2,3,4,5,6,7,8,9 --consumers 1,2,3,4,5,6,7,8,9 --size 16,17,18", "combinations")])
def test_bench_refuses_values_that_it_cannot_measure(lightq, typed, why):
    assert why in lightq("bench", *typed.split(), code=2).stderr.decode()
    assert lightq.topics() == []


def test_topic_info_shows_a_topics_numbers(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=b"one\ntwo\n")
    info = lightq.json("topic", "info", "t")
    assert (info["topic"], info["topic_type"], info["messages_received"]) == ("t", "file", 2)
    rows = dict(line.split(None, 1) for line in lightq("topic", "info", "t").stdout.decode().splitlines())
    assert (rows["topic"], rows["topic_type"], rows["next_offset"]) == ("t", "file", "2")
    assert b"absent" in lightq("topic", "info", "absent", code=1).stderr


def test_topic_delete_takes_a_topic_with_its_messages_away(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"gone\n")
    deleted = lightq("topic", "delete", "t")
    assert deleted.stdout == b"" and b"'t' deleted" in deleted.stderr
    assert lightq.topics() == []
    lightq("consume", "t", "--no-follow", code=1)
    lightq("topic", "create", "t")
    assert lightq("consume", "t", "--no-follow").stdout == b""


def test_topic_delete_group_frees_an_unused_group(lightq):
    lightq("topic", "create", "t")
    told = lightq("topic", "delete-group", "t", code=1).stderr
    assert b"default" in told and told.count(b"topic") == 1
    consumer = lightq.begin("consume", "t")
    until(lambda: [group["consumers"] for group in lightq.stats("t")["groups"]] == [1], "the consumer")
    lightq("topic", "delete-group", "t", code=1)
    assert len(lightq.stats("t")["groups"]) == 1
    finish(consumer)
    until(lambda: lightq.stats("t")["groups"][0]["consumers"] == 0, "the consumer's end")
    lightq("topic", "delete-group", "t", "default")
    assert lightq.stats("t")["groups"] == []
    lightq("topic", "delete-group", "t", "other", code=1)


def test_topic_pause_resume_and_purge(lightq):
    lightq("topic", "create", "t")
    consumer = lightq.begin("consume", "t")
    until(lambda: [group["consumers"] for group in lightq.stats("t")["groups"]] == [1], "the consumer")
    assert b"topic 't' is paused" in lightq("topic", "pause", "t").stderr
    assert b"group 'default' is paused" in lightq("topic", "pause", "t", "--group", "default").stderr
    rows = lightq("stats", "t").stdout.decode().splitlines()
    assert ["paused", "yes"] in [row.split() for row in rows]
    assert [row.endswith(", paused") for row in rows if row.startswith("group default")] == [True]
    lightq("produce", "t", stdin=b"one\ntwo\n")
    assert b"group 'default' is purged: 2 messages" in lightq("topic", "purge", "t", "--group", "default").stderr
    lightq("produce", "t", stdin=b"three\n")
    purged = lightq.json("topic", "purge", "t")
    assert purged["cmd"] == "purge" and purged["topic"] == "t" and purged["messages"] >= 1
    assert lightq.json("topic", "resume", "t", "--group", "default") == {"cmd": "resume", "status": "ok", "topic": "t", "group": "default"}
    assert b"topic 't' is resumed" in lightq("topic", "resume", "t").stderr
    assert "paused" not in lightq("stats", "t").stdout.decode()
    lightq("produce", "t", stdin=b"four\n")
    until(lambda: lightq.stats("t")["queue_size"] == 0, "the last message")
    assert finish(consumer)[0] == b"four\n"
    lightq("topic", "pause", "t")
    lightq("produce", "t", stdin=b"five\n")
    waits = lightq.begin("consume", "t", "--no-follow")
    assert waits.stderr.readline() == b"lightq: topic 't' is paused; waiting until it is resumed\n"
    lightq("topic", "resume", "t")
    assert waits.communicate(timeout=DEADLINE)[0] == b"five\n"
    assert b"absent" in lightq("topic", "pause", "t", "--group", "absent", code=1).stderr
    lightq("topic", "purge", "absent", code=1)


def test_topic_commands_answer_scripts_in_json(lightq):
    made = lightq("topic", "create", "t", "--json")
    settings = {"broker_type": "queue", "message_ttl_ms": 0, "open": False, "overflow": "block", "ring_bytes": 64 << 20}
    assert json.loads(made.stdout) == {"cmd": "create_topic", "status": "ok", "topic": "t", "settings": settings} and made.stderr == b""
    lightq("consume", "t", "--no-follow")
    until(lambda: lightq.stats("t")["groups"][0]["consumers"] == 0, "the consumer's end")
    assert lightq.json("topic", "delete-group", "t") == {"cmd": "delete_group", "status": "ok", "topic": "t"}
    assert lightq.json("topic", "delete", "t") == {"cmd": "delete_topic", "status": "ok", "topic": "t"}
    assert lightq("topic", "delete", "t", "--json", code=1).stdout == b""


# --- produce and consume ---------------------------------------------------------------------------------------------
def test_in_sub_mode_each_consumer_receives_every_later_message(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"before\n")
    subscribers = [lightq.begin("consume", "t", "--mode", "sub", "-n", "2") for _ in range(2)]
    until(lambda: lightq.stats("t")["subscribers_count"] == 2, "both")
    lightq("produce", "t", stdin=b"one\ntwo\n")
    assert [one.communicate(timeout=DEADLINE)[0] for one in subscribers] == [b"one\ntwo\n"] * 2
    # The subscriber did not take them from the pullers.
    assert lightq("consume", "t", "--no-follow").stdout == b"before\none\ntwo\n"


def test_pullers_share_the_messages(lightq):
    lightq("topic", "create", "t")
    pullers = [lightq.begin("consume", "t") for _ in range(2)]
    until(lambda: lightq.stats("t")["subscribers_count"] == 2, "both")
    lightq("produce", "t", stdin=lines(100))
    until(lambda: lightq.stats("t")["messages_sent"] == 100, "the messages")
    parts = [finish(puller)[0].splitlines() for puller in pullers]
    assert all(parts) and sorted(map(int, parts[0] + parts[1])) == list(range(100))


def test_produce_keeps_to_a_rate(lightq):
    lightq("topic", "create", "t")
    done = lightq.json("produce", "t", "-n", "21", "--rate", "100")
    assert (done["sent"], done["received"]) == (21, 21) and 0.2 <= done["seconds"] < DEADLINE


def test_produce_need_not_wait_for_the_broker(lightq):
    lightq("topic", "create", "t")
    assert lightq.json("produce", "t", "-n", "5", "--size", "10")["received"] == 5
    hurried = lightq.json("produce", "t", "-n", "5", "--size", "10", "--no-wait")
    assert (hurried["sent"], hurried["received"], hurried["bytes"]) == (5, None, 50)
    until(lambda: lightq.stats("t")["messages_received"] == 10, "what was not waited for")


def test_a_count_limits_the_lines_read_from_a_file(lightq, tmp_path):
    lightq("topic", "create", "t")
    (tmp_path / "lines").write_bytes(lines(10))
    lightq("produce", "t", str(tmp_path / "lines"), "-n", "3")
    assert lightq("consume", "t", "--no-follow").stdout == lines(3)


def test_formats_show_any_bytes(lightq):
    payloads = [b'say "hi"\t\\', b"\xff\x00\x01", "grüße".encode(), b""]

    def consumed(style):
        lightq("produce", "t", stdin=b"".join(payload + b"\n" for payload in payloads))
        return lightq("consume", "t", "-n", str(len(payloads)), *style).stdout

    lightq("topic", "create", "t")
    raw = b"".join(payload + b"\n" for payload in payloads)
    assert consumed([]) == consumed(["--format", "raw"]) == raw
    assert consumed(["--format", "hex"]).decode().split("\n")[:-1] == [payload.hex() for payload in payloads]
    shown = consumed(["--format", "json"])
    assert consumed(["--json"]) == shown
    documents = [json.loads(line) for line in shown.splitlines()]
    assert {document["topic"] for document in documents} == {"t"}
    assert [document.get("payload") for document in documents] == ['say "hi"\t\\', None, "grüße", ""]
    assert base64.b64decode(documents[1]["payload_base64"]) == payloads[1]


def test_quiet_commands_print_only_errors(lightq):
    for topic, switches in (("loud", []), ("t", ["--quiet"])):
        for words in (["topic", "create", topic], ["produce", topic, "-n", "3"], ["consume", topic, "-n", "3"],
                      ["topic", "delete", topic]):
            told = lightq(*words, *switches).stderr
            assert bool(told) != bool(switches), (words, told)
    assert b"absent" in lightq("consume", "absent", "-q", code=1).stderr


def test_a_consumer_ends_after_the_timeout_without_a_message(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"one\n")
    ended = lightq("consume", "t", "--timeout", "300ms")
    assert ended.stdout == b"one\n" and b"1 message," in ended.stderr
    lightq("produce", "t", stdin=b"two\n")
    short = lightq("consume", "t", "--timeout", "300ms", "-n", "5", code=1)
    assert short.stdout == b"two\n" and b"only 1 of 5" in short.stderr


def test_a_producer_gives_up_when_nothing_moves_for_so_long(lightq):
    lightq("topic", "create", "t", "--ring-bytes", "64KiB")
    lightq("consume", "t", "--no-follow")  # from now on messages wait for a puller
    stuck = lightq("produce", "t", "-n", "1000", "--size", "1KiB", "--timeout", "300ms", code=1)
    assert re.search(rb"the broker has confirmed \d+ of \d+ messages: .*accepts no messages now", stuck.stderr), stuck
    assert 0 < lightq.stats("t")["messages_received"] < 1000


def test_refused_messages_do_not_count_as_received(lightq, tmp_path):
    lightq("topic", "create", "t")
    (tmp_path / "lines").write_bytes(b"small\n" + b"x" * (17 << 20) + b"\n")
    failed = lightq("produce", "t", str(tmp_path / "lines"), "--json", code=1)
    done = json.loads(failed.stdout)
    assert (done["sent"], done["received"]) == (1, 1) and b"1 message was not sent: " in failed.stderr


def test_refused_messages_are_reported_with_the_reason(lightq):
    lightq("topic", "create", "t", "--ring-bytes", "64KiB", "--overflow", "reject")
    lightq("consume", "t", "--no-follow")  # from now on messages wait for a puller
    told = lightq("produce", "t", "-n", "1000", "--size", "1000", code=1).stderr
    assert b"refused by the broker: " in told and b"too large" not in told, told


def test_a_message_above_the_limit_is_not_sent_and_the_limit_is_named(lightq):
    lightq("topic", "create", "t")
    told = lightq("produce", "t", "-n", "2", "--size", "17MiB", code=1).stderr
    assert told.startswith(b"lightq: 0 messages sent"), told
    limit = b"2 messages were not sent: a message of 17825792 bytes is larger than 16777216 bytes, the broker's message_bytes_max"
    assert limit in told.replace(b"topic 't': ", b""), told
    assert lightq.stats("t")["messages_received"] == lightq.stats("t")["refused"] == 0
    lightq("produce", "t", "-n", "1", "--size", "16MiB")


def test_a_message_as_long_as_a_raised_limit_is_sent(make_broker):
    lightq = CommandLine(make_broker("--message-bytes-max", "24MiB", admin=False))
    lightq("topic", "create", "t", "--ring-bytes", "32MiB")
    lightq("produce", "t", "-n", "1", "--size", "24MiB")
    told = lightq("produce", "t", "-n", "1", "--size", "25MiB", code=1).stderr
    assert b"1 message was not sent: " in told and b"25165824 bytes, the broker's message_bytes_max" in told, told


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_producer_ends_with_a_summary(lightq, by):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"one\ntwo\n")
    producer.stdin.flush()
    until(lambda: lightq.stats("t")["messages_received"] == 2, "the lines")
    producer.send_signal(by)
    assert producer.wait(DEADLINE) == 0  # it ends although its input is still open
    assert b"2 messages received by the broker, 6 B in " in producer.stderr.read()


def test_an_interrupted_generator_reports_the_confirmed_messages(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", "-n", "1M", "--rate", "1k", "--json")
    until(lambda: lightq.stats("t")["messages_received"] > 10, "its messages")
    out, told = finish(producer)
    done = json.loads(out)
    assert done["sent"] == done["received"] == lightq.stats("t")["messages_received"] > 10 and told == b""


# --- terminals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", [["produce", "t", "-n", "1000"], ["consume", "t", "-n", "300"],
                                     ["bench", "-n", "1000"]])
def test_progress_is_shown_on_a_terminal_only(lightq, command):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "300")
    assert ERASE in on_terminal(lightq, *command)
    lightq("produce", "t", "-n", "300")
    piped = lightq(*command)
    assert b"\x1b" not in piped.stdout + piped.stderr and b"\r" not in piped.stderr


def test_a_quiet_command_shows_no_progress_on_a_terminal_either(lightq):
    lightq("topic", "create", "t")
    assert on_terminal(lightq, "produce", "t", "-n", "1000", "--quiet") == b""
    assert on_terminal(lightq, "consume", "t", "-n", "1000", "--quiet") == b""


def test_messages_on_a_terminal_are_not_mixed_with_escapes(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=lines(300))
    shown = on_terminal(lightq, "consume", "t", "-n", "300", stream="stdout")
    assert shown.replace(b"\r\n", b"\n") == lines(300)


ACTS = "\x1b]0;owned\x07 \u009b31m \u202etxt".encode() + b" \x9b \xff"
SHOWN = rb"\u001b]0;owned\u0007 \u009b31m \u202etxt \u009b \u00ff"


@pytest.mark.parametrize("command", [["consume", "-n", "1"], ["consume", "-n", "1", "--format", "%k|%h|%p\n"], ["sub", "--from", "first", "--no-follow"],
                                     ["peek", "--format", "%k|%h|%p\n"], ["peek", "--format", "raw"]], ids=" ".join)
def test_messages_of_others_cannot_act_on_a_terminal(lightq, command):
    lightq("topic", "create", "t")
    lightq("produce", "t", "--key", ACTS, "--header", b"name=" + ACTS, stdin=ACTS + b"\n")
    shown = on_terminal(lightq, command[0], "t", *command[1:], stream="stdout")
    assert SHOWN in shown and not any(acting in shown for acting in (b"\x1b", b"\x9b", b"\xff", "\u202e".encode())), shown


def test_messages_reach_a_pipe_and_a_forced_terminal_as_they_are(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=(ACTS + b"\n") * 2)
    assert on_terminal(lightq, "peek", "t", "--format", "raw", "--force", stream="stdout") == (ACTS + b"\r\n") * 2
    assert lightq("consume", "t", "-n", "1").stdout == ACTS + b"\n"
    assert on_terminal(lightq, "consume", "t", "-n", "1", "--format", "raw", "--force", stream="stdout") == ACTS + b"\r\n"


# --- wrong usage, other ways to say it, the environment --------------------------------------------------------------
@pytest.mark.parametrize("typed,meant", [
    ("producer", "lightq produce test"),
    ("producer 10 100", "lightq produce test -n 10 --size 100"),
    ("producer 10000000 100", "lightq produce test -n 10000000 --size 100"),
    ("consumer queue zmq pull", "lightq consume test --mode pull"),
    ("consumer queue zmq sub", "lightq consume test --mode sub")])
def test_spellings_of_2015_are_answered_with_a_command_that_works(lightq, typed, meant):
    wrong = lightq(*typed.split(), code=2)
    assert wrong.stdout == b"" and wrong.stderr.decode().splitlines()[-1].strip() == meant
    if "10000000" in meant:
        return  # works, and takes a while
    lightq("topic", "create", "test")
    lightq(*meant.split()[1:], variables={"LIGHTQ_COUNT": "" if "-n" in meant else "10", "LIGHTQ_TIMEOUT": "300ms"},
           code=1 if "consume" in meant else 0)  # ten messages never arrive
    if meant.endswith("-n 10 --size 100"):
        stats = lightq.stats("test")
        assert (stats["messages_received"], stats["total_bytes_written"]) == (10, 1000)


@pytest.mark.parametrize("command", ["topic create t", "topic list", "produce t", "consume t", "stats", "ping", "version",
                                     "bench -n 1"])
def test_a_password_file_without_a_user_is_wrong_usage(lightq, tmp_path, command):
    secret_file(tmp_path / "password", "secret")
    path = str(tmp_path / "password")
    wrong = lightq(*command.split(), "--password-file", path, code=2)
    assert wrong.stdout == b"" and b"--user" in wrong.stderr and b"--password-file" in wrong.stderr
    lightq(*command.split(), variables={"LIGHTQ_PASSWORD_FILE": path}, code=2)
    assert lightq.topics() == []


def test_a_password_file_must_contain_a_password(lightq, tmp_path):
    secret_file(tmp_path / "empty", "")
    for name in ("empty", "absent"):
        told = lightq("ping", "--user", "u", "--password-file", str(tmp_path / name), code=2).stderr
        assert name.encode() in told


def test_naming_the_admin_still_finds_the_password_of_this_machines_broker(lightq):
    assert lightq("topic", "list", "--admin-user", "lightq_admin").stdout == b""
    assert b"--admin-password-file" in lightq("topic", "list", "--admin-user", "somebody", code=2).stderr


def test_flags_without_a_value_have_variables_too(lightq):
    def with_variable(name, value, *arguments):
        return lightq(*arguments, variables={name: value})

    assert lightq.json("topic", "create", "t")["status"] == "ok"
    assert json.loads(with_variable("LIGHTQ_JSON", "1", "stats", "t").stdout)["topic"] == "t"
    assert with_variable("LIGHTQ_QUIET", "true", "produce", "t", "-n", "1").stderr == b""
    assert with_variable("LIGHTQ_QUIET", "false", "produce", "t", "-n", "1").stderr != b""
    assert b" sent," in with_variable("LIGHTQ_NO_WAIT", "1", "produce", "t", "-n", "1").stderr
    until(lambda: lightq.stats("t")["messages_received"] == 3, "what was not waited for")
    assert with_variable("LIGHTQ_FOLLOW", "0", "consume", "t").stdout.count(b"\n") == 3
    with_variable("LIGHTQ_OPEN", "1", "topic", "create", "open")
    assert [topic["open"] for topic in lightq.json("topic", "list")["topics"]] == [True, False]


COMMANDS = ["topic", "topic create", "topic list", "topic info", "topic delete", "topic delete-group", "produce",
            "consume", "sub", "stats", "ping", "version", "bench"]


def examples():
    """Yields the examples in every command's help, except those that only a signal ends."""
    for command in COMMANDS:
        done = subprocess.run([BINARY, *command.split(), "--help"], capture_output=True, timeout=DEADLINE, check=True)
        shown = done.stdout.decode().split("\nExamples:\n")[1].split("\n\n")[0]
        for line in shown.replace(" \\\n", " ").splitlines():  # a shell joins them too
            assert line.startswith("  ")
            if "tail -F" not in line and "--watch" not in line:
                yield line.strip()


def test_the_examples_in_help_work(lightq, tmp_path):
    secret_file(tmp_path / "secret.txt", "secret")
    (tmp_path / "access.log").write_bytes(lines(3))
    ran = 0
    for example in examples():
        for topic in lightq.topics():
            lightq("topic", "delete", topic)
        if " create " not in example:
            lightq("topic", "create", "orders")
            lightq("produce", "orders", stdin=b"one\n")
        if "delete-group" in example:
            lightq("consume", "orders", "--no-follow")
            until(lambda: lightq.stats("orders")["groups"][0]["consumers"] == 0, "the consumer's end")
        words = shlex.split(re.sub(r"-n \S+", "-n 100", example).split("|")[0].split(">")[0])
        assert words[0] == "lightq"
        variables = {"LIGHTQ_TIMEOUT": "200ms"} if words[1] in ("consume", "sub") else {}
        variables |= {"LIGHTQ_COUNT": "100"} if words[1] == "bench" else {}
        lightq(*words[1:], variables=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
        ran += 1
    assert ran > 20


# --- peek ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["queue", "file"])
def test_peek_shows_messages_and_changes_nothing(lightq, kind):
    lightq("topic", "create", "t", "--type", kind)
    lightq("produce", "t", "--key", "tea", "--compression", "lz4", stdin=b"".join(b"line %d\n" % i for i in range(500)))
    before = lightq.stats("t")
    pattern = ["--format", r"%o %k %p\n"]
    shown = {("--from", "first"): (0, 10), ("--from", "last", "-n", "3"): (497, 500), ("--from", "77", "-n", "200"): (77, 277),
             ("--from", "498", "-n", "9"): (498, 500), ("--from", "500"): (0, 0), ("--from", "9999"): (0, 0),
             ("-n", "0"): (0, 0), (): (0, 10)}
    for asked, (first, end) in shown.items():
        expected = b"".join(b"%d tea line %d\n" % (i, i) for i in range(first, end))
        assert lightq("peek", "t", *asked, *pattern).stdout == expected, asked
    first = json.loads(lightq("peek", "t", "-n", "1", "--json").stdout)
    assert (first["offset"], first["payload"], first["key"]) == (0, "line 0", "tea")
    after = lightq.stats("t")
    assert {name for name in before if before[name] != after[name]} <= {"durable_offset", "groups", "log_bytes", "oldest_ms"}
    assert not after["groups"] and numbers_of(lightq("consume", "t", "--no-follow").stdout) == list(range(500))


def numbers_of(output):
    return [int(line.split()[1]) for line in output.splitlines()]


def test_peek_reports_wrong_arguments(lightq):
    lightq("topic", "create", "t")
    assert b"topic not found" in lightq("peek", "none", code=1).stderr
    for wrong in (["--from", "next"], ["--from", "-1"], ["-n", "x"], ["--format", "%q"]):
        lightq("peek", "t", *wrong, code=2)
    assert lightq("peek", "t").stdout == b""
