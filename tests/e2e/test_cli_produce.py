"""Tests `lightq produce` over a session: every confirmed message is stored, once and in order, even if the
broker is killed."""
import json
import subprocess

import pytest

from cli_support import lightq, numbers
from support import DEADLINE, until


def test_messages_are_stored_once_and_in_order_though_the_broker_is_killed_again_and_again(lightq):
    count, kills = 60_000, 4  # so many messages that some are left to send when the broker has started again
    lightq("topic", "create", "t", "--type", "file")
    producer = lightq.begin("produce", "t", "-n", str(count), "--size", "100", "--rate", "8k")
    for kill in range(kills):
        until(lambda: lightq.stats("t")["next_offset"] > count * (kill + 1) // (kills + 2), "some more of them")
        assert producer.poll() is None, "it is to be killed while messages are sent"
        lightq.broker.kill()
        lightq.broker.start()
    _, told = producer.communicate(timeout=4 * DEADLINE)
    assert producer.returncode == 0 and b"60,000 messages received by the broker and written to its disk" in told, told
    assert lightq.stats("t")["next_offset"] == count
    assert numbers(lightq("consume", "t", "-n", str(count)).stdout) == list(range(count))


def test_each_line_is_sent_while_its_input_stays_open(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    for sent in range(1, 21):
        producer.stdin.write(b"line\n" * 3)
        producer.stdin.flush()
        until(lambda: lightq.stats("t")["messages_received"] == 3 * sent, "what was written")
    producer.communicate(timeout=DEADLINE)
    assert producer.returncode == 0


def test_messages_in_doubt_are_reported(lightq):
    lightq("topic", "create", "t", "--ring-bytes", "64KiB")
    lightq("consume", "t", "--no-follow")  # from now on messages wait for a puller
    producer = lightq.begin("produce", "t", "-n", "1000", "--size", "1KiB")
    until(lambda: lightq.stats("t")["blocked_by"], "no more room")
    lightq.broker.kill()
    lightq.broker.start()
    _, told = producer.communicate(timeout=DEADLINE)
    assert producer.returncode == 1 and b"may be stored or not" in told, told


def test_the_deletion_of_its_topic_ends_it(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"one\n")
    producer.stdin.flush()
    until(lambda: lightq.stats("t")["messages_received"] == 1, "the line")
    lightq("topic", "delete", "t")
    assert producer.wait(DEADLINE) == 1
    told = producer.stderr.read()
    assert b"topic_not_found" in told or b"topic_deleted" in told or b"does not exist" in told, told


def test_the_summary_of_produce_names_the_confirm_level(lightq):
    lightq("topic", "create", "f", "--type", "file")
    lightq("topic", "create", "q")
    assert b"written to its disk" in lightq("produce", "f", "-n", "3").stderr
    assert b"written to its disk" not in lightq("produce", "f", "-n", "3", "--confirm", "received").stderr
    assert b"written to its disk" not in lightq("produce", "q", "-n", "3").stderr
    assert b"not_supported" in lightq("produce", "q", "-n", "3", "--confirm", "flushed", code=1).stderr
    lightq("produce", "q", "-n", "3", "--confirm", "perhaps", code=2)


@pytest.mark.parametrize("kind", ["queue", "file"])
def test_plain_sends_over_zeromq(lightq, kind):
    lightq("topic", "create", "t", "--type", kind)
    done = lightq.json("produce", "t", "-n", "500", "--plain")
    assert (done["sent"], done["received"]) == (500, 500)
    assert numbers(lightq("consume", "t", "-n", "500").stdout) == list(range(500))


# --- keys, headers, compression --------------------------------------------------------------------------------------
def test_keys_and_headers_are_sent_and_printed(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "--key-separator", ": ", "--header", "kind=json", "--header", "a,b=c=d",
           stdin=b"tea: one\ncoffee: two: three\nnothing\n")
    lightq("produce", "--header", "c=d", "t", "--key", "tea", stdin=b"four\n")
    shown = lightq("consume", "t", "-n", "4", "--mode", "sub", "--from", "first", "--format", r"%o %k|%h|%p\n").stdout
    assert shown == (b"0 tea|kind=json,a\\,b=c\\=d|one\n1 coffee|kind=json,a\\,b=c\\=d|two: three\n"
                     b"2 |kind=json,a\\,b=c\\=d|nothing\n3 tea|c=d|four\n")
    first, *_, last = lightq("consume", "t", "-n", "4", "--json").stdout.splitlines()
    assert json.loads(first) == {"topic": "t", "payload": "one", "key": "tea", "headers": [
        {"name": "kind", "value": "json"}, {"name": "a,b", "value": "c=d"}]}
    assert json.loads(last) == {"topic": "t", "payload": "four", "key": "tea", "headers": [{"name": "c", "value": "d"}]}
    assert lightq("consume", "t", "--plain", "--mode", "pull", "--timeout", "100ms").stdout == b"", "the group has them"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_messages_are_printed_as_they_were_sent(lightq, codec):
    text = b"".join(b"the same words, but for the number %d\n" % number for number in range(20_000))
    for topic in ("plain", "packed"):
        lightq("topic", "create", topic, "--type", "file", "--segment-bytes", "64KiB")
    lightq("produce", "plain", stdin=text)
    lightq("produce", "packed", "--compression", codec, stdin=text)
    assert lightq("consume", "packed", "--no-follow").stdout == text
    assert 2 * lightq.stats("packed")["log_bytes"] < lightq.stats("plain")["log_bytes"]
    [directory] = {one.parent for one in lightq.broker.data_dir.glob("topics/*/*.seg") if is_packed(one)}
    assert lightq("log", "dump", str(directory), "--format", r"%p\n").stdout == text
    assert b"20,000 messages" in lightq("log", "verify", str(directory)).stdout


def is_packed(segment):
    """Returns True if the first batch of the segment is compressed, or its last one."""
    return any(segment.read_bytes()[at + 5] for at in batch_places(segment))


def batch_places(segment):
    content, at = segment.read_bytes(), 4096
    while content[at:at + 4] == b"LQB1":
        yield at
        at += int.from_bytes(content[at + 8:at + 12], "little")


@pytest.mark.parametrize("wrong", [["--key", "k", "--plain"], ["--header", "a=b", "--no-wait"], ["--header", "a"],
                                   ["--header", "=b"], ["--compression", "gzip"], ["--compression", "lz4", "--plain"]])
def test_wrong_usage_of_keys_headers_and_compression(lightq, wrong):
    lightq("topic", "create", "t")
    lightq("produce", "t", *wrong, stdin=b"x\n", code=2)
    assert lightq.stats("t")["messages_received"] == 0


def test_a_key_that_is_too_long_is_reported(lightq):
    lightq("topic", "create", "t")
    failed = lightq("produce", "t", "--key", "k" * 1025, stdin=b"x\n", code=2)
    assert b"a key of 1025 bytes is longer than 1024" in failed.stderr
    lines = b"k" * 1024 + b":one\n" + b"k" * 1025 + b":two\nthree\n"
    told = lightq("produce", "t", "--key-separator", ":", stdin=lines, code=1).stderr
    assert b"1 message was not sent: " in told and b"a key of 1025 bytes is longer than 1024" in told, told
    assert lightq("consume", "t", "--no-follow").stdout == b"one\nthree\n"
