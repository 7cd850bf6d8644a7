"""Tests that the command line protects data. The tests are about modes of copied files, names with terminal
control characters, typed passwords, and secrets given in the wrong place."""
import os
import pathlib
import signal
import stat
import subprocess

import pytest

from cli_support import lightq  # noqa: F401: a fixture
from log_support import log_files  # noqa: F401: a fixture
from support import BINARY, DEADLINE, SANITIZERS, Secrets, bytes_of, until
from terminal_session import TerminalSession

TYPED = Secrets.plant("planted-typed-secret-3391")
MISTAKEN = Secrets.plant("planted-mistaken-2207")
MISTAKEN_KEY = Secrets.plant("5c" * 32)


# --- copies of a log -------------------------------------------------------------------------------------------------

def modes_below(directory):
    return {path: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))}


@pytest.mark.parametrize("command", [["snapshot"], ["repair", "--output"]], ids=["snapshot", "repair"])
def test_a_copy_of_a_log_is_readable_by_its_owner_only(log_files, command):
    place = log_files.broker.directory / "copy"
    before = os.umask(0o022)
    try:
        log_files(command[0], *command[1:], place)
    finally:
        os.umask(before)
    modes = modes_below(place)
    linked = {path for path in modes if path.is_file() and path.stat().st_nlink > 1}
    assert modes[place] == 0o700
    assert len(modes) > 3 and all(mode & 0o077 == 0 for path, mode in modes.items() if path not in linked), modes
    # A linked file is the log's own file and keeps its mode.
    assert all(mode & 0o007 == 0 for mode in modes.values()), modes
    assert log_files.verify(directory=place)["status"] == "clean"


# --- names -----------------------------------------------------------------------------------------------------------

def test_a_users_name_does_not_act_on_the_terminal(lightq):
    name = "ann\x1b]0;owned\x07\u202e"
    lightq("user", "add", name, "--produce", "orders*", stdin=b"pw\n")
    shown = lightq("user", "list").stdout
    assert shown == b"ann\\u001b]0;owned\\u0007\\u202e\t-\torders*=produce\n"
    assert [user["user_id"] for user in lightq.json("user", "list")["users"]] == [name], "a script is told all of it"
    told = lightq("user", "grant", name, "--consume", "t").stderr + lightq("user", "remove", name).stderr
    assert b"\\u001b" in told and b"\x1b" not in told and b"\x07" not in told


# --- prompts ---------------------------------------------------------------------------------------------------------

PROMPTS = [b"new password: ", b"repeat it: "]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP])
def test_an_interrupted_prompt_restores_the_terminal(lightq, number, at):
    with TerminalSession([BINARY, "user", "add", "ann"], lightq.environment) as session:
        for prompt in PROMPTS[:at]:
            session.wait_prompt(prompt)
            session.type(TYPED.encode() + b"\n")
        session.wait_prompt(PROMPTS[at])
        assert not session.echo
        session.type_ahead(TYPED.encode())
        session.signal(number)
        session.wait_state(b"ended ")
        assert session.echo
        # After each signal except SIGQUIT the command ends in order.
        expected = b"ended 2\n" if number != signal.SIGQUIT else b"ended %d\n" % -number
        assert session.states.endswith(expected), session.states
        assert TYPED.encode() not in session.shown
    assert lightq.json("user", "list")["users"] == []


@pytest.mark.parametrize("at", [0, 1])
def test_a_suspended_prompt_restores_the_terminal_and_continues_hidden(lightq, at):
    with TerminalSession([BINARY, "user", "add", "ann"], lightq.environment) as session:
        for prompt in PROMPTS[:at]:
            session.wait_prompt(prompt)
            session.type(TYPED.encode() + b"\n")
        for times in (1, 2):
            session.wait_prompt(PROMPTS[at], times)
            assert not session.echo
            session.type_ahead(b"half of it")
            session.states = b""
            session.signal(signal.SIGTSTP)
            session.wait_state(b"stopped")
            assert session.echo, "the shell's user sees what he types"
            session.go_on()
        session.wait_prompt(PROMPTS[at], 3)
        for number, prompt in enumerate(PROMPTS[at:]):
            session.wait_prompt(prompt)
            assert not session.echo
            session.type(TYPED.encode() + b"\n")
        session.wait_state(b"ended ")
        assert session.states.endswith(b"ended 0\n") and session.echo, (session.states, session.shown)
        assert TYPED.encode() not in session.shown and b"half" not in session.shown
    lightq("topic", "create", "t")
    lightq("user", "grant", "ann", "--consume", "t")
    lightq("stats", "t", variables={"LIGHTQ_USER": "ann", "LIGHTQ_PASSWORD": TYPED})


# --- secrets in the wrong place --------------------------------------------------------------------------------------

def refused(lightq, *arguments, code=2, **variables):
    """Runs a command that must fail. Returns its standard error, which must not repeat the misplaced secret."""
    done = lightq(*arguments, code=code, variables=variables)
    told = done.stderr.decode()
    assert done.stdout == b"" and MISTAKEN not in told and MISTAKEN_KEY not in told, told
    return told


@pytest.mark.parametrize("secret", [MISTAKEN, MISTAKEN_KEY], ids=["word", "key"])
def test_a_secret_given_for_a_file_name_is_not_shown(lightq, secret):
    user = ["--user", "ann"]
    assert "--password-file" in refused(lightq, "stats", "t", *user, "--password-file", secret)
    assert "LIGHTQ_PASSWORD_FILE" in refused(lightq, "stats", "t", *user, LIGHTQ_PASSWORD_FILE=secret)
    assert "--admin-password-file" in refused(lightq, "stats", "t", "--admin-password-file", secret)
    assert "LIGHTQ_ADMIN_PASSWORD_FILE" in refused(lightq, "stats", "t", LIGHTQ_ADMIN_PASSWORD_FILE=secret)
    assert "--new-password-file" in refused(lightq, "user", "add", "ann", "--new-password-file", secret)


def test_the_name_of_a_missing_file_is_shown(lightq, tmp_path):
    for name in (str(tmp_path / "absent"), "absent.txt", "./absent"):
        assert name in refused(lightq, "stats", "t", "--user", "ann", "--password-file", name)


@pytest.mark.parametrize("secret", [MISTAKEN, MISTAKEN_KEY], ids=["word", "key"])
@pytest.mark.parametrize("flag", ["--admin-password-file", "--storage-key-file"])
def test_a_broker_does_not_show_a_secret_given_for_a_file_name(lightq, tmp_path, flag, secret):
    command = ["broker", "--data-dir", str(tmp_path / "data"), "--control", "tcp://127.0.0.1:0"]
    variable = "LIGHTQ_" + flag[2:].upper().replace("-", "_")
    for given, variables in ((command + [flag, secret], {}), (command, {variable: secret})):
        done = subprocess.run([BINARY, *given], env={**lightq.environment, **variables}, capture_output=True, timeout=DEADLINE)
        told = (done.stdout + done.stderr).decode()
        assert done.returncode in (1, 2) and secret not in told, told
        assert "not shown" in told and flag[2:].replace("-", "_") in told, told


COMMANDS = [["user", "add", "ann"], ["user", "password", "ann"], ["stats", "t"], ["consume", "t"], ["topic", "create", "t"],
            ["ping"], ["broker"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_unexpected_argument_is_not_shown(lightq, command):
    told = refused(lightq, *command, MISTAKEN)
    assert "was not expected" in told and "passwords come from" in told
    assert "--frob" in refused(lightq, *command, MISTAKEN, "--frob=" + MISTAKEN)
    assert "not expected: -p\n" in refused(lightq, *command, "-p" + MISTAKEN)


def test_a_password_after_a_users_name_is_not_shown(lightq):
    told = "user 'ann:...' needs a password"
    assert told in refused(lightq, "stats", "t", "--user", "ann:" + MISTAKEN)
    assert told in refused(lightq, "stats", "t", LIGHTQ_USER="ann:" + MISTAKEN)
    for command in (["remove", "ann:" + MISTAKEN], ["grant", "ann:" + MISTAKEN, "--produce", "t"],
                    ["revoke", "ann:" + MISTAKEN, "--produce", "t"]):
        assert "there is no user ann:..." in refused(lightq, "user", *command, code=1)
    # A name with a colon that exists, so the catalogue may contain it.
    with_password = {"LIGHTQ_USER": "ann:of-rome", "LIGHTQ_PASSWORD": TYPED, "LIGHTQ_ADMIN_USER": "lightq_admin"}
    assert b"user 'ann:...'" in lightq("topic", "create", "t", variables=with_password).stderr
    assert b"user 'eve:...' is created" in lightq("user", "add", "eve:of-rome", stdin=b"pw\n").stderr


@pytest.mark.parametrize("uri", ["tcp://ann:{}@127.0.0.1:1", "tcp://ann:{}@192.0.2.1:1", "ann:{}@127.0.0.1:1", "tcp://{}@[::1]:1"])
def test_a_password_in_an_address_is_not_shown(lightq, tmp_path, uri):
    shown = (uri[:6] if uri.startswith("tcp:") else "") + "..." + uri[uri.index("@"):]
    wrong = uri.format(MISTAKEN)
    assert shown in refused(lightq, "ping", "--broker", wrong)
    assert shown in refused(lightq, "stats", "t", LIGHTQ_BROKER=wrong)
    for flag in ("--control", "--bind", "--advertise"):
        command = ["broker", "--data-dir", str(tmp_path / "data"), flag, wrong]
        assert flag + ": must be" in refused(lightq, *command)


def test_a_broker_that_waits_for_its_settings_shows_no_password(lightq, tmp_path):
    pipe = tmp_path / "settings"
    os.mkfifo(pipe, 0o600)
    environment = {**lightq.environment, "LIGHTQ_ADMIN_PASSWORD": MISTAKEN, "LIGHTQ_PASSWORD": TYPED}
    process = subprocess.Popen([BINARY, "broker", "--config", str(pipe), "--data-dir", str(tmp_path / "data"),
                                "--control", "tcp://127.0.0.1:0"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        def opened():
            """As soon as the command waits for the pipe, the pipe can be opened for writing without a wait."""
            try:
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                assert process.poll() is None
                return None
        descriptor = until(opened, "the broker at its pipe")
        shown = bytes_of(pathlib.Path(f"/proc/{process.pid}/environ"))
        assert b"LIGHTQ_ADMIN_PASSWORD=\0" in shown and MISTAKEN.encode() not in shown and TYPED.encode() not in shown
        os.write(descriptor, b"log_level = \"info\"\n")
        os.close(descriptor)
        until(lambda: (tmp_path / "data" / "broker.json").exists() or process.poll() is not None, "its start")
        assert process.poll() is None, process.communicate()
        environment = {**SANITIZERS, "LIGHTQ_DATA_DIR": str(tmp_path / "data"), "LIGHTQ_ADMIN_PASSWORD": MISTAKEN,
                       "HOME": str(tmp_path)}
        done = subprocess.run([BINARY, "topic", "create", "t"], env=environment, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 0, done
    finally:
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE)
    assert MISTAKEN.encode() not in out + err
