"""Tests where encrypted files may be: they are opened only in the directory of their own topic, even after
changes to the topic. Forged files among them are reported, whichever way they are read."""
import shutil

import pytest
import zmq

from session_client import join  # first, because it adds the path of the vectors
import encrypted_bytes
from cli_support import CommandLine
from log_support import PAGE, LogFiles, sealed_end, send
from support import ADMIN, ADMIN_PASSWORD, Secrets, files_below, receive, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
KEY = bytes([0x47] * 32)
Secrets.known |= {KEY.hex()}
COUNT = 1000


@pytest.fixture
def sealed(make_broker):
    """A broker with a storage key and two encrypted topics, a and b, of some segments each."""
    broker = make_broker(start=False)
    path = broker.directory / "storage.keys"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    broker.flags += ["--storage-key-file", str(path)]
    broker.start()
    for topic in "ab":
        broker.control().create(topic, "file", encrypt_at_rest=True, segment_bytes=64 * 1024)
        send(broker, broker.control(), said(topic), topic)
    return broker


@pytest.fixture
def control(sealed):
    return sealed.control()


def said(topic, first=0):
    return [b"%s|%d|" % (topic.encode(), number) + b"." * 200 for number in range(first, first + COUNT)]


def place(broker, topic):
    """Returns the topic's directory. Topics get ids in the order of creation."""
    return broker.data_dir / "topics" / str("ab".index(topic) + 1)


def fill(directory, source):
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(source, directory)


def held(directory):
    return {path.name: path.read_bytes() for path in files_below(directory)}


def read(session, broker, topic):
    return [message.payload for message in session(join(broker.control(), topic, "pull")).read(topic)[0]]


def change_catalogue(broker, pattern, change):
    """Rewrites records of the catalogue in place: changes each batch that contains `pattern`, and corrects
    its checksums."""
    changed = 0
    for path in sorted((broker.data_dir / "catalogue").rglob("*.seg")):
        data = bytearray(path.read_bytes())
        at = PAGE
        while (length := int.from_bytes(data[at + 8:at + 12], "little")) and data[at:at + 4] == data[PAGE:PAGE + 4]:
            batch = bytes(data[at:at + length])
            if pattern in batch:
                data[at:at + length] = encrypted_bytes.with_checksums(change(batch), encrypted_bytes.mask_of(data))
                changed += 1
            at += length
        path.write_bytes(data)
    return changed


def without_logs(broker):
    """Changes the catalogue to its state of versions that did not record topics' logs."""
    def blank(batch):
        begin = batch.index(b',"log":')
        end = next(at for at in range(begin + 7, len(batch)) if batch[at:at + 1] not in b"0123456789")
        return batch[:begin] + b" " * (end - begin) + batch[end:]
    return change_catalogue(broker, b'"encrypt_at_rest":true', blank)


@pytest.mark.parametrize("how", ["in the place of its own", "where it had none"])
def test_another_topics_files_in_a_topics_directory_are_not_delivered(sealed, session, how):
    if how == "where it had none":
        sealed.control().create("c", "file", encrypt_at_rest=True, segment_bytes=64 * 1024)
    victim = "a" if how == "in the place of its own" else "c"
    sealed.stop()
    directory = place(sealed, "a") if victim == "a" else sealed.data_dir / "topics" / "3"
    saved = sealed.directory / "saved"
    if victim == "a":
        shutil.copytree(directory, saved)
    fill(directory, place(sealed, "b"))
    (directory / "00000000000000999999.seg.prepared").write_bytes(b"left by a crash")
    before = held(directory)
    begin = len(sealed.log())
    sealed.start()
    control = sealed.control()
    error = control("stats", topic=victim, **ROOT)
    assert error["code"] == "corrupt" and "belongs to another topic" in error["description"], error
    assert control("join", topic=victim, type="pull", **ROOT)["code"] == "corrupt"
    words = f"topic {victim} cannot be used"
    line = next(line for line in sealed.logged(words, begin).splitlines() if words in line)
    assert str(directory) in line and "that of topic b" in line, line
    assert read(session, sealed, "b") == said("b"), "it is another topic's matter"
    sealed.stop()
    assert held(directory) == before, "nothing is changed"
    shutil.rmtree(directory)
    if victim == "a":
        shutil.copytree(saved, directory)
    sealed.start()
    assert read(session, sealed, victim) == (said("a") if victim == "a" else [])


def test_a_topics_own_files_open_after_a_kill_and_after_a_restore(sealed, session, tmp_path):
    log = LogFiles(place(sealed, "a"))
    log("snapshot", tmp_path / "copy")
    send(sealed, sealed.control(), said("a", COUNT), "a")
    sealed.kill()
    sealed.start()
    assert read(session, sealed, "a") == said("a") + said("a", COUNT)
    sealed.stop()
    fill(log.directory, tmp_path / "copy")
    sealed.start()
    assert read(session, sealed, "a") == said("a"), "a snapshot put back"
    sealed.stop()
    log("repair", "--output", tmp_path / "repaired")
    fill(log.directory, tmp_path / "repaired")
    sealed.start()
    assert read(session, sealed, "a") == said("a"), "a repaired log"
    assert sealed.control()("purge", topic="a", **ROOT)["status"] == "ok"
    sealed.kill()
    sealed.start()
    assert read(session, sealed, "a") == []
    send(sealed, sealed.control(), [b"behind it"], "a")
    sealed.restart()
    assert read(session, sealed, "a") == [b"behind it"]


def incarnation(directory):
    return int.from_bytes(LogFiles(directory).segments[0].read_bytes()[24:32], "little")


def test_a_recreated_log_belongs_to_the_topic_and_is_another_log(sealed, session, tmp_path):
    directory = place(sealed, "a")
    sealed.stop()
    shutil.copytree(directory, tmp_path / "backup")
    first = incarnation(directory)
    shutil.rmtree(directory)
    sealed.start()
    assert read(session, sealed, "a") == []
    sealed.kill()  # before the new log has a file
    sealed.start()
    send(sealed, sealed.control(), [b"anew"], "a")
    sealed.restart()
    assert read(session, sealed, "a") == [b"anew"]
    second = incarnation(directory)
    assert first >> 32 == second >> 32 != 0 and first != second, "whoever knew the log can tell"
    sealed.stop()
    fill(directory, tmp_path / "backup")
    sealed.start()
    assert read(session, sealed, "a") == said("a"), "an older backup of the same topic"


def test_an_older_catalogue_adopts_the_existing_files_and_keeps_them(sealed, session):
    sealed.control().create("never", "file", encrypt_at_rest=True)
    sealed.stop()
    assert without_logs(sealed) == 3
    sealed.start()
    assert read(session, sealed, "a") == said("a")
    sealed.kill()  # the log taken over by the topic is recorded on disk
    fill(place(sealed, "a"), place(sealed, "b"))
    sealed.start()
    assert "belongs to another topic" in sealed.control()("stats", topic="a", **ROOT)["description"]
    assert read(session, sealed, "b") == said("b")
    send(sealed, sealed.control(), [b"first"], "never")
    sealed.restart()
    assert read(session, sealed, "never") == [b"first"]


def test_an_older_copy_of_a_topics_files_is_logged(sealed):
    sealed.stop()
    without_logs(sealed)
    fill(place(sealed, "a"), place(sealed, "b"))
    begin = len(sealed.log())
    sealed.start()
    assert "or a copy of them" in sealed.logged("its files are those of topic", begin)


def test_a_client_with_the_key_decrypts_another_topics_messages_by_hand(sealed, session):
    directory = place(sealed, "b")
    sealed.control().create("anew", "file", encrypt_at_rest=True)
    out = LogFiles(directory)("dump", "--format", "%p\n", "--key-file", sealed.directory / "storage.keys").stdout
    assert out == b"".join(message + b"\n" for message in said("b"))
    CommandLine(sealed)("produce", "anew", stdin=out)
    assert read(session, sealed, "anew") == said("b")


# --- forged batches are reported -------------------------------------------------------------------------------------

def forge(broker):
    """Replaces each batch of one segment of topic a by another one with correct checksums. Returns the
    offsets lost in this way."""
    segments = LogFiles(place(broker, "a")).segments
    data = bytearray(segments[1].read_bytes())
    at, end = PAGE, sealed_end(segments[1])
    while at < end:
        batch = bytearray(data[at:at + int.from_bytes(data[at + 8:at + 12], "little")])
        batch[-1] ^= 1
        data[at:at + len(batch)] = encrypted_bytes.with_checksums(bytes(batch), encrypted_bytes.mask_of(data))
        at += len(batch)
    segments[1].write_bytes(data)
    return range(int(segments[1].stem), int(segments[2].stem))


def corrupt(broker):
    return broker.control()("stats", topic="a", **ROOT)["corrupt"]


@pytest.mark.parametrize("reads", ["read", "peek"])
def test_forged_batches_count_once_for_all_readers(sealed, session, reads):
    sealed.stop()
    lost = forge(sealed)
    sealed.start()
    kept = [message for number, message in enumerate(said("a")) if number not in lost]
    begin = len(sealed.log())
    for _ in range(2):
        if reads == "read":
            assert read(session, sealed, "a") == kept
        else:
            done = CommandLine(sealed)("peek", "a", "-n", str(COUNT), "--format", "%p\\n")
            assert done.stdout.splitlines() == kept
        assert corrupt(sealed) == len(lost)
    until(lambda: f"{len(lost)} messages cannot be read and were skipped" in sealed.log()[begin:], "a line in the log")
    line = next(line for line in sealed.log()[begin:].splitlines() if "were skipped" in line)
    assert f"{lost[0]:020}.seg" in line and "position" in line, line
    puller = sealed.socket(zmq.PULL, sealed.control().join("a", "pull"), rcvhwm=0)
    assert receive(puller, len(kept)) == kept
    assert corrupt(sealed) == len(lost), "the group came to the same ones"
