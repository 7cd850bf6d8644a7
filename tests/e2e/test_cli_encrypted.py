"""Tests the command line with a broker that encrypts."""
import subprocess
import threading

import pytest
import zmq

from cli_support import CommandLine, numbers
from support import ADMIN, BINARY, DEADLINE, PASSWORD, SANITIZERS, USER, until

# Owns a topic that is created with these variables.
OWN_USER = {"LIGHTQ_ADMIN_USER": ADMIN, "LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD}


@pytest.fixture
def lightq(make_broker):
    command_line = CommandLine(make_broker("--encrypt", admin=False))
    yield command_line
    command_line.close()


def test_every_command_that_moves_messages_works_by_itself(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=b"one\ntwo\n")
    assert lightq("peek", "t", "--format", "%p\n").stdout == b"one\ntwo\n"
    assert lightq("sub", "t", "--from", "first", "--no-follow").stdout == b"one\ntwo\n"
    assert lightq("consume", "t", "-n", "2").stdout == b"one\ntwo\n"
    assert lightq("bench", "-n", "20000").returncode == 0
    lightq.broker.logged("sessions over TLS: tcp://127.0.0.1:")
    assert "sessions: tcp://" not in lightq.broker.log()


def test_a_great_many_messages_pass_once_and_in_order(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "300000", "--size", "150")
    assert numbers(lightq("consume", "t", "-n", "300000").stdout) == list(range(300_000))


def test_a_producer_and_a_consumer_continue_after_kills(lightq):
    count = 60_000
    lightq("topic", "create", "t", "--type", "file")
    producer = lightq.begin("produce", "t", "-n", str(count), "--rate", "20000", "--size", "120")
    for part in range(1, 3):
        until(lambda: lightq.stats("t")["next_offset"] > part * count // 4, "some messages")
        lightq.broker.kill()
        lightq.broker.start()
    _, told = producer.communicate(timeout=3 * DEADLINE)
    assert producer.returncode == 0, told
    assert lightq.stats("t")["next_offset"] == count
    assert numbers(lightq("consume", "t", "-n", str(count)).stdout) == list(range(count))


class LyingControl:
    """A control socket that forwards requests to the broker and changes the answers to joins."""

    def __init__(self, broker, change):
        self.control, self.change, self.joins = broker.control(), change, 0
        self.socket = broker.context.socket(zmq.REP)
        self.socket.linger = 0
        public, self.socket.curve_secretkey = zmq.curve_keypair()
        self.key, self.socket.curve_server = public.decode(), True
        self.uri = f"tcp://127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while not self.stop.is_set():
            if not self.socket.poll(20):
                continue
            request = self.socket.recv_json()
            reply = self.control(**request)
            if request["cmd"] == "join":
                self.joins += 1
                self.change(reply)
                if "server_key" in reply:
                    reply["server_key"] = self.key
            self.socket.send_json(reply)

    def close(self):
        self.stop.set()
        self.thread.join(DEADLINE)
        self.socket.close()


def test_an_encrypting_client_never_continues_unencrypted(lightq):
    """The answer to a join names no certificate. The connection that brought it has the right key."""
    lightq("topic", "create", "t", "--type", "file", variables=OWN_USER)
    lying = LyingControl(lightq.broker, lambda reply: reply.pop("tls"))
    try:
        done = run_beside(lightq, lying, "produce")
    finally:
        lying.close()
    assert done.returncode == 1 and b"sent no certificate for sessions over TCP" in done.stderr, done
    assert lightq.stats("t")["next_offset"] == 0


def run_beside(lightq, lying, *command):
    environment = {**SANITIZERS, "HOME": str(lightq.broker.directory), "LIGHTQ_BROKER": lying.uri,
                   "LIGHTQ_SERVER_KEY": lying.key, "LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD,
                   "LIGHTQ_DATA_DIR": str(lightq.broker.directory / "nothing")}
    return subprocess.run([BINARY, command[0], "t", *command[1:]], input=b"two\n", env=environment,
                          capture_output=True, timeout=DEADLINE)


@pytest.mark.parametrize("command", [["produce"], ["consume", "-n", "1"], ["peek"]], ids=lambda command: command[0])
def test_another_certificate_is_an_error_and_no_loop(lightq, make_broker, command):
    """Another broker listens at the address of the join, or the join names a wrong certificate. The command
    must send it nothing."""
    lightq("topic", "create", "t", "--type", "file", variables=OWN_USER)
    lightq("produce", "t", stdin=b"one\n")
    lying = LyingControl(lightq.broker, lambda reply: reply["tls"].update(certificate_sha256="ab" * 32))
    try:
        done = run_beside(lightq, lying, *command)
    finally:
        lying.close()
    assert done.returncode == 1 and done.stdout == b"", done
    assert b"is not the broker: it has the certificate " in done.stderr and b"ab" * 32 in done.stderr, done
    assert b"--password-file" not in done.stderr
    assert lying.joins <= 2
    assert lightq.stats("t")["next_offset"] == 1
