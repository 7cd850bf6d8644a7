"""Tests of the answers to mistakes, of JSON in all commands, of questions on a terminal, and of payloads with line ends."""
import base64
import json
import signal

import pytest

from cli_support import finish, lightq
from support import BINARY, until
from terminal_session import TerminalSession


# --- Mistakes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("typed,meant", [("topic create t --typ file", "--type"), ("consume t --formt json", "--format"),
                                         ("stats --intervall 1s", "--interval")])
def test_a_mistyped_flag_is_answered_with_the_right_one(lightq, typed, meant):
    told = lightq(*typed.split(), code=2).stderr.decode()
    assert f"did you mean {meant}?" in told and "password" not in told


def test_a_flag_behind_two_dashes_is_not_answered_with_itself(lightq):
    told = lightq("ping", "--", "--json", code=2).stderr.decode()
    assert "did you mean" not in told and "--json" in told


@pytest.mark.parametrize("typed,forms", [
    ("topic create t --retention 7days", "a TIME, such as 500ms, 30s, 15m, 1h30m or 7d"),
    ("topic create t --ring-bytes many", "a SIZE, such as 4096, 64KiB or 1MB"),
    ("produce t --compression gzip", "one of none|lz4|zstd"), ("consume t --from 2026-13-01", "2026-11-22T05:00+01:00"),
    ("produce t -n some", "a COUNT")])
def test_a_wrong_value_is_answered_with_the_accepted_forms(lightq, typed, forms):
    assert forms in lightq(*typed.split(), code=2).stderr.decode()


def test_dates_other_clocks_and_spans_of_several_parts_are_accepted(lightq):
    lightq("topic", "create", "t", "--type", "file", "--retention", "1d12h")
    assert lightq.stats("t")["settings"]["retention_ms"] == 36 * 3600 * 1000
    lightq("produce", "t", stdin=b"one\n")
    for group, place in enumerate(["2026-01-02", "2026-01-02T03:04+01:00", "2026-01-02T03:04Z", "1h30m"]):
        assert lightq("consume", "t", "--group", f"g{group}", "--from", place, "--no-follow").stdout == b"one\n"


# --- JSON ------------------------------------------------------------------------------------------------------------
def test_every_result_names_its_command_and_status(lightq, tmp_path):
    lightq("topic", "create", "t", "--type", "file")
    assert lightq.json("produce", "t", stdin=b"one\n")["status"] == "ok"
    for command in ("ping", "version", "topic create u", "topic list", "topic info t", "topic pause t", "topic resume t",
                    "topic purge t --yes", "stats", "stats --all", "user list", "schedule list", "topic delete u --yes",
                    "bench -n 100", f"key new {tmp_path / 'a.key'}", f"key public {tmp_path / 'a.key'}"):
        shown = lightq.json(*command.split())
        assert shown["status"] == "ok" and isinstance(shown["cmd"], str), (command, shown)


@pytest.mark.parametrize("command,exit_code,word", [
    ("stats nowhere", 1, "topic_not_found"), ("topic delete nowhere --yes", 1, "topic_not_found"),
    ("consume nowhere", 1, "topic_not_found"), ("produce nowhere -n 1", 1, "topic_not_found"),
    ("ping --broker tcp://127.0.0.1:1", 1, "io_error"), ("topic create t --typ file", 2, "invalid_argument"),
    ("topic crate t", 2, "invalid_argument"), ("ping --user ann", 2, "invalid_argument"),
    ("log verify /nowhere", 2, "invalid_argument")])
def test_an_error_is_json_on_standard_error(lightq, command, exit_code, word):
    failed = lightq(*command.split(), "--json", code=exit_code)
    (line,) = failed.stderr.splitlines()
    shown = json.loads(line)
    assert (shown["status"], shown["code"]) == ("error", word) and shown["description"], shown
    assert command.startswith(shown["command"]) and failed.stdout == b""
    by_variable = lightq(*command.split(), variables={"LIGHTQ_JSON": "1"}, code=exit_code)
    assert exit_code == 2 or json.loads(by_variable.stderr) == shown


def test_notes_are_json_too(lightq):
    lightq("topic", "create", "t")
    notes = [json.loads(line) for line in lightq("topic", "delete", "t", "--json").stderr.splitlines()]
    assert [(note["status"], note["command"]) for note in notes] == [("note", "topic delete")]


# --- Questions -------------------------------------------------------------------------------------------------------
def answer(lightq, arguments, typed):
    with TerminalSession([BINARY, *arguments], lightq.environment) as terminal:
        terminal.wait_prompt(b"? [y/N] ")
        terminal.type(typed)
        terminal.wait_state(b"ended ")
        return int(terminal.states.split()[-1]), terminal.shown


def test_what_destroys_something_asks_on_a_terminal(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"one\n")
    lightq("user", "add", "ann", "--consume", "t", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    for command in ("topic delete t", "topic purge t", "user remove ann"):
        for typed in (b"\n", b"n\n", b"yellow\n", b"\x04"):
            code, shown = answer(lightq, command.split(), typed)
            assert code == 1 and b"nothing is changed" in shown, (command, typed, shown)
    assert lightq.stats("t")["queue_size"] == 1 and lightq.json("user", "list")["users"]
    assert answer(lightq, ["topic", "purge", "t"], b"y\n")[0] == 0
    assert lightq.stats("t")["queue_size"] == 0
    assert answer(lightq, ["user", "remove", "ann"], b"yes\n")[0] == 0
    assert answer(lightq, ["topic", "delete", "t"], b"Y\n")[0] == 0
    assert lightq.topics() == [] and lightq.json("user", "list")["users"] == []


def test_an_interrupted_question_changes_nothing(lightq):
    lightq("topic", "create", "t")
    with TerminalSession([BINARY, "topic", "delete", "t"], lightq.environment) as terminal:
        terminal.wait_prompt(b"? [y/N] ")
        terminal.signal(signal.SIGINT)
        terminal.wait_state(b"ended ")
    assert lightq.topics() == ["t"]


def test_scripts_are_warned_and_yes_is_silent(lightq):
    for topic in ("a", "b", "c"):
        lightq("topic", "create", topic)
    assert b"only with --yes" in lightq("topic", "delete", "a").stderr
    assert b"--yes" not in lightq("topic", "delete", "b", "--yes").stderr
    assert lightq("topic", "delete", "c", "--quiet").stderr == b""
    assert lightq.topics() == []


# --- Payloads --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [[], ["--plain"]], ids=["session", "plain"])
def test_a_message_may_have_line_ends(lightq, tmp_path, how):
    lightq("topic", "create", "t")
    contents = [b"two\nlines\n", b"", b"\x00\xff\r\n", b"x" * 600_000]
    files = []
    for number, content in enumerate(contents):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(content)
    lightq("produce", "t", *how, "--file-per-message", *map(str, files))
    lightq("produce", "t", *how, "--file-per-message", stdin=b"all\nof it\n")
    lightq("produce", "t", *how, "-0", stdin=b"a\nb\0c\0\0last")
    lightq("produce", "t", *how, "--delimiter", ";", stdin=b"1\n;2")
    lightq("produce", "t", *how, "--delimiter", r"\t", stdin=b"3\t4\t")
    wanted = [*contents, b"all\nof it\n", b"a\nb", b"c", b"", b"last", b"1\n", b"2", b"3", b"4"]
    until(lambda: lightq.stats("t")["messages_received"] == len(wanted), "all messages")
    shown = lightq("consume", "t", "--mode", "sub", "--from", "first", "--no-follow", "--format", "json").stdout
    assert [len(line) > 0 for line in shown.splitlines()] == [True] * len(wanted)
    found = []
    for line in shown.splitlines():
        message = json.loads(line)
        found.append(message["payload"].encode() if "payload" in message else base64.b64decode(message["payload_base64"]))
    assert found == wanted


@pytest.mark.parametrize("wrong", [["-0", "--delimiter", ";"], ["--file-per-message", "-0"], ["--delimiter", "ab"],
                                   ["--delimiter", ""]])
def test_messages_have_one_division(lightq, wrong):
    lightq("produce", "t", *wrong, code=2)


# --- Pauses and measurements -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [["topic", "pause", "t"], ["topic", "pause", "t", "--group", "default"]])
def test_consuming_what_is_paused_says_so(lightq, how):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"one\n")
    lightq("consume", "t", "--no-follow", "-n", "1")
    lightq("produce", "t", stdin=b"two\n")
    lightq(*how)
    consuming = lightq.begin("consume", "t")
    assert b"is paused" in consuming.stderr.readline()
    lightq("topic", "resume", *how[2:])
    assert consuming.stdout.readline() == b"two\n"
    finish(consuming)


def test_latency_is_measured_at_a_rate_below_the_highest(lightq):
    shown = lightq.json("bench", "-n", "20000")
    assert shown["received"] == 20000
    assert 0 < shown["latency_messages_per_second"] < shown["messages_per_second"]
    given = lightq.json("bench", "-n", "200", "--rate", "2k")
    assert given["latency_messages_per_second"] == 2000
    assert b", at " in lightq("bench", "-n", "1000").stdout
