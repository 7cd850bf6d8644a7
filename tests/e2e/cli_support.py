"""The command line beside a broker of its own, for the tests of the commands."""
import json
import os
import select
import signal
import subprocess

import pytest

from support import BINARY, DEADLINE, Secrets


class CommandLine:
    """Runs `lightq` where it finds the broker and its administrator by itself."""

    def __init__(self, broker):
        self.broker = broker
        self.environment = {**broker.environment, "LIGHTQ_DATA_DIR": str(broker.data_dir),
                            "LIGHTQ_BROKER": broker.control_uri}
        self.running = []

    def __call__(self, *arguments, stdin=b"", code=0, variables=None, **streams):
        """Runs a command to its end, which must be with exit code `code`."""
        streams = streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = subprocess.run([BINARY, *arguments], input=stdin, timeout=DEADLINE,
                              env={**self.environment, **(variables or {})}, **streams)
        assert done.returncode == code, (arguments, done)
        return done

    def begin(self, *arguments, **streams):
        """Leaves a command running; the fixture ends it if the test does not."""
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
    """The numbers of generated messages, as they were printed; a last line without its end is left out."""
    return [int(line.rstrip(b".")) for line in output[:output.rfind(b"\n") + 1].splitlines()]


def finish(process):
    """The end of a command that is interrupted: its output, having ended well."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return out, err


def on_terminal(command_line, *arguments, stream="stderr"):
    """What a command that ends well writes to `stream` when that is a terminal and the other one is not."""
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
    except OSError:  # how the end of a terminal reads: everybody has closed it
        pass
    finally:
        os.close(master)
    assert process.wait(DEADLINE) == 0, seen
    Secrets.absent_from(seen, f"the output of {arguments}")
    return seen
