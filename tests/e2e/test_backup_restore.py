"""Tests a broker that is restored from a backup by the commands of docs/guide.md, "Backup and restore": what is
there again, and what is lost as the guide says."""
import os
import pathlib
import re
import stat
import subprocess

import pytest
import zmq

from log_support import LogFiles
from session_client import OWN, Session, join
from session_support import consumer_of, fill_numbered, group_of, offsets, until_committed
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, Address, number_of, numbered, until

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide.md"
ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
ANN = {"user_id": "ann", "password": "anns-secret-of-the-backup"}
STORED, ACKNOWLEDGED, LATER = 20, 7, 10  # messages at the backup; of these, acknowledged; messages since then


def commands_of(heading):
    """Returns the lines of the first shell block below a heading of the guide, without comments."""
    block = GUIDE.read_text().split(f"\n### {heading}\n", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    return [re.sub(r"\s{2,}# .*", "", line) for line in block.splitlines()]


class Machine:
    """Runs the guide's commands on a test's directories in place of the guide's. `systemctl` stops and starts the
    test's broker."""

    def __init__(self, broker):
        self.broker = broker
        self.backups = broker.directory / "backup"
        self.backups.mkdir(0o700)

    def run(self, lines):
        mask = [line for line in lines if line.startswith("umask")]  # of the whole block, which is run in parts
        before = []
        for line in [*lines, ""]:
            if line.startswith("systemctl") or line == "":
                self.shell("\n".join(mask + before))
                before = []
            if line == "systemctl stop lightq" and self.broker.process is not None:
                self.broker.stop()
            elif line == "systemctl start lightq":
                self.broker.start()
            elif not line.startswith("systemctl"):
                before.append(line)

    def shell(self, script):
        script = script.replace("/var/lib/lightq", str(self.broker.data_dir)).replace("/backup/", f"{self.backups}/")
        script = script.replace("chown -R lightq:", f"chown -R {os.geteuid()}:")
        environment = {**self.broker.environment, "PATH": f"{pathlib.Path(BINARY).resolve().parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, timeout=DEADLINE, env=environment)
        assert "not saved" not in done.stdout, done
        return done

    def back_up(self, way):
        if way == "stopped":
            return self.run(commands_of("Backing up a stopped broker"))
        lines = commands_of("Backing up logs one by one")
        done = self.shell("\n".join(lines))
        assert '"topic":"orders"' in done.stdout, done
        return None

    def restore(self, way):
        lines = commands_of("Restoring a whole broker")
        if way == "running":
            [snapshot] = self.backups.iterdir()
            copy = f"cp -a /backup/{snapshot.name}/. /var/lib/lightq"
            lines = [copy if line.startswith("tar ") else line for line in lines]
            assert copy in lines
        else:
            assert any(line.startswith("tar ") for line in lines)
        start = lines.index("systemctl start lightq")
        self.run(lines[:start])
        assert (self.broker.data_dir / "restored").exists()
        for log in [*(self.broker.data_dir / "topics").iterdir(), *(self.broker.data_dir / "catalogue").iterdir()]:
            LogFiles(log).verify()
        self.run(lines[start:])


def numbers_of(messages):
    return [number_of(message.payload) for message in messages]


def user_names(control):
    return {user["user_id"] for user in control.ok("list_users", **ADMINISTRATOR)["users"]}


def topic_names(control):
    return {topic["topic"] for topic in control.list()}


def read_to(control, session, end, place):
    """Returns the messages from a place to `end`, read as a consumer without a name that reconnects does it, and
    the place at which it continues."""
    consumer = consumer_of(control, session, "orders", mode=OWN, start="offset", value=place[0], incarnation=place[1])
    come = consumer.receive(end - consumer.opened["next"])
    return come, (end, consumer.opened["incarnation"])


@pytest.mark.parametrize("way", ["stopped", "running"])
def test_a_broker_is_restored_by_the_guide(broker, control, session, way):
    machine = Machine(broker)
    control.create("orders", "file")
    control.create("volatile")
    fill_numbered(session, "volatile", 0, 5)
    control.ok("create_user", **ADMINISTRATOR, **ANN, rights=[{"topic": "orders", "rights": ["produce", "consume"]}])
    producer = fill_numbered(session, "orders", 0, STORED)
    worker = consumer_of(control, session, "orders")
    worker.acknowledge_all(worker.receive(STORED)[:ACKNOWLEDGED])
    until_committed(control, "orders", ACKNOWLEDGED)
    place = read_to(control, session, STORED, (0, 0))[1]
    orders = LogFiles(next(broker.data_dir.glob("topics/*")))
    until(lambda: f"group:default\t{ACKNOWLEDGED}".encode() in orders("dump", "--cursors").stdout, "the cursor on disk")
    until(lambda: control.stats("orders")["durable_offset"] == STORED, "all messages on disk")
    machine.back_up(way)

    # Everything from here on is not in the backup.
    with Session(join(control, "orders")) as one:
        more = one.producer("orders", producer.id, producer.epoch)
        more.produce(numbered(100, LATER))
        more.wait_confirmed()
    place = read_to(control, session, STORED + LATER, place)[1]
    control.ok("create_user", **ADMINISTRATOR, user_id="bob", password="bobs-secret")
    control.ok("delete_user", **ADMINISTRATOR, user_id="ann")
    control.create("later")
    old_ticket = control.join("later", "push").ticket
    old_key = (broker.data_dir / "ticket.key").read_bytes()

    machine.restore(way)
    broker.logged("the data directory was restored: all tickets end, and 1 topics begin new incarnations")
    assert not (broker.data_dir / "restored").exists()
    assert not list(broker.data_dir.glob("topics/*/restored"))
    assert stat.S_IMODE((broker.data_dir / "topics").stat().st_mode) == 0o700
    assert topic_names(control) == {"orders", "volatile"}
    assert user_names(control) == {"ann"}
    assert control.ok("stats", topic="orders", **ANN)["next_offset"] == STORED
    assert control.stats("volatile")["next_offset"] == 0, "messages in memory are in no backup"

    # The producer of before. A snapshot knows none. Otherwise fewer messages are expected than were confirmed: a
    # batch with a later number is refused, and the producer continues at the expected one.
    with Session(join(control, "orders")) as one:
        if way == "running":
            assert one.error_of("produce_open", producer_id=producer.id, producer_epoch=producer.epoch, level=0,
                                topic="orders") == "unknown_producer"
            producer = one.producer("orders")
        else:
            producer = one.producer("orders", producer.id, producer.epoch)
            assert producer.next == STORED
            producer.produce(numbered(200, LATER), sequence=STORED + LATER)
            refuse = producer.take_refuse()
            assert (refuse.code, refuse.values["expected"]) == ("out_of_sequence", STORED)
            producer.next = STORED
        producer.produce(numbered(200, LATER))
        producer.wait_confirmed()

    # The group continues at its place; new messages get the offsets of the lost ones, and nobody misses them.
    new = [*range(200, 200 + LATER)]
    assert group_of(control, "orders")["committed_offset"] == ACKNOWLEDGED
    come = consumer_of(control, session, "orders").receive(STORED - ACKNOWLEDGED + LATER)
    assert numbers_of(come) == [*range(ACKNOWLEDGED, STORED), *new]
    missed, (_, incarnation) = read_to(control, session, STORED + LATER, place)
    assert (numbers_of(missed), offsets(missed)) == (new, [*range(STORED, STORED + LATER)])
    assert incarnation != place[1]

    # A new topic may get the id of one that the backup does not know. A ticket for that one is refused.
    assert (broker.data_dir / "ticket.key").read_bytes() != old_key
    control.create("other")
    address = Address(control.join("other", "push"))
    address.ticket = old_ticket
    broker.socket(zmq.PUSH, address).send(b"for the topic of before")
    until(lambda: control.stats("other")["refused_connections"] >= 1, "the refusal of the old ticket")
    assert control.stats("other")["messages_received"] == 0

    # The restored broker is a broker as any other: a restart begins no further incarnation.
    broker.restart()
    assert read_to(control, session, STORED + LATER, (STORED, incarnation))[1][1] == incarnation


def test_a_broker_refuses_a_wrong_setting_with_2_and_a_data_directory_with_1(make_broker, tmp_path):
    broker = make_broker(start=False)
    file = tmp_path / "file"
    file.touch()
    writable = tmp_path / "writable"
    writable.mkdir()
    writable.chmod(0o777)
    topics = tmp_path / "damaged"
    (topics / "topics" / "7").mkdir(0o700, parents=True)
    (topics / "topics").chmod(0o700)
    for code, flags in [(1, ["--data-dir", str(file)]), (1, ["--data-dir", str(file / "below")]),
                        (1, ["--data-dir", str(writable)]), (1, ["--data-dir", str(topics)]),
                        (2, ["--data-dir", ""]), (2, ["--data-dir", str(tmp_path / "new"), "--ports", "x"])]:
        done = subprocess.run([BINARY, "broker", "--control", "tcp://127.0.0.1:0", *flags], capture_output=True, text=True,
                              timeout=DEADLINE, env=broker.environment)
        assert done.returncode == code, (flags, done)
        assert done.stderr.startswith("lightq broker: ") or "level=" in done.stderr, done.stderr
