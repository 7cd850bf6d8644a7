"""Proves that one message whose consumers die on it takes no other message with it: docs/protocol.md, "set_group"."""
import multiprocessing
import os
import signal

import pytest

from cli_support import CommandLine
from dead_letter_support import ALL, check_states, dead_of, set_group
from session_client import Session, join
from session_support import fill, group_of
from support import number_of, numbered, until

MESSAGES, POISON, ATTEMPTS = 1000, 500, 5


def work(ticket, told, codecs):
    """Runs a consumer that acknowledges messages until none comes. The poison kills its process. Reports each
    delivery (offset, number) before it works on it."""
    session = Session(ticket, codecs=codecs)
    consumer = session.consumer("t", credit=(50, 1 << 20))
    while True:
        try:
            message, = consumer.receive(1, seconds=2)
        except AssertionError:
            os._exit(0)
        told.send((message.offset, message.delivery))
        if consumer.leases:
            consumer.start(message.offset)
            session.read_some(0)
        if number_of(message.payload) == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        consumer.acknowledge(message.offset, hand_out=message.hand_out or None)
        consumer.give(1, message.size)


def run_until_dead(control, codecs):
    """Starts consumers one after the other until one ends by itself. Returns the greatest delivery number of each
    message, and how many consumers were killed."""
    numbers, killed = {}, 0
    while killed <= 3 * ATTEMPTS:
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(join(control, "t", "pull"), there, codecs))
        process.start()
        there.close()
        try:
            while True:
                offset, number = here.recv()
                numbers[offset] = max(number, numbers.get(offset, 0))
        except EOFError:
            pass
        process.join()
        if process.exitcode == 0:
            return numbers, killed
        assert process.exitcode == -signal.SIGKILL, process.exitcode
        killed += 1
    raise AssertionError(f"{killed} consumers died: {dead_of(control)}")


@pytest.mark.parametrize("codecs", [ALL, 0], ids=["with leases", "without leases"])
@pytest.mark.parametrize("kind", ["file", "queue"])
def test_one_poison_in_a_thousand_dies_alone(control, session, kind, codecs):
    control.create("t", kind)
    set_group(control, max_attempts=ATTEMPTS)
    fill(session, "t", numbered(0, MESSAGES), size=100)
    numbers, killed = run_until_dead(control, codecs)
    assert [(dead["offset"], dead["cause"], dead["attempts"]) for dead in dead_of(control)] == [(POISON, "attempts", ATTEMPTS)]
    assert killed == ATTEMPTS
    stats = until(lambda: (group := group_of(control, "t"))["pending"] == 1 and group, lambda: f"the end: {group_of(control, 't')}")
    check_states(stats)
    assert (stats["dead"], stats["acknowledged"], stats["parked"]) == (1, MESSAGES - 1, 1)
    attempts = {offset: number - 1 for offset, number in numbers.items() if offset != POISON}
    assert len(attempts) == MESSAGES - 1
    assert max(attempts.values()) <= ATTEMPTS // 2, {offset: each for offset, each in attempts.items() if each > ATTEMPTS // 2}


def test_the_command_line_gives_the_poison_back(broker, control, session):
    control.create("t", "file")
    set_group(control, max_attempts=1)
    fill(session, "t", numbered(POISON, 2))
    numbers, killed = run_until_dead(control, ALL)
    assert killed == 1 and set(numbers) == {0, 1}
    lightq = CommandLine(broker)
    page = lightq.json("dlq", "list", "t", "--group", "default")
    assert [(dead["offset"], dead["state"], dead["cause"]) for dead in page["messages"]] == [(0, "parked", "attempts")]
    preview = lightq.json("dlq", "retry", "t", "--group", "default", "--preview")
    assert preview == {"cmd": "retry_dead", "status": "ok", "topic": "t", "group": "default", "preview": True, "messages": 1}
    assert lightq.json("dlq", "retry", "t", "--group", "default")["messages"] == 1
    printed = lightq("consume", "t", "-n", "1", "--timeout", "5s").stdout
    assert printed == numbered(POISON, 1)[0] + b"\n"
    assert lightq.json("dlq", "list", "t", "--group", "default")["messages"] == []
    lightq("dlq", "show", "t", "0", "--group", "default", code=1)
    until(lambda: group_of(control, "t")["pending"] == 0, "the acknowledgement")


