"""`lightq produce` over a session: what it confirms is stored, once and in order, whatever becomes of the broker."""
import subprocess

import pytest

from cli_support import lightq, numbers
from support import DEADLINE, until


def test_messages_are_stored_once_and_in_order_though_the_broker_is_killed_again_and_again(lightq):
    count, kills = 20_000, 4
    lightq("topic", "create", "t", "--type", "file")
    producer = lightq.begin("produce", "t", "-n", str(count), "--size", "100", "--rate", "8k")
    for kill in range(kills):
        until(lambda: lightq.stats("t")["next_offset"] > count * (kill + 1) // (kills + 2), "some more of them")
        assert producer.poll() is None, "it is to be killed while messages are sent"
        lightq.broker.kill()
        lightq.broker.start()
    _, told = producer.communicate(timeout=4 * DEADLINE)
    assert producer.returncode == 0 and b"20,000 messages received by the broker and on its disk" in told, told
    assert lightq.stats("t")["next_offset"] == count
    assert numbers(lightq("consume", "t", "-n", str(count)).stdout) == list(range(count))


def test_each_line_leaves_though_its_input_stays_open(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    for sent in range(1, 21):
        producer.stdin.write(b"line\n" * 3)
        producer.stdin.flush()
        until(lambda: lightq.stats("t")["messages_received"] == 3 * sent, "what was written")
    producer.communicate(timeout=DEADLINE)
    assert producer.returncode == 0


def test_what_may_be_stored_or_not_is_told(lightq):
    lightq("topic", "create", "t", "--ring-bytes", "64KiB")
    lightq("consume", "t", "--no-follow")  # from now on what is sent waits for a puller
    producer = lightq.begin("produce", "t", "-n", "1000", "--size", "1KiB")
    until(lambda: lightq.stats("t")["blocked_by"], "no more room")
    lightq.broker.kill()
    lightq.broker.start()
    _, told = producer.communicate(timeout=DEADLINE)
    assert producer.returncode == 1 and b"may be stored or not" in told, told


def test_a_topic_that_is_deleted_ends_it(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"one\n")
    producer.stdin.flush()
    until(lambda: lightq.stats("t")["messages_received"] == 1, "the line")
    lightq("topic", "delete", "t")
    assert producer.wait(DEADLINE) == 1
    told = producer.stderr.read()
    assert b"topic_not_found" in told or b"topic_deleted" in told or b"does not exist" in told, told


def test_confirm_says_what_is_waited_for(lightq):
    lightq("topic", "create", "f", "--type", "file")
    lightq("topic", "create", "q")
    assert b"on its disk" in lightq("produce", "f", "-n", "3").stderr
    assert b"on its disk" not in lightq("produce", "f", "-n", "3", "--confirm", "received").stderr
    assert b"on its disk" not in lightq("produce", "q", "-n", "3").stderr
    assert b"not_supported" in lightq("produce", "q", "-n", "3", "--confirm", "flushed", code=1).stderr
    lightq("produce", "q", "-n", "3", "--confirm", "perhaps", code=2)


@pytest.mark.parametrize("kind", ["queue", "file"])
def test_plain_sends_over_zeromq(lightq, kind):
    lightq("topic", "create", "t", "--type", kind)
    done = lightq.json("produce", "t", "-n", "500", "--plain")
    assert (done["sent"], done["received"]) == (500, 500)
    assert numbers(lightq("consume", "t", "-n", "500").stdout) == list(range(500))
