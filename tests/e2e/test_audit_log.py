"""Tests of the audit log: its lines, their outcomes, its rotation, and that no secret is in it."""
import json
import os
import pathlib
import stat
import subprocess

import pytest

from cli_support import CommandLine
from http_support import HTTP, HttpClient, basic
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, USER, Secrets, until


@pytest.fixture
def audited(make_broker, tmp_path):
    """A broker with an audit log, and the function that returns the log's lines."""
    path = tmp_path / "audit" / "audit.json"
    path.parent.mkdir()
    broker = make_broker("--audit-log", str(path))

    def lines(count=0):
        text = until(lambda: path.read_text() if path.read_text().count("\n") >= count else None, "the audit log")
        Secrets.absent_from(path.read_bytes(), "the audit log")
        return [json.loads(line) for line in text.splitlines()]
    broker.audit_path, broker.audit_lines = path, lines
    return broker


def without_time(line):
    assert line["time"].endswith("Z") and len(line["time"]) == 24
    return {name: value for name, value in line.items() if name != "time"}


def test_each_request_has_a_line_with_its_outcome(audited):
    control = audited.control()
    control.create("orders")
    control.fails("unauthorized_access", "stats", topic="orders", user_id=USER, password="wrong-password-1")
    control.fails("unauthorized_access", "delete_topic", admin_user_id="mallory", admin_password="wrong-password-2", topic="orders")
    control.fails("topic_already_exists", "create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="orders",
                  broker_type="queue")
    control.join("orders", "pull")
    control.ok("pause", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="orders", group="default")
    control.ok("ping")
    control.ok("version")
    lines = [without_time(line) for line in audited.audit_lines(6)]
    local = {"from": "127.0.0.1"}
    assert lines == [
        {**local, "user": ADMIN, "cmd": "create_topic", "topic": "orders", "object_user": USER, "allowed": True, "status": "ok"},
        {**local, "user": USER, "cmd": "stats", "topic": "orders", "allowed": False, "status": "error", "code": "unauthorized_access"},
        {**local, "user": "mallory", "cmd": "delete_topic", "topic": "orders", "allowed": False, "status": "error",
         "code": "unauthorized_access"},
        {**local, "user": ADMIN, "cmd": "create_topic", "topic": "orders", "allowed": True, "status": "error",
         "code": "topic_already_exists"},
        {**local, "user": USER, "cmd": "join", "topic": "orders", "allowed": True, "status": "ok"},
        {**local, "user": ADMIN, "cmd": "pause", "topic": "orders", "group": "default", "allowed": True, "status": "ok"}]
    assert stat.S_IMODE(audited.audit_path.stat().st_mode) == 0o600


def test_users_schedules_and_rights_are_named_and_payloads_are_not(audited):
    command = CommandLine(audited)
    payload = "a-payload-of-a-schedule"
    password = Secrets.plant("planted-password-of-ann-77")
    command("topic", "create", "t")
    command("user", "add", "ann", "--consume", "t*", variables={"LIGHTQ_NEW_PASSWORD": password})
    command("user", "grant", "ann", "--produce", "t.*")
    command("schedule", "set", "morning", "t", payload, "--cron", "0 9 * * *", "--key", payload)
    command("schedule", "pause", "morning", "t", variables={"LIGHTQ_USER": "ann", "LIGHTQ_PASSWORD": password, "LIGHTQ_ADMIN_PASSWORD": ""},
            code=1)
    command("user", "password", "ann", variables={"LIGHTQ_NEW_PASSWORD": password + "8"})
    by_cmd = {line["cmd"]: line for line in audited.audit_lines(6)}
    assert by_cmd["create_user"]["object_user"] == "ann" and by_cmd["create_user"]["admin"] is False
    assert (by_cmd["grant"]["object_user"], by_cmd["grant"]["pattern"]) == ("ann", "t.*")
    assert (by_cmd["set_schedule"]["schedule"], by_cmd["set_schedule"]["topic"]) == ("morning", "t")
    assert (by_cmd["pause_schedule"]["user"], by_cmd["pause_schedule"]["allowed"]) == ("ann", False)
    assert by_cmd["set_password"]["object_user"] == "ann"
    members = {"time", "from", "user", "cmd", "topic", "group", "schedule", "pattern", "object_user", "admin", "allowed", "status", "code"}
    assert all(set(line) <= members for line in by_cmd.values()) and payload not in audited.audit_path.read_text()


def test_a_name_with_a_password_in_it_and_control_characters_stay_harmless(audited):
    control = audited.control()
    secret = Secrets.plant("planted-behind-a-colon")
    control.fails("unauthorized_access", "list_topics", admin_user_id=f"ann:{secret}", admin_password="wrong-password-3")
    control.fails("unauthorized_access", "list_topics", admin_user_id="ann\n{\"allowed\":true}\x1b[2J", admin_password="wrong-password-4")
    first, second = audited.audit_lines(2)
    assert first["user"] == "ann:..." and second["user"].startswith("ann\n{") and second["allowed"] is False
    raw = audited.audit_path.read_bytes()
    assert raw.count(b"\n") == 2 and b"\x1b" not in raw


def test_commands_over_http_have_lines_too(make_broker, tmp_path):
    path = tmp_path / "audit.json"
    broker = make_broker(*HTTP, "--audit-log", str(path))
    http = HttpClient(broker, basic())
    assert http.ask("PUT", "/api/v1/topics/orders", b'{"broker_type":"queue"}').status == 201
    wrong = basic(user="mallory", password=Secrets.plant("wrong-password-5"))
    assert HttpClient(broker, wrong).ask("DELETE", "/api/v1/topics/orders").status == 401
    assert http.get("/api/v1/version").status == 200
    lines = until(lambda: text if (text := path.read_text()).count("\n") >= 2 else None, "the lines")
    assert [without_time(json.loads(line)) for line in lines.splitlines()] == [
        {"from": "127.0.0.1", "user": ADMIN, "cmd": "create_topic", "topic": "orders", "allowed": True, "status": "ok"},
        {"from": "127.0.0.1", "user": "mallory", "cmd": "delete_topic", "topic": "orders", "allowed": False, "status": "error",
         "code": "unauthorized_access"}]
    Secrets.absent_from(path.read_bytes(), "the audit log")


def test_a_user_of_this_machine_is_named_by_the_system(make_broker, tmp_path):
    path = tmp_path / "audit.json"
    broker = make_broker("--audit-log", str(path), admin=False)
    Secrets.of_data_directory(broker.data_dir)
    CommandLine(broker)("topic", "list", variables={"LIGHTQ_BROKER": ""})
    (line,) = until(lambda: [json.loads(line) for line in path.read_text().splitlines()], "the line")
    assert without_time(line) == {"from": f"uid {os.geteuid()}", "user": ADMIN, "cmd": "list_topics", "allowed": True, "status": "ok"}
    Secrets.absent_from(path.read_bytes(), "the audit log")


def test_the_file_is_rotated_and_may_be_moved_away(make_broker, tmp_path):
    path = tmp_path / "audit.json"
    broker = make_broker("--audit-log", str(path), "--audit-log-bytes", "64KiB")
    control = broker.control()
    control.create("orders")
    for _ in range(900):
        control.stats("orders")
    until(lambda: pathlib.Path(f"{path}.1").exists(), "a rotated file")
    assert all(json.loads(line)["cmd"] for line in pathlib.Path(f"{path}.1").read_text().splitlines())
    assert pathlib.Path(f"{path}.1").stat().st_size <= 64 * 1024
    path.rename(tmp_path / "moved")
    control.list()
    until(lambda: path.exists() and "list_topics" in path.read_text(), "the new file")


def test_requests_do_not_wait_for_the_disk(audited):
    """A directory that is gone loses lines; requests are answered all the same, and the loss is told."""
    control = audited.control()
    control.create("orders")
    audited.audit_lines(1)
    place = audited.audit_path.parent
    hidden = place.with_name(place.name + "-hidden")

    def reports():
        """Asks without a directory, and then with it. The thread may be late and find the directory each time."""
        place.rename(hidden)
        control.list()
        hidden.rename(place)
        control.stats("orders")
        return [line for line in audited.audit_lines() if "lost" in line]
    (lost, *_) = until(reports, "the report of lost lines")
    assert lost["cmd"] == "audit_log" and lost["lost"] >= 1


@pytest.mark.parametrize("place,code", [("none/audit.json", 1), (".", 1)])
def test_a_wrong_place_ends_the_start(tmp_path, place, code):
    done = subprocess.run([BINARY, "broker", "--data-dir", str(tmp_path / "data"), "--control", "tcp://127.0.0.1:0", "--audit-log",
                           str(tmp_path / place)], capture_output=True, timeout=DEADLINE)
    assert done.returncode == code and "audit log" in done.stderr.decode(), done
