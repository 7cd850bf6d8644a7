"""Runs the guide's page about messages that fail as it is printed, and checks that its C++ is that of an example."""
import pytest

from dead_letter_support import ADMINISTRATOR, dead_of, member
from guide_support import ROOT, blocks, run, transcript
from session_support import fill, group_of
from support import until

HEADING = "When a message fails"


def fail_some(control, session):
    """Lets message 1 fail three times, rejects message 2 as dead, and acknowledges the two others."""
    consumer = member(control, session, "orders", group="billing", credit=(1, 1 << 20))
    acknowledged = 0
    while len(dead_of(control, "orders", "billing")) < 2 or acknowledged < 2:
        message, = consumer.receive(1, seconds=30)
        consumer.start(message.offset)
        if message.payload == b"hello":
            consumer.reject_dead(message.offset, reason="not an order")
        elif message.payload == b"order pears":
            consumer.reject(message.offset, ms=1)  # not the back-off, which takes long
        else:
            consumer.acknowledge(message.offset)
            acknowledged += 1
        consumer.give(1, message.size)
    consumer.session.close()


def send_a_letter(control, session):
    """Acknowledges message 1, and rejects message 4 as dead."""
    fill(session, "orders", [b"hello"], size=1)
    consumer = member(control, session, "orders", group="billing", credit=(2, 1 << 20))
    for _ in range(2):
        message, = consumer.receive(1, seconds=30)
        consumer.start(message.offset)
        if message.payload == b"hello":
            consumer.reject_dead(message.offset, reason="not an order")
        else:
            consumer.acknowledge(message.offset)
    until(lambda: control.ok("stats", topic="orders.dead", **ADMINISTRATOR)["messages_received"] == 1, "the letter")
    consumer.session.close()


def test_the_page_about_failures_runs_as_it_is_printed(broker, control, session):
    control.create("orders", "file")
    setting, = blocks(HEADING, "sh")
    assert run(broker, setting) == ["lightq: topic 'orders' group 'billing' has these settings now"]
    fill(session, "orders", [b"order apples", b"order pears", b"hello", b"order plums"], size=1)
    fail_some(control, session)
    ran = []
    for block in blocks(HEADING, "console"):
        if "dlq list orders.dead" in block:
            send_a_letter(control, session)
        for command, printed in transcript(block):
            assert run(broker, command) == printed, command
            ran.append(command)
        if "dlq purge orders" in block:
            until(lambda: group_of(control, "orders", "billing")["pending"] == 1, "message 1, which was given back")
    assert len(ran) == 10
    until(lambda: group_of(control, "orders", "billing")["pending"] == 1, "message 4, which was given back")


@pytest.mark.parametrize("block", blocks(HEADING, "cpp"))
def test_the_cpp_of_the_page_is_that_of_an_example(block):
    assert block.rstrip() in (ROOT / "examples/dead_letters.cpp").read_text(encoding="utf-8")
