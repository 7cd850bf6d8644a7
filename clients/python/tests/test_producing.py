"""Tests the producer's core with a scripted broker: docs/session.md, "Again"."""
import struct

import pytest
import session_frames
from lightq.core import frames, producing
from lightq.core.link import Link
from lightq.core.producing import Producing, ProducerOptions
from lightq.errors import Fenced, InDoubt, Refused


class Broker:
    """Answers a producer without input and output. `sent` has (sequence, bodies) of the batches since the opening."""

    def __init__(self, **options):
        self.core, self.settled, self.sent, self.opens = Producing("t", ProducerOptions(**options)), [], [], []
        self.core.on_settled = lambda begin, end, error: self.settled.append((begin, end, error and error.code))

    def open(self, expected=0, producer_id=7, level=1, code=None, epoch=0):
        if self.core.link is not None:
            self.core.detach(Refused("cut"))
        self.link = Link("t.s", self.core.codecs, 0, "", 1 << 20, 0.0)
        self.link.out.clear()
        self.core.attach(self.link, 0.0)
        [asked] = self.frames()
        self.opens.append((asked[4]["producer_id"], asked[4]["producer_epoch"]))
        if code is not None:
            self.say("error", request=asked[3], code=frames.CODES.index(code), sentence="")
        else:
            self.sent = []
            self.say("produce_opened", channel=5, request=asked[3], producer_id=producer_id, producer_epoch=epoch, level=level, target=0,
                     batch_bytes_max=1 << 16, message_bytes_max=1 << 16, expected=expected, next_offset=0, incarnation=1)
        return self

    def frames(self):
        out, found = bytes(self.link.out), []
        self.link.out.clear()
        while out:
            length = 20 + struct.unpack_from("<I", out, 12)[0]
            found.append(session_frames.decode(out[:length]))
            out = out[length:]
        return found

    def say(self, op, channel=0, request=0, **values):
        frame = session_frames.encode(op, values, channel=channel, request=request)
        reader = frames.FrameReader(1 << 20)
        reader.feed(frame)
        self.core.handle(reader.next(), 0.0)

    def confirm(self, received, flushed=0):
        self.say("confirm", channel=5, received=received, flushed=flushed, next_offset=received)

    def refuse(self, begin, end, expected, code):
        self.say("refuse", channel=5, begin=begin, end=end, expected=expected, code=frames.CODES.index(code), sentence="")

    def send(self, *bodies):
        """Each call is a batch of its own."""
        for body in bodies:
            self.core.add(body, 4 + len(body))
        self.core.flush()
        return self.work()

    def work(self, now=1e9):
        self.core.work(now)
        for op, _, channel, _, values in self.frames():
            assert (op, channel) == ("produce", 5)
            data = bytes.fromhex(values["batch"])
            producer_id, sequence, epoch = struct.unpack_from("<QQH", data, 32)
            assert (producer_id, epoch) == (self.core.producer_id, self.core.epoch)
            count, bodies, at = struct.unpack_from("<I", data, 12)[0], [], 64
            for _ in range(count):
                length, = struct.unpack_from("<I", data, at)
                bodies.append(data[at + 4:at + 4 + length])
                at += 4 + length
            self.sent.append((sequence, bodies))
        return self


def test_unconfirmed_batches_are_sent_again_as_they_were():
    broker = Broker().open(40).send(b"a", b"b").send(b"c")
    broker.confirm(42)
    broker.open(42).work()
    assert broker.sent == [(42, [b"c"])] and broker.opens[1] == (7, 0)
    broker.confirm(43)
    assert broker.settled == [(0, 2, None), (2, 3, None)]


def test_batches_before_expected_are_kept_until_they_are_confirmed():
    """At level `flushed`, a stored batch is not confirmed yet."""
    broker = Broker().open(0, level=2).send(b"a").send(b"b").send(b"c")
    broker.open(2, level=2).work()
    assert broker.sent == [(2, [b"c"])] and broker.settled == []
    broker.confirm(2, 1)
    assert broker.settled == [(0, 1, None)]
    broker.open(1, level=2).work()  # a crash of the broker has lost the batches that were not flushed
    assert broker.sent == [(1, [b"b"]), (2, [b"c"])] and broker.core.lost == 0
    broker.confirm(3, 3)
    assert broker.settled == [(0, 1, None), (1, 2, None), (2, 3, None)]


def test_a_confirm_may_follow_the_opening_without_a_batch():
    broker = Broker().open(0, level=2).send(b"a").send(b"b")
    broker.open(2, level=2)
    broker.confirm(2, 2)
    assert broker.work().sent == [] and broker.settled == [(0, 1, None), (1, 2, None)]
    broker.open(2, level=2)
    broker.confirm(2, 2)
    assert broker.send(b"c").sent == [(2, [b"c"])]


def test_what_is_received_before_the_opening_is_confirmed_by_it():
    broker = Broker().open(0).send(b"a").send(b"b")
    broker.open(1).work()
    assert broker.sent == [(1, [b"b"])] and broker.settled == [(0, 1, None)]


def test_a_producer_finishes_although_each_connection_ends_after_one_batch():
    broker = Broker().open(0, level=2)
    for number in range(30):
        broker.send(b"%d" % number)
    for stored in range(30):
        broker.open(stored, level=2).work()
        assert broker.sent[0] == (stored, [b"%d" % stored]) and len(broker.sent) == 30 - stored
    broker.open(30, level=2).work()
    broker.confirm(30, 30)
    assert broker.sent == [] and len(broker.settled) == 30 and broker.core.unconfirmed_bytes == 0


def test_a_batch_that_expected_divides_is_cut():
    broker = Broker().open(0).send(b"a", b"b", b"c")
    broker.open(1).work()
    assert broker.sent == [(1, [b"b", b"c"])]
    broker.confirm(3)
    assert broker.settled == [(0, 1, None), (1, 3, None)]


def test_messages_that_the_broker_lost_are_counted_and_later_ones_renumbered():
    broker = Broker().open(0).send(b"a").send(b"b").send(b"c")
    broker.confirm(2)
    broker.open(1).work()
    assert broker.sent == [(1, [b"c"])] and broker.core.lost == 1
    broker.confirm(2)
    assert broker.settled[-1] == (2, 3, None)


def test_an_unknown_producer_leaves_sent_messages_in_doubt():
    broker = Broker().open(0).send(b"a")
    broker.core.detach(Refused("cut"))
    broker.core.add(b"later", 9)
    with pytest.raises(InDoubt):
        broker.open(code="unknown_producer")
    assert broker.settled == [(0, 1, "unknown_producer")]
    broker.open(0, producer_id=8).send()
    assert broker.opens[-1] == (0, 0) and broker.sent == [(0, [b"later"])]


def test_messages_in_doubt_are_sent_again_on_request():
    broker = Broker(resend_in_doubt=True).open(5).send(b"a")
    with pytest.raises(InDoubt):
        broker.open(code="unknown_producer")
    broker.open(0, producer_id=8).work()
    assert broker.sent == [(0, [b"a"])] and broker.settled == []


def test_another_id_or_epoch_changes_what_waits():
    """Numbers belong to the id that they were given for, and coded batches also to the epoch."""
    broker = Broker().open(1000).send(b"a").send(b"b")
    broker.open(1001, epoch=1).work()
    assert broker.sent == [(1001, [b"b"])]
    broker.open(5, producer_id=8).work()
    assert broker.sent == [(5, [b"b"])] and broker.core.lost == 0
    broker.confirm(6)
    assert broker.settled == [(0, 1, None), (1, 2, None)]


def test_another_process_that_used_the_id_ends_the_producer():
    broker = Broker().open(0).send(b"a")
    with pytest.raises(InDoubt):
        broker.open(9)
    assert isinstance(broker.core.failure, InDoubt)


def test_a_fenced_producer_ends():
    broker = Broker().open(0)
    with pytest.raises(Fenced):
        broker.open(code="fenced")
    assert isinstance(broker.core.failure, Fenced)


def test_a_refused_batch_is_sent_again_later_before_the_others():
    broker = Broker().open(0).send(b"a").send(b"b").send(b"c")
    broker.refuse(1, 2, 1, "limit_reached")
    broker.sent = []
    broker.work(0.0)
    assert broker.sent == [] and 0 < broker.core.next_timer() < 1
    broker.work()
    assert broker.sent == [(1, [b"b"]), (2, [b"c"])]
    broker.confirm(3)
    assert broker.settled == [(0, 1, None), (1, 2, None), (2, 3, None)]


def test_a_refused_batch_is_given_up_and_the_others_renumbered():
    broker = Broker(retry_refused=False).open(0).send(b"a").send(b"b").send(b"c")
    broker.refuse(1, 2, 1, "limit_reached")
    broker.sent = []
    broker.work()
    assert broker.sent == [(1, [b"c"])]
    broker.confirm(2)
    assert broker.settled == [(1, 2, "limit_reached"), (0, 1, None), (2, 3, None)]
    assert broker.core.is_settled(1) and broker.core.error_of_message(1).code == "limit_reached"


def test_a_damaged_batch_is_sent_again_at_once():
    broker = Broker(retry_refused=False).open(0).send(b"a")
    broker.refuse(0, 1, 0, "corrupt")
    broker.sent = []
    broker.work(0.0)
    assert broker.sent == [(0, [b"a"])] and broker.settled == []


def test_a_forgotten_failure_is_no_success(monkeypatch):
    """Only so many failures are kept. The fate of an older message is not known any more."""
    monkeypatch.setattr(producing, "_FAILURES_MAX", 2)
    broker = Broker(retry_refused=False).open(0).send(b"a").send(b"b").send(b"c").send(b"d").send(b"e")
    for _ in range(3):  # the first one stays unconfirmed, and the later ones fail
        broker.refuse(1, 2, 1, "limit_reached")
        broker.work()
    assert [broker.core.is_settled(number) for number in range(5)] == [False, True, True, True, False]
    assert isinstance(broker.core.error_of_message(1), InDoubt)
    assert [broker.core.error_of_message(number).code for number in (2, 3)] == ["limit_reached"] * 2
    broker.confirm(2)
    assert broker.core.error_of_message(1).code == "in_doubt" == broker.core.error_of_message(0).code
    assert broker.core.is_settled(4) and broker.core.error_of_message(4) is None
