"""Runs the guide's page about delayed messages as it is printed, and checks that its C++ is that of an example."""
import re

import pytest

from guide_support import ROOT, blocks, page, run, transcript

HEADING = "Deliver later"


def test_the_page_about_delayed_messages_runs_as_it_is_printed(broker, control):
    control.create("reminders", "file")
    commands = [each for block in blocks(HEADING, "console") for each in transcript(block)]
    assert len(commands) > 5
    for command, printed in commands:
        shown = run(broker, command)
        if command.startswith("lightq consume"):
            shown = [line for line in shown if not line.startswith("lightq: ")]  # its summary has a duration
        assert shown == printed, command


@pytest.mark.parametrize("block", blocks(HEADING, "cpp"))
def test_the_cpp_of_the_page_is_that_of_an_example(block):
    assert block.rstrip() in (ROOT / "examples/delayed_messages.cpp").read_text(encoding="utf-8")


def test_the_page_names_the_longest_delay():
    assert re.search(r"ten years ahead", page(HEADING))
