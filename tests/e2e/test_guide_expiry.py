"""Runs the guide's page about messages that expire as it is printed."""
from cli_support import CommandLine
from guide_support import blocks, run, transcript


def test_the_page_about_expiry_runs_as_it_is_printed(broker):
    CommandLine(broker)("topic", "create", "unused")
    ran = 0
    for block in blocks("Drop what is older than a minute", "console"):
        for command, printed in transcript(block):
            assert run(broker, command) == printed, command
            ran += 1
    assert ran == 4
