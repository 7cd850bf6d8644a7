"""Tests producing over sessions that end without a goodbye: the broker is killed, or the connection breaks."""
import random

import pytest

from harness import variable
from session_client import FLUSHED, RECEIVED, Session, everything, join
from support import SANITIZED, numbered

KIB = 1024


def seeds():
    """Returns the same seeds at each run, unless LIGHTQ_SEED names another one or is `random`."""
    wanted = variable("LIGHTQ_SEED")
    if wanted is None:
        return [1, 2] if SANITIZED else [1, 2, 3]
    return [random.SystemRandom().randrange(1 << 32) if wanted == "random" else int(wanted)]


def send_again(producer, batches, confirmed):
    """Sends unconfirmed batches again. Sends the last batch in any case, so that there is a confirm to wait
    for."""
    for first, messages in batches:
        if first + len(messages) > confirmed or first == batches[-1][0]:
            producer.produce(messages, sequence=first)


@pytest.mark.parametrize("broker_type, level", [("file", FLUSHED), ("file", RECEIVED), ("queue_file", FLUSHED)])
@pytest.mark.parametrize("seed", seeds())
def test_over_kills_every_confirmed_message_is_there_once(broker, control, broker_type, level, seed):
    """LIGHTQ_SEED repeats a run. The client follows the document: it uses the same id and epoch, and sends
    every unconfirmed batch again unchanged."""
    print("LIGHTQ_SEED =", seed)
    dice = random.Random(seed)
    control.create("t", broker_type, segment_bytes=256 * KIB)
    batches, confirmed, identity = [], 0, (0, 0)  # each batch: its first sequence number and its messages
    for _ in range(4):
        with Session(join(control, "t")) as one:
            producer = one.producer("t", *identity, level=level)
            identity = (producer.id, producer.epoch)
            assert producer.next >= confirmed, "what was confirmed is forgotten"
            send_again(producer, batches, confirmed)
            target = confirmed + dice.randrange(200, 800)
            while producer.confirmed < target:
                messages = numbered(producer.next, dice.randrange(1, 30), dice.randrange(1, 2000))
                batches.append((producer.next, messages))
                producer.produce(messages)
                one.read_some(0.001)
                assert not one.frames, one.frames
            broker.kill()
            confirmed = max(confirmed, producer.confirmed)
        broker.start()
    with Session(join(control, "t")) as one:
        producer = one.producer("t", *identity, level=level)
        send_again(producer, batches, confirmed)
        producer.wait_confirmed()
    sent = [message for _, messages in batches for message in messages]
    assert everything(broker, control, "t", len(sent)) == sent


def test_a_connection_that_breaks_costs_nothing(broker, control, session):
    control.create("t")
    messages, identity, reached = numbered(0, 300, 200), (0, 0), 0
    for _ in range(6):
        producer = session("t").producer("t", *identity)
        identity = (producer.id, producer.epoch)
        assert producer.next >= reached
        for first in range(producer.next, min(producer.next + 70, 300)):
            producer.produce([messages[first]], sequence=first)
        reached = producer.confirmed
        producer.session.close()  # with unread confirms
    last = session("t").producer("t", *identity)
    # The message before `next` is stored already; sending it again only confirms it.
    for first in range(max(last.next - 1, 0), 300):
        last.produce([messages[first]], sequence=first)
    last.wait_confirmed()
    assert everything(broker, control, "t", 300) == messages


def test_a_batch_that_is_cut_off_leaves_nothing(broker, control, session):
    control.create("t", "file")
    for keep in (1, 19, 20, 21, 84, 100, 500, 1000):
        producer = session("t").producer("t")
        whole = producer.frame_of(numbered(0, 10, 100))
        assert keep < len(whole)
        producer.session.send_raw(whole[:keep])
        producer.session.close()
    producer = session("t").producer("t")
    producer.produce([b"all there is"])
    producer.wait_confirmed()
    assert everything(broker, control, "t", 1) == [b"all there is"]
