"""Tests `lightq backup` beside a broker at work, and `lightq restore` of the copy into another data directory."""
import json
import subprocess

import pytest

from cli_support import CommandLine, finish, lightq  # noqa: F401 (a fixture)
from dead_letter_support import member, set_group
from session_client import Session, join
from session_support import fill
from support import BINARY, DEADLINE, until

BEFORE, ENDLESS = 3000, 10**9  # messages before the backup; more than any test sends
DYING = 400


@pytest.fixture
def restored(make_broker):
    """A function that restores a backup into the directory of another broker, starts that, and returns its command line."""
    def restore(backup):
        broker = make_broker(admin=False, start=False)
        broker.control_uri = "tcp://127.0.0.1:0"
        run("restore", backup, "--data-dir", broker.data_dir)
        return CommandLine(broker.start())
    return restore


def run(*arguments, code=0):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, timeout=DEADLINE)
    assert done.returncode == code, (arguments, done)
    return done


def group_of(command_line, topic, name):
    return next((group for group in command_line.stats(topic)["groups"] if group["group"] == name), {"committed_offset": 0})


def saved_place(command_line, topic, name):
    lines = command_line("log", "dump", topic, "--cursors", "--json").stdout.splitlines()
    return next((line["committed"] for line in map(json.loads, lines) if line.get("name") == f"group:{name}"), 0)


def exported(command_line, topic, until_offset):
    lines = command_line("export", topic, "--until", str(until_offset)).stdout.splitlines()
    return {line["offset"]: line["payload"] for line in map(json.loads, lines)}


def test_a_backup_under_load_has_all_that_was_confirmed_before(lightq, restored):  # noqa: F811
    lightq("topic", "create", "orders", "--type", "file", "--segment-bytes", "256KiB")
    lightq("topic", "create", "cached", "--type", "queue_file")
    lightq("topic", "create", "memory")
    lightq("user", "add", "ann", "--consume", "orders", variables={"LIGHTQ_NEW_PASSWORD": "of-ann-12"})
    lightq("schedule", "set", "morning", "orders", "go", "--cron", "0 9 1 1 *")
    for topic in ("orders", "cached", "memory"):
        lightq("produce", topic, "-n", str(BEFORE), "--confirm", "received")
    lightq("produce", "cached", "-n", "5", "--delay", "1h")
    producer = lightq.begin("produce", "orders", "-n", str(ENDLESS), "--rate", "5k")
    consumer = lightq.begin("consume", "orders", "--group", "billing", "-n", str(ENDLESS))
    drain = subprocess.Popen(["wc", "-l"], stdin=consumer.stdout, stdout=subprocess.PIPE)
    until(lambda: saved_place(lightq, "orders", "billing") > BEFORE, "the group's saved state to be of its work")

    before = {topic: lightq.stats(topic)["next_offset"] for topic in ("orders", "cached")}
    backup = lightq.broker.directory / "backup"
    done = lightq.json("backup", str(backup), "--data-dir", str(lightq.broker.data_dir))
    committed_after = group_of(lightq, "orders", "billing")["committed_offset"]
    assert producer.poll() is None, "the producer ended before the backup"
    assert done["topics"] == 2 and done["linked"] > 0 and done["damages"] == 0
    assert done["messages"] >= sum(before.values())
    finish(producer)
    consumer.terminate()
    drain.communicate(timeout=DEADLINE)

    other = restored(backup)
    other.broker.logged("the data directory was restored")
    assert set(other.topics()) == {"orders", "cached", "memory"}
    assert other.stats("memory")["next_offset"] == 0
    assert {user["user_id"] for user in other.json("user", "list")["users"]} == {"ann"}
    assert [schedule["name"] for schedule in other.json("schedule", "list")["schedules"]] == ["morning"]
    assert len(other.json("delayed", "list", "cached")["messages"]) == 5
    for topic, least in before.items():
        end = other.stats(topic)["next_offset"]
        assert end >= least
        assert exported(other, topic, end) == exported(lightq, topic, end) and len(exported(other, topic, end)) == end
    # The group continues at a place of the time before the end of the backup, and receives everything from there on.
    place = group_of(other, "orders", "billing")["committed_offset"]
    assert 0 < place <= committed_after and place <= other.stats("orders")["next_offset"]
    lines = other("consume", "orders", "--group", "billing", "--no-follow", "--format", "%o\\n").stdout.split()
    assert sorted(map(int, lines)) == list(range(place, other.stats("orders")["next_offset"]))
    other.close()


def test_each_dead_message_is_in_one_topic_after_a_restore(make_broker, restored):
    """Messages die and become letters while backups run. Each restored broker has every message."""
    lightq = CommandLine(make_broker())
    control = lightq.broker.control()
    sessions = []

    def session(where, **hello):
        sessions.append(Session(where, **hello))
        return sessions[-1]

    control.create("work", "file")
    control.create("dead", "file")
    set_group(control, "work", dead_letter_topic="dead")
    fill(lambda topic: session(join(control, topic)), "work", [b"%d" % number for number in range(DYING)])
    consumer = member(control, session, "work")
    consumer.receive(DYING)
    consumer.start((0, DYING))
    backups = []
    for first in range(0, DYING, DYING // 4):
        consumer.reject_dead((first, first + DYING // 4), reason="of the test")
        until(lambda: control.stats("dead")["next_offset"] > first, "a letter")
        backups.append(lightq.broker.directory / f"backup{first}")
        run("backup", backups[-1], "--data-dir", lightq.broker.data_dir)
    for each in sessions:
        each.close()
    other = restored(backups[1])
    waiting = other("consume", "work", "--no-follow").stdout.decode().split()
    until(lambda: group_of(other, "work", "default")["dead_waiting"] == 0, "the letters that were on their way")
    letters = [json.loads(line)["payload"] for line in other("export", "dead").stdout.splitlines()]
    assert sorted(map(int, letters + waiting)) == list(range(DYING))
    other.close()


def damaged(backup, name):
    path = next(backup.glob(name))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return path


def test_a_restore_refuses_what_is_damaged_and_overwrites_nothing(lightq, tmp_path):  # noqa: F811
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "10")
    backup, place = tmp_path / "backup", tmp_path / "data"
    lightq("backup", str(backup))
    assert b"already" in lightq("backup", str(backup), code=2).stderr
    assert json.loads(run("restore", backup, "--dry-run", "--json").stdout)["preview"] is True
    for wrong, why in ((lightq.broker.data_dir, b"exists already"), (backup, b"exists already")):
        assert why in run("restore", backup, "--data-dir", wrong, code=2).stderr
    assert b"is no backup" in run("restore", lightq.broker.data_dir, "--data-dir", place, code=2).stderr

    path = damaged(backup, "topics/*/*.seg")
    refused = run("restore", backup, "--data-dir", place, code=1)
    assert str(path).encode() in refused.stderr and b"checksum" in refused.stderr
    assert b"checksum" in run("restore", backup, "--dry-run", code=1).stderr
    damaged(backup, "topics/*/*.seg")  # sound again
    path.rename(tmp_path / "segment")
    assert str(path).encode() in run("restore", backup, "--data-dir", place, code=1).stderr
    (tmp_path / "segment").rename(path)
    manifest = json.loads((backup / "backup.json").read_text())
    manifest["files"][0]["path"] = "../outside"
    (backup / "backup.json").write_text(json.dumps(manifest))
    assert b"path" in run("restore", backup, "--data-dir", place, code=2).stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["backup"], "something was left"


def test_a_stopped_broker_is_backed_up_as_well(lightq, restored):  # noqa: F811
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "10")
    lightq.broker.stop()
    backup = lightq.broker.directory / "backup"
    assert lightq("backup", str(backup), "--quiet").stderr == b""
    other = restored(backup)
    assert other("consume", "t", "--no-follow").stdout.count(b"\n") == 10
    other.close()
    lightq.broker.start()
