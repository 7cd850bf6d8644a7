"""Tests `lightq backup` beside a broker at work, and `lightq restore` of the copy into another data directory."""
import io
import json
import subprocess
import tarfile

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


@pytest.fixture
def archive(lightq, tmp_path):  # noqa: F811
    """A backup in one file."""
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "10")
    place = tmp_path / "monday.tar"
    done = lightq.json("backup", str(place))
    assert done["file"] == str(place) and done["topics"] == 1 and done["messages"] == 10
    assert place.stat().st_mode & 0o777 == 0o600
    return place


def test_a_backup_in_one_file_is_restored_directly_or_unpacked(archive, restored, tmp_path):
    other = restored(archive)
    assert other("consume", "t", "--no-follow").stdout.count(b"\n") == 10
    other.close()
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True, timeout=DEADLINE)
    run("restore", unpacked, "--dry-run")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["monday.tar", "unpacked"], "something was left"


def test_of_two_backups_with_one_name_one_fails(archive, lightq, tmp_path):  # noqa: F811
    both = [lightq.begin("backup", str(tmp_path / "both.tar")) for _ in range(2)]
    said = [each.communicate(timeout=DEADLINE) for each in both]
    assert sorted(each.returncode for each in both) == [0, 1], said
    assert b"exist" in b"".join(errors for _, errors in said)
    run("restore", tmp_path / "both.tar", "--dry-run")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["both.tar", "monday.tar"], "something was left"


def entries_of(archive):
    with tarfile.open(archive) as opened:
        return [(entry, opened.extractfile(entry).read()) for entry in opened]


def packed(place, entries):
    """Writes another tar file of these entries."""
    with tarfile.open(place, "w", format=tarfile.USTAR_FORMAT) as to:
        for entry, content in entries:
            entry.size = len(content) if entry.isreg() else 0
            to.addfile(entry, io.BytesIO(content))
    size = sum(512 + (entry.size + 511) // 512 * 512 for entry, _ in entries) + 1024
    place.write_bytes(place.read_bytes()[:size])  # without tar's padding to records


def test_a_cut_or_changed_file_is_refused_and_nothing_is_left(archive, tmp_path):
    bad, place = tmp_path / "bad.tar", tmp_path / "data"
    whole = archive.read_bytes()
    entries = entries_of(archive)

    def refused(content, why, code=1):
        if content is not None:
            bad.write_bytes(content)
        for flags in (["--dry-run"], ["--data-dir", place]):
            done = run("restore", bad, *flags, code=code)
            assert why in done.stderr, done.stderr
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bad.tar", "monday.tar"], "something was left"

    packed(bad, entries)
    run("restore", bad, "--dry-run")
    for length in (len(whole) - 512, len(whole) - 1024, len(whole) // 2, 700, 512):
        refused(whole[:length], b"was cut: it ends after")
    refused(b"", b"it is no tar file", 2)
    refused(b"no tar file, but long enough for a header" * 20, b"it is no tar file", 2)
    refused(whole + b"\0" * 512, b"bytes behind its end")
    flipped = bytearray(whole)
    flipped[-1024 - 512] ^= 1
    refused(flipped, b"checksum")

    def with_entry(at, name=None, kind=None):
        changed = entries_of(archive)
        entry, content = changed[at]
        if name:
            entry.name = name
        if kind:
            entry.type, entry.linkname = kind, "/etc/passwd"
        packed(bad, changed)

    for name in ("/etc/passwd", "../outside", "topics/../../outside", "another"):
        with_entry(1, name)
        refused(None, b"where " + entries[1][0].name.encode())
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
        with_entry(1, kind=kind)
        refused(None, b"no plain file")
    packed(bad, entries_of(archive)[1:])
    refused(None, b"does not begin with backup.json", 2)
    packed(bad, entries_of(archive)[:-1])
    refused(None, b"ends before all files")
    packed(bad, entries_of(archive) + entries_of(archive)[-1:])
    refused(None, b"has more than its backup.json lists")
    changed = entries_of(archive)
    document = json.loads(changed[0][1])
    document["files"][0]["path"] = "../outside"
    changed[0] = (changed[0][0], json.dumps(document).encode())
    packed(bad, changed)
    refused(None, b"path", 2)


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
