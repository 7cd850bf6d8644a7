"""Tests of `lightq top` in tmux, which is a terminal with a screen that can be read."""
import os
import shlex
import shutil
import signal
import subprocess

import pytest

from cli_support import lightq
from support import BINARY, DEADLINE, Secrets, until


class Tmux:
    """A terminal of the given size that runs a shell's commands."""

    def __init__(self, directory, columns, rows, environment, commands):
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed (scripts/setup test)")
        self.socket = str(directory / "tmux")
        self.environment = {**environment, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), f"sh -c {shlex.quote(commands)}")

    def run(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], env=self.environment, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 0, (words, done)
        return done.stdout.decode()

    def screen(self):
        return self.run("capture-pane", "-p").split("\n")[:-1]

    def wait(self, text):
        until(lambda: any(text in line for line in self.screen()), lambda: f"{text} in {self.screen()}")
        return self.screen()

    def press(self, *keys):
        self.run("send-keys", *keys)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=DEADLINE)


@pytest.fixture
def top(lightq, tmp_path):
    """Starts `lightq top` in a terminal. After its end the shell shows its exit code and the terminal's settings."""
    started = []

    def start(columns=80, rows=24, *more):
        command = shlex.join([BINARY, "top", "--interval", "100ms", *more])
        shell = f"trap : INT; echo before; sh -c 'echo pid $$ > {tmp_path}/pid; exec {command}'; echo code $?; stty -a | tr ' ;' '\\n\\n' | grep -x 'echo\\|icanon\\|isig' | sort | tr '\\n' ' '; echo end; cat"
        started.append(Tmux(tmp_path, columns, rows, lightq.environment, shell))
        return started[-1]
    yield start
    for terminal in started:
        Secrets.absent_from("\n".join(terminal.screen()).encode(), "the screen")
        terminal.close()


def assert_restored(terminal, code=0):
    screen = terminal.wait("end")
    assert "before" in screen[0], "the first screen is shown again"
    assert f"code {code}" in screen and any(line.startswith("echo icanon isig") for line in screen), screen


def fill(lightq):
    lightq("topic", "create", "few")
    lightq("topic", "create", "many", "--type", "file")
    lightq("produce", "few", "-n", "3")
    lightq("produce", "many", "-n", "1500")
    lightq("consume", "many", "--group", "billing", "-n", "500", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize("columns,rows", [(80, 24), (200, 50)])
def test_topics_are_sorted_opened_and_left(lightq, top, columns, rows):
    fill(lightq)
    terminal = top(columns, rows)
    screen = terminal.wait("1,500")
    assert len(screen) == rows and all(len(line) <= columns for line in screen)
    assert "2 topics" in screen[0] and screen[1].split()[0] == "topic" and screen[-1].startswith("q quit")
    assert ("state" in screen[1]) == (columns == 200)
    assert [screen[2].split()[0], screen[3].split()[0]] == ["few", "many"]
    assert "1,000" in screen[3], "the lag"
    terminal.press("l")
    until(lambda: terminal.screen()[2].startswith("many"), "the order by lag")
    terminal.press("r")
    until(lambda: terminal.screen()[2].startswith("few"), "the reverse order")
    terminal.press("Down", "Enter")  # both in one read
    screen = terminal.wait("billing")
    assert screen[1].startswith("topic many") and "1,000" in next(line for line in screen if "billing" in line)
    terminal.press("q")
    terminal.wait("2 topics")
    terminal.press("q")
    assert_restored(terminal)


def test_numbers_change_while_it_runs(lightq, top):
    lightq("topic", "create", "t")
    terminal = top()
    terminal.wait("1 topic,")
    lightq("produce", "t", "-n", "1234")
    terminal.wait("1,234")
    lightq("topic", "create", "another")
    terminal.wait("2 topics")
    terminal.press("q")
    assert_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_the_terminal(lightq, top, tmp_path, number):
    lightq("topic", "create", "t")
    terminal = top()
    terminal.wait("1 topic,")
    os.kill(int((tmp_path / "pid").read_text().split()[1]), number)
    assert_restored(terminal)


def test_ctrl_c_ends_it_and_ctrl_z_does_not_leave_a_broken_terminal(lightq, top):
    lightq("topic", "create", "t")
    terminal = top()
    terminal.wait("1 topic,")
    terminal.press("C-z")
    terminal.press("C-c")
    assert_restored(terminal)


def test_it_says_that_the_broker_has_gone_and_goes_on_when_it_is_back(lightq, top):
    lightq("topic", "create", "t", "--type", "file")
    terminal = top(80, 24, "--request-timeout", "300ms")
    terminal.wait("1 topic,")
    lightq.broker.stop()
    terminal.wait("does not answer")
    terminal.press("q")
    assert_restored(terminal)
    lightq.broker.start()


def test_it_has_the_new_size_after_a_resize(lightq, top):
    lightq("topic", "create", "t")
    terminal = top()
    terminal.wait("q quit")
    terminal.run("resize-window", "-x", "150", "-y", "40")
    until(lambda: len(terminal.screen()) == 40 and terminal.screen()[-1].startswith("q quit") and "state" in terminal.screen()[1],
          "the new size")
    terminal.press("q")
    assert_restored(terminal)


def test_without_a_terminal_it_prints_the_statistics_once(lightq):
    lightq("topic", "create", "t")
    assert lightq("top").stdout == lightq("stats", "--all").stdout
    assert lightq.json("top")["topics"][0]["topic"] == "t"
