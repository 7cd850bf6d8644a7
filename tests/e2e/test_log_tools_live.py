"""Tests `lightq log` beside a broker that is writing: nothing is taken for damage, and a snapshot does not
change."""
import json

import pytest

from cli_support import lightq  # noqa: F401 (a fixture)
from log_support import LogFiles
from support import until


@pytest.fixture
def written_log(lightq):
    """The files of a topic while messages arrive as fast as possible. Retention is small, so that files are
    recycled."""
    lightq("topic", "create", "t", "--type", "file", "--segment-bytes", "256KiB", "--retention-messages", "20000")
    producer = lightq.begin("produce", "t", "-n", "100M", "--size", "200", "--quiet")
    until(lambda: lightq.stats("t")["first_offset"] > 40000, "files to be dropped and reused")
    yield LogFiles(next((lightq.broker.data_dir / "topics").iterdir()))
    assert producer.poll() is None, "the producer ended before the test"
    producer.terminate()
    producer.wait()


def test_verify_finds_no_damage_beside_a_writing_broker(written_log, lightq):
    seen = []
    for _ in range(15):
        if seen:
            until(lambda: lightq.stats("t")["next_offset"] > seen[-1], "the log to grow")
        report = written_log.verify()
        assert report["damages"] == 0, report["findings"]
        seen.append(report["next_offset"])
    assert seen == sorted(set(seen)), "the log did not grow"


def test_dump_reads_a_log_that_is_being_written(written_log):
    for _ in range(5):
        lines = written_log("dump", "--format", "%o %s\\n").stdout.splitlines()
        offsets = [int(line.split()[0]) for line in lines]
        assert offsets == sorted(set(offsets)) and len(offsets) > 1000
        assert {line.split()[1] for line in lines} == {b"200"}


def test_snapshots_are_sound_and_stay_as_they_are(written_log, lightq):
    made = {}
    for number in range(6):
        place = lightq.broker.directory / f"backup{number}"
        report = json.loads(written_log("snapshot", place, "--json").stdout)
        made[place] = (report, written_log("dump", "--format", "%o %x\\n", directory=place).stdout)
        assert report["next_offset"] > report["first_offset"]
    assert any(report["linked"] for report, _ in made.values())
    newest = max(report["next_offset"] for report, _ in made.values())
    until(lambda: lightq.stats("t")["first_offset"] > newest + 40000, "the log to have reused its files")
    for place, (report, content) in made.items():
        found = written_log.verify(directory=place)
        assert (found["status"], found["messages"]) == (
            "clean", report["next_offset"] - report["first_offset"]), found["findings"]
        assert written_log("dump", "--format", "%o %x\\n", directory=place).stdout == content
