"""Tests a broker with a log in a pipe that is not read: lines may be lost, and nothing else waits."""
import fcntl
import os
import re

import pytest

from support import DEADLINE, until

LINES = 2500  # more than fit into the pipe and into the broker's queue of lines for it


class FullPipe:
    """A pipe of one page on the broker's standard error. It is read only when the test asks for it."""

    def __init__(self, directory):
        self.path = directory / "stderr"
        os.mkfifo(self.path)
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.descriptor, fcntl.F_SETPIPE_SZ, 4096)
        self.text = ""

    def prefix(self):
        return ["/bin/sh", "-c", 'stderr=$0; exec "$@" 2>"$stderr"', str(self.path)]

    def read(self):
        try:
            while chunk := os.read(self.descriptor, 65536):
                self.text += chunk.decode()
        except BlockingIOError:
            pass
        return self.text


@pytest.fixture
def pipe(tmp_path):
    pipe = FullPipe(tmp_path)
    yield pipe
    os.close(pipe.descriptor)


def say_much(control):
    """Creates topics. The log gets a warning for each, and each request is answered."""
    for index in range(LINES):
        control.create(f"open-topic-with-a-long-name-{index:05}", open=True)


def test_requests_are_answered_and_lost_lines_are_counted(make_broker, pipe, tmp_path):
    broker = make_broker("--log-file", str(tmp_path / "broker.log"), "--requests-per-second", "1000000", prefix=pipe.prefix())
    control = broker.control()
    say_much(control)
    lost = control.broker_stats()["limits_reached"]["log_queue_bytes"]
    assert 0 < lost < LINES
    said = until(lambda: re.search(r"level=warning msg=[^\n]* lost=(\d+)\n", pipe.read()), lambda: pipe.text[-2000:])
    assert int(said[1]) == lost == control.broker_stats()["limits_reached"]["log_queue_bytes"]
    assert pipe.text.count("is open: plain clients") == LINES - lost
    # The log file, which takes every line, does not wait for the pipe.
    until(lambda: (tmp_path / "broker.log").read_text().count("is open: plain clients") == LINES, "the file's lines")
    broker.stop()
    assert "stopping on SIGTERM" in pipe.read()


def test_sigterm_ends_it_without_a_reader(make_broker, pipe):
    broker = make_broker("--requests-per-second", "1000000", prefix=pipe.prefix())
    say_much(broker.control())
    assert broker.terminate(seconds=DEADLINE) == 0
    assert not (broker.data_dir / "broker.json").exists()
    assert "stopping" not in pipe.read(), "somebody has read it meanwhile"
