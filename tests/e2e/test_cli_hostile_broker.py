"""Tests that texts of a hostile broker do not act on a terminal, and that no text looks like another line."""
import json
import os
import select
import subprocess
import threading

import pytest
import zmq

from cli_support import CommandLine
from support import ADMIN_PASSWORD, BINARY, DEADLINE, Secrets

ACTS = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\rX\nforged: line\ttab"
# Words that the protocol defines. A reply with others is not understood.
WORDS = {"cmd", "status", "code", "broker_type", "topic_type", "overflow", "mode", "state", "cause", "missed", "role"}
# Texts that the client does not check, because anybody may have written them.
FREE_TEXTS = {"blocked_by", "reason", "user_id", "version", "data_dir", "bind_uri", "paused_by", "waiting_by", "dead_waiting_by",
              "zone", "cron", "payload", "key", "id", "value", "source_topic", "source_group", "description"}


def spoiled(value, chosen, name=""):
    """Returns a reply with ACTS behind each text of the chosen members."""
    if isinstance(value, dict):
        return {member: spoiled(each, chosen, member) for member, each in value.items()}
    if isinstance(value, list):
        return [spoiled(each, chosen, name) for each in value]
    return value + ACTS if isinstance(value, str) and chosen(name) else value


HOSTILITY = {
    "all texts": lambda reply: spoiled(reply, lambda name: name not in WORDS),
    "free texts": lambda reply: spoiled(reply, lambda name: name in FREE_TEXTS),
    "errors": lambda reply: {"cmd": reply["cmd"], "status": "error", "code": "invalid_request", "description": "no" + ACTS},
    "unknown words": lambda reply: {"cmd": reply["cmd"] + ACTS, "status": "error", "code": ACTS, "description": ACTS},
    "no document": lambda reply: ACTS,
}


class HostileBroker:
    """Passes requests to a real broker, and spoils its replies."""

    def __init__(self, uri, hostility):
        self.context, self.spoil, self.uri = zmq.Context(), hostility, uri
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        real = self.context.socket(zmq.DEALER)
        real.linger = 0
        real.connect(self.uri)
        while not self.ends.is_set():
            if not self.socket.poll(50):
                continue
            client, *request = self.socket.recv_multipart()
            real.send_multipart(request)
            assert real.poll(DEADLINE * 1000)
            *frames, reply = real.recv_multipart()
            reply = json.loads(reply)
            if reply["cmd"] != "ping":  # otherwise the command is not even begun
                reply = self.spoil(reply)
            text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
            self.socket.send_multipart([client, *frames, text.encode()])
        real.close()

    def close(self):
        self.ends.set()
        self.thread.join(DEADLINE)
        self.socket.close()
        self.context.term()


@pytest.fixture(params=HOSTILITY)
def hostile(request, make_broker, tmp_path):
    """The command line with a broker that spoils its replies."""
    broker = make_broker()
    own = CommandLine(broker)
    own("topic", "create", "t", "--type", "file")
    own("produce", "t", "--key", "key", stdin=b"one\n")
    own("consume", "t", "--group", "g", "--no-follow", "--quiet")
    own("topic", "pause", "t", "--group", "g")
    own("produce", "t", "--delay", "1h", "--id", "an id", stdin=b"later\n")
    own("schedule", "set", "morning", "t", "go", "--cron", "0 9 * * *")
    own("user", "add", "ann", "--consume", "t", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    proxy = HostileBroker(broker.control_uri, HOSTILITY[request.param])
    own.environment.update(LIGHTQ_BROKER=f"tcp://127.0.0.1:{proxy.port}", LIGHTQ_DATA_DIR=str(tmp_path / "none"),
                           LIGHTQ_ADMIN_PASSWORD=ADMIN_PASSWORD, XDG_CONFIG_HOME=str(tmp_path))
    yield own
    proxy.close()


def shown_by(command_line, *arguments):
    """Returns all that a command shows on a terminal, and its exit code."""
    master, slave = os.openpty()
    process = subprocess.Popen([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=command_line.environment)
    os.close(slave)
    seen = b""
    try:
        while select.select([master], [], [], DEADLINE)[0]:
            seen += os.read(master, 65536)
    except OSError:  # all have closed the terminal
        pass
    os.close(master)
    Secrets.absent_from(seen, f"the output of {arguments}")
    return seen.replace(b"\r\n", b"\n"), process.wait(DEADLINE)


def is_control(code):
    return code < 0x20 or 0x7F <= code < 0xA0 or code == 0x202E


COMMANDS = ["topic list", "topic info t", "topic create u", "topic pause t", "topic purge t --yes", "stats", "stats t", "stats --all",
            "top", "user list", "user grant ann --produce t", "group set t g --max-attempts 2", "dlq list t --group g",
            "dlq retry t --group g", "delayed list t", "delayed show t 0", "delayed cancel t --all --preview", "schedule list",
            "schedule show morning t", "schedule pause morning t", "version", "doctor", "ping", "completion words topic info ''"]


def test_nothing_acts_on_the_terminal(hostile):
    faults = []
    for command in COMMANDS:
        for more in ([], ["--json"]):
            if more and command.startswith("completion"):
                continue
            seen, code = shown_by(hostile, *command.replace("''", "").split(" "), *more)
            assert code in (0, 1, 2), (command, code)
            text = seen.decode()  # is valid
            may = "\n\t" if command.split()[0] in ("dlq", "delayed", "completion") else "\n"  # tabs between fields
            acting = {character for character in text if character not in may and is_control(ord(character))}
            if acting or any(line.startswith("forged") for line in text.split("\n")):
                faults.append((command, more, acting, text))
    assert not faults, "\n".join(map(repr, faults))
