"""Tests `lightq log` as a person with a broken disk uses it."""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from log_support import PAGE, LogFiles, change, log_files, sealed_end  # noqa: F401 (a fixture)
from support import BINARY, DEADLINE

WRITTEN = {number: f"{number}|{'.' * 300}" for number in range(1500)}


def test_a_sound_log_verifies_clean_and_is_dumped_whole(log_files):
    before = log_files.tree()
    report = log_files.verify()
    assert (report["status"], report["messages"], report["next_offset"]) == ("clean", 1500, 1500), report
    assert report["segments"] == len(log_files.segments) and report["findings"] == []
    assert report["cursors"] == 1
    assert log_files.messages() == WRITTEN
    assert log_files("verify").stdout.splitlines()[-1].startswith(b"clean: 1,500 messages")
    assert log_files.tree() == before


def test_dump_prints_the_requested_range(log_files):
    assert log_files("dump", "--from", 10, "--to", 12, "--format", "%o %s %p\\n").stdout == (
        f"10 303 {WRITTEN[10]}\n11 303 {WRITTEN[11]}\n").encode()
    assert log_files("dump", "-n", 1, "--format", "raw").stdout == WRITTEN[0].encode() + b"\n"
    assert log_files("dump", "-n", 1, "--format", "hex").stdout == WRITTEN[0].encode().hex().encode() + b"\n"
    offset, time, size, payload = log_files("dump", "-n", 1).stdout.rstrip(b"\n").split(b"\t")
    assert (offset, size, payload) == (b"0", b"302", WRITTEN[0].encode()) and time.startswith(b"20")
    assert log_files("dump", "--from", 1500).stdout == b""
    assert log_files("dump", "-n", 0).stdout == b""
    files = [json.loads(line) for line in log_files("dump", "--segments", "--json").stdout.splitlines()]
    assert sum(file["messages"] for file in files) == 1500 and files[0]["sealed"] is True
    assert sum(batch["next_offset"] - batch["first_offset"] for batch in log_files.batches()) == 1500


@pytest.mark.parametrize("arguments", [["dump"], ["dump", ".", "--format", "smoke"], ["dump", ".", "--format", "%q"],
                                       ["dump", ".", "--batches", "--segments"], ["dump", ".", "--from", "-1"],
                                       ["verify", "absent"], ["dump", "absent"], ["repair", "."], ["snapshot", "."],
                                       ["repair", ".", "--force", "--output", "x"], ["frobnicate", "."], []])
def test_wrong_usage_exits_2(tmp_path, arguments):
    done = subprocess.run([BINARY, "log", *arguments], cwd=tmp_path, capture_output=True, timeout=DEADLINE)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr, done


def test_a_directory_without_a_log_is_reported(log_files, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    assert b"no log" in log_files("verify", directory=tmp_path, code=2).stderr
    assert b"topics/ID" in log_files("verify", directory=log_files.broker.data_dir, code=2).stderr
    assert b"did you mean 'log verify'" in subprocess.run([BINARY, "verify", "x"], capture_output=True,
                                                          timeout=DEADLINE).stderr
    assert b"did you mean 'log repair'" in subprocess.run([BINARY, "log", "repiar", "x"], capture_output=True,
                                                          timeout=DEADLINE).stderr


def damage_flipped_bit(files):
    batch = next(b for b in files.batches() if b["first_offset"] >= 300)
    change(batch["file"], batch["position"] + 100, lambda byte: byte ^ 4)
    return batch["file"], batch["position"], (batch["first_offset"], batch["next_offset"])


def damage_zeroed_page(files):
    path = str(files.segments[2])
    batch = [b for b in files.batches_before if b["file"] == path][-1]
    page = (batch["position"] + batch["bytes"] // 2) // PAGE * PAGE
    change(path, page, bytes(PAGE))
    hit = [b for b in files.batches_before if b["file"] == path
           and b["position"] < page + PAGE and page < b["position"] + b["bytes"]]
    return path, hit[0]["position"], (hit[0]["first_offset"], hit[-1]["next_offset"])


def damage_cut_file(files):
    path = str(files.segments[1])
    last = [b for b in files.batches_before if b["file"] == path][-1]
    # A broker that is quick may begin a segment before the third page.
    end = min(3 * PAGE + 17, last["position"] + last["bytes"] - 17)
    os.truncate(path, end)
    hit = [b for b in files.batches_before if b["file"] == path and end < b["position"] + b["bytes"]]
    return path, hit[0]["position"], (hit[0]["first_offset"], hit[-1]["next_offset"])


def damage_missing_file(files):
    segments = files.segments
    segments[2].unlink()
    return str(segments[1]), 0, (int(segments[2].stem), int(segments[3].stem))


def damage_spliced(files):
    """Copies a part of one file over a part of another."""
    segments = files.segments
    batch = next(b for b in files.batches_before if b["file"] == str(segments[3]))
    with open(segments[1], "rb") as other:
        other.seek(PAGE)
        change(segments[3], PAGE, other.read(batch["bytes"]))
    hit = [b for b in files.batches_before if b["file"] == str(segments[3]) and b["position"] < PAGE + batch["bytes"]]
    return str(segments[3]), PAGE, (hit[0]["first_offset"], hit[-1]["next_offset"])


def damage_last_batch_of_a_full_file(files):
    path = files.segments[1]
    change(path, sealed_end(path) - 1, lambda byte: byte ^ 1)
    last = [b for b in files.batches_before if b["file"] == str(path)][-1]
    return str(path), last["position"], (last["first_offset"], last["next_offset"])


PLANTED = [damage_flipped_bit, damage_zeroed_page, damage_cut_file, damage_missing_file, damage_spliced,
           damage_last_batch_of_a_full_file]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_damage_is_named_skipped_and_repaired(log_files, tmp_path, plant):
    log_files.batches_before = log_files.batches()
    file, position, (first, next_offset) = plant(log_files)
    before = log_files.tree()
    report = log_files.verify(code=1)
    damage = [finding for finding in report["findings"] if finding["damage"]]
    assert len(damage) == 1 and damage[0]["file"] == file, damage
    assert (damage[0]["begin_position"], damage[0]["first_offset"], damage[0]["next_offset"]) == (
        position, first, next_offset), damage
    shown = log_files("verify", code=1).stdout.decode()
    assert os.path.basename(file) in shown and f"offsets {first} up to {next_offset}" in shown, shown
    surviving = {offset: text for offset, text in WRITTEN.items() if not first <= offset < next_offset}
    assert log_files.messages(code=1) == surviving
    assert os.path.basename(file).encode() in log_files("dump", code=1).stderr
    repaired = json.loads(log_files("repair", "--output", tmp_path / "new", "--json", code=3).stdout)
    assert repaired["lost"] == [{"first_offset": first, "next_offset": next_offset}], repaired
    assert log_files.tree() == before, "repair --output changed the log"
    assert log_files.verify(directory=tmp_path / "new")["status"] == "clean"
    assert log_files.messages(directory=tmp_path / "new") == surviving
    done = json.loads(log_files("repair", "--force", "--json", code=3).stdout)
    aside = log_files.directory / "damaged-1"
    assert done["moved_to"] == str(aside)
    for path in aside.iterdir():
        assert path.read_bytes() == before[path.relative_to(aside)], "the old file is not what it was"
    assert log_files.messages() == surviving and log_files.verify()["status"] == "clean"
    assert b"nothing to repair" in log_files("repair", "--force").stderr


def test_a_broker_serves_a_repaired_topic_and_counts_no_damage(log_files):
    log_files.batches_before = log_files.batches()
    _, _, (first, next_offset) = damage_flipped_bit(log_files)
    shutil.rmtree(log_files.directory / "unused", ignore_errors=True)
    log_files("repair", "--force", code=3)
    broker = log_files.broker.start()
    environment = {**broker.environment, "LIGHTQ_DATA_DIR": str(broker.data_dir), "LIGHTQ_BROKER": broker.control_uri}

    def lightq(*arguments, stdin=b""):
        return subprocess.run([BINARY, *arguments], input=stdin, env=environment, capture_output=True, timeout=DEADLINE,
                              check=True).stdout

    stats = json.loads(lightq("stats", "t", "--json"))
    assert stats.get("corrupt", 0) == 0 and stats["next_offset"] == 1500, stats
    lightq("topic", "delete-group", "t", "default")
    assert lightq("produce", "t", stdin=b"new\n") == b""
    lines = lightq("consume", "t", "--no-follow").decode().splitlines()
    assert lines == [text for offset, text in WRITTEN.items() if not first <= offset < next_offset] + ["new"]
    assert "damaged" not in broker.log(), broker.log()
    lightq("topic", "delete", "t")
    assert not log_files.directory.exists()


def test_an_unfinished_append_is_no_damage(log_files):
    last = log_files.batches()[-1]
    change(last["file"], last["position"] + last["bytes"] - 1, lambda byte: byte ^ 1)
    report = log_files.verify()
    assert report["status"] == "clean" and report["torn_bytes"] == last["bytes"], report
    assert b"never completed" in log_files("verify").stdout


def test_damaged_cursors_are_reported_and_repaired(log_files):
    slots = sorted(log_files.directory.glob("cursors.*"))
    change(slots[0], 40, lambda byte: byte ^ 1)
    if len(slots) == 2:
        assert log_files.verify()["status"] == "clean"
        change(slots[1], 40, lambda byte: byte ^ 1)
    report = log_files.verify(code=1)
    assert [finding["kind"] for finding in report["findings"]] == ["cursors"], report
    repaired = json.loads(log_files("repair", "--force", "--json", code=3).stdout)
    assert "cursors" in repaired["cursors_lost"]
    assert log_files.verify()["cursors"] == 0 and log_files.messages() == WRITTEN


def test_damaged_producers_are_reported_and_moved_away(log_files):
    slots = sorted(log_files.directory.glob("producers.*"))
    assert slots and log_files.verify()["producers"] == 1
    for slot in slots:
        change(slot, 40, lambda byte: byte ^ 1)
    before = {slot.name: slot.read_bytes() for slot in slots}
    report = log_files.verify(code=1)
    assert [finding["kind"] for finding in report["findings"]] == ["producers"], report
    assert b"the state of the producers" in log_files("verify", code=1).stdout
    repaired = json.loads(log_files("repair", "--force", "--json", code=3).stdout)
    assert "producers" in repaired["producers_lost"] and repaired["lost_messages"] == 0
    moved = log_files.directory / "damaged-1"
    assert {path.name: path.read_bytes() for path in moved.iterdir()} == before
    assert log_files.verify()["producers"] == 0 and log_files.messages() == WRITTEN


def test_a_topic_that_has_only_cursors_and_producers_is_a_log(log_files):
    for kind in ("seg", "idx", "prepared"):
        for path in log_files.directory.glob(f"*.{kind}"):
            path.unlink()
    assert {path.name.split(".")[0] for path in log_files.directory.iterdir()} == {"cursors", "producers"}
    report = log_files.verify()
    assert report["segments"] == 0 and report["producers"] == 1, report


def test_repair_in_place_refuses_while_a_broker_has_the_log(log_files):
    log_files.batches_before = log_files.batches()
    damage_flipped_bit(log_files)
    before = log_files.tree()
    with open(log_files.broker.data_dir / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert b"in use by process" in log_files("repair", "--force", code=1).stderr
    (log_files.directory / "lock").write_text("4711\n")  # the lock of an embedded queue
    with open(log_files.directory / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert b"4711" in log_files("repair", "--force", code=1).stderr
    (log_files.directory / "lock").unlink()
    assert log_files.tree() == before


def test_no_existing_file_is_overwritten(log_files, tmp_path):
    (tmp_path / "there").mkdir()
    for verb, arguments in (("repair", ["--output", tmp_path / "there"]), ("snapshot", [tmp_path / "there"]),
                            ("snapshot", [tmp_path / "no" / "such"])):
        log_files(verb, *arguments, code=2)
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_stops_a_repair_and_a_snapshot_without_a_trace(log_files, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a file system here")
    try:
        before = log_files.tree()
        for verb, arguments in (("repair", ["--output", small / "new"]), ("snapshot", [small / "new"])):
            failed = log_files(verb, *arguments, code=1)
            assert b"No space left" in failed.stderr and failed.stdout == b"", failed
            assert list(small.iterdir()) == []
        assert log_files.tree() == before
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_snapshot_on_another_file_system_is_a_copy(log_files):
    shared = "/dev/shm"
    if not os.path.isdir(shared) or os.stat(shared).st_dev == os.stat(log_files.directory).st_dev:
        pytest.skip("there is no other file system")
    place = f"{shared}/lightq-test-{os.getpid()}"
    try:
        made = json.loads(log_files("snapshot", place, "--json").stdout)
        assert made["linked"] == 0 and made["next_offset"] == 1500, made
        assert log_files.messages(directory=place) == WRITTEN
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_snapshot_shares_the_full_files_and_outlives_the_log(log_files, tmp_path):
    place = log_files.broker.directory / "backup"  # on the same file system as the log
    made = json.loads(log_files("snapshot", place, "--json").stdout)
    assert made["linked"] >= len(log_files.segments) - 1, made
    assert os.stat(log_files.segments[0]).st_nlink == 2
    shutil.rmtree(log_files.directory)
    assert LogFiles(place).messages() == WRITTEN and LogFiles(place).verify()["status"] == "clean"


@pytest.fixture
def queue_files(tmp_path):
    """The directory of an embedded queue, made of the golden files. It has offsets 42 to 46, a cursor at 80
    and one at the largest number. Its index is that of another segment."""
    golden = pathlib.Path(__file__).parent.parent / "golden"
    place = tmp_path / "queue"
    place.mkdir()
    shutil.copy(golden / "segment-sealed.v1", place / f"{42:020}.seg")
    shutil.copy(golden / "cursors-table.v1", place / "cursors.table")
    shutil.copy(golden / "segment-index.v1", place / f"{42:020}.idx")
    return LogFiles(place)


def test_a_queues_cursors_are_listed(queue_files, log_files):
    name = "n" * 128
    assert queue_files("dump", "--cursors").stdout == f"{name}\t{2**64 - 1}\norders\t80\n".encode()
    lines = [json.loads(line) for line in queue_files("dump", "--cursors", "--json").stdout.splitlines()]
    assert lines[1] == {"file": str(queue_files.directory / "cursors.table"), "name": "orders", "committed": 80,
                        "delivered": 90}, lines
    assert log_files("dump", "--cursors").stdout.startswith(b"group:default\t")
    assert queue_files("dump", "--cursors", "--batches", code=2).stdout == b""


def test_separately_acknowledged_ranges_of_a_cursor_are_listed(log_files):
    golden = pathlib.Path(__file__).parent.parent / "golden" / "cursors.v2"
    for slot in (0, 1):
        shutil.copy(golden, log_files.directory / f"cursors.{slot}")
    end = 2**64 - 1
    assert log_files("dump", "--cursors").stdout.decode().splitlines() == [
        f"group:default\t7\t[8,9) [300,{end})", "own:\t0\t[1,2)", f"sub:12\t{end}"]
    lines = [json.loads(line) for line in log_files("dump", "--cursors", "--json").stdout.splitlines()]
    assert lines[0]["acknowledged"] == [[8, 9], [300, end]] and "acknowledged" not in lines[2], lines
    repaired = json.loads(log_files("repair", "--output", log_files.directory.parent / "repaired", "--json").stdout)
    assert repaired["clamped_cursors"] == 2, repaired


def test_unfinished_and_delayed_messages_of_a_cursor_are_counted(log_files):
    golden = pathlib.Path(__file__).parent.parent / "golden" / "cursors.v3"
    for slot in (0, 1):
        shutil.copy(golden, log_files.directory / f"cursors.{slot}")
    assert log_files("dump", "--cursors").stdout.decode().splitlines()[0] == "group:default\t7\t[8,9) [300,5000000)"
    lines = [json.loads(line) for line in log_files("dump", "--cursors", "--json").stdout.splitlines()]
    group = lines[0]
    assert group["acknowledged"] == [[8, 9], [300, 5_000_000]] and group["next"] == 2**40, group
    assert group["unfinished"] == 1 + 291 + 2**40 - 5_000_000 and group["delayed"] == 1 + 100 + 2**39, group
    assert "next" not in lines[2] and "unfinished" not in lines[2] and "delayed" not in lines[1], lines


def test_an_index_that_does_not_fit_is_a_note_and_a_lost_cursor_is_damage(queue_files):
    report = queue_files.verify()
    assert report["status"] == "clean" and report["cursors"] == 2, report
    assert sorted(finding["kind"] for finding in report["findings"]) == ["ahead", "ahead", "index"], report
    assert b"index: rebuilt when the log is opened" in queue_files("verify").stdout
    table = queue_files.directory / "cursors.table"
    change(table, 4096 + 1536 + 40, lambda byte: byte ^ 1)  # a byte of the first cursor's name
    report = queue_files.verify(code=1)
    assert [finding["kind"] for finding in report["findings"] if finding["damage"]] == ["cursor"], report
    assert b"name is damaged" in queue_files("dump", "--cursors", code=1).stderr


def test_a_repair_drops_and_reports_bad_indexes_and_cursors(queue_files, tmp_path):
    table = queue_files.directory / "cursors.table"
    change(table, 4096 + 1536 + 40, lambda byte: byte ^ 1)
    damaged = table.read_bytes()
    name = "n" * 128
    copied = json.loads(queue_files("repair", "--output", tmp_path / "new", "--json", code=3).stdout)
    assert copied["cursors"] == 1 and len(copied["lost_cursors"]) == 1 and copied["lost_messages"] == 0, copied
    assert LogFiles(tmp_path / "new").verify()["findings"] == []
    assert table.read_bytes() == damaged
    said = queue_files("repair", "--force", code=3).stdout.decode()
    assert "1 index files did not match" in said and "dropped from the cursor table" in said, said
    assert f"the cursor {name} was past the end" in said, said
    assert queue_files.verify()["findings"] == []
    assert queue_files("dump", "--cursors").stdout == f"{name}\t47\n".encode()
    assert (queue_files.directory / "damaged-1" / "cursors.table").read_bytes() == damaged
    assert b"nothing to repair" in queue_files("repair", "--force").stderr
