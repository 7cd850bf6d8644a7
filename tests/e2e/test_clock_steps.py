"""Tests a broker with a wall clock that is stepped while it runs (tests/support/clock_shift.cpp). The tests
cover starts at a time, and retention."""
import datetime
import pathlib
import struct

import pytest

from cli_support import lightq  # noqa: F401
from support import BINARY, SANITIZED, until, variable

SHIFT = variable("LIGHTQ_CLOCK_SHIFT", str(pathlib.Path(BINARY).parent / "tests/e2e/liblightq_clock_shift.so"))
HOUR, DAY = 3600, 86400

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitizer's own library has to be loaded first")


class SteppedClock:
    """The broker's clock. `off_by` steps it to so many seconds off the right time."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(struct.pack("=q", 0))

    def off_by(self, seconds):
        with open(self.path, "r+b", buffering=0) as file:  # in place, because the broker has the file mapped
            file.write(struct.pack("=q", seconds * 1_000_000))


@pytest.fixture
def clock(tmp_path):
    assert pathlib.Path(SHIFT).exists(), f"there is no {SHIFT}: LIGHTQ_CLOCK_SHIFT names the built library"
    return SteppedClock(tmp_path / "shift")


@pytest.fixture
def make_broker(make_broker, clock):
    """Makes brokers as the fixture of conftest does. The brokers use `clock`; commands use the right time."""
    def make(*flags, **options):
        return make_broker(*flags, environment={"LD_PRELOAD": SHIFT, "CLOCK_SHIFT_FILE": str(clock.path)}, **options)
    return make


@pytest.fixture
def commands(lightq):  # noqa: F811
    del lightq.environment["LD_PRELOAD"]
    return lightq


def produce(commands, clock, *messages):  # noqa: F811
    """Stores each message with the clock off by so many seconds. Afterwards the clock is right again."""
    for text, seconds in messages:
        clock.off_by(seconds)
        commands("produce", "t", stdin=text + b"\n")
    clock.off_by(0)


def times(commands):
    """Returns when each message was stored, in seconds since 1970, by the broker's clock."""
    lines = commands("peek", "t", "--format", "%T\\n").stdout.split()
    return [int(line) / 1_000_000 for line in lines]


def consume(commands, group, begin):
    return commands("consume", "t", "--group", group, "--from", begin, "--no-follow").stdout.split()


@pytest.mark.parametrize("kind", ["file", "queue", "queue_file"])
def test_a_start_at_a_time_leaves_nothing_out_where_the_clock_was_set_back(commands, clock, kind):
    commands("topic", "create", "t", "--type", kind)
    produce(commands, clock, (b"A", 0), (b"B", -HOUR), (b"C", 0))
    first, second, third = times(commands)
    assert second < first - HOUR + 60 and abs(third - first) < 60, "the clock was not stepped"
    assert consume(commands, "h", "60s") == [b"A", b"B", b"C"]
    if kind == "queue":  # messages that every group has processed are gone
        return
    assert consume(commands, "all", "2h") == [b"A", b"B", b"C"]
    # With closed segments, and with segments that must be scanned.
    for stop in (commands.broker.stop, commands.broker.kill):
        stop()
        commands.broker.start()
        commands.environment["LIGHTQ_BROKER"] = commands.broker.control_uri
        assert consume(commands, f"after-{stop.__name__}", "60s") == [b"A", b"B", b"C"]


@pytest.mark.parametrize("kind", ["file", "queue", "queue_file"])
def test_a_start_in_the_future_finds_messages_of_a_clock_that_was_ahead(commands, clock, kind):
    commands("topic", "create", "t", "--type", kind)
    produce(commands, clock, (b"A", 0), (b"B", 2 * HOUR), (b"C", 0))
    first, second, _ = times(commands)
    assert second > first + 2 * HOUR - 60, "the clock was not stepped"
    in_an_hour = datetime.datetime.fromtimestamp(first + HOUR, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert consume(commands, "h", in_an_hour) == [b"B", b"C"]
    if kind != "queue":
        assert consume(commands, "now", "60s") == [b"A", b"B", b"C"]


@pytest.mark.parametrize("days", [1, 3650])
def test_retention_continues_after_the_clock_was_ahead_for_a_while(commands, clock, days):
    commands("topic", "create", "t", "--type", "file", "--retention", "1s")
    produce(commands, clock, (b"ahead", days * DAY))
    produce(commands, clock, *[(b"x" * 4000, 0)] * 5)  # begins another segment: the first one has 16 KiB
    until(lambda: commands.stats("t")["first_offset"] > 0, "what was stored with a clock that was ahead to leave")
