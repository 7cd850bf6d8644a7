"""Tests commands that newcomers to the command line try, and the answers."""
import json
import os
import subprocess

import pytest

from cli_support import finish, lightq
from support import DEADLINE, until


@pytest.mark.parametrize("name", ["stats", "sub", "topic", "broker"])
def test_a_topic_may_be_called_like_a_command(lightq, name):
    lightq("topic", "create", name)
    lightq("produce", name, stdin=b"x\n")
    assert lightq("consume", name, "-n", "1").stdout == b"x\n"
    assert json.loads(lightq("stats", name, "--json").stdout)["messages_received"] == 1


def test_the_error_names_an_unknown_flag(lightq):
    assert b"--modes" in lightq("consume", "t", "--modes", "sub", code=2).stderr


@pytest.mark.parametrize("typed,meant", [
    ("topic ls", "topic list"), ("topic rm t", "topic delete"), ("topics list", "topic"), ("list", "topic list"),
    ("create t", "topic create"), ("delete t", "topic delete"), ("prod t", "produce"), ("info t", "stats")])
def test_similar_commands_are_suggested_for_unknown_ones(lightq, typed, meant):
    assert f"did you mean '{meant}'?".encode() in lightq(*typed.split(), code=2).stderr


def test_wrong_usage_points_to_the_help_of_the_command(lightq):
    assert lightq("topic", "create", code=2).stderr.endswith(b"see  lightq topic create --help\n")
    assert lightq("consume", code=2).stderr.endswith(b"see  lightq consume --help\n")
    assert lightq("--nonsense", code=2).stderr.endswith(b"see  lightq --help\n")


def test_consuming_zero_messages_ends_immediately(lightq):
    lightq("topic", "create", "t")
    assert lightq("consume", "t", "-n", "0").stdout == b""


@pytest.mark.parametrize("command", [["topic", "list"], ["ping"], ["version"], ["stats"], ["topic", "list", "--json"]])
def test_output_that_cannot_be_written_is_a_failure(lightq, command):
    lightq("topic", "create", "t")
    with open("/dev/full", "wb") as full:
        lightq(*command, code=1, stdout=full, stderr=subprocess.DEVNULL)


def test_help_is_a_command_too(lightq):
    assert lightq("help").stdout == lightq("--help").stdout
    assert lightq("help", "consume").stdout == lightq("consume", "--help").stdout


def test_deleting_a_missing_topic_does_not_suggest_creating_it(lightq):
    told = lightq("topic", "delete", "absent", code=1).stderr
    assert b"absent" in told and b"create" not in told


@pytest.mark.parametrize("how", [[], ["--mode", "sub", "--from", "first"]])
def test_following_ends_when_the_reader_closes(lightq, how):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"one\n")
    following = lightq.begin("consume", "t", *how, stderr=subprocess.DEVNULL)
    assert following.stdout.readline() == b"one\n"
    following.stdout.close()  # as `head -1` does
    following.stdout = None
    assert following.wait(DEADLINE) == 0


def test_a_signal_ends_the_wait_for_a_fifo(lightq, tmp_path):
    lightq("topic", "create", "t")
    os.mkfifo(tmp_path / "fifo")
    producing = lightq.begin("produce", "t", str(tmp_path / "fifo"))
    until(lambda: lightq.stats("t")["publishers_count"] == 1, "the command's session")
    finish(producing)
