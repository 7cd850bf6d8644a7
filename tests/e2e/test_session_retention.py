"""Tests producers of a topic that drops its messages as quickly as they arrive, with a broker that is killed."""
import random

import pytest

from session_client import FLUSHED
from cli_support import lightq  # noqa: F401
from support import DEADLINE, until

SMALL = dict(overflow="drop_oldest", capacity_bytes=1 << 20, segment_bytes=64 * 1024)


@pytest.mark.parametrize("settings", [SMALL, dict(retention_messages=100, segment_bytes=64 * 1024)],
                         ids=["capacity", "retention"])
@pytest.mark.parametrize("broker_type", ["file", "queue_file"])
def test_a_producer_is_known_after_a_kill_with_any_dropped_messages(broker, control, session, broker_type, settings):
    control.create("t", broker_type, **settings)
    producer = session("t").producer("t", level=FLUSHED)
    chance = random.Random(f"{broker_type} {settings}")  # the same at each run
    for kill in range(3):
        for _ in range(chance.randint(20, 60)):
            producer.produce([bytes(10_000)] * 10)
        producer.wait_confirmed()
        before = producer
        broker.kill()
        broker.start()
        producer = session("t").producer("t", before.id, before.epoch, level=FLUSHED)
        assert producer.next == before.next, f"kill {kill}"
    assert "the broker has forgotten producers" not in broker.log()


def test_the_command_line_continues_over_kills_with_exit_0(lightq):  # noqa: F811
    """The broker still knows the producer after a kill, though all messages (1 MiB) are replaced within a second."""
    count = 100_000
    lightq("topic", "create", "t", "--type", "file", "--capacity-bytes", "1MiB", "--overflow", "drop_oldest")
    producer = lightq.begin("produce", "t", "-n", str(count), "--size", "1000")
    for kill in range(1, 4):
        until(lambda: producer.poll() is not None or lightq.stats("t")["next_offset"] >= kill * count // 5, "messages")
        lightq.broker.kill()
        lightq.broker.start()
    _, told = producer.communicate(timeout=DEADLINE)
    assert producer.returncode == 0, told
    assert lightq.stats("t")["next_offset"] == count, "each is there once"
    assert "the broker has forgotten producers" not in lightq.broker.log()
