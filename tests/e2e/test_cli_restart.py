"""Tests the command line while the broker stops and starts, and while the command is interrupted."""
import signal
import subprocess

import pytest

from cli_support import finish, lightq
from support import DEADLINE, until


@pytest.mark.parametrize("mode", ["consume", "sub"])
def test_a_follower_continues_after_the_broker_was_killed(lightq, mode):
    lightq("topic", "create", "t", "--type", "file")
    follower = lightq.begin(mode, "t")
    until(lambda: lightq.stats("t")["subscribers_count"] == 1, "the follower")
    for text in (b"before\n", b"after\n"):
        lightq("produce", "t", stdin=text)
        while (line := follower.stdout.readline()) != text:
            # A kill may repeat the messages of its last second, and loses none.
            assert line == b"before\n", line
        if text == b"before\n":
            lightq.broker.kill()
            lightq.broker.start()
    finish(follower)


def test_a_producer_with_a_pipe_continues_after_the_broker_was_killed(lightq):
    lightq("topic", "create", "t", "--type", "file")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"one\n")
    producer.stdin.flush()
    until(lambda: lightq.stats("t")["next_offset"] == 1, "the first line")
    lightq.broker.kill()
    producer.stdin.write(b"two\n")
    producer.stdin.flush()
    lightq.broker.start()
    _, told = producer.communicate(b"three\n", timeout=DEADLINE)
    assert producer.returncode == 0 and b"3 messages received by the broker" in told, told
    assert lightq("consume", "t", "-n", "3").stdout == b"one\ntwo\nthree\n"


def test_interrupted_consumers_lose_nothing_between_them(lightq, tmp_path):
    def is_there_with_nothing_left():
        """Returns True if the previous consumer has taken everything and the next one is connected. Before
        that a signal would simply end it."""
        stats = lightq.stats("t")
        return stats["queue_size"] == 0 and stats["subscribers_count"] == 1

    count = 200_000
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", str(count), "--size", "100")
    for part in range(3):
        path = tmp_path / str(part)
        with open(path, "wb") as out:
            consumer = lightq.begin("consume", "t", *(["--no-follow"] if part == 2 else []), stdout=out)
        if part < 2:
            until(lambda: path.stat().st_size or is_there_with_nothing_left(), "its beginning")
            consumer.send_signal(signal.SIGINT)
        _, told = consumer.communicate(timeout=DEADLINE)
        assert consumer.returncode == 0, told
    lines = b"".join((tmp_path / str(part)).read_bytes() for part in range(3)).splitlines()
    assert [int(line.rstrip(b".")) for line in lines] == list(range(count))


def test_an_interrupted_producer_ends_at_a_whole_line(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"whole\nhal")
    producer.stdin.flush()
    until(lambda: lightq.stats("t")["messages_received"] == 1, "the whole line")
    producer.send_signal(signal.SIGINT)
    assert producer.wait(DEADLINE) == 0
    assert lightq("consume", "t", "--no-follow").stdout == b"whole\n"


def test_a_reader_that_goes_away_ends_a_consumer_quietly(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "100000", "--size", "100")
    consumer = lightq.begin("consume", "t")
    consumer.stdout.readline()
    consumer.stdout.close()
    assert consumer.wait(DEADLINE) == 0
    assert b"\x1b" not in consumer.stderr.read()
    assert lightq.stats("t")["next_offset"] == 100000


def test_sub_is_short_for_consume_in_that_mode(lightq):
    lightq("topic", "create", "t")
    followers = [lightq.begin("sub", "t", "-n", "2") for _ in range(2)]
    until(lambda: lightq.stats("t")["subscribers_count"] == 2, "both")
    lightq("pub", "t", stdin=b"a\nb\n")
    assert [follower.communicate(timeout=DEADLINE)[0] for follower in followers] == [b"a\nb\n"] * 2


def test_lines_of_megabytes_arrive_whole(lightq):
    lightq("topic", "create", "t", "--type", "file")
    text = b"".join(bytes([byte]) * 10_000_000 + b"\n" for byte in b"abc")
    lightq("produce", "t", stdin=text)
    assert lightq("consume", "t", "-n", "3").stdout == text


def test_a_watcher_survives_a_restart_and_ends_when_interrupted(lightq):
    lightq("topic", "create", "t", "--type", "file")
    watcher = lightq.begin("stats", "t", "--watch", "--interval", "50ms", "--request-timeout", "500ms")
    assert watcher.stdout.readline().split() == [b"topic", b"t"]
    lightq.broker.kill()
    lightq.broker.start()
    lightq("produce", "t", stdin=b"x\n")
    while watcher.stdout.readline().split() != [b"next_offset", b"1"]:
        assert watcher.poll() is None
    out, _ = finish(watcher)
    assert b"\x1b" not in out
