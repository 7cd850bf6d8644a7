"""Tests of topics' directories: `lightq topic info` names them, and `lightq log` takes a topic's name."""
import json
import shutil

import pytest

from cli_support import lightq  # noqa: F401 (a fixture)
from support import until


@pytest.fixture
def orders(lightq):
    """The directory of a durable topic with three messages, beside other topics."""
    lightq("topic", "create", "before", "--type", "file")
    lightq("topic", "create", "orders", "--type", "file")
    lightq("topic", "create", "memory")
    lightq("topic", "delete", "before", "--yes")
    lightq("produce", "orders", stdin=b"one\ntwo\nthree\n")
    return lightq.json("topic", "info", "orders")["directory"]


def test_info_names_the_directory_of_a_log(lightq, orders):
    assert orders == str(lightq.broker.data_dir / "topics" / "2")
    rows = dict(line.split(None, 1) for line in lightq("topic", "info", "orders").stdout.decode().splitlines())
    assert rows["directory"] == orders
    assert "directory" not in lightq.json("topic", "info", "memory"), "it has no files"
    assert "directory" not in lightq.stats("orders"), "the statistics are the broker's"


@pytest.mark.parametrize("running", [True, False])
def test_the_commands_on_logs_take_a_topics_name(lightq, orders, tmp_path, running):
    until(lambda: lightq.json("log", "verify", orders)["messages"] == 3, "the messages on disk")
    if not running:
        lightq.broker.stop()
    assert lightq("log", "dump", "orders", "--format", "%o %p\\n").stdout == b"0 one\n1 two\n2 three\n"
    report = lightq.json("log", "verify", "orders")
    assert (report["directory"], report["status"], report["messages"]) == (orders, "clean", 3)
    assert lightq.json("log", "snapshot", "orders", str(tmp_path / "copy"))["next_offset"] == 3
    assert lightq.json("log", "repair", "orders", "--output", str(tmp_path / "sound"))["messages"] == 3
    if not running:
        lightq.broker.start()


def test_the_data_directory_may_be_named(lightq, orders, tmp_path):
    nowhere = {"LIGHTQ_DATA_DIR": "", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert b"--data-dir" in lightq("log", "verify", "orders", variables=nowhere, code=2).stderr
    data_dir = str(lightq.broker.data_dir)
    lightq("log", "verify", "orders", "--data-dir", data_dir, variables=nowhere)
    lightq("context", "add", "here", "--data-dir", data_dir, variables={**nowhere, "LIGHTQ_BROKER": ""})
    lightq("context", "use", "here", variables=nowhere)
    lightq("log", "verify", "orders", variables=nowhere)


@pytest.mark.parametrize("name,told", [("absent", "has no topic 'absent'"), ("memory", "only in memory"),
                                       ("before", "has no topic 'before'"), ("./orders", "there is no directory './orders'")])
def test_a_name_without_a_log_is_wrong_usage(lightq, orders, name, told):
    for command in (["log", "verify", name], ["log", "dump", name], ["log", "repair", name, "--force"]):
        failed = lightq(*command, code=2)
        assert told in failed.stderr.decode() and failed.stdout == b"", (command, failed)


def test_a_directory_comes_before_a_topic_of_its_name(lightq, orders, tmp_path, monkeypatch):
    until(lambda: lightq.json("log", "verify", orders)["messages"] == 3, "the messages on disk")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    assert lightq.json("log", "verify", "orders")["directory"] == "orders"


def test_a_damaged_catalogue_is_named(lightq, orders):
    lightq.broker.stop()
    catalogue = max((lightq.broker.data_dir / "catalogue").iterdir())
    segment = next(file for file in sorted(catalogue.iterdir()) if file.name.endswith(".seg") or file.name[0].isdigit())
    whole = segment.read_bytes()
    position = whole.rindex(b'"topic":"orders"')
    segment.write_bytes(whole[:position] + b"X" + whole[position + 1:])
    failed = lightq("log", "verify", "orders", code=2).stderr.decode()
    assert "damaged" in failed and catalogue.name in failed, failed
    segment.write_bytes(whole)
    lightq.broker.start()


def test_another_machines_broker_names_no_directory_here(lightq, orders):
    """A broker's own file must name this broker: a tunnel to another one leads to other files."""
    lightq.broker.stop()
    other = lightq.broker.data_dir.parent / "moved"
    shutil.move(lightq.broker.data_dir, other)
    shutil.copytree(other, lightq.broker.data_dir)
    lightq.broker.start()
    own = lightq.broker.data_dir / "broker.json"
    content = json.loads(own.read_text())
    assert lightq.json("topic", "info", "orders")["directory"] == orders
    own.write_text(json.dumps({**content, "pid": 1}))
    assert "directory" not in lightq.json("topic", "info", "orders")
    own.write_text(json.dumps(content))
