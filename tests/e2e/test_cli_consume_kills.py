"""Tests `lightq consume` when its reader, the command itself or the broker ends: the next consumer prints the
messages that were not printed."""
import os
import pathlib
import signal
import subprocess

import pytest

from cli_support import CommandLine, finish, lightq, numbers
from support import DEADLINE, until

COUNT = 50_000  # of 100 bytes each: far more than fit into a pipe


def group(lightq):
    return lightq.stats("t")["groups"][0]


def until_gone(lightq):
    until(lambda: group(lightq)["consumers"] == 0, "the broker notices that the consumer is gone")


def read_all_there_is(descriptor):
    """Reads and returns the present content of the pipe."""
    os.set_blocking(descriptor, False)
    read = b""
    try:
        while more := os.read(descriptor, 1 << 16):
            read += more
    except BlockingIOError:
        pass
    return read


def begin_in_pipe(lightq, *more):
    """Starts a consumer that has begun to print into a pipe and cannot print everything. Returns it and the
    first byte."""
    consumer = lightq.begin("consume", "t", *more)
    return consumer, os.read(consumer.stdout.fileno(), 1)


def stop(process):
    """Stops a process with SIGSTOP. Returns when it has stopped."""
    process.send_signal(signal.SIGSTOP)
    status = pathlib.Path(f"/proc/{process.pid}/stat")
    until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "T", "it stands still")


def assert_goes_on(first, second, count=COUNT):
    """Checks that both outputs are in order and without gaps, and are complete together. Only messages that
    were on their way may be in both."""
    assert first == list(range(len(first)))
    assert second == list(range(second[0], count))
    assert second[0] <= len(first), "something is missing between them"


@pytest.fixture
def full(lightq):
    """A topic with COUNT messages."""
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", str(COUNT), "--confirm", "received")
    return lightq


def test_undelivered_messages_of_a_reader_that_leaves_go_to_the_next(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "10")
    consumer = lightq.begin("consume", "t")
    read = b"".join(consumer.stdout.readline() for _ in range(10))
    until(lambda: group(lightq)["committed_offset"] == 10, "what was read is done with")
    consumer.stdout.close()
    lightq("produce", "t", "-n", "10")
    assert consumer.wait(DEADLINE) == 0
    assert numbers(read) == numbers(lightq("consume", "t", "--no-follow").stdout) == list(range(10))


def test_a_pipe_that_is_closed_in_the_midst_loses_nothing(full):
    consumer, read = begin_in_pipe(full)
    stop(consumer)
    read += read_all_there_is(consumer.stdout.fileno())
    consumer.stdout.close()
    consumer.send_signal(signal.SIGCONT)
    assert consumer.wait(DEADLINE) == 0
    assert_goes_on(numbers(read), numbers(full("consume", "t", "--no-follow").stdout))


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_consumer_that_is_stopped_during_delivery_loses_nothing(full, by):
    consumer, read = begin_in_pipe(full)
    consumer.send_signal(by)
    rest, told = consumer.communicate(timeout=DEADLINE)
    assert consumer.returncode == (-by if by == signal.SIGKILL else 0), told
    until_gone(full)
    first, second = numbers(read + rest), numbers(full("consume", "t", "--no-follow").stdout)
    assert len(first) < COUNT
    assert_goes_on(first, second)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_consumer_gives_back_what_it_has_not_printed(full, by):
    """The messages that it has received and not printed do not count as delivered."""
    consumer, read = begin_in_pipe(full)
    consumer.send_signal(by)
    rest, told = consumer.communicate(timeout=DEADLINE)
    assert consumer.returncode == 0, told
    printed = len(numbers(read + rest))
    until_gone(full)
    assert 0 < printed < COUNT and group(full)["committed_offset"] == printed
    assert numbers(full("consume", "t", "--no-follow").stdout) == list(range(printed, COUNT))
    assert group(full)["redelivered"] == 0


def test_the_messages_of_a_killed_member_are_shared_by_its_group(full, tmp_path):
    stuck, read = begin_in_pipe(full)
    with open(tmp_path / "out", "wb") as out:
        other = full.begin("consume", "t", stdout=out)
    until(lambda: group(full)["consumers"] == 2, "both")
    stuck.kill()
    first = numbers(read + stuck.communicate(timeout=DEADLINE)[0])
    until(lambda: group(full)["committed_offset"] == COUNT, "the other one prints the rest")
    finish(other)
    second = numbers((tmp_path / "out").read_bytes())
    assert len(second) == len(set(second)) and set(first) | set(second) == set(range(COUNT))


def test_a_slow_reader_keeps_its_consumer(make_broker):
    command_line = CommandLine(make_broker("--session-heartbeat-ms", "2000", admin=False))
    try:
        command_line("topic", "create", "t")
        command_line("produce", "t", "-n", str(COUNT))
        consumer, read = begin_in_pipe(command_line, "-n", str(COUNT))
        until(lambda: group(command_line)["oldest_ms"] > 7000, "much more than twice the heartbeat has passed")
        rest, told = consumer.communicate(timeout=DEADLINE)
        assert consumer.returncode == 0 and numbers(read + rest) == list(range(COUNT)), told
        assert group(command_line)["redelivered"] == 0
        assert group(command_line)["committed_offset"] == COUNT
    finally:
        command_line.close()


def assert_only_repeats(seen, count, repeats):
    """Checks that all messages are there in order, and that the consumer went back at most `repeats` times."""
    assert sorted(set(seen)) == list(range(count))
    steps = [later - earlier for earlier, later in zip([-1, *seen], seen)]
    assert all(step <= 1 for step in steps), "messages were skipped"
    assert sum(step < 1 for step in steps) <= repeats


@pytest.mark.parametrize("mode", ["consume", "sub"])
def test_a_broker_that_is_killed_repeats_some_and_loses_none(lightq, tmp_path, mode):
    count, kills = 20_000, 3
    lightq("topic", "create", "t", "--type", "file")
    place = ["--from", "first", "--group", "mine"] if mode == "sub" else []
    with open(tmp_path / "out", "wb") as out:
        consumer = lightq.begin(mode, "t", *place, stdout=out)
    producer = lightq.begin("produce", "t", "-n", str(count), "--rate", "8k")
    for kill in range(kills):
        until(lambda: lightq.stats("t")["next_offset"] > count * (kill + 1) // (kills + 2), "some more of them")
        lightq.broker.kill()
        lightq.broker.start()
    _, told = producer.communicate(timeout=4 * DEADLINE)
    assert producer.returncode == 0, told
    until(lambda: group(lightq)["committed_offset"] == count, "all of them were printed")
    finish(consumer)
    assert_only_repeats(numbers((tmp_path / "out").read_bytes()), count, kills)
