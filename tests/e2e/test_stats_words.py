"""Tests that `stats`, docs/protocol.md and `lightq stats` describe a group's messages in the same words."""
import pathlib
import re

from cli_support import CommandLine
from session_support import consumer_of, fill_numbered, group_of
from support import until

STATES = ("ready", "in_flight", "retrying")
PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "docs/protocol.md"


def documented_members():
    """Returns the members in the table of a group."""
    table = PROTOCOL.read_text().split("| of each group | |\n", 1)[1].split("\n\n", 1)[0]
    return {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}


def shown_values(lightq, topic):
    """Returns the values that the command line shows for the group `default`, by their words."""
    line = next(line for line in lightq("stats", topic).stdout.decode().splitlines() if line.startswith("group default"))
    return dict(part.strip().split(" ", 1) for part in line.removeprefix("group default").split(","))


def test_stats_use_one_vocabulary_for_waiting_messages(broker, control, session):
    lightq = CommandLine(broker)
    control.create("t")
    fill_numbered(session, "t", 0, 10)
    consumer = consumer_of(control, session, "t", credit=(4, 1 << 20))
    taken = consumer.receive(4)
    consumer.reject((taken[0].offset, taken[2].offset), ms=60_000)
    stats = until(lambda: (group := group_of(control, "t"))["retrying"] == 2 and group, lambda: f"the rejection: {group_of(control, 't')}")
    assert [stats[state] for state in STATES] == [6, 2, 2]
    assert stats["pending"] == 10 == sum(stats[state] for state in STATES)
    assert stats["lag"] == stats["ready"] + stats["retrying"]
    assert documented_members() == set(stats), "the document names what there is, and nothing else"
    shown = shown_values(lightq, "t")
    assert set(shown) - {"oldest"} <= set(stats), "words of its own"
    counts = ("pending", "unacknowledged", *STATES)
    assert {name: int(shown[name]) for name in counts} == {name: stats[name] for name in counts}
    assert stats["unacknowledged"] == 2, "the part of in_flight at a session"
