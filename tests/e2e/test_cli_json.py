"""Tests that every command has --json, by the program's own table of commands."""
import json
import shlex
import subprocess

import pytest

from cli_support import lightq  # noqa: F401 (a fixture)
from support import BINARY, DEADLINE, until

NEW_PASSWORD = {"LIGHTQ_NEW_PASSWORD": "of-ann-12"}

# Each command with arguments that work, in this order. `{place}` is a directory of the test, `{number}` the delayed message.
SAMPLES = {
    "topic create": "orders --type file",
    "topic set": "orders --message-ttl 1h --retention 7d",
    "topic list": "",
    "topic info": "orders",
    "produce": "orders -n 3",
    "pub": "orders -n 3",
    "consume": "orders -n 1",
    "sub": "orders --from first --no-follow",
    "peek": "orders -n 2",
    "trace": "orders 0",
    "topic pause": "orders",
    "topic resume": "orders",
    "topic delete-group": "orders default",
    "group set": "orders billing --max-attempts 2",
    "group list": "orders",
    "dlq list": "orders --group billing",
    "group info": "orders billing",
    "group reset": "orders billing --to earliest --yes",
    "export": "orders",
    "import": "orders --dry-run",
    "mirror": "orders --from {broker} --from-data-dir {data} --until-end --state {place}/mirror.json",
    "definitions export": "",
    "definitions import": "{place}/definitions.json",
    "dlq retry": "orders --group billing",
    "dlq purge": "orders --group billing",
    "delayed list": "orders",
    "delayed show": "orders {number}",
    "delayed hurry": "orders --numbers {number} --preview",
    "delayed reschedule": "orders --numbers {number} --delay 2h",
    "delayed cancel": "orders --numbers {number}",
    "schedule set": "morning orders go --cron '0 9 * * *'",
    "schedule list": "orders",
    "schedule show": "morning orders",
    "schedule pause": "morning orders",
    "schedule resume": "morning orders",
    "schedule remove": "morning orders",
    "user add": "ann --consume orders",
    "user list": "",
    "user grant": "ann --produce orders",
    "user revoke": "ann --produce orders",
    "user password": "ann",
    "user remove": "ann --yes",
    "stats": "",
    "top": "",
    "ping": "",
    "reload": "",
    "version": "",
    "bench": "-n 100",
    "doctor": "",
    "context add": "here --broker tcp://127.0.0.1:5000",
    "context use": "here",
    "context list": "",
    "context remove": "here",
    "key new": "{place}/a.key",
    "key public": "{place}/a.key",
    "log dump": "orders",
    "log verify": "orders",
    "log repair": "orders --output {place}/sound",
    "log snapshot": "orders {place}/copy",
    "backup": "{place}/backup",
    "restore": "{place}/backup --dry-run",
    "completion bash": "",
    "completion zsh": "",
    "completion fish": "",
    "man": "topic",
    "broker key": "--data-dir {place}/data",
    "topic purge": "orders --yes",
    "topic delete": "orders --yes",
}
# These print messages, or records of a log: an object a line, without `cmd` and `status`.
OF_MESSAGES = {"consume", "sub", "peek", "export", "log dump"}
# `broker` runs until a signal; `dlq show` needs a dead message, which test_cli_groups.py has.
OTHERS = {"broker", "dlq show"}


def leaves(commands):
    """Yields the words of the commands that do something, and of their aliases."""
    for command in commands:
        if not command["commands"] or command["words"] == "broker":
            yield from [command["words"], *command["aliases"]]
        yield from leaves(command["commands"])


def test_every_command_prints_json(lightq, tmp_path):
    table = lightq.json("man")
    assert table["cmd"] == "man" and table["status"] == "ok"
    assert set(leaves(table["commands"])) == set(SAMPLES) | OTHERS, "a new command needs a sample here"
    variables = {**lightq.environment, **NEW_PASSWORD, "XDG_CONFIG_HOME": str(tmp_path)}
    number = ""
    for words, sample in SAMPLES.items():
        if words == "dlq list":
            lightq("consume", "orders", "--group", "billing", "--no-follow")  # makes the group
        if words == "delayed list":
            lightq("produce", "orders", "-n", "1", "--delay", "1h")
            number = until(lambda: lightq.json("delayed", "list", "orders")["messages"], "the delayed message")[0]["number"]
        if words == "log dump":
            until(lambda: lightq.json("log", "verify", "orders")["messages"], "messages on disk")
        if words == "definitions export":
            (tmp_path / "definitions.json").write_bytes(lightq("definitions", "export").stdout)
        arguments = shlex.split(sample.format(place=tmp_path, number=number, broker=lightq.broker.control_uri,
                                              data=lightq.broker.data_dir))
        done = subprocess.run([BINARY, *words.split(), *arguments, "--json"], input=b"", capture_output=True, env=variables,
                              timeout=DEADLINE)
        assert done.returncode == 0 or words == "doctor", (words, done)  # this machine may have a fault
        shown = [json.loads(line) for line in done.stdout.splitlines()]
        assert shown and all(isinstance(line, dict) for line in shown), (words, done)
        if words not in OF_MESSAGES:
            assert all(isinstance(line["cmd"], str) and isinstance(line["status"], str) for line in shown), (words, shown)
        assert all(json.loads(line)["status"] == "note" for line in done.stderr.splitlines()), (words, done)


def test_the_table_of_commands_has_flags_and_arguments(lightq):
    topic = next(command for command in lightq.json("man")["commands"] if command["words"] == "topic")
    create = next(command for command in topic["commands"] if command["words"] == "topic create")
    assert create["arguments"] == [{"value": "TOPIC", "help": "the topic's name", "required": True, "repeats": False}]
    flag = next(flag for flag in create["flags"] if "--retention" in flag["names"])
    assert flag["value"] == "TIME" and flag["variable"] == "LIGHTQ_RETENTION_MS" and flag["help"]
    assert lightq.json("man", "topic")["commands"] == [topic]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_variable_for_json_does_not_break_completions_and_pages(lightq, shell):
    with_variable = {"variables": {"LIGHTQ_JSON": "1"}}
    script = lightq("completion", shell).stdout
    assert lightq("completion", shell, **with_variable).stdout == script
    assert lightq.json("completion", shell)["script"].encode() == script
    assert lightq("man", "topic", **with_variable).stdout == lightq("man", "topic").stdout


def test_the_key_of_a_broker_is_json_too(lightq, tmp_path):
    shown = lightq.json("broker", "key", "--data-dir", str(tmp_path / "data"))
    plain = lightq("broker", "key", "--data-dir", str(tmp_path / "data")).stdout.decode().strip()
    assert shown == {"cmd": "broker key", "status": "ok", "server_key": plain}
