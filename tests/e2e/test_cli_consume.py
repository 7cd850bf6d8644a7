"""Tests `lightq consume` over a session: groups and cursors, where they begin, and output that is only partly
read."""
import datetime
import os
import select
import signal
import subprocess

import pytest

from cli_support import finish, lightq, numbers
from support import DEADLINE, secret_file, until

pytestmark = pytest.mark.one_broker


def lines(*texts):
    return b"".join(text.encode() + b"\n" for text in texts)


def group(lightq, name="default", topic="t"):
    return next(one for one in lightq.stats(topic)["groups"] if one["group"] == name)


# --- a count ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["queue", "file"])
def test_a_count_leaves_the_other_messages_to_the_next_consumer_exactly_once(lightq, kind):
    lightq("topic", "create", "t", "--type", kind)
    lightq("produce", "t", "-n", "3000")
    parts = [lightq("consume", "t", *bound).stdout for bound in (["-n", "1"], ["-n", "700"], ["-n", "700"],
                                                                 ["--no-follow"])]
    assert [len(numbers(part)) for part in parts] == [1, 700, 700, 1599]
    assert numbers(b"".join(parts)) == list(range(3000))
    assert group(lightq)["redelivered"] == 0, "no more were handed out than were asked for"


def test_a_great_count_leaves_the_other_messages_too(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "30000")
    parts = [lightq("consume", "t", *bound).stdout for bound in (["-n", "15000"], ["--no-follow"])]
    assert len(numbers(parts[0])) == 15000 and numbers(b"".join(parts)) == list(range(30000))


def test_a_count_waits_for_that_many_messages(lightq):
    lightq("topic", "create", "t")
    consumer = lightq.begin("consume", "t", "-n", "4")
    for number in range(6):
        lightq("produce", "t", stdin=b"%d\n" % number)
    assert consumer.communicate(timeout=DEADLINE)[0] == lines("0", "1", "2", "3")
    assert consumer.returncode == 0
    assert lightq("consume", "t", "--no-follow").stdout == lines("4", "5")


# --- groups ----------------------------------------------------------------------------------------------------------
def test_consumers_of_a_group_share_its_messages(lightq):
    lightq("topic", "create", "t")
    members = [lightq.begin("consume", "t", "--group", "billing") for _ in range(2)]
    until(lambda: lightq.stats("t")["subscribers_count"] == 2, "both")
    lightq("produce", "t", "-n", "3000", "--size", "10", "--rate", "20k")
    until(lambda: group(lightq, "billing")["committed_offset"] == 3000, "the messages")
    parts = [numbers(finish(member)[0]) for member in members]
    assert all(parts) and all(part == sorted(part) for part in parts)
    assert sorted(parts[0] + parts[1]) == list(range(3000))


def test_each_group_gets_every_message(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "5000")
    for name in ([], ["--group", "a"], ["--group", "b"]):
        assert numbers(lightq("consume", "t", "--no-follow", *name).stdout) == list(range(5000))
        assert lightq("consume", "t", "--no-follow", *name).stdout == b""
    assert {one["group"]: one["committed_offset"] for one in lightq.stats("t")["groups"]} == {
        "default": 5000, "a": 5000, "b": 5000}


def test_the_end_does_not_wait_for_messages_of_other_members(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "5000")
    slow = lightq.begin("consume", "t", "-n", "5000")  # requests them at once; its output is not read
    until(lambda: lightq.stats("t")["groups"] and group(lightq)["lag"] == 0, "it has all of them")
    assert group(lightq)["unacknowledged"] > 0
    assert lightq("consume", "t", "--no-follow").stdout == b""
    assert slow.poll() is None


# --- cursors of one's own --------------------------------------------------------------------------------------------
def test_a_named_cursor_is_kept(lightq):
    lightq("topic", "create", "t", "--type", "file")
    mine = ["sub", "t", "--group", "mine", "--no-follow"]
    lightq("produce", "t", stdin=lines("before"))
    assert lightq(*mine).stdout == b""  # a new cursor begins at the end
    lightq("produce", "t", stdin=lines("one", "two", "three"))
    assert lightq(*mine, "-n", "1").stdout == lines("one")
    lightq.broker.restart()
    assert lightq(*mine).stdout == lines("two", "three")
    lightq("produce", "t", stdin=lines("four"))
    assert lightq("consume", "t", "--mode", "sub", "--group", "mine", "--no-follow").stdout == lines("four")
    assert lightq("sub", "t", "--no-follow").stdout == b""  # without a name each command begins at the end
    assert b"not_supported" in lightq("consume", "t", "--group", "mine", "--no-follow", code=1).stderr


def test_messages_dropped_before_delivery_are_reported(lightq):
    lightq("topic", "create", "t", "--ring-bytes", "64KiB", "--overflow", "drop_oldest")
    mine = ["sub", "t", "--group", "mine", "--no-follow"]
    lightq(*mine)
    lightq("produce", "t", "-n", "1000", "--size", "1KiB")
    kept = lightq(*mine)
    got = numbers(kept.stdout)
    assert 0 < len(got) < 1000 and got == list(range(1000 - len(got), 1000))
    assert f"{1000 - len(got)} messages were dropped or damaged".encode() in kept.stderr


# --- from ------------------------------------------------------------------------------------------------------------
def test_a_group_or_cursor_begins_at_the_given_start(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=lines("0", "1", "2"))
    until(lambda: lightq.stats("t")["next_offset"] == 3, "them")
    between = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lightq("produce", "t", stdin=lines("3", "4"))
    every, none = ("0", "1", "2", "3", "4"), ()
    begins = {"first": every, "next": none, "last": ("4",), "2": ("2", "3", "4"), "99": none, "0": every,
              between: ("3", "4"), "2000-01-01T00:00:00Z": every, "2999-12-31T23:59:59Z": none, "1h": every, "0s": none}
    for number, (place, expected) in enumerate(begins.items()):
        for mode in ("consume", "sub"):
            told = lightq(mode, "t", "--from", place, "--group", f"{mode}-{number}", "--no-follow")
            assert told.stdout == lines(*expected), (mode, place)
        assert lightq("sub", "t", "--from", place, "--no-follow").stdout == lines(*expected), place
    assert lightq("consume", "t", "--no-follow", "-n", "2", code=0).stdout == lines("0", "1")
    # The group exists already, so --from has no effect.
    assert lightq("consume", "t", "--no-follow", "--from", "last").stdout == lines("2", "3", "4")
    assert lightq("sub", "t", "--no-follow").stdout == b""


@pytest.mark.parametrize("wrong", [["--from", "yesterday"], ["--from", "-1"], ["--from", "1.5"], ["--from", ""],
                                   ["--from", "2026-02-30T00:00:00Z"], ["--group", "no name"], ["--group", ".x"],
                                   ["--plain", "--group", "g"], ["--plain", "--from", "first"]])
@pytest.mark.parametrize("command", ["consume", "sub"])
def test_wrong_usage(lightq, command, wrong):
    lightq("topic", "create", "t")
    told = lightq(command, "t", "--no-follow", *wrong, code=2)
    assert told.stdout == b"" and told.stderr


# --- other ends, other ways ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["queue", "file", "queue_file", "direct"])
@pytest.mark.parametrize("command", ["consume", "sub"])
def test_no_follow_ends_on_every_kind_of_topic(lightq, kind, command):
    lightq("topic", "create", "t", "--type", kind)
    follower = lightq.begin(command, "t", "-n", "3")
    until(lambda: lightq.stats("t")["subscribers_count"] == 1, "the follower")
    lightq("produce", "t", stdin=lines("a", "b", "c"))
    assert follower.communicate(timeout=DEADLINE)[0] == lines("a", "b", "c")
    assert lightq(command, "t", "--no-follow").stdout == b""
    many = lightq.begin(command, "t", "--no-follow", "--group", "other")
    many.communicate(timeout=DEADLINE)
    assert many.returncode == 0


def test_the_deletion_of_its_topic_ends_it(lightq):
    lightq("topic", "create", "t")
    consumer = lightq.begin("consume", "t")
    until(lambda: lightq.stats("t")["subscribers_count"] == 1, "the consumer")
    lightq("topic", "delete", "t")
    assert consumer.wait(DEADLINE) == 1
    assert b"'t'" in consumer.stderr.read()


def test_an_unknown_topic_or_password_is_an_error_at_once(lightq, tmp_path):
    secret_file(tmp_path / "wrong", "wrong")
    lightq("topic", "create", "t")
    assert b"lightq topic create absent" in lightq("consume", "absent", code=1).stderr
    told = lightq("consume", "t", "--user", "u", "--password-file", str(tmp_path / "wrong"), code=1).stderr
    assert b"user 'u' is refused" in told


def test_a_missing_broker_is_reported_and_awaited(lightq):
    lightq("topic", "create", "t", "--type", "file")
    consumer = lightq.begin("sub", "t", "-n", "2")  # it counts its messages itself
    until(lambda: lightq.stats("t")["subscribers_count"] == 1, "the consumer")
    lightq("produce", "t", stdin=lines("first"))
    assert consumer.stdout.readline() == lines("first")  # shows that the consumer is open
    lightq.broker.kill()
    assert b"waiting: the broker cannot be reached (" in consumer.stderr.readline()
    lightq.broker.start()
    lightq("produce", "t", stdin=lines("x"))
    assert consumer.communicate(timeout=DEADLINE)[0] == lines("x") and consumer.returncode == 0


def test_plain_receives_over_zeromq(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "500")
    assert numbers(lightq("consume", "t", "--plain", "-n", "500").stdout) == list(range(500))
    assert lightq("consume", "t", "--plain", "--no-follow").stdout == b""
    subscriber = lightq.begin("sub", "t", "--plain", "-n", "2")
    until(lambda: [one for one in lightq.stats("t")["subscribers"] if one["connected"]], "a plain subscriber")
    lightq("produce", "t", stdin=lines("a", "b"))
    assert subscriber.communicate(timeout=DEADLINE)[0] == lines("a", "b")
    # Plain pullers belong to the default group.
    assert lightq("consume", "t", "--no-follow").stdout == lines("a", "b")


def test_messages_that_cannot_be_written_are_not_acknowledged(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "2000")
    with open("/dev/full", "wb") as full:
        told = lightq("consume", "t", code=1, stdout=full, stderr=subprocess.PIPE).stderr
    assert b"cannot write" in told
    assert numbers(lightq("consume", "t", "--no-follow").stdout) == list(range(2000))


def test_a_signal_beside_a_slow_reader_leaves_whole_lines_and_later_messages_to_the_next_consumer(lightq):
    sent = [b"%05d" % number + b"x" * 995 for number in range(500)]
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=b"\n".join(sent) + b"\n")
    consuming = lightq.begin("consume", "t", "--group", "g")

    def is_full():
        # The number of bytes says little: a page of the pipe stays partly empty if the next line does not fit.
        writing = os.open(f"/proc/self/fd/{consuming.stdout.fileno()}", os.O_WRONLY)
        try:
            return not select.select([], [writing], [], 0)[1]
        finally:
            os.close(writing)

    until(is_full, "a full pipe")
    consuming.send_signal(signal.SIGTERM)
    assert consuming.wait(DEADLINE) == 0
    printed = consuming.stdout.read()
    told = consuming.stderr.read()
    assert printed.endswith(b"\n") and printed.splitlines() == sent[:printed.count(b"\n")]
    assert told.startswith(b"lightq: %d messages" % printed.count(b"\n")), told
    rest = lightq("consume", "t", "--group", "g", "--no-follow").stdout
    assert rest.splitlines() == sent[printed.count(b"\n"):]
