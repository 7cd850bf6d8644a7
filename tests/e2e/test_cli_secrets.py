"""Tests where the command line keeps a password while it runs. No environment or file that others can read
has it."""
import os
import pathlib
import signal
import subprocess

import pytest

from cli_support import finish, lightq  # noqa: F401: a fixture
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, PASSWORD, USER, Secrets, bytes_of, secret_file, until

NEW_PASSWORD = Secrets.plant("planted-new-secret-6174")
ALL = {"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_ADMIN_USER": ADMIN,
       "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD, "LIGHTQ_NEW_PASSWORD": NEW_PASSWORD}
# Runs a command with a variable that occurs twice. Only a program that makes the system call itself can do
# that.
TWICE = """
import ctypes, os, sys
entries = [os.fsencode(f"{name}={value}") for name, value in os.environ.items()] + [os.fsencode(arg) for arg in sys.argv[1:3]]
words = [os.fsencode(word) for word in sys.argv[3:]]
def array(values):
    return (ctypes.c_char_p * (len(values) + 1))(*values, None)
ctypes.CDLL(None).execve(words[0], array(words), array(entries))
"""


def environment_of(process):
    return bytes_of(pathlib.Path(f"/proc/{process.pid}/environ"))


class Running:
    """A command with variables of its own that has joined the topic."""

    def __init__(self, lightq, command, topic, *flags, said=b"", **variables):
        """Writes `said` to the command's standard input before anything else."""
        environment = {**lightq.environment, **variables}
        self.process = subprocess.Popen([BINARY, command, topic, *flags], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lightq.running.append(self.process)
        self.process.stdin.write(said + (b"line\n" if command == "produce" else b""))
        self.process.stdin.flush()
        count = "publishers_count" if command == "produce" else "subscribers_count"
        until(lambda: lightq.stats(topic)[count] == 1, lambda: f"its join; {self.process.poll()}")

    def finish(self):
        self.process.stdin.close()
        self.process.stdin = None
        finish(self.process)


@pytest.fixture
def topic(lightq):
    lightq("topic", "create", "t", variables={"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_ADMIN_USER": ADMIN})
    return "t"


# --- the environment -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["consume", "produce"])
def test_a_command_that_runs_shows_no_password_in_its_environment(lightq, topic, command):
    given = {**ALL, "LIGHTQ_ADMIN_PASSWORD": "", "LIGHTQ_ADMIN_USER": ""}
    running = Running(lightq, command, topic, **given)
    shown = environment_of(running.process)
    assert b"LIGHTQ_PASSWORD=\0" in shown and b"LIGHTQ_NEW_PASSWORD=\0" in shown, "they were not given"
    assert PASSWORD.encode() not in shown and NEW_PASSWORD.encode() not in shown
    assert f"LIGHTQ_USER={USER}".encode() in shown, "all is gone"
    running.finish()


def test_every_secret_in_the_environment_is_overwritten(lightq, topic):
    both = f"LIGHTQ_PASSWORD={PASSWORD}", f"LIGHTQ_PASSWORD={NEW_PASSWORD}"
    process = subprocess.Popen(["/usr/bin/python3", "-c", TWICE, *both, BINARY, "consume", "t"],
                               env={**lightq.environment, "LIGHTQ_USER": USER}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lightq.running.append(process)
    until(lambda: lightq.stats(topic)["subscribers_count"] == 1, lambda: f"its join; {process.poll()}")
    shown = environment_of(process)
    assert shown.count(b"LIGHTQ_PASSWORD=") == 2
    assert PASSWORD.encode() not in shown and NEW_PASSWORD.encode() not in shown
    finish(process)


def test_a_broker_that_is_given_a_password_twice_shows_none(make_broker):
    broker = make_broker(admin=False, start=False)
    both = f"LIGHTQ_ADMIN_PASSWORD={ADMIN_PASSWORD}", f"LIGHTQ_ADMIN_PASSWORD={NEW_PASSWORD}"
    broker.prefix = ["/usr/bin/python3", "-c", TWICE, *both]
    broker.start()
    shown = environment_of(broker.process)
    assert shown.count(b"LIGHTQ_ADMIN_PASSWORD=") == 2
    assert ADMIN_PASSWORD.encode() not in shown and NEW_PASSWORD.encode() not in shown


def test_a_broker_shows_no_password_in_its_environment(make_broker):
    broker = make_broker(environment={"LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_NEW_PASSWORD": NEW_PASSWORD})
    shown = environment_of(broker.process)
    for name in ("LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_PASSWORD", "LIGHTQ_NEW_PASSWORD"):
        assert f"{name}=\0".encode() in shown, "it was not given"
    for password in (PASSWORD, ADMIN_PASSWORD, NEW_PASSWORD):
        assert password.encode() not in shown
    broker.control().ok("list_topics", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)


# --- files -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o666])
@pytest.mark.parametrize("command", ["stats t --user ann --password-file", "topic list --admin-password-file",
                                     "user add ann --new-password-file"])
def test_a_password_file_that_others_may_open_is_refused(lightq, tmp_path, command, mode):
    path = secret_file(tmp_path / "secret", "planted-in-a-file-33", mode)
    told = lightq(*command.split(), path, code=2).stderr.decode()
    assert f"{path} contains a password and is open to other users: its mode is 0{mode:o}; chmod 600 it" in told
    os.chmod(path, 0o400)
    used = lightq(*command.split(), path, code=0 if "--new" in command else 1)
    assert "--new" in command or b"is refused" in used.stderr, "it is not this one's password"


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_an_admin_json_that_others_may_open_is_refused_by_its_users(lightq, mode):
    file = lightq.broker.data_dir / "admin.json"
    file.chmod(mode)
    told = lightq("topic", "list", code=2).stderr.decode()
    assert f"{file} contains the administrator's password and is open to other users: its mode is 0{mode:o}" in told
    file.chmod(0o600)
    lightq("topic", "list")


def test_a_password_may_come_by_a_link_a_pipe_or_standard_input(lightq, topic, tmp_path):
    path = secret_file(tmp_path / "password", PASSWORD)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    asked = ["stats", topic, "--user", USER, "--admin-user", "", "--password-file"]
    for way in (tmp_path / "link", tmp_path / "elsewhere" / "password"):
        lightq(*asked, str(way))
    lightq(*asked, "/dev/stdin", stdin=f"{PASSWORD}\n".encode())
    script = 'exec "$0" stats t --user "$1" --password-file <(printf "%s\\n" "$2")'
    done = subprocess.run(["bash", "-c", script, BINARY, USER, PASSWORD], capture_output=True, timeout=DEADLINE,
                          env=lightq.environment)
    assert done.returncode == 0 and b"messages" in done.stdout, done
    # In a pipe, the messages follow the password.
    lightq("produce", topic, "--user", USER, "--password-file", "/dev/stdin", stdin=f"{PASSWORD}\none\ntwo\n".encode())
    assert lightq("consume", topic, "-n", "2").stdout == b"one\ntwo\n"


@pytest.mark.parametrize("mode", [0o640, 0o644])
def test_a_broker_refuses_a_password_file_that_others_may_open(make_broker, tmp_path, mode):
    path = secret_file(tmp_path / "secret", "planted-in-a-file-34", mode)
    broker = make_broker("--admin-password-file", path, start=False, admin=False)
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 2
    broker.process = None
    broker.logged(f"{path} contains the administrator's password and is open to other users: its mode is 0{mode:o}")
    os.chmod(path, 0o600)
    broker.start()
    broker.control().ok("list_topics", admin_user_id=ADMIN, admin_password="planted-in-a-file-34")


@pytest.mark.parametrize("arguments", [
    ("stats", "t", "--password=hunter2-in-argv"), ("stats", "t", "--password", "hunter2-in-argv"),
    ("user", "password", "ann", "--new-password=hunter2-in-argv"), ("broker", "--admin-password", "hunter2-in-argv"),
    ("produce", "t", "--pasword", "hunter2-in-argv", "more"), ("consume", "t", "--ticket=hunter2-in-argv")])
def test_the_value_after_an_unknown_flag_is_not_shown(lightq, arguments):
    done = lightq(*arguments, code=2)
    said = (done.stdout + done.stderr).decode()
    assert "hunter2" not in said, said
    flag = next(argument for argument in arguments if argument.startswith("--")).partition("=")[0]
    assert flag in said, said
    assert ("from a file" in said) == ("password" in flag), said
