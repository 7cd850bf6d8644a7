"""Tests `lightq topic set`, `group list|info|reset`, `export`, `import` and `definitions` with a real broker."""
import json

import pytest

from batch_bytes import Message
from cli_support import CommandLine
from session_support import consumer_of, fill, group_of
from support import numbered, until


@pytest.fixture
def command(broker):
    return CommandLine(broker)


def told(done):
    assert done.stdout == b""
    return done.stderr.decode()


def test_topic_set_changes_what_may_change_and_names_the_rest(command, control, broker, session):
    control.create("t", "file")
    control.create("memory")
    fill(session, "t", numbered(0, 5))
    command("topic", "set", "t", "--retention", "1", "--capacity-bytes", "1GiB", "--overflow", "reject", "--retention-over-pending")
    until(lambda: control.stats("t")["first_offset"] == 5, "the retention")
    broker.restart()
    settings = control.stats("t")["settings"]
    assert (settings["retention_ms"], settings["capacity_bytes"], settings["overflow"], settings["retention_over_pending"]) == \
        (1, 1 << 30, "reject", True)
    command("topic", "set", "t", "--retention", "0", "--no-retention-over-pending", "--quiet")
    settings = control.stats("t")["settings"]
    assert (settings["retention_ms"], settings["overflow"], settings["retention_over_pending"]) == (0, "reject", False)
    assert "ring_bytes, which cannot change" in told(command("topic", "set", "memory", "--capacity-bytes", "1MiB", code=1))
    assert "give at least one setting" in told(command("topic", "set", "t", code=2))
    assert "--ring-bytes" in told(command("topic", "set", "t", "--ring-bytes", "1MiB", code=2))


def test_a_producer_that_waits_is_refused_when_the_overflow_policy_changes(command, control):
    control.create("t", overflow="block", ring_bytes=65536)
    control.join("t", "pull")  # its group holds the log
    waiting = command.begin("produce", "t", "-n", "200", "--size", "1KiB", "--confirm", "received")
    until(lambda: control.stats("t")["blocked_by"], "the full log")
    command("topic", "set", "t", "--overflow", "drop_oldest")
    assert waiting.wait(20) == 0
    assert control.stats("t")["next_offset"] == 200


def test_groups_are_listed_and_moved(command, control, session):
    control.create("t", "file")
    assert told(command("group", "list", "t")) == "lightq: topic 't' has no groups\n"
    fill(session, "t", numbered(0, 10))
    command("consume", "t", "--group", "billing", "--no-follow", "--quiet")
    until(lambda: group_of(control, "t", "billing")["committed_offset"] == 10, "the end")
    assert command("group", "list", "t").stdout == b"billing\t10\t0\t0\t0\t0\t0\t\n"
    listed, = command.json("group", "list", "t")["groups"]
    assert listed == group_of(control, "t", "billing")
    assert command.json("group", "info", "t", "billing")["group"] == {**listed, "members": []}
    info = command("group", "info", "t", "billing").stdout.decode()
    assert info.startswith("group billing of topic t\n") and "max attempts" in info and "credit" not in info
    consumer = consumer_of(control, session, "t", "billing", credit=(7, 1000))
    member, = command.json("group", "info", "t", "billing")["group"]["members"]
    assert (member["number"], member["user_id"], member["in_flight"], member["credit_messages"]) == (1, "", 0, 7)
    info = command("group", "info", "t", "billing").stdout.decode()
    row = next(line.split() for line in info.splitlines() if line.split()[:1] == ["1"])
    assert row[1] == "-" and {"0", "7"} <= set(row) and row[-1] == "ago", info
    consumer.close()
    assert "has no group 'none'" in told(command("group", "info", "t", "none", code=1))

    expected = {"cmd": "seek_group", "status": "ok", "topic": "t", "group": "billing", "preview": True, "former_offset": 10,
                "offset": 4, "former_pending": 0, "pending": 6}
    assert command.json("group", "reset", "t", "billing", "--to", "4", "--dry-run") == expected
    assert group_of(control, "t", "billing")["committed_offset"] == 10, "a dry run moves nothing"
    said = told(command("group", "reset", "t", "billing", "--to", "4", "--yes"))
    assert said == "lightq: topic 't' group 'billing' has moved from offset 10 to 4: 6 messages back, which are delivered again; " \
        "6 messages are pending then, 0 before\n"
    got = command("consume", "t", "--group", "billing", "--no-follow", "--quiet").stdout.splitlines()
    assert got == numbered(4, 6)
    for to, offset in (("earliest", 0), ("latest", 10), ("1h", 0), ("2100-01-01", 10), ("99", 10)):
        assert command.json("group", "reset", "t", "billing", "--to", to, "--yes")["offset"] == offset
    assert "is not one of earliest|latest|OFFSET|TIME" in told(command("group", "reset", "t", "billing", "--to", "last", code=2))
    assert "topic t has no group none" in told(command("group", "reset", "t", "none", "--to", "0", code=1))


def test_what_is_exported_can_be_imported(command, control, session, tmp_path):
    control.create("t", "file")
    control.create("u")
    sent = [Message(b"plain"), Message(b"\xff\x00", key=b"k\xfe"), Message("grüße".encode(), key=b"k", headers=((b"a", b"b"), (b"a", b"")))]
    fill(session, "t", sent)
    exported = command("export", "t")
    lines = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [0, 1, 2] and "payload_base64" in lines[1]
    assert b"3 messages" in exported.stderr and b"--from 3" in exported.stderr
    assert command("export", "t", "--from", "1", "-n", "1").stdout == exported.stdout.splitlines(keepends=True)[1]
    assert command("export", "t", "--until", "1").stdout == exported.stdout.splitlines(keepends=True)[0]
    file = tmp_path / "t.ndjson"
    file.write_bytes(exported.stdout)
    checked = command.json("import", "u", str(file), "--dry-run")
    assert (checked["messages"], control.stats("u")["next_offset"]) == (3, 0)
    assert command.json("import", "u", str(file))["received"] == 3
    again = [json.loads(line) for line in command("export", "u").stdout.splitlines()]
    unlike = ("time", "time_us")
    assert [{name: line[name] for name in line if name not in unlike} for line in again] == \
        [{name: line[name] for name in line if name not in unlike} for line in lines]


def test_an_import_names_the_line_that_is_wrong_and_how_to_continue(command, control):
    control.create("t", "file")
    good = b'{"payload":"a"}\n{"payload":"b"}\n'
    for bad, says in ((b'{"payload":1}', "line 3: payload: must be a text"), (b"{", "line 3: the message is not valid JSON"),
                      (b"", "line 3: "), (b'{"payload":"a","headers":[{"name":"lightq-id","value":""}]}', "line 3: the header lightq-id"),
                      (b'{"payload_base64":"!"}', "line 3: payload_base64: must be base64")):
        before = control.stats("t")["next_offset"]
        said = told(command("import", "t", "--quiet", stdin=good + bad + b"\n" + good, code=1))
        assert says in said, said
        assert control.stats("t")["next_offset"] == before + 2, "the lines before it are stored, and none behind it"
    said = told(command("import", "t", stdin=good + b"{\n" + good, code=1))
    assert said.endswith("add  --skip-lines 2\n")
    before = control.stats("t")["next_offset"]
    command("import", "t", "--skip-lines", "3", stdin=good + b"{\n" + good)
    assert control.stats("t")["next_offset"] == before + 2
    assert "payload: missing" in told(command("import", "none", "--dry-run", stdin=b"{}\n", code=1)), "it needs no broker"


def test_definitions_are_carried_to_another_broker(command, make_broker, control, tmp_path):
    control.create("orders", "file", retention_ms=60_000)
    control.create("dead")
    control.join("orders", "pull")
    command("group", "set", "orders", "default", "--max-attempts", "5", "--dead-letter-topic", "dead")
    command("group", "set", "orders", "nobody-joined", "--max-attempts", "3")
    command("user", "add", "ann", "--consume", "orders", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    file = tmp_path / "definitions.json"
    file.write_bytes(command("definitions", "export").stdout)
    assert b"of-ann-12" not in file.read_bytes() and b"argon2" not in file.read_bytes()
    assert command("definitions", "import", str(file)).stdout == b"", "it has all of them"

    other = CommandLine(make_broker())
    planned = other("definitions", "import", str(file), "--dry-run", code=1).stdout.decode().splitlines()
    assert [line.split("\t")[0] for line in planned] == ["create_topic", "create_topic", "set_group", "set_group", "conflict"]
    assert planned[-1].endswith("lightq user add --consume 'orders' ann")
    assert other.topics() == [], "a dry run changes nothing"
    assert other("definitions", "import", str(file), code=1).stdout.decode().splitlines() == planned
    assert other.topics() == ["dead", "orders"]
    other("topic", "set", "orders", "--retention", "0")
    other("user", "add", "ann", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    steps = other.json("definitions", "import", str(file))["steps"]
    assert [step["step"] for step in steps] == ["set_topic", "grant"], "it has the settings of groups that nobody has joined"
    assert other.stats("orders")["settings"]["retention_ms"] == 60_000
    assert "format: missing" in told(other("definitions", "import", "-", stdin=b"{}", code=1))
