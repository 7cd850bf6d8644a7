"""Tests of the completions by running bash, zsh and fish on a terminal."""
import fcntl
import os
import pty
import select
import shutil
import signal
import subprocess
import termios

import pytest

from cli_support import lightq
from support import BINARY, DEADLINE, Secrets

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": "source <(lightq completion bash)\n",
    "zsh": "autoload -Uz compinit; compinit -u -d $HOME/dump; source <(lightq completion zsh)\n",
    "fish": "lightq completion fish | source\n",
}
BEGIN, END = b"\x01", b"\x05"  # Ctrl-A and Ctrl-E move to the ends of the line


def own_terminal():
    """Makes standard input the terminal of this session. Fish does not start without one."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Shell:
    """A shell at work on a terminal. It reads its keys one after the other, so nothing here waits for a prompt."""

    def __init__(self, name, environment, home):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed (scripts/setup test)")
        self.name = name
        self.master, slave = pty.openpty()
        path = f"{os.path.dirname(BINARY)}:{environment['PATH']}"
        environment = {**environment, "HOME": str(home), "XDG_DATA_HOME": str(home), "TERM": "xterm", "PATH": path}
        self.process = subprocess.Popen(SHELLS[name], stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        cwd=home, start_new_session=True, preexec_fn=own_terminal)
        os.close(slave)
        self.shown = b""
        self.type(LOAD[name].encode())
        self.type(b"echo load''ed\n")
        self.wait(b"loaded")

    def type(self, keys):
        os.write(self.master, keys)

    def wait(self, text):
        while text not in self.shown:
            assert select.select([self.master], [], [], DEADLINE)[0], f"{text} is not in {self.shown}"
            self.shown += os.read(self.master, 65536)
        self.shown = self.shown[self.shown.index(text) + len(text):]

    def completed(self, line):
        """Returns the line after the Tab key. The shell itself prints it."""
        self.type(line.encode() + b"\t" + BEGIN + b"echo res''ult: " + END + b" :end\n")
        self.wait(b"result: ")
        before = self.shown
        self.wait(b":end")
        return before[:before.index(b":end")].decode().split()

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        os.close(self.master)
        Secrets.absent_from(self.shown, "what the shell showed")


@pytest.fixture(params=SHELLS)
def shell(request, lightq, tmp_path):
    running = Shell(request.param, lightq.environment, tmp_path)
    yield running
    running.close()


def test_commands_flags_and_words_complete(shell):
    assert shell.completed("lightq produc") == ["lightq", "produce"]
    assert shell.completed("lightq topic cr") == ["lightq", "topic", "create"]
    assert shell.completed("lightq topic create t --over") == ["lightq", "topic", "create", "t", "--overflow"]
    assert shell.completed("lightq topic create t --type dir") == ["lightq", "topic", "create", "t", "--type", "direct"]
    assert shell.completed("lightq topic create t --type=dir") == ["lightq", "topic", "create", "t", "--type=direct"]


def test_names_of_topics_groups_users_and_files_complete(shell, lightq, tmp_path):
    lightq("topic", "create", "orders.eu")
    lightq("produce", "orders.eu", stdin=b"one\n")
    lightq("consume", "orders.eu", "--group", "billing", "--no-follow")
    lightq("user", "add", "annabel", "--consume", "t", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    (tmp_path / "access.log").touch()
    assert shell.completed("lightq consume ord") == ["lightq", "consume", "orders.eu"]
    assert shell.completed("lightq consume orders.eu --group bil") == ["lightq", "consume", "orders.eu", "--group", "billing"]
    assert shell.completed("lightq topic delete-group orders.eu bil") == ["lightq", "topic", "delete-group", "orders.eu", "billing"]
    assert shell.completed("lightq user remove ann") == ["lightq", "user", "remove", "annabel"]
    assert shell.completed("lightq produce orders.eu acc") == ["lightq", "produce", "orders.eu", "access.log"]


def test_without_a_broker_nothing_completes_and_nothing_is_said(shell, lightq):
    lightq("topic", "create", "orders.eu")
    lightq.broker.stop()
    assert shell.completed("lightq consume ord") == ["lightq", "consume", "ord"]
    assert shell.completed("lightq consume orders.eu --group b") == ["lightq", "consume", "orders.eu", "--group", "b"]
    lightq.broker.start()


def test_the_words_are_quiet_about_every_failure(lightq):
    lightq("topic", "create", "orders.eu")
    told = lightq("completion", "words", "consume", "ord")
    assert told.stdout == b"orders.eu\n" and told.stderr == b""
    for typed in (["--broker", "tcp://127.0.0.1:1"], ["--user", "ghost", "--password-file", "/nowhere"], ["--data-dir=/nowhere"]):
        hidden = {"LIGHTQ_BROKER": "", "LIGHTQ_DATA_DIR": "/nowhere"}
        told = lightq("completion", "words", "consume", *typed, "ord", variables=hidden)
        assert told.stdout == b"" and told.stderr == b"", told
