"""Tests of `lightq broker --check-config` and `--print-config`, and of topic templates in a running broker."""
import json
import os
import subprocess
import tomllib

import pytest

from cli_support import CommandLine
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE

ASKER = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
TEMPLATES = """
[topics."orders.*"]
  broker_type = "file"
  retention_ms = 60000
  overflow = "reject"

[topics."orders.eu.*"]
  message_ttl_ms = 5000
"""


@pytest.fixture
def command(tmp_path):
    """Runs `lightq broker` with a configuration file, in an environment without settings."""
    config = tmp_path / "lightq.toml"

    def run(text, *flags, code=0, **variables):
        config.write_text(text)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
        done = subprocess.run([BINARY, "broker", "--config", str(config), "--data-dir", str(tmp_path / "data"), *flags],
                              env={**clean, **variables}, capture_output=True, timeout=DEADLINE)
        assert done.returncode == code, done
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lightq.toml"], "it touched something"
        return done.stdout.decode(), done.stderr.decode().replace(str(config), "FILE")

    return run


def test_a_valid_configuration_is_reported_and_starts_nothing(command):
    assert command("topics_max = 5\n" + TEMPLATES, "--check-config") == ("the configuration is valid\n", "")
    assert json.loads(command("", "--check-config", "--json")[0]) == {"cmd": "broker", "status": "ok"}


def test_all_faults_are_named_with_their_places(command):
    text = "topic_max = 5\nreactors = 'many'\n[topics.t]\n  retention = 1\n"
    out, errors = command(text, "--check-config", code=2, LIGHTQ_PORTS="x")
    assert out == ""
    lines = errors.splitlines()
    assert [line.split(" must ")[0] for line in lines] == [
        "lightq: FILE:1:1: topic_max: there is no such setting; did you mean topics_max?", "lightq: FILE:2:12: reactors:",
        "lightq: FILE:4:3: retention: topics have no such setting", "lightq: LIGHTQ_PORTS:"], errors
    out, errors = command(text, "--print-config", "--json", code=2)
    assert out == "" and [json.loads(line)["code"] for line in errors.splitlines()] == ["invalid_argument"] * 3


def test_a_start_that_would_fail_is_found(command):
    assert "bind: 0.0.0.0 is not a loopback" in command("bind = '0.0.0.0'\nadvertise = '127.0.0.1'\n", "--check-config", code=2)[1]
    assert "tls_key: one is missing" in command("encrypt = true\ntls_certificate = 'x'\n", "--check-config", code=2)[1]
    assert "storage_key_file: " in command("storage_key_file = '/nowhere/key'\n", "--check-config", code=1)[1]


def test_the_printed_configuration_is_toml_with_sources_and_without_secrets(command):
    text = "log_level = 'warn'\nstorage_key_command = 'fetch planted-token'\ntopics_max = 5\n" + TEMPLATES
    out, _ = command(text, "--print-config", "--users-max", "7", LIGHTQ_TOPICS_MAX="6",
                     LIGHTQ_ADMIN_PASSWORD="a planted password")
    assert "planted" not in out
    lines = dict(line.split(" = ", 1) for line in out.splitlines() if " = " in line)
    assert lines["users_max"] == "7  # --users-max" and lines["topics_max"] == "6  # LIGHTQ_TOPICS_MAX"
    assert lines["bind"] == '"127.0.0.1"  # default' and lines["log_level"].startswith('"warning"  # ')
    assert lines["log_level"].endswith("lightq.toml:1")
    read = tomllib.loads(out)
    assert read["topics_max"] == 6 and read["topics"]["orders.eu.*"] == {"message_ttl_ms": 5000}
    again, _ = command(out, "--print-config")
    assert tomllib.loads(again) == read, "a broker with the printed file has the same settings"
    values = {(one.get("topics"), one["name"]): one for one in json.loads(command(text, "--print-config", "--json")[0])["settings"]}
    assert values[None, "topics_max"]["value"] == 5 and values[None, "topics_max"]["source"].endswith("lightq.toml:3")
    assert values[None, "storage_key_command"]["secret"] and values[None, "storage_key_command"]["value"] is None
    assert values["orders.*", "retention_ms"]["value"] == 60000


def test_new_topics_take_the_settings_of_their_template(make_broker):
    broker = make_broker(start=False)
    config = broker.directory / "lightq.toml"
    config.write_text(TEMPLATES)
    broker.flags += ["--config", str(config)]
    broker.start()
    control = broker.control()

    def create(topic, **settings):
        reply = control.ok("create_topic", **ASKER, topic=topic, **settings)
        listed = [one for one in control.ok("list_topics", **ASKER)["topics"] if one["topic"] == topic]
        assert listed[0]["settings"] == reply["settings"]
        return reply["settings"], reply.get("template")

    settings, template = create("orders.us")
    assert (settings["broker_type"], settings["retention_ms"], settings["overflow"], template) == ("file", 60000, "reject", "orders.*")
    settings, template = create("orders.uk", overflow="block", broker_type="queue")
    assert (settings["broker_type"], settings["overflow"], template) == ("queue", "block", "orders.*")
    settings, template = create("orders.eu.de")
    assert (settings["broker_type"], settings["message_ttl_ms"], settings["overflow"], template) == ("queue", 5000, "block", "orders.eu.*")
    assert create("other")[1] is None
    refusal = control.fails("invalid_request", "create_topic", **ASKER, topic="orders.x", ring_bytes=1 << 20)
    assert refusal["description"] == "ring_bytes: only for broker_type queue, queue_file; this topic would be a file"

    command = CommandLine(broker)
    made = command("topic", "create", "orders.cli").stdout + command("topic", "create", "orders.typed", "--type", "queue").stdout
    shown = command.json("topic", "create", "orders.json", "--retention", "1h")
    assert shown["settings"]["broker_type"] == "file" and shown["settings"]["retention_ms"] == 3600000 and shown["template"] == "orders.*", made
    types = {one["topic"]: one["broker_type"] for one in control.ok("list_topics", **ASKER)["topics"]}
    assert types["orders.cli"] == "file" and types["orders.typed"] == "queue"

    config.write_text("[topics.'orders.*']\n  broker_type = 'direct'\n")
    reply = control.ok("reload", **ASKER)
    assert (reply["changed"], reply["needs_restart"]) == (["topics"], [])
    assert create("orders.new")[0]["broker_type"] == "direct"
    config.write_text("[topics.'orders.*']\n  broker_type = 'tape'\n")
    assert "lightq.toml:2:17: broker_type: must be one of" in control.fails("invalid_argument", "reload", **ASKER)["description"]
    assert create("orders.still")[0]["broker_type"] == "direct", "nothing has changed"
