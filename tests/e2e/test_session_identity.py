"""Tests which clients may continue as a producer. An id is valid for the user that received it, or for a
client that shows its secret. No client is shown which user a message is from."""
import pytest

from session_client import FLUSHED, OWN, join  # first, because it adds the path of the vectors
import batch_bytes
from support import ADMIN, ADMIN_PASSWORD

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
KEEPS_SECRETS = 1 << 31  # a bit of the codecs in hello


def credentials(name):
    return {"user_id": name, "password": f"{name}-password-1"}


@pytest.fixture
def of_two(control):
    """Makes a topic `t` for alice and mallory. Both may produce and consume."""
    def make(broker_type):
        control.create("t", broker_type)
        for name in ("alice", "mallory"):
            control.ok("create_user", **ROOT, **credentials(name),
                       rights=[{"topic": "t", "rights": ["produce", "consume"]}])
    return make


def opening(producer_id, epoch, **more):
    return dict(producer_id=producer_id, producer_epoch=epoch, level=0, topic="t", **more)


def payloads(control, session, topic="t"):
    return [message.payload for message in session(join(control, topic, "pull")).read(topic)[0]]


@pytest.mark.parametrize("broker_type", ["queue", "file", "queue_file"])
def test_a_user_cannot_store_messages_under_anothers_producer_id(broker, control, session, of_two, broker_type):
    """Alice's connection breaks with three messages unconfirmed. Mallory knows her id and epoch."""
    of_two(broker_type)
    mallory = {kind: session(join(control, "t", kind, **credentials("mallory"))) for kind in ("push", "sub")}
    sees = mallory["sub"].consumer("t", mode=OWN)
    before = session(join(control, "t", **credentials("alice"))).producer("t")
    before.produce([b"one", b"two"])
    before.wait_confirmed()
    before.session.close()
    sees.receive(2)
    shown = batch_bytes.unbatch(sees.batches[0])
    assert (shown.producer_id, shown.epoch, shown.sequence) == (0, 0, 0)
    starts = 1 if broker_type == "queue" else 2
    for start in range(starts):
        for epoch in (before.epoch, before.epoch + 1, 32767, 65535):
            assert mallory["push"].error_of("produce_open", **opening(before.id, epoch)) == "unknown_producer"
        if start + 1 < starts:
            broker.restart()
            mallory["push"] = session(join(control, "t", **credentials("mallory")))
    again = session(join(control, "t", **credentials("alice"))).producer("t", before.id, before.epoch)
    assert again.next == 2
    again.produce([b"three", b"four", b"five"], sequence=2)
    again.wait_confirmed()
    assert payloads(control, session) == [b"one", b"two", b"three", b"four", b"five"]


def test_a_producer_id_from_before_a_kill_still_belongs_to_its_user(broker, control, session, of_two):
    of_two("file")
    before = session(join(control, "t", **credentials("alice"))).producer("t", level=FLUSHED)
    before.produce([b"one"])
    before.wait_confirmed()
    broker.kill()
    broker.start()
    mallory = session(join(control, "t", **credentials("mallory")))
    assert mallory.error_of("produce_open", **opening(before.id, before.epoch)) == "unknown_producer"
    assert session(join(control, "t", **credentials("alice"))).producer("t", before.id, before.epoch).next == 1


@pytest.mark.parametrize("codec", [batch_bytes.NONE, batch_bytes.LZ4, batch_bytes.ZSTD], ids=["plain", "lz4", "zstd"])
def test_the_user_of_a_message_is_not_shown(control, session, codec):
    """Neither whole batches, nor parts of batches, nor reads show it."""
    control.create("t")
    said = [b"number %d" % number for number in range(40)]
    producer = session("t").producer("t")
    for first in (0, 20):
        producer.send_batch(batch_bytes.batch(said[first:first + 20], producer.id, producer.epoch, first, codec=codec))
    producer.next = 40
    producer.wait_confirmed()
    consumer = session(join(control, "t", "sub"), codecs=6).consumer("t", mode=OWN, credit=(30, 1 << 20))
    consumer.receive(30)
    consumer.give(10)
    consumer.receive(10)
    reader = session(join(control, "t", "pull"), codecs=6)
    number = reader.last_request = reader.last_request + 1
    reader.send("read", request=number, begin=0, end=40, bytes=1 << 20, topic="t")
    reader.take(lambda frame: frame.op == "done" and frame.request == number, "done")
    read = [bytes.fromhex(frame.values["batch"]) for frame in reader.frames if frame.op == "deliver"]
    for batches in (consumer.batches, read):
        shown = [batch_bytes.unbatch(batch) for batch in batches]
        assert [message.payload for batch in shown for message in batch.messages] == said
        assert {(batch.producer_id, batch.epoch, batch.sequence) for batch in shown} == {(0, 0, 0)}


def test_the_topics_own_user_continues_with_another_password(control, session):
    control.create("t")
    before = session("t").producer("t")
    before.produce([b"one"])
    before.wait_confirmed()
    control.ok("set_password", **ROOT, topic="t", new_password="another-password-1")
    again = session(join(control, "t", password="another-password-1")).producer("t", before.id, before.epoch)
    assert again.next == 1


def test_a_producer_id_is_not_open_to_administrators_either(control, session, of_two):
    of_two("queue")
    alice = session(join(control, "t", **credentials("alice"))).producer("t")
    root = session(join(control, "t", **ROOT))
    assert root.error_of("produce_open", **opening(alice.id, alice.epoch)) == "unknown_producer"
    alice.produce([b"one"])
    alice.wait_confirmed()


# Open topics have no users, so a client shows a secret instead.


@pytest.mark.parametrize("broker_type", ["queue", "file"])
def test_on_an_open_topic_only_the_secret_reopens_a_producer_id(broker, control, session, broker_type):
    control.ok("create_topic", **ROOT, topic="t", broker_type=broker_type, open=True)
    before = session("t", codecs=KEEPS_SECRETS).producer("t")
    secret = before.opened["secret"]
    assert len(secret) == 32 and secret != "00" * 16
    before.produce([b"one"])
    before.wait_confirmed()
    starts = 1 if broker_type == "queue" else 2
    for start in range(starts):
        for codecs in (0, KEEPS_SECRETS):
            other = session("t", codecs=codecs)
            for shown in ("", "00" * 16, secret[:-2] + "00" if secret[-2:] != "00" else secret[:-2] + "01"):
                for epoch in (0, 1, 65535):
                    answer = other.request("produce_open", **opening(before.id, epoch, secret=shown))
                    assert answer.op == "error" and answer.code == "unknown_producer", answer
        answer = session("t", codecs=KEEPS_SECRETS).request("produce_open", **opening(before.id, start, secret=secret))
        assert answer.op == "produce_opened" and answer.values["secret"] == secret, answer
        assert answer.values["expected"] == 1
        if start + 1 < starts:
            broker.restart()


def test_a_client_that_keeps_no_secret_receives_none_and_continues_by_its_id(control, session):
    control.ok("create_topic", **ROOT, topic="t", broker_type="queue", open=True)
    before = session("t").producer("t")
    assert before.opened["secret"] == ""
    before.produce([b"one"])
    before.wait_confirmed()
    assert session("t").producer("t", before.id, before.epoch).next == 1


def test_a_user_of_a_session_receives_no_producer_secret(control, session):
    control.create("t")
    assert session("t", codecs=KEEPS_SECRETS).producer("t").opened["secret"] == ""
