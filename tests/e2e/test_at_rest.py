"""Tests topics that are encrypted on disk: which bytes are there, which messages are read, and with which
key."""
import json
import os
import pathlib
import struct
import subprocess

import pytest
import zmq

from session_client import FLUSHED, OWN, join  # first, because it adds the path of the vectors
import batch_bytes
import encrypted_bytes
from batch_bytes import LZ4, NONE, ZSTD, Message
from log_support import PAGE, LogFiles, change, send
from session_support import consumer_of
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, Secrets, bytes_of, files_below, receive, receive_topic, until

DURABLE = ["file", "queue_file"]
PLANTED = b"planted-payload-7731"
KEYS = [bytes([number] * 32) for number in (0x11, 0x22, 0x33)]
Secrets.known |= {key.hex() for key in KEYS}


def key_file(broker, *keys, mode=0o600):
    """Writes the broker's file of keys anew. Returns its path."""
    path = broker.directory / "storage.keys"
    path.write_text("# for tests\n" + "".join(key.hex() + "\n" for key in keys))
    path.chmod(mode)
    return path


@pytest.fixture
def sealed(make_broker):
    """A broker with a storage key."""
    broker = make_broker(start=False)
    broker.flags += ["--storage-key-file", str(key_file(broker, KEYS[0]))]
    return broker.start()


@pytest.fixture
def control(sealed):
    return sealed.control()


def planted(first, count):
    return [b"%d|%s|" % (number, PLANTED) + b"." * 200 for number in range(first, first + count)]


def lies_in(directory, text):
    return [path for path in files_below(directory) if text in bytes_of(path)]


def topic_files(broker):
    return LogFiles(next((broker.data_dir / "topics").iterdir()))


def tree(broker):
    """Returns the files of all topics, except files that never contained a message."""
    return {path: path.read_bytes() for path in files_below(broker.data_dir / "topics") if path.suffix != ".prepared"}


@pytest.mark.parametrize("broker_type", DURABLE)
def test_no_plain_text_of_messages_is_on_disk_and_all_readers_return_them(sealed, control, session, broker_type):
    control.create("t", broker_type, encrypt_at_rest=True, segment_bytes=64 * 1024)
    control.create("clear", broker_type)
    subscriber = sealed.socket(zmq.SUB, control.join("t", "sub"), rcvhwm=0)
    until(lambda: control.stats("t")["subscribers_count"] == 1, "the handshake")
    messages = planted(0, 1000)
    send(sealed, control, messages)
    send(sealed, control, [PLANTED], "clear")
    assert receive_topic(subscriber, "t", 1000) == messages
    assert receive(sealed.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0), 1000) == messages
    assert [message.payload for message in session(join(control, "t", "pull")).read("t")[0]] == messages
    own = consumer_of(control, session, "t", "mine", mode=OWN)
    assert [message.payload for message in own.receive(1000)] == messages
    assert own.seek("offset", 500) == 500
    assert own.receive(1)[0].payload == messages[500]
    sealed.restart()  # so that everything is written
    clear = next(topic for topic in (sealed.data_dir / "topics").iterdir() if topic.name == "2")
    assert {path.parent for path in lies_in(sealed.data_dir, PLANTED)} == {clear}, "the search finds what is there"
    assert [message.payload for message in session(join(control, "t", "pull")).read("t")[0]] == messages


@pytest.mark.parametrize("broker_type", DURABLE)
def test_flushed_messages_survive_a_kill(sealed, control, session, broker_type):
    control.create("t", broker_type, encrypt_at_rest=True)
    producer = session("t").producer("t", level=FLUSHED)
    sent = []
    for number in range(50):
        sent += planted(number * 10, 10)
        producer.produce(sent[-10:])
    producer.wait_confirmed()
    for _ in range(2):
        sealed.kill()
        assert not lies_in(sealed.data_dir, PLANTED)
        sealed.start()
        assert [message.payload for message in session(join(control, "t", "pull")).read("t")[0]] == sent
    assert "damaged" not in sealed.log()


@pytest.mark.parametrize("codec", [NONE, LZ4, ZSTD], ids=["plain", "lz4", "zstd"])
@pytest.mark.parametrize("broker_type", DURABLE)
def test_a_producers_batches_are_delivered_unchanged(sealed, control, session, broker_type, codec):
    control.create("t", broker_type, encrypt_at_rest=True)
    said = [Message(b"%d " % number + PLANTED * 20, key=b"planted-key", headers=((b"planted-name", b"planted-value"),))
            for number in range(20)]
    producer = session("t").producer("t")
    batch = batch_bytes.batch(said, producer.id, producer.epoch, producer.next, codec=codec)
    producer.send_batch(batch)
    producer.next += 20
    producer.wait_confirmed()
    sealed.restart()
    consumer = consumer_of(control, session, "t", codecs=6)
    consumer.receive(20)
    come = consumer.batches[0]
    # Without producer id and sequence, which consumers do not receive.
    shown = batch_bytes.batch(said, codec=codec)
    assert come[64:] == batch[64:] and all(come[at:end] == shown[at:end] for at, end in ((4, 16), (32, 52), (56, 60)))
    assert batch_bytes.unbatch(come).messages == said
    assert not any(lies_in(sealed.data_dir, text) for text in (PLANTED, b"planted-key", b"planted-name", b"planted-value"))
    # Decrypts the same batches with the code made from the document alone.
    sealed.stop()
    file = topic_files(sealed).segments[0].read_bytes()
    key = encrypted_bytes.log_key(KEYS[0], int.from_bytes(file[24:32], "little"))
    assert int.from_bytes(file[48:56], "little") == encrypted_bytes.key_id(key)
    stored = file[PAGE:PAGE + int.from_bytes(file[PAGE + 8:PAGE + 12], "little")]
    assert batch_bytes.unbatch(encrypted_bytes.decrypt(key, stored, encrypted_bytes.mask_of(file))).messages == said
    sealed.start()


def test_without_the_right_key_the_topic_is_closed_and_nothing_changes(sealed, control):
    control.create("t", "file", encrypt_at_rest=True, segment_bytes=64 * 1024)
    control.create("clear", "file")
    send(sealed, control, planted(0, 1000))
    sealed.stop()
    before = tree(sealed)
    flags = sealed.flags[:]
    for keys in ((KEYS[1],), ()):
        if keys:
            key_file(sealed, *keys)
        else:
            sealed.flags = flags[:-2]
        begin = len(sealed.log())
        sealed.start()
        error = control("stats", topic="t", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
        assert error["status"] == "error" and error["code"] == "not_supported", error
        said = sealed.logged("topic t cannot be used", begin)
        assert ("key id" in said and str(topic_files(sealed).directory.parent / "1") in said) if keys else "storage_key_file" in said
        send(sealed, control, [b"others go on"], "clear")
        sealed.stop()
        after = tree(sealed)
        assert [name for name in before if name.parent.name == "1" and after.get(name) != before[name]] == []
    sealed.flags = flags
    key_file(sealed, KEYS[0])
    sealed.start()
    assert receive(sealed.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0), 1000) == planted(0, 1000)


def test_a_new_storage_key_is_put_before_the_old_one(sealed, control, session):
    control.create("t", "file", encrypt_at_rest=True)
    send(sealed, control, planted(0, 10))
    for number in (1, 2):
        sealed.stop()
        key_file(sealed, *reversed(KEYS[:number + 1]))
        sealed.start()
        send(sealed, control, planted(10 * number, 10))
    sealed.restart()
    assert [message.payload for message in session(join(control, "t", "pull")).read("t")[0]] == planted(0, 30)
    sealed.stop()
    files = [json.loads(line) for line in topic_files(sealed)("dump", "--segments", "--json").stdout.splitlines()]
    assert len({file["key_id"] for file in files if file["messages"]}) == 3
    key_file(sealed, KEYS[2])
    sealed.start()
    assert control("stats", topic="t", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)["code"] == "not_supported"
    sealed.stop()
    key_file(sealed, *reversed(KEYS))
    sealed.start()


def test_create_topic_names_the_missing_field_and_its_values(sealed, control, make_broker):
    control.create("t", "queue_file", encrypt_at_rest=True)
    settings = {topic["topic"]: topic["settings"] for topic in control.list()}
    assert settings["t"]["encrypt_at_rest"] is True
    assert control.stats("t")["settings"]["encrypt_at_rest"] is True
    who = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    for broker_type in ("queue", "direct"):
        reply = control.fails("invalid_request", "create_topic", topic="u", broker_type=broker_type, encrypt_at_rest=True, **who)
        assert "encrypt_at_rest: only for broker_type file, queue_file" in reply["description"]
    bare = make_broker().control()
    reply = bare.fails("not_supported", "create_topic", topic="t", broker_type="file", encrypt_at_rest=True, **who)
    assert "storage_key_file" in reply["description"]
    assert bare.list() == []
    bare.create("t", "file")
    assert bare.stats("t")["settings"]["encrypt_at_rest"] is False


def test_the_command_line_creates_encrypted_topics(sealed):
    environment = {**sealed.environment, "LIGHTQ_DATA_DIR": str(sealed.data_dir), "LIGHTQ_BROKER": sealed.control_uri}
    for command, stdin in ((["topic", "create", "t", "--type", "file", "--encrypt-at-rest"], b""), (["produce", "t"], PLANTED)):
        done = subprocess.run([BINARY, *command], input=stdin, env=environment, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 0, done
    done = subprocess.run([BINARY, "consume", "t", "-n", "1"], env=environment, capture_output=True, timeout=DEADLINE)
    assert done.stdout == PLANTED + b"\n"
    sealed.stop()
    assert not lies_in(sealed.data_dir, PLANTED)
    sealed.start()


def test_a_command_prints_the_storage_key(make_broker):
    broker = make_broker(start=False)
    path = key_file(broker, KEYS[0])
    broker.flags += ["--storage-key-command", f"cat {path}; echo heard >> {broker.directory}/heard"]
    broker.start()
    control = broker.control()
    control.create("t", "file", encrypt_at_rest=True)
    send(broker, control, planted(0, 10))
    broker.stop()
    assert (broker.directory / "heard").read_text() == "heard\n", "once"
    assert not lies_in(broker.data_dir, PLANTED)
    assert LogFiles.messages(KeyedFiles(broker, path))[9] == planted(9, 1)[0].decode()
    broker.start()


@pytest.mark.parametrize("flags, text, mode, said", [
    (["--storage-key-file", "./absent"], None, None, "storage_key_file: cannot read the storage keys in ./absent"),
    (["--storage-key-file", "storage.keys"], KEYS[0].hex(), 0o640, "chmod 600"),
    (["--storage-key-file", "storage.keys"], "planted-no-key", 0o600, "storage.keys, line 1: not a key of 64"),
    (["--storage-key-file", "storage.keys"], "", 0o600, "storage.keys contains no key"),
    (["--storage-key-command", "echo planted-words >&2; exit 7"], None, None, "exit code 7"),
    (["--storage-key-command", "echo planted-no-key"], None, None, "line 1: not a key of 64"),
    (["--storage-key-command", "true", "--storage-key-file", "x"], None, None, "give only one of them"),
])
def test_a_broker_does_not_start_without_a_configured_key(make_broker, flags, text, mode, said):
    broker = make_broker(*flags, start=False)
    if text is not None:
        (broker.directory / "storage.keys").write_text(text)
        (broker.directory / "storage.keys").chmod(mode)
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) != 0
    broker.process = None
    broker.logged(said)
    assert "planted" not in broker.log() and KEYS[0].hex() not in broker.log()


# --- lightq log ------------------------------------------------------------------------------------------------------

class KeyedFiles(LogFiles):
    """`lightq log` with the key."""

    def __init__(self, broker, path=None):
        super().__init__(topic_files(broker).directory)
        self.path = path or broker.directory / "storage.keys"

    def __call__(self, verb, *arguments, code=0, directory=None):
        keyed = ("--key-file", self.path) if verb in ("dump", "verify") else ()
        return super().__call__(verb, *arguments, *keyed, code=code, directory=directory)


@pytest.fixture
def files(sealed, control):
    """(Without the key, with it): the encrypted log of a stopped broker, with some segments."""
    control.create("t", "file", encrypt_at_rest=True, segment_bytes=64 * 1024)
    send(sealed, control, planted(0, 1000))
    sealed.stop()
    return topic_files(sealed), KeyedFiles(sealed)


WRITTEN = dict(enumerate(message.decode() for message in planted(0, 1000)))


def test_log_commands_with_the_key_show_and_check_all(files):
    bare, keyed = files
    assert keyed.messages() == WRITTEN
    report = keyed.verify()
    assert report["status"] == "clean" and report["messages"] == 1000
    assert report["encrypted_batches"] == report["decrypted_batches"] == report["batches"] > 0
    assert b"all decrypted and checked" in keyed("verify").stdout
    environment = {**os.environ, "LIGHTQ_KEY_FILE": str(keyed.path)}
    done = subprocess.run([BINARY, "log", "dump", str(bare.directory), "-n", "1", "--format", "raw"], capture_output=True,
                          timeout=DEADLINE, env=environment)
    assert done.stdout == planted(0, 1)[0] + b"\n", done


def test_log_commands_without_the_key_show_positions(files):
    bare, _ = files
    before = bare.tree()
    report = bare.verify()
    assert (report["status"], report["messages"]) == ("clean", 1000)
    assert report["encrypted_batches"] == report["batches"] and report["decrypted_batches"] == 0
    assert b"not decrypted: give --key-file to check them" in bare("verify").stdout
    batches = bare.batches()
    assert all(batch["encrypted"] is True for batch in batches)
    assert sum(batch["next_offset"] - batch["first_offset"] for batch in batches) == 1000
    lines = bare("dump").stdout.splitlines()
    assert len(lines) == len(batches) and all(line.endswith(b": ok, encrypted") for line in lines)
    done = bare("dump", "--format", "raw", code=1)
    assert done.stdout == b"" and b"1,000 messages are encrypted: give --key-file FILE to print" in done.stderr
    assert bare.tree() == before


def test_log_commands_with_another_key_report_it(files):
    bare, keyed = files
    keyed.path.write_text(KEYS[1].hex())
    for verb in ("dump", "verify"):
        done = keyed(verb, code=2)
        assert b"key id" in done.stderr and bytes(bare.segments[0]) in done.stderr, done
    keyed.path.chmod(0o644)
    assert b"chmod 600" in keyed("verify", code=2).stderr


def test_a_replaced_batch_is_found_with_the_key(files):
    bare, keyed = files
    segment = bare.segments[0]
    file = segment.read_bytes()
    end = PAGE + int.from_bytes(file[PAGE + 8:PAGE + 12], "little")
    batch = bytearray(file[PAGE:end])
    batch[200] ^= 1
    change(segment, PAGE, encrypted_bytes.with_checksums(bytes(batch), encrypted_bytes.mask_of(file)))
    assert bare.verify()["status"] == "clean", "all checksums are right"
    report = keyed.verify(code=1)
    assert report["status"] == "damaged" and [finding["kind"] for finding in report["findings"]] == ["forged"]
    kept = keyed.messages(code=1)
    assert 0 not in kept and kept == {number: WRITTEN[number] for number in kept} and len(kept) < 1000


def in_clear(segment, next_offset):
    """Returns an unencrypted segment that replaces one of an encrypted log, up to the next segment. Its
    header differs only in the key."""
    epoch, first, incarnation, size = struct.unpack_from("<IQQQ", segment.read_bytes(), 12)
    batch = batch_bytes.batch([b"planted-in-clear"] * (next_offset - first), offset=first, time_us=1, segment_epoch=epoch)
    page = bytearray(encrypted_bytes.segment_page(epoch, first, incarnation, size, 0))
    struct.pack_into("<I", page, 8, 1)  # the version that contains no keys
    struct.pack_into("<I", page, 60, batch_bytes.crc32c(bytes(page[:60])))
    return bytes(page) + batch + bytes(size - PAGE - len(batch))


def test_an_unencrypted_file_among_encrypted_ones_is_damage_with_and_without_the_key(files):
    bare, keyed = files
    segment, behind = bare.segments[1:3]
    segment.write_bytes(in_clear(segment, int(behind.stem)))
    for log in files:
        report = log.verify(code=1)
        assert report["status"] == "damaged"
        assert [(finding["kind"], finding["file"]) for finding in report["findings"]] == [("mixed", str(segment))], report
        said = log("verify", code=1).stdout.decode()
        assert f"damage: {segment} is not encrypted, but other segments are: the log mixes encrypted and unencrypted segments" in said, said
    kept = keyed.messages(code=1)
    assert set(kept.values()) - set(WRITTEN.values()) == {"planted-in-clear"}, "what clear files hold is shown"


def test_verify_with_a_key_reports_an_unencrypted_log(sealed, control):
    control.create("t", "file")
    send(sealed, control, planted(0, 10))
    sealed.stop()
    assert b"; no batch is encrypted" in KeyedFiles(sealed)("verify").stdout
    assert b"encrypted" not in topic_files(sealed)("verify").stdout


def test_repairs_and_snapshots_need_no_key_and_a_broker_takes_them(files, sealed, control, tmp_path):
    bare, keyed = files
    bare("snapshot", tmp_path / "copy")
    assert keyed.messages(directory=tmp_path / "copy") == WRITTEN
    middle = bare.segments[2]
    change(middle, PAGE + 500, lambda byte: byte ^ 1)
    change(bare.segments[1], 20, lambda byte: byte ^ 1)  # a byte of its header
    assert bare.verify(code=1)["status"] == "damaged"
    bare("repair", "--output", tmp_path / "saved", code=3)
    saved = keyed.messages(directory=tmp_path / "saved")
    assert saved == {number: WRITTEN[number] for number in saved} and 1000 > len(saved) > 500
    assert keyed.verify(directory=tmp_path / "saved")["status"] == "clean"
    bare("repair", "--force", code=3)
    sealed.start()
    come = receive(sealed.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0), len(saved))
    assert come == [text.encode() for text in saved.values()]
    assert pathlib.Path(bare.directory, "damaged-1").exists()
