"""A log on disk for the tests of `lightq log`. A real broker makes it, and tests damage its files."""
import json
import os
import pathlib
import struct
import subprocess

import pytest
import zmq

from support import BINARY, DEADLINE, until

SEAL, PAGE = 64, 4096


class LogFiles:
    """The directory of a topic after its broker has stopped, and `lightq log` on that directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    @property
    def segments(self):
        return sorted(self.directory.glob("*.seg"))

    def __call__(self, verb, *arguments, code=0, directory=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
        done = subprocess.run([BINARY, "log", verb, str(directory or self.directory), *map(str, arguments)],
                              capture_output=True, timeout=DEADLINE, env=environment)
        assert done.returncode == code, done
        return done

    def verify(self, code=0, directory=None):
        return json.loads(self("verify", "--json", code=code, directory=directory).stdout)

    def messages(self, code=0, directory=None):
        """Returns a dict of offset and payload, as `lightq log dump` gives them."""
        lines = self("dump", "--json", code=code, directory=directory).stdout.splitlines()
        found = [json.loads(line) for line in lines]
        assert len(found) == len({message["offset"] for message in found}), "an offset twice"
        return {message["offset"]: message["payload"] for message in found}

    def batches(self):
        return [json.loads(line) for line in self("dump", "--batches", "--json").stdout.splitlines()]

    def tree(self):
        """Returns every file's path and bytes."""
        return {path.relative_to(self.directory): path.read_bytes()
                for path in self.directory.rglob("*") if path.is_file()}


def change(path, position, replace):
    """Overwrites bytes at a position. `replace` is the new bytes, or a function from the old byte to the new
    one."""
    with open(path, "r+b") as file:
        file.seek(position)
        if callable(replace):
            old = file.read(1)
            file.seek(position)
            replace = bytes([replace(old[0])])
        file.write(replace)


def sealed_end(path):
    """Returns the position after the last batch, which is in the seal (docs/log_format.md)."""
    page = path.read_bytes()[:PAGE]
    magic, _, end = struct.unpack_from("<4sIQ", page, SEAL)
    assert magic == b"SEAL", path
    return end


@pytest.fixture
def log_files(make_broker):
    """The log of a stopped broker: some 1,500 messages in several segments."""
    broker = make_broker(admin=False)
    environment = {**broker.environment, "LIGHTQ_DATA_DIR": str(broker.data_dir), "LIGHTQ_BROKER": broker.control_uri}
    text = "".join(f"{number}|{'.' * 300}\n" for number in range(1500)).encode()
    for command, stdin in ((["topic", "create", "t", "--type", "file", "--segment-bytes", "64KiB"], b""),
                           (["produce", "t"], text), (["consume", "t", "-n", "700"], b"")):
        done = subprocess.run([BINARY, *command], input=stdin, env=environment, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 0, done
    broker.stop()
    files = LogFiles(next((broker.data_dir / "topics").iterdir()))
    assert len(files.segments) > 4, files.segments
    files.broker = broker
    return files


def send(broker, control, messages, topic="t"):
    """Sends the messages. Returns when they are in the log."""
    goal = control.stats(topic)["messages_received"] + len(messages)
    producer = broker.socket(zmq.PUSH, control.join(topic, "push"))
    for message in messages:
        producer.send(message)
    until(lambda: control.stats(topic)["messages_received"] >= goal, f"{goal} messages in the log")
    producer.close()
