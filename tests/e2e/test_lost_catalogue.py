"""Tests that no topic loses its files if the catalogue is damaged, truncated, old or gone: ADR 43."""
import shutil
import subprocess

import pytest
import zmq

from log_support import LogFiles, change, send
from support import BINARY, DEADLINE, files_below, numbered, receive, until

COUNT = 100


@pytest.fixture
def two(broker, control):
    """Two topics with messages, and a copy of the catalogue from the time between them. The broker was
    killed."""
    for topic in ("alpha", "beta"):
        control.create(topic, "file")
        send(broker, control, numbered(0, COUNT, 100), topic)
        if topic == "alpha":
            shutil.copytree(broker.data_dir / "catalogue", broker.directory / "older")
    broker.kill()
    return broker


def tree(directory):
    return {path: path.read_bytes() for path in files_below(directory)}


def flip(broker, words):
    """Flips a bit of the last record in the catalogue with these words."""
    for path in files_below(broker.data_dir / "catalogue"):
        at = path.read_bytes().rfind(words)
        if at >= 0:
            change(path, at + 2, lambda byte: byte ^ 1)
            return
    raise AssertionError(f"no record has {words}")


def refused(broker, *words):
    """Checks that the broker does not start and reports why, and that no file of a topic has changed."""
    topics = tree(broker.data_dir / "topics")
    done = subprocess.run([BINARY, "broker", "--data-dir", str(broker.data_dir), "--control", "tcp://127.0.0.1:0",
                           *broker.flags], capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert done.returncode == 1, done
    for each in words:
        assert each in done.stderr, done.stderr
    assert tree(broker.data_dir / "topics") == topics


def messages_of(broker, control, topic):
    consumer = broker.socket(zmq.PULL, control.join(topic, "pull"))
    return receive(consumer, COUNT)


def test_a_damaged_record_prevents_the_start_until_it_is_repaired(two):
    flip(two, b'"topic":"alpha"')
    newest = two.data_dir / "catalogue" / "00000001"
    for _ in range(2):  # the first refusal closes the log in order, which must not hide the damage
        refused(two, "records of topics, users or rights are damaged", f"lightq log repair {newest} --force", "Nothing was removed")
    LogFiles(newest)("repair", "--force", code=3)
    topics = tree(two.data_dir / "topics" / "1")
    begin = len(two.log())
    two.start()
    control = two.control()
    assert "1 topics with files in" in two.logged("the catalogue has no record of", begin)
    assert [topic["topic"] for topic in control.list()] == ["beta"]
    assert messages_of(two, control, "beta") == numbered(0, COUNT, 100)
    assert tree(two.data_dir / "topics" / "1") == topics


def lose_last(two):
    """Damages the end of the catalogue. This looks like an append that was not completed."""
    two.start()
    control = two.control()
    control.create("gamma", "file")
    send(two, control, numbered(0, COUNT, 100), "gamma")
    two.kill()
    for path in files_below(two.data_dir / "catalogue"):
        whole = path.read_bytes()
        if (at := whole.rfind(b'"topic":"gamma"')) >= 0:
            change(path, at, bytes(len(whole) - at))
    return "3"


def lose_newer(two):
    """Replaces the catalogue by an older copy."""
    shutil.rmtree(two.data_dir / "catalogue")
    shutil.copytree(two.directory / "older", two.data_dir / "catalogue")
    return "2"


@pytest.mark.parametrize("lose", [lose_last, lose_newer])
def test_files_of_a_topic_that_the_catalogue_does_not_know_are_kept_and_its_id_is_not_given_again(two, lose):
    lost = lose(two)
    files = tree(two.data_dir / "topics" / lost)
    assert files
    for _ in range(2):
        begin = len(two.log())
        two.start()
        line = two.logged("the catalogue has no record of", begin)
        assert f"topics: {lost}." in line and "docs/reliability.md" in line, line
        two.stop()
        assert tree(two.data_dir / "topics" / lost) == files
    two.start()
    control = two.control()
    control.create("new", "file")
    send(two, control, numbered(0, 1), "new")
    made = {path.name for path in (two.data_dir / "topics").iterdir()}
    assert str(int(lost) + 1) in made, made
    assert tree(two.data_dir / "topics" / lost) == files


def test_a_lost_topic_is_restored_by_creating_a_topic_for_its_files(two):
    lose_newer(two)
    two.start()
    control = two.control()
    control.create("beta", "file")
    send(two, control, numbered(0, 1), "beta")
    two.stop()
    topics = two.data_dir / "topics"
    shutil.rmtree(topics / "3")
    (topics / "2").rename(topics / "3")
    begin = len(two.log())
    two.start()
    assert messages_of(two, control, "beta") == numbered(0, COUNT, 100)
    assert "has no record of" not in two.log()[begin:]


@pytest.mark.parametrize("gone", ["00000001", "00000001/*"])
def test_topics_without_a_catalogue_prevent_the_start(two, gone):
    shutil.copytree(two.data_dir / "catalogue", two.directory / "backup")
    for path in list((two.data_dir / "catalogue").glob(gone)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _ in range(2):
        refused(two, "has lost its records", "files of 2 topics (topics/1)", "Restore it from a backup")
    shutil.rmtree(two.data_dir / "catalogue")
    shutil.copytree(two.directory / "backup", two.data_dir / "catalogue")
    two.start()
    control = two.control()
    for topic in ("alpha", "beta"):
        assert messages_of(two, control, topic) == numbered(0, COUNT, 100)


def test_an_incomplete_deletion_is_completed_at_the_start(two):
    topics = two.data_dir / "topics"
    shutil.copytree(topics / "1", two.directory / "undead")
    two.start()
    control = two.control()
    control.delete("alpha")
    until(lambda: not (topics / "1").exists(), "the files to be removed")
    two.kill()
    shutil.copytree(two.directory / "undead", topics / "1")
    begin = len(two.log())
    two.start()
    two.logged("removed the files of a deleted topic", begin)
    assert not (topics / "1").exists() and (topics / "2").exists()
    assert messages_of(two, control, "beta") == numbered(0, COUNT, 100)
