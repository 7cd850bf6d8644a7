"""Tests that a data directory of an earlier release opens, with everything in it. `tests/golden/directory-*.tar.xz` are
such directories; tests/golden/README.md names the programs that wrote them.

To write another one: LIGHTQ_BINARY=PROGRAM LIGHTQ_WRITE_DIRECTORY=FILE.tar.xz python3 -B -m pytest FILE_OF_THIS_TEST."""
import json
import os
import pathlib
import tarfile

import pytest

from batch_bytes import Message
from dead_letter_support import ADMINISTRATOR, ALL, dead_of
from delayed_support import SCHEDULE, waiting
from harness import variable
from session_client import Session, join
from session_support import group_of, until_committed
from support import DEADLINE, PASSWORD, USER, Secrets, numbered, until

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
DIRECTORIES = sorted(GOLDEN.glob("directory-*.tar.xz"))
WANTED = variable("LIGHTQ_WRITE_DIRECTORY")
ANN = {"user_id": "ann", "password": Secrets.plant("planted-upgrade-secret-4417")}
DUE_US = 2_082_758_400_000_000  # 2036-01-01, less than ten years after the directory was written
ORDERS, TASKS = numbered(0, 20, 100), numbered(100, 5, 50)


def write(control):
    """Fills the broker with something of everything that survives a restart."""
    control.create("orders", "file", retention_messages=1_000_000)
    control.create("tasks", "queue_file", overflow="reject")
    control.ok("create_user", **ADMINISTRATOR, **ANN, rights=[{"topic": "orders", "rights": ["consume"]}])
    for topic, messages in ("orders", ORDERS), ("tasks", TASKS):
        with Session(join(control, topic)) as session:
            producer = session.producer(topic)
            producer.produce([Message(message, key=b"k", headers=((b"h", b"v"),)) for message in messages[:3]])
            producer.produce(messages[3:])
            producer.wait_confirmed()
    with Session(join(control, "tasks", "pull")) as session:
        consumer = session.consumer("tasks", "workers")
        consumer.receive(len(TASKS))
        consumer.acknowledge((0, 2))
        until_committed(control, "tasks", 2, "workers")
    with Session(join(control, "orders", "pull")) as session:
        consumer = session.consumer("orders", "audit")
        consumer.receive(len(ORDERS))
        consumer.acknowledge((0, 5), 7)
        until_committed(control, "orders", 5, "audit")
    control.ok("pause", **ADMINISTRATOR, topic="tasks")
    if control("set_group", **ADMINISTRATOR, topic="orders", group="billing", max_attempts=7)["status"] == "ok":
        write_newer(control)


def write_newer(control):
    """Adds things that the program of directory-1 did not have: dead and delayed messages, and schedules."""
    with Session(join(control, "orders", "pull"), codecs=ALL) as session:
        consumer = session.consumer("orders", "billing")
        consumer.receive(len(ORDERS))
        consumer.start((0, 10))
        consumer.acknowledge((0, 5), 7)
        consumer.reject_dead(6, reason="no such customer")
        until(lambda: group_of(control, "orders", "billing")["parked"] == 1, "the death")
    control.create("reports", "file", message_ttl_ms=4_000_000_000)
    with Session(join(control, "reports")) as session:
        producer = session.producer("reports", target=SCHEDULE)
        producer.produce([Message(b"later", due=DUE_US, headers=((b"lightq-id", b"report-36"),))])
        producer.wait_confirmed()
    control.ok("set_schedule", **ADMINISTRATOR, topic="reports", name="morning", cron="0 9 * * MON-FRI", zone="Europe/Berlin", payload="go")
    control.ok("pause_schedule", **ADMINISTRATOR, topic="reports", name="morning")


def check(control):
    kinds = {topic["topic"]: topic["broker_type"] for topic in control.list()}
    assert (kinds["orders"], kinds["tasks"]) == ("file", "queue_file")
    control.ok("stats", topic="orders", **ANN)
    control.fails("unauthorized_access", "join", topic="orders", type="push", **ANN)
    assert control.stats("tasks")["paused"]
    control.ok("resume", **ADMINISTRATOR, topic="tasks")
    for topic, messages in ("orders", ORDERS), ("tasks", TASKS):
        with Session(join(control, topic, "pull")) as session:
            found = session.consumer(topic, "new").receive(len(messages))
            assert [message.payload for message in found] == messages
            assert found[0].said.key == b"k" and (b"h", b"v") in found[0].said.headers
    with Session(join(control, "orders", "pull")) as session:
        left = session.consumer("orders", "audit").receive(14)
        assert [message.offset for message in left] == [5, 6, *range(8, 20)], "all that nobody acknowledged"
    with Session(join(control, "tasks", "pull")) as session:
        assert [message.offset for message in session.consumer("tasks", "workers").receive(3)] == [2, 3, 4]
    with Session(join(control, "orders")) as session:
        producer = session.producer("orders")
        producer.produce([b"after the upgrade"])
        producer.wait_confirmed()


def check_newer(control):
    billing = group_of(control, "orders", "billing")
    assert (billing["committed_offset"], billing["parked"], billing["settings"]["max_attempts"]) == (5, 1, 7)
    dead, = dead_of(control, "orders", "billing")
    assert (dead["offset"], dead["cause"], dead["reason"]) == (6, "rejected", "no such customer")
    delayed, = waiting(control, "reports")
    assert (delayed["id"], delayed["due_us"]) == ("report-36", DUE_US)
    schedule, = control.ok("list_schedules", topic="reports", name="morning", **ADMINISTRATOR)["schedules"]
    assert (schedule["cron"], schedule["zone"], schedule["payload"], schedule["paused"]) == (
        "0 9 * * MON-FRI", "Europe/Berlin", "go", True)
    with Session(join(control, "orders", "pull"), codecs=ALL) as session:
        left = session.consumer("orders", "billing").receive(13)
        assert [message.offset for message in left] == [5, 8, 9, *range(10, 20)], "neither acknowledged nor dead"


@pytest.mark.skipif(WANTED is not None, reason="writes a directory")
@pytest.mark.parametrize("archive", DIRECTORIES, ids=lambda path: path.name.split(".")[0])
def test_a_data_directory_of_an_earlier_release_opens(make_broker, archive):
    broker = make_broker(start=False)
    with tarfile.open(archive) as files:
        files.extractall(broker.data_dir)
    os.chmod(broker.data_dir, 0o700)
    broker.start()
    control = broker.control()
    if archive.name != "directory-1.tar.xz":
        check_newer(control)
    check(control)
    broker.restart()
    assert group_of(control, "orders", "new")["lag"] == 21, "its members have acknowledged nothing"


@pytest.mark.skipif(WANTED is None, reason="writes no directory")
def test_writes_a_data_directory(make_broker):
    broker = make_broker(start=False)
    del broker.environment["LIGHTQ_HTTP"]  # programs without HTTP refuse it
    broker.start()
    write(broker.control())
    broker.restart()  # the writing program, too, opens its directory
    broker.stop()

    def owned_by_nobody(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(WANTED, "w:xz") as files:
        for path in sorted(broker.data_dir.rglob("*")):
            files.add(path, path.relative_to(broker.data_dir), recursive=False, filter=owned_by_nobody)
    broker.start()


# --- Downgrades -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(WANTED is not None, reason="writes a directory")
def test_a_refused_downgrade_names_the_version_that_wrote_the_directory(make_broker):
    broker = make_broker()
    control = broker.control()
    control.create("t", "file")
    with Session(join(control, "t")) as session:
        producer = session.producer("t")
        producer.produce([b"x"])
        producer.wait_confirmed()
    version = broker.data_dir / "version"
    own = control.ok("version")["version"]
    assert version.read_text() == own + "\n"
    broker.stop()
    version.write_text("99.0.1\n")
    segment, = (broker.data_dir / "topics").glob("*/*.seg")
    kept = segment.read_bytes()
    segment.write_bytes((GOLDEN / "newer" / "segment-version").read_bytes())
    broker.start()
    broker.logged("LightQ 99.0.1 has used this data directory")
    assert control.fails("foreign_format", "stats", topic="t", user_id=USER, password=PASSWORD)
    broker.stop()
    assert version.read_text() == "99.0.1\n", "the newest version stays"
    segment.write_bytes(kept)
    newest = max((broker.data_dir / "catalogue").iterdir())
    later = newest.with_name(f"{int(newest.name) + 1:08}")
    later.mkdir()
    (later / "00000000000000000000.seg").write_bytes((GOLDEN / "newer" / "catalogue-format").read_bytes())
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1
    broker.process = None
    broker.logged(f"LightQ 99.0.1 has used this data directory, and this is {own}: start that version")
    (later / "00000000000000000000.seg").unlink()
    later.rmdir()
    broker.start()
