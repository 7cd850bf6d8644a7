"""Runs the guide's page about messages that fail as it is printed, and checks that its C++ is that of an example."""
import os
import pathlib
import re
import subprocess

import pytest

from dead_letter_support import dead_of, member
from session_support import fill, group_of
from support import BINARY, DEADLINE, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def page():
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    return text.split("\n## When a message fails\n", 1)[1].split("\n## ", 1)[0]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page(), re.S | re.M)


def transcript(block):
    """Returns the commands of a transcript, each with the lines that it prints."""
    commands = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(TIME.sub("TIME", line))
    return commands


def run(broker, command):
    """Runs a command. Returns the lines that it prints, with times replaced."""
    environment = {**broker.environment, "PATH": f"{pathlib.Path(BINARY).parent}:{os.environ['PATH']}",
                   "LIGHTQ_DATA_DIR": str(broker.data_dir), "LIGHTQ_BROKER": broker.control_uri}
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE,
                          env=environment)
    assert done.returncode == 0, (command, done.stdout)
    return [TIME.sub("TIME", line) for line in done.stdout.splitlines()]


def fail_some(control, session):
    """Lets message 1 fail three times, and rejects message 2 as dead."""
    consumer = member(control, session, "orders", group="billing", credit=(1, 1 << 20))
    while len(dead_of(control, "orders", "billing")) < 2:
        message, = consumer.receive(1, seconds=30)
        consumer.start(message.offset)
        if message.payload == b"hello":
            consumer.reject_dead(message.offset, reason="not an order")
        elif message.payload == b"order pears":
            consumer.reject(message.offset, ms=1)  # not the back-off, which takes long
        else:
            consumer.acknowledge(message.offset)
        consumer.give(1, message.size)
    consumer.session.close()


def test_the_page_about_failures_runs_as_it_is_printed(broker, control, session):
    control.create("orders", "file")
    setting, = blocks("sh")
    assert run(broker, setting) == ["lightq: topic 'orders' group 'billing' has these settings now"]
    fill(session, "orders", [b"order apples", b"order pears", b"hello", b"order plums"], size=1)
    fail_some(control, session)
    for block in blocks("console"):
        for command, printed in transcript(block):
            assert run(broker, command) == printed, command
    until(lambda: group_of(control, "orders", "billing")["pending"] == 1, "message 1, which was given back")


@pytest.mark.parametrize("block", blocks("cpp"))
def test_the_cpp_of_the_page_is_that_of_an_example(block):
    assert block.rstrip() in (ROOT / "examples/dead_letters.cpp").read_text(encoding="utf-8")
