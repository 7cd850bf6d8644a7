"""The command line beside a broker of its own, for the tests of the commands."""
import json
import os
import select
import signal
import subprocess

import pytest

from support import BINARY, DEADLINE, Secrets


class CommandLine:
    """Runs `lightq` with an environment in which it finds the broker and its administrator."""

    def __init__(self, broker):
        self.broker = broker
        self.environment = {**broker.environment, "LIGHTQ_DATA_DIR": str(broker.data_dir),
                            "LIGHTQ_BROKER": broker.control_uri}
        self.running = []

    def __call__(self, *arguments, stdin=b"", code=0, variables=None, **streams):
        """Runs a command to its end. The exit code must be `code`."""
        streams = streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = subprocess.run([BINARY, *arguments], input=stdin, timeout=DEADLINE,
                              env={**self.environment, **(variables or {})}, **streams)
        assert done.returncode == code, (arguments, done)
        return done

    def begin(self, *arguments, **streams):
        """Starts a command and leaves it running. The fixture ends it if the test does not."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        self.running.append(subprocess.Popen([BINARY, *arguments], env=self.environment, **streams))
        return self.running[-1]

    def json(self, *arguments, **more):
        return json.loads(self(*arguments, "--json", **more).stdout)

    def stats(self, *topic):
        return self.json("stats", *topic)

    def topics(self):
        return [topic["topic"] for topic in self.json("topic", "list")["topics"]]

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def lightq(make_broker):
    broker = make_broker(admin=False)
    Secrets.of_data_directory(broker.data_dir)
    command_line = CommandLine(broker)
    yield command_line
    command_line.close()


def numbers(output):
    """Returns the numbers of generated messages in the order of output. Ignores an incomplete last line."""
    return [int(line.rstrip(b".")) for line in output[:output.rfind(b"\n") + 1].splitlines()]


def finish(process):
    """Interrupts a command, which must then exit with code 0. Returns its output."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return out, err


def on_terminal(command_line, *arguments, stream="stderr"):
    """Runs a command that must succeed. Returns the output of `stream`, which is a terminal; the other stream
    is not."""
    master, slave = os.openpty()
    try:
        others = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = command_line.begin(*arguments, **{**others, stream: slave})
    finally:
        os.close(slave)
    seen = b""
    try:
        while select.select([master], [], [], DEADLINE)[0]:
            seen += os.read(master, 65536)
    except OSError:  # read fails in this way once all processes have closed the terminal
        pass
    finally:
        os.close(master)
    assert process.wait(DEADLINE) == 0, seen
    Secrets.absent_from(seen, f"the output of {arguments}")
    return seen
