"""A producer without input and output: batches, confirms, refusals, and resending after an interruption.
docs/session.md, "Producing"."""
from __future__ import annotations

import collections
import dataclasses
import math
import typing

from ..errors import Error, InDoubt, ProtocolViolation, Refused, error_of
from . import batch, frames, policy
from .batch import Outgoing, Waiting
from .frames import Frame, ProduceOpened
from .link import Channel, Link

_EAGER_BATCHES = 2  # with fewer unconfirmed batches, a batch that is not full is sent at once
_FAILURES_MAX = 10_000  # ranges of failed messages that are remembered


@dataclasses.dataclass
class ProducerOptions:
    level: int = 0  # 0: the topic's default, 1 received, 2 flushed
    delayed: bool = False
    producer_id: int = 0
    epoch: int = 0
    secret: bytes = b""
    retry_refused: bool = True
    resend_in_doubt: bool = False
    batch_bytes: int = 128 * 1024
    window_bytes: int = 1 << 20
    memory_bytes_max: int = (16 << 20) + (64 << 10)


@dataclasses.dataclass
class _Batch:
    first: int  # the number of the first message
    messages: typing.List[Waiting]
    size: int
    sequence: int = -1
    coded: bytes = b""

    @property
    def end(self) -> int:
        return self.first + len(self.messages)

    @property
    def sequence_end(self) -> int:
        return self.sequence + len(self.messages)

    def numbered(self, sequence: int) -> None:
        if sequence != self.sequence:
            self.sequence, self.coded = sequence, b""

    def split(self, count: int) -> typing.Tuple[_Batch, _Batch]:
        """Returns batches of the first `count` messages and of the others."""
        left, right = self.messages[:count], self.messages[count:]
        size = sum(map(batch.size_of, left))
        return (_Batch(self.first, left, size, self.sequence),
                _Batch(self.first + count, right, self.size - size, self.sequence + count))


Settled = typing.Callable[[int, int, typing.Optional[Error]], None]


class Producing(Channel):
    """Messages are numbered from 0 in the order of `add`. `on_settled(begin, end, error)` is called once for each."""

    join_type = "push"
    codecs = frames.KEEPS_SECRET

    def __init__(self, topic: str, options: ProducerOptions) -> None:
        super().__init__(topic)
        self.options = options
        self.producer_id, self.epoch, self.secret = options.producer_id, options.epoch, options.secret
        self.opened: typing.Optional[ProduceOpened] = None
        self.on_settled: Settled = lambda begin, end, error: None
        self.next_number = 0
        self.lost = 0  # messages that were confirmed and that the broker lost later
        self.unconfirmed_bytes = 0
        self._failures: typing.Deque[typing.Tuple[int, int, Error]] = collections.deque()
        self._forgotten = 0  # failures of messages before this number may be dropped
        self._building: typing.List[Waiting] = []
        self._building_bytes = 0
        self._batch_limit, self._length_max = options.batch_bytes - batch.HEADER_BYTES, math.inf
        self._waiting: typing.Deque[_Batch] = collections.deque()
        self._flight: typing.Deque[_Batch] = collections.deque()
        self._flight_bytes = 0
        self._sequence = 0  # of the next batch that was never sent
        self._confirmed_sequence = 0
        self._is_known = options.producer_id != 0  # the broker has assigned the id
        self._open_request = 0
        self._not_before, self._pause = 0.0, 0.05
        self._flushing = False

    # --- The program's side. -----------------------------------------------------------------------------------------

    def has_room(self, size: int) -> bool:
        """Tells whether messages of this `size_of` fit into the memory for unconfirmed ones. Any size fits alone."""
        return self.unconfirmed_bytes == 0 or self.unconfirmed_bytes + size <= self.options.memory_bytes_max

    def check(self, message: Waiting) -> int:
        """Returns the message's `size_of`. Errors: InvalidArgument (a delay without `delayed`), Refused (too large), the
        final failure."""
        if type(message) is bytes:
            length = len(message)
            if self.failure or length > self._length_max:
                self.check_length(length)
            return 4 + length
        attributed = typing.cast(Outgoing, message)
        if attributed.kinds & batch.DUE and not self.options.delayed:
            raise error_of("invalid_argument", "a delay needs a producer with delayed=True")
        self.check_length(len(attributed.body))
        return attributed.size

    def check_length(self, length: int) -> None:
        """Errors: Refused (no payload may be so long), the final failure."""
        if self.failure:
            raise self.failure
        if self.opened and length > self.opened.message_bytes_max:
            error = Refused(f"a message of {length} bytes; the broker accepts {self.opened.message_bytes_max}", "too_large")
            error.retryable = False
            raise error

    def add(self, message: Waiting, size: int) -> int:
        """Takes a message of this `size_of`. Returns its number."""
        if self.options.delayed:
            message = message if isinstance(message, Outgoing) else Outgoing(message)
            message.kinds |= batch.DUE
            size = message.size
        self._append([message], size)
        return self.next_number - 1

    def add_many(self, bodies: typing.List[bytes], size: int) -> None:
        """Takes messages without attributes. `size`: the sum of their `size_of`."""
        if self.options.delayed:
            for body in bodies:
                self.add(body, batch.size_of(body))
        elif len(bodies) > 1 and (size > self._batch_limit - self._building_bytes
                                  or len(self._building) + len(bodies) > batch.RECORDS_MAX):
            half = len(bodies) // 2
            left = sum(map(batch.size_of, bodies[:half]))
            self.add_many(bodies[:half], left)
            self.add_many(bodies[half:], size - left)
        else:
            self._append(bodies, size)

    def _append(self, messages: typing.Sequence[Waiting], size: int) -> None:
        """Appends messages to the open batch. Closes it before, if they do not fit."""
        if self._building and (self._building_bytes + size > self._batch_limit or len(self._building) == batch.RECORDS_MAX):
            self._close_batch()
        self._building += messages
        self._building_bytes += size
        self.unconfirmed_bytes += size
        self.next_number += len(messages)

    def flush(self) -> None:
        """Lets the next `work` send batches that are not full."""
        self._flushing = True

    @property
    def settled_before(self) -> int:
        """Every message before this number is settled."""
        for batches in self._flight, self._waiting:
            if batches:
                return batches[0].first
        return self.next_number - len(self._building)

    def is_settled(self, number: int) -> bool:
        """Tells whether a message that was added is stored, has failed, or is in doubt."""
        if number < self.settled_before or self._failure_of(number) is not None:
            return True
        return number < self._forgotten and not any(
            each.first <= number < each.end for batches in (self._flight, self._waiting) for each in batches)

    def _failure_of(self, number: int) -> typing.Optional[Error]:
        return next((error for begin, end, error in self._failures if begin <= number < end), None)

    def error_of_message(self, number: int) -> typing.Optional[Error]:
        """Returns why a message is not stored, or None if it is. Requires: it is settled."""
        error = self._failure_of(number)
        if error is None and number < self._forgotten:
            return InDoubt("in_doubt: the fate of the message is not known any more, because too many messages have failed", "in_doubt")
        return error

    # --- The connection's side. --------------------------------------------------------------------------------------

    def attach(self, link: Link, now: float) -> None:
        super().attach(link, now)
        self._open(link)

    def _open(self, link: Link) -> None:
        self._open_request = link.request()
        link.send(frames.produce_open(self._open_request, self.topic, self.producer_id, self.epoch, self.options.level,
                                      int(self.options.delayed), self.secret))

    def handle(self, frame: Frame, now: float) -> None:
        if frame.op == frames.PRODUCE_OPENED and frame.request == self._open_request:
            self._continue(frame)
        elif frame.op == frames.CONFIRM and frame.channel == self.channel != 0:
            self._confirmed(frames.confirm_of(frame.body))
        elif frame.op == frames.REFUSE and frame.channel == self.channel != 0:
            self._refused(frames.refuse_of(frame.body), now)
        elif frame.op == frames.ERROR:
            self._ended(frames.failure_of(frame.body))
        else:
            raise ProtocolViolation(f"the broker sent op {frame.op} to a producer")

    def _continue(self, frame: Frame) -> None:
        opened = self.opened = frames.produce_opened_of(frame.body)
        self._batch_limit = min(opened.batch_bytes_max, self.options.batch_bytes) - batch.HEADER_BYTES
        self._length_max = opened.message_bytes_max
        self.channel, self.opens = frame.channel, self.opens + 1
        self.secret = opened.secret or self.secret
        is_other = not self._is_known or self.producer_id != opened.producer_id
        if is_other or self.opens == 1:
            self._sequence = self._confirmed_sequence = opened.expected
        for each in self._waiting:
            if is_other:
                each.numbered(-1)  # numbers of another id mean nothing
            elif self.epoch != opened.epoch:
                each.coded = b""
        self.producer_id, self.epoch, self._is_known = opened.producer_id, opened.epoch, True
        if opened.expected > self._sequence:
            raise self.fail(self._in_doubt("another process has used the producer id"))
        if opened.expected < self._confirmed_sequence:
            self.lost += self._confirmed_sequence - opened.expected
            self._renumber(opened.expected)
        self._cut(opened.expected)
        self._skip_stored(opened.expected)
        if opened.level != 2:
            self._settle_before(opened.expected)  # that is received, and the broker does not confirm it again
        self._not_before = 0.0

    def _cut(self, expected: int) -> None:
        """Cuts the batch that begins before `expected` and ends after it, because the broker would refuse it."""
        batches: typing.Deque[_Batch] = collections.deque()
        for each in self._waiting:
            is_cut = 0 <= each.sequence < expected < each.sequence_end
            batches.extend(each.split(expected - each.sequence) if is_cut else [each])
        self._waiting = batches

    def _skip_stored(self, expected: int) -> None:
        """Does not send stored batches again. They are in flight until the broker confirms them."""
        while self._waiting and 0 <= self._waiting[0].sequence and self._waiting[0].sequence_end <= expected:
            each = self._waiting.popleft()
            self._flight.append(each)
            self._flight_bytes += each.size

    def _renumber(self, expected: int) -> None:
        """Numbers all unconfirmed batches from `expected`."""
        self._sequence = self._confirmed_sequence = expected
        for each in self._waiting:
            each.numbered(-1)

    def _confirmed(self, confirm: frames.Confirm) -> None:
        opened = typing.cast(ProduceOpened, self.opened)
        value = confirm.flushed if opened.level == 2 else confirm.received
        if confirm.received > self._sequence:
            raise ProtocolViolation("the broker confirmed messages that were not sent")
        self._settle_before(value)
        self._pause = 0.05

    def _settle_before(self, sequence: int) -> None:
        """Everything before this sequence number is confirmed."""
        self._confirmed_sequence = max(self._confirmed_sequence, sequence)
        while self._flight and self._flight[0].sequence_end <= sequence:
            done = self._flight.popleft()
            self._flight_bytes -= done.size
            self._settle(done, None)

    def _settle(self, done: _Batch, error: typing.Optional[Error]) -> None:
        self.unconfirmed_bytes -= done.size
        if error:
            if len(self._failures) == _FAILURES_MAX:
                self._forgotten = max(self._forgotten, self._failures.popleft()[1])
            self._failures.append((done.first, done.end, error))
        self.on_settled(done.first, done.end, error)

    def _refused(self, refuse: frames.Refuse, now: float) -> None:
        """Gives the refused batch up, or sends it again. Those behind it are numbered from `expected`."""
        if refuse.code in policy.ENDING:
            self._ended(frames.Failure(refuse.code, refuse.text))
        back = [each for each in self._flight if each.sequence >= refuse.expected]
        self._flight = collections.deque(each for each in self._flight if each.sequence < refuse.expected)
        self._flight_bytes = sum(each.size for each in self._flight)
        self._sequence = refuse.expected
        at_once = refuse.code in policy.AGAIN_AT_ONCE
        if back and not at_once and (refuse.code in policy.GIVEN_UP or not self.options.retry_refused):
            self._settle(back.pop(0), error_of(refuse.code, refuse.text))
        elif not at_once:
            self._not_before = now + self._pause
            self._pause = min(2 * self._pause, 2.0)
        for each in back:
            each.numbered(-1)
        self._waiting.extendleft(reversed(back))

    def _ended(self, failure: frames.Failure) -> None:
        """Handles an error of the channel. Errors: always."""
        error = error_of(failure.code, failure.text)
        if failure.code == "unknown_producer":
            self._forget_identity(failure.text)
        elif failure.code in policy.FINAL:
            self.fail(error)
        raise error

    def _in_doubt(self, text: str) -> InDoubt:
        return InDoubt(f"unknown_producer: {text}; the unconfirmed messages may be stored or not", "unknown_producer")

    def _forget_identity(self, text: str) -> None:
        """The broker does not know the id. Messages that were sent may be stored or not; later ones get a new id."""
        self.producer_id, self.epoch, self.secret, self._is_known = 0, 0, b"", False
        sent = list(self._flight) + [each for each in self._waiting if each.sequence >= 0]
        self._waiting = collections.deque(each for each in self._waiting if each.sequence < 0)
        self._flight.clear()
        self._flight_bytes = 0
        if self.options.resend_in_doubt:
            for each in sent:
                each.numbered(-1)
            self._waiting.extendleft(reversed(sent))
            return
        for each in sent:
            self._settle(each, self._in_doubt(text))

    def detach(self, error: Error) -> None:
        """Batches in flight wait for the next connection, under the same numbers."""
        super().detach(error)
        self._waiting.extendleft(reversed(self._flight))
        self._flight.clear()
        self._flight_bytes = 0

    def give_up(self, error: Error) -> int:
        """Settles everything that is unconfirmed. Returns the number of these messages."""
        self._close_batch()
        given_up = [*self._flight, *self._waiting]
        self._flight.clear()
        self._waiting.clear()
        self._flight_bytes = 0
        for each in given_up:
            self._settle(each, error)
        return sum(len(each.messages) for each in given_up)

    # --- Sending. ----------------------------------------------------------------------------------------------------

    def _close_batch(self) -> None:
        if self._building:
            first = self.next_number - len(self._building)
            self._waiting.append(_Batch(first, self._building, self._building_bytes))
            self._building, self._building_bytes = [], 0

    def work(self, now: float) -> None:
        if not self.is_open or self.link is None or now < self._not_before:
            return
        while True:
            if not self._waiting and self._building and (self._flushing or len(self._flight) < _EAGER_BATCHES):
                self._close_batch()
            if not self._waiting:
                self._flushing = False
                return
            if self._flight and self._flight_bytes + self._waiting[0].size > self.options.window_bytes:
                return
            self._send(self._waiting.popleft())

    def _send(self, each: _Batch) -> None:
        if each.sequence < 0:
            each.numbered(self._sequence)
            self._sequence = each.sequence_end
        if not each.coded:
            each.coded = batch.encode(each.messages, self.producer_id, self.epoch, each.sequence)
        self._flight.append(each)
        self._flight_bytes += each.size
        typing.cast(Link, self.link).send(frames.encode(frames.PRODUCE, each.coded, self.channel))

    def next_timer(self) -> float:
        return self._not_before if self.is_open and self._waiting and self._not_before else math.inf
