"""Tests the files of Unix sockets: which of them a broker removes, and two brokers in one directory."""
import pathlib
import shutil
import subprocess
import tempfile

import pytest
import zmq

from support import BINARY, DEADLINE, receive


@pytest.fixture
def room():
    """A directory with a short path: the whole path of a socket has at most 107 bytes."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def test_a_file_at_the_path_of_the_control_socket_stays(room):
    precious = room / "precious.txt"
    precious.write_text("precious")
    refused = subprocess.run([BINARY, "broker", "--control", f"ipc://{precious}", "--data-dir", room / "data"],
                             capture_output=True, text=True, timeout=DEADLINE)
    assert refused.returncode == 1 and f"{precious} exists and is not a socket" in refused.stderr, refused
    assert precious.read_text() == "precious"


def test_brokers_share_a_directory_of_sockets(make_broker, room):
    one, other = [make_broker("--ipc-dir", str(room)) for _ in range(2)]
    consumers = {}
    for broker in (one, other):
        control = broker.control()
        control.create("t")
        consumers[broker] = broker.socket(zmq.PULL, control.join("t", "pull", transport="ipc"))
    of_both = set(room.iterdir())
    assert len(of_both) == 2, of_both  # the first endpoint of each broker
    for broker in (one, other):
        with broker.socket(zmq.PUSH, broker.control().join("t", "push", transport="ipc")) as producer:
            producer.send(f"to {broker.directory}".encode())
            assert receive(consumers[broker], 1) == [f"to {broker.directory}".encode()]
    before = set(room.iterdir())
    one.stop()
    left = set(room.iterdir())
    assert len(left) == len(before) / 2 and all(path.is_socket() for path in left), left
    with other.socket(zmq.PUSH, other.control().join("t", "push", transport="ipc")) as producer:
        producer.send(b"still there")
        assert receive(consumers[other], 1) == [b"still there"]
