"""Tests an operator's problems: topics that cannot be opened, limits, disks that fail, and the error texts
for these."""
import pathlib
import re
import socket
import subprocess

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, numbered, receive, until
from test_data_directory import small_disk  # noqa: F401 (a fixture)

ADMINS = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
USERS = {"user_id": USER, "password": PASSWORD}
ON_A_TOPIC = {
    "stats": {},
    "join": {"connection_type": "zmq", "type": "push"},
    "leave": {"bind_uri": "tcp://127.0.0.1:1"},
    "delete_group": {},
    "pause": {},
    "resume": {},
    "purge": {},
    "set_password": {"new_password": "another"},
    "set_group": {"group": "g", "max_attempts": 1},
    "set_topic": {"message_ttl_ms": 60_000},
    "seek_group": {"group": "g", "position": "first"},
    "trace": {"offset": 0},
    "list_dead": {"group": "g"},
    "retry_dead": {"group": "g"},
    "purge_dead": {"group": "g"},
    "set_schedule": {"name": "n", "cron": "* * * * *"},
    "list_schedules": {},
    "pause_schedule": {"name": "n"},
    "resume_schedule": {"name": "n"},
    "remove_schedule": {"name": "n"},
    "list_delayed": {},
    "cancel_delayed": {},
    "hurry_delayed": {},
    "reschedule_delayed": {"delay_us": 1},
}


def fill(broker, control, topic, count=50):
    with broker.socket(zmq.PUSH, control.join(topic, "push")) as producer:
        before = control.stats(topic)["messages_received"]
        for message in numbered(0, count, 100):
            producer.send(message)
        until(lambda: control.stats(topic)["messages_received"] == before + count, "all to be received")


def directory_of(broker, control, topic):
    """Creates a topic. Returns the directory that this has added."""
    topics = broker.data_dir / "topics"
    before = set(topics.iterdir()) if topics.exists() else set()
    control.create(topic, "file")
    fill(broker, control, topic)
    made = set(topics.iterdir()) - before
    assert len(made) == 1, made
    return made.pop()


@pytest.mark.parametrize("position, code", [(0, "foreign_format"), (8, "foreign_format")])  # magic; version
def test_a_topic_that_cannot_be_opened_reports_the_reason_and_can_be_deleted(broker, control, position, code):
    directory = directory_of(broker, control, "t")
    control.create("other", "file")
    broker.stop()
    segment = max(directory.glob("*.seg"))
    with open(segment, "r+b") as file:
        file.seek(position)
        file.write(b"\x7f")
    foreign = segment.read_bytes()
    broker.start()
    broker.logged(segment.name)

    # The topic is listed. Every command on it is answered with the reason. Other topics are not affected.
    assert [listed["topic"] for listed in control.list()] == ["other", "t"]
    for cmd, fields in ON_A_TOPIC.items():
        assert segment.name in control.fails(code, cmd, topic="t", **USERS, **fields)["description"], cmd
    control.fails("unauthorized_access", "stats", topic="t", user_id=USER, password="another")
    control.fails("topic_already_exists", "create_topic", topic="t", broker_type="file", **ADMINS, **USERS)
    fill(broker, control, "other")
    assert segment.read_bytes() == foreign, "a file that was refused is not to be touched"

    control.delete("t")
    assert not directory.exists()
    assert [listed["topic"] for listed in control.list()] == ["other"]
    control.fails("topic_not_found", "stats", topic="t", **USERS)

    # The name is free, and a new topic has nothing of the old one.
    control.create("t", "file")
    assert control.stats("t")["next_offset"] == 0
    fill(broker, control, "t")
    broker.restart()
    assert not directory.exists()
    assert "cannot be used" not in broker.log().rsplit("stopped", 1)[1]
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 50) == numbered(0, 50, 100)
    assert control.stats("other")["next_offset"] == 50


@pytest.mark.parametrize("broker_type, settings", [
    ("queue", {"ring_bytes": 1 << 20, "overflow": "drop_oldest", "message_ttl_ms": 60_000}),
    ("file", {"overflow": "reject", "capacity_bytes": 1 << 30, "segment_bytes": 1 << 20, "retention_bytes": 1 << 29,
              "retention_ms": 3_600_000, "retention_messages": 1_000_000, "retention_over_pending": True,
              "encrypt_at_rest": False}),
    ("queue_file", {"ring_bytes": 1 << 21, "overflow": "block", "capacity_bytes": 0, "segment_bytes": 1 << 20,
                    "retention_bytes": 0, "retention_ms": 0, "retention_messages": 7,
                    "retention_over_pending": False, "encrypt_at_rest": False}),
    ("direct", {}),
])
def test_the_answers_tell_a_topics_settings_as_create_topic_takes_them(broker, control, broker_type, settings):
    control.create("t", broker_type, **settings)
    told = {"broker_type": broker_type, "open": False, **({} if broker_type == "direct" else {"message_ttl_ms": 0}), **settings}
    for _ in range(2):
        assert control.stats("t")["settings"] == told
        [listed] = control.list()
        assert listed["settings"] == told and listed["broker_type"] == broker_type
        broker.restart()
    control.ok("create_topic", topic="again", **ADMINS, **USERS, **told)
    assert control.stats("again")["settings"] == told


def test_a_queue_file_topic_that_cannot_write_behind_reports_it_and_catches_up(small_disk, make_broker):  # noqa: F811
    broker = make_broker(start=False, environment={"LIGHTQ_MIN_FREE_BYTES": "0"})
    broker.data_dir = small_disk / "data"
    broker.start()
    control = broker.control()
    control.create("t", "queue_file", segment_bytes=256 * 1024)
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    count = 1000  # 10 MB: more than the disk, less than the ring
    for message in numbered(0, count, 10_000):
        producer.send(message)
    until(lambda: control.stats("t")["messages_received"] == count, "all to be received")
    until(lambda: "stay in memory" in broker.log(), "the broker to say that it cannot write")
    assert control.stats("t")["durable_offset"] < count
    # Delivery continues. The error is logged only once, although the write is tried again and again.
    with broker.socket(zmq.SUB, control.join("t", "sub")) as subscriber:
        producer.send(b"one more")
        until(lambda: control.stats("t")["messages_received"] == count + 1, "one more")
        assert subscriber.poll(10_000)
    assert broker.logged("stay in memory").count("stay in memory") == 1, broker.log()

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    until(lambda: control.stats("t")["durable_offset"] == count + 1, "all to be written to the disk")
    broker.logged("written to the disk again")
    broker.kill()
    broker.start()
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [m[:8] for m in receive(consumer, count + 1)] == [m[:8] for m in [*numbered(0, count, 10_000), b"one more"]]


def test_a_bind_host_may_be_a_name_that_clients_receive(make_broker):
    broker = make_broker("--bind", "localhost")
    control = broker.control()
    control.create("t")
    uri = control.join("t", "push")
    assert uri.startswith("tcp://localhost:"), uri
    try:
        socket.getaddrinfo("localhost", None)
    except socket.gaierror:  # the broker resolves the name, but the client's ZeroMQ does not
        uri = uri.replace("localhost", "127.0.0.1")
    broker.socket(zmq.PUSH, uri).send(b"x")
    until(lambda: control.stats("t")["messages_received"] == 1, "the message")


def documented_codes():
    """Returns (command, code) of every row of docs/protocol.md that names the commands which a code answers."""
    document = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    table = document[document.index("| code | description | when | answered to |"):].split("\n\n")[0]
    return {(command, re.match(r"\| `(\w+)`", row)[1]) for row in table.splitlines()[2:]
            for command in re.findall(r"`(\w+)`", row.rsplit("|", 2)[1])}


def test_every_code_is_answered_to_the_commands_that_the_document_names(make_broker, tmp_path):
    broker = make_broker("--ipc-dir", str(tmp_path / ("d" * 120)))
    control = broker.control()
    answered = set()

    def ask(cmd, **fields):
        reply = control(cmd, **fields)
        answered.add((cmd, reply.get("code", "ok")))

    foreign, damaged = directory_of(broker, control, "foreign"), directory_of(broker, control, "damaged")
    control.create("t")
    for cmd, fields in ON_A_TOPIC.items():
        ask(cmd, topic="none", **ADMINS, **fields)
    ask("delete_topic", topic="none", **ADMINS)
    ask("create_topic", topic="t", broker_type="queue", **ADMINS)
    control.ok("create_user", user_id="ann", password="pw", **ADMINS)
    ask("create_user", user_id="ann", password="pw", **ADMINS)
    ask("create_topic", topic="u", broker_type="queue", user_id="ann", password="pw", **ADMINS)
    ask("create_topic", topic="s", broker_type="file", encrypt_at_rest=True, **ADMINS)  # there is no storage key
    for cmd, fields in {"delete_user": {}, "set_password": {"new_password": "pw"},
                        "grant": {"topic": "*", "rights": ["produce"]},
                        "revoke": {"topic": "*", "rights": ["produce"]}}.items():
        ask(cmd, user_id="nobody", **ADMINS, **fields)
    ask("leave", topic="t", bind_uri="tcp://127.0.0.1:1", **USERS)
    control.create("d", "direct")
    for cmd in ("pause", "resume", "purge"):
        ask(cmd, topic="d", **USERS)
        ask(cmd, topic="t", group="another", **USERS)
    for cmd in ("set_topic", "seek_group", "trace", "list_delayed", "cancel_delayed", "hurry_delayed", "reschedule_delayed"):
        ask(cmd, topic="d", **USERS, **ON_A_TOPIC[cmd])
    for cmd in ("list_dead", "retry_dead", "purge_dead"):
        ask(cmd, topic="t", group="another", **USERS)
    ask("seek_group", topic="t", group="another", position="first", **USERS)
    for cmd in ("list_schedules", "pause_schedule", "resume_schedule", "remove_schedule"):
        ask(cmd, topic="t", name="another", **USERS)
    ask("set_schedule", topic="d", name="n", cron="* * * * *", **USERS)
    ask("set_schedule", topic="t", name="n", cron="* * * * *", headers=[{"name": "a"}] * 64, **USERS)
    ask("delete_group", topic="t", group="another", **USERS)
    puller = broker.socket(zmq.PULL, control.join("t", "pull"))
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the puller")
    ask("delete_group", topic="t", **USERS)
    puller.close()
    ask("join", topic="t", connection_type="socket", type="pull", **USERS)
    ask("join", topic="t", connection_type="zmq", type="pull", transport="ipc", **USERS)

    broker.kill()
    segment = max(foreign.glob("*.seg"))
    with open(segment, "r+b") as file:
        file.write(b"another format")
    # A second file. By its name it begins in the middle of the first.
    segment = max(damaged.glob("*.seg"))
    assert segment.stem.isdigit() and int(segment.stem) == 0, segment
    overlapping = segment.with_name(segment.name.replace("0" * len(segment.stem), "10".rjust(len(segment.stem), "0")))
    overlapping.write_bytes(segment.read_bytes())
    broker.start()
    for topic in ("foreign", "damaged"):
        for cmd, fields in ON_A_TOPIC.items():
            ask(cmd, topic=topic, **USERS, **fields)
    out_of_ports = {("join", "address_in_use")}  # only if the machine has no port left
    assert answered == documented_codes() - out_of_ports
