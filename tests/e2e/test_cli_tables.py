"""Tests of lists on a terminal, and of help at the width of a terminal."""
import fcntl
import os
import struct
import subprocess
import termios

import pytest

from cli_support import lightq, on_terminal
from support import BINARY, DEADLINE, until


def columns_of_heading(line):
    return {word: line.index(word) for word in line.split()}


def test_topics_are_a_table_on_a_terminal_and_lines_with_tabs_in_a_pipe(lightq):
    long_name = "orders." + "x" * 60
    lightq("topic", "create", long_name, "--open")
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=b"one\ntwo\nthree\n")
    lightq("consume", "t", "--group", "g", "-n", "1")
    until(lambda: lightq.stats("t")["groups"][0]["consumers"] == 0, "the consumer's end")
    lightq("topic", "pause", "t")
    heading, first, second = on_terminal(lightq, "topic", "list", stream="stdout").decode().splitlines()
    assert heading.split() == ["topic", "type", "messages", "lag", "bytes", "consumers", "state"]
    begins = columns_of_heading(heading)
    assert first[begins["type"]:].split()[:3] == ["queue", "0", "0"] and first.endswith("open")
    assert second[begins["type"]:].split()[:3] == ["file", "3", "2"] and second.endswith("paused")
    ends = [begins["messages"] + len("messages"), begins["lag"] + len("lag")]
    assert all(line[end - 1].isdigit() and line[end] == " " for line in (first, second) for end in ends)
    assert lightq("topic", "list").stdout.decode() == f"{long_name}\tqueue\topen\nt\tfile\n"


def test_users_and_schedules_are_tables_on_a_terminal(lightq):
    lightq("topic", "create", "t")
    lightq("user", "add", "ann", "--produce", "t", "--consume", "u", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    lightq("user", "add", "somebody-with-a-long-name", "--admin", variables={"LIGHTQ_NEW_PASSWORD": "of-all-12"})
    heading, ann, admin = on_terminal(lightq, "user", "list", stream="stdout").decode().splitlines()
    assert heading.split() == ["user", "role", "uid", "rights"]
    assert ann[heading.index("rights"):] == "t=produce u=consume" and admin[heading.index("role"):].startswith("admin")
    lightq("schedule", "set", "morning", "t", "go", "--cron", "0 9 * * *")
    heading, one = on_terminal(lightq, "schedule", "list", stream="stdout").decode().splitlines()
    assert heading.split() == ["topic", "name", "state", "next", "zone", "rule"] and one.endswith("0 9 * * *")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_help_has_the_width_of_the_terminal(columns):
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "COLUMNS": "7"}  # the terminal itself knows better
    with subprocess.Popen([BINARY, "topic", "create", "--help"], stdout=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 65536):
                shown += piece
        except OSError:  # the terminal has been closed
            pass
        os.close(master)
        assert process.wait(DEADLINE) == 0
    widths = [len(line) for line in shown.decode().splitlines()]
    assert columns - 12 < max(widths) <= columns
