"""A consumer without input and output: credit, deliveries, leases and settling. docs/session.md, "Consuming"."""
from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import typing

from ..errors import ConnectionLost, Error, InvalidArgument, ProtocolViolation, error_of
from ..message import Attributes, BaseMessage, Delivery, Settler
from . import batch, frames, policy
from .credit import Credit
from .frames import Frame
from .link import Channel, Link
from .ranges import holds, ranges_of

GROUP, OWN = 1, 2
FIRST, NEXT, LAST, OFFSET, TIME = range(1, 6)
_GATHER_SECONDS = 0.1  # so long acknowledgements wait at most
_GATHER_MAX = 256
_NAMED_MAX = 256  # messages that one frame names as started
_QUICK_SECONDS = 0.002
_MEASURED_TOGETHER = 16
_RANGES_MAX = 4000  # of one frame of at most 64 KiB
_DELAY_MS_MAX = (1 << 32) - 1
MANY = 1000  # messages that one call returns at most, if the program does not say
Start = typing.Union[str, int, float, typing.Tuple[str, float]]


@dataclasses.dataclass
class ConsumerOptions:
    group: str = ""
    own: bool = False
    start: Start = "first"
    holds: bool = False
    automatic: bool = False
    prefetch: typing.Optional[int] = None
    prefetch_bytes: int = 1 << 20
    ack_timeout: float = 0
    incarnation: int = 0


def start_of(start: Start) -> typing.Tuple[int, int]:
    """Returns the wire's start and its value, of `first`, `next`, `last`, an offset, or ("time", seconds since 1970)."""
    words = {"first": FIRST, "next": NEXT, "last": LAST}
    if isinstance(start, str) and start in words:
        return words[start], 0
    if isinstance(start, int) and start >= 0:
        return OFFSET, start
    if isinstance(start, tuple) and len(start) == 2 and start[0] == "time":
        return TIME, max(round(start[1] * 1e6), 0)
    raise InvalidArgument(f"start is {start!r}; it is 'first', 'next', 'last', an offset, or ('time', seconds since 1970)")


def check_most(most: int) -> None:
    """Checks how many messages a call may return. Errors: InvalidArgument."""
    if most < 1:
        raise InvalidArgument(f"`most` is {most}; it is 1 or more")


def _milliseconds(seconds: float, name: str) -> int:
    if seconds < 0 or seconds * 1000 > _DELAY_MS_MAX:
        raise InvalidArgument(f"{name} is {seconds} s; it is 0 to {_DELAY_MS_MAX // 1000} s")
    return min(math.ceil(seconds * 1000), _DELAY_MS_MAX)


class Consuming(Channel):
    """`make_message` makes messages of the client's class. `on_revoked` is called for messages of the program."""

    codecs = frames.KNOWS_DEAD | frames.KNOWS_LEASES | frames.MAY_BE_BUSY | frames.KNOWS_LATE

    def __init__(self, topic: str, options: ConsumerOptions,
                 make_message: typing.Callable[[bytes, int, Delivery, typing.Optional[Attributes]], BaseMessage]) -> None:
        super().__init__(topic)
        self.options, self.join_type = options, "sub" if options.own else "pull"
        self.make_message = make_message
        self.on_revoked: typing.Callable[[BaseMessage], None] = lambda message: None
        self.opened: typing.Optional[frames.ConsumeOpened] = None
        self.late = self.lost = 0
        start, value = start_of(options.start)
        self._start, self._start_value, self._incarnation = start, value, options.incarnation
        self._ack_timeout_ms = _milliseconds(options.ack_timeout, "ack_timeout")
        if options.prefetch is not None and not 1 <= options.prefetch <= 1_000_000_000:
            raise InvalidArgument(f"prefetch is {options.prefetch}; it is 1 to 1,000,000,000")
        adapts = options.prefetch is None and not options.own and not options.automatic
        self.credit = Credit(None if adapts else options.prefetch or 1000, options.prefetch_bytes)
        self._ready: typing.Deque[BaseMessage] = collections.deque()
        self._held: typing.Dict[int, BaseMessage] = {}  # by offset: the program has them
        self._named_left, self._named_count, self._named_at = 0, 1, 0.0
        self._acks: typing.Dict[int, typing.List[int]] = {}
        self._ack_count, self._gathered_at = 0, math.inf
        self._settled_at = 0  # the bytes of the link up to its last frame that settles messages
        self.is_settling_lost = False  # the last connection has ended before the system had taken all of these
        self._requests: typing.Dict[int, str] = {}
        self.answers: typing.Dict[int, typing.Union[int, Error]] = {}
        self._unwanted: typing.Set[int] = set()  # requests that nobody waits for any more
        # When the program received a message, and how many since then; 0: their work was measured.
        self._given_at, self._given = 0.0, 0
        self.is_paused = False

    # --- The connection's side. --------------------------------------------------------------------------------------

    def attach(self, link: Link, now: float) -> None:
        super().attach(link, now)
        self._settled_at = 0
        request, options = link.request(), self.options
        self._requests = {request: "open"}
        link.send(frames.consume_open(request, self.topic, options.group, OWN if options.own else GROUP,
                                      2 if options.automatic else 1, self._start, self._start_value, options.holds,
                                      self.credit.reset(), self._incarnation, self._ack_timeout_ms))

    def handle(self, frame: Frame, now: float) -> None:
        if frame.op == frames.DELIVER and frame.channel == self.channel != 0:
            self._delivered(frame)
        elif frame.op == frames.CONSUME_OPENED and self._requests.pop(frame.request, "") == "open":
            self._opened(frame)
        elif frame.op == frames.REVOKED and frame.channel == self.channel != 0:
            self._revoked(frames.revoke_of(frame.body))
        elif frame.op == frames.LATE and frame.channel == self.channel != 0:
            self.late += sum(end - begin for begin, end in frames.late_of(frame.body))
        elif frame.op == frames.DONE and frame.request in self._requests:
            self._done(frame)
        elif frame.op == frames.ERROR:
            self._failed(frame)
        else:
            raise ProtocolViolation(f"the broker sent op {frame.op} to a consumer")

    def _opened(self, frame: Frame) -> None:
        opened = self.opened = frames.consume_opened_of(frame.body, frame.flags)
        self.channel, self.opens = frame.channel, self.opens + 1
        self.is_settling_lost = False  # these messages come again
        if self.options.own and not self.options.group:
            # The broker forgets this cursor with the connection: the next one begins where this one ends.
            self._start, self._start_value, self._incarnation = OFFSET, opened.next, opened.incarnation

    def _delivered(self, frame: Frame) -> None:
        deliver = frames.deliver_of(frame.body, frame.flags)
        come = batch.decode(deliver.batch)
        bodies = come.bodies
        if not self.credit.take(*come.sizes()):
            raise ProtocolViolation("the broker delivered more than this consumer requested")
        delivered = Delivery(deliver.delivery, deliver.hand_out, come.append_time_us / 1e6, self.opens)
        attributes: typing.List[typing.Optional[Attributes]] = [*come.attributes] if come.attributes else [None] * len(bodies)
        if deliver.lost:
            self.lost += deliver.lost
            first = attributes[0] or Attributes(len(bodies[0]))
            first.lost = deliver.lost
            attributes[0] = first
        self._ready.extend(map(self.make_message, bodies, itertools.count(come.base_offset), itertools.repeat(delivered), attributes))
        if self.options.own and not self.options.group:
            self._start_value = max(self._start_value, come.base_offset + len(bodies))

    def _revoked(self, revoke: frames.Revoke) -> None:
        def is_meant(message: BaseMessage) -> bool:
            return message.delivered.hand_out < revoke.before and holds(revoke.ranges, message.offset)
        for message in [each for each in self._ready if is_meant(each)]:
            message.revoked = True
            self._ready.remove(message)
            self.credit.dropped(message.size)
        self._named_left = 0
        for message in [each for each in self._held.values() if is_meant(each)]:
            self._take_back(message)

    def _take_back(self, message: BaseMessage) -> None:
        message.revoked = True
        self._held.pop(message.offset, None)
        self.credit.settled(message.size)
        self.on_revoked(message)

    def _done(self, frame: Frame) -> None:
        what = self._requests.pop(frame.request)
        value = frames.done_of(frame.body)
        self._answer(frame.request, value)
        if what == "seek":
            # Everything that came before is from the old position. Members with leases have received `revoked`.
            while self._ready:
                self.credit.dropped(self._ready.popleft().size)
            for message in list(self._held.values()):
                self._take_back(message)
            self._start_value = value if self._start == OFFSET else self._start_value

    def _answer(self, request: int, value: typing.Union[int, Error]) -> None:
        if request in self._unwanted:
            self._unwanted.remove(request)
        else:
            self.answers[request] = value

    def forget(self, request: int) -> None:
        """Nobody waits for the answer any more, whether it has come or not."""
        if request in self._requests:
            self._unwanted.add(request)
        self.answers.pop(request, None)

    def _failed(self, frame: Frame) -> None:
        failure = frames.failure_of(frame.body)
        error = error_of(failure.code, failure.text)
        what = self._requests.pop(frame.request, "") if frame.request else ""
        if what and what != "open":
            self._answer(frame.request, error)
            return
        if failure.code in policy.FINAL or failure.code == "incarnation_changed":
            self.fail(error)
        raise error

    def detach(self, error: Error) -> None:
        """The broker delivers everything that is not settled again."""
        if self._ack_count or self.link is not None and self.link.written < self._settled_at:
            self.is_settling_lost = True
        super().detach(error)
        self._ready.clear()
        self._named_left = 0
        for message in list(self._held.values()):
            message.revoked = True
            del self._held[message.offset]
            self.on_revoked(message)
        self._acks, self._ack_count, self._gathered_at = {}, 0, math.inf
        for request, what in self._requests.items():
            if what != "open":
                self._answer(request, error)
        self._requests, self._unwanted = {}, set()

    # --- The program's side. -----------------------------------------------------------------------------------------

    @property
    def has_leases(self) -> bool:
        return self.opened is not None and self.opened.leases

    def asked(self, now: float) -> None:
        """The program asks for a message. Measures its work on those before: together, if it is quick."""
        if self._given and (self._given >= _MEASURED_TOGETHER or now - self._given_at >= _QUICK_SECONDS or not self._ready):
            self.credit.worked(now - self._given_at, self._given)
            self._given = 0

    def take(self, now: float) -> typing.Optional[BaseMessage]:
        """Returns the next message for the program, or None."""
        self.asked(now)
        if not self._ready or not self.is_open:
            return None
        if self.has_leases and (self._named_left == 0 or self._ready[0].delivered.number > 1):
            self._name(now)
        message = self._ready.popleft()
        self._given_to_program([message], now)
        return message

    def take_many(self, most: int, now: float) -> typing.List[BaseMessage]:
        """Returns up to so many messages for the program. A redelivered one comes alone: if the program dies, its neighbours
        are not suspected."""
        first = self.take(now)
        if first is None:
            return []
        if first.delivered.number > 1 or most == 1:
            return [first]
        messages = [first]
        while self._ready and len(messages) < most:
            delivered = self._ready[0].delivered
            if delivered.hand_out != first.delivered.hand_out or delivered.number > 1:
                break
            messages.append(self._ready.popleft())
        if self.has_leases and len(messages) - 1 > self._named_left:
            self._begin([message.offset for message in messages[1 + self._named_left:]], first.delivered.hand_out)
        self._given_to_program(messages[1:], now)
        return messages

    def _given_to_program(self, messages: typing.List[BaseMessage], now: float) -> None:
        count = len(messages)
        self._named_left = self._named_left - count if self._named_left > count else 0
        if self._given == 0:
            self._given_at = now
        self._given += count
        self.credit.begun(count)
        if self.options.automatic:
            for message in messages:
                message.settled = True
                self.credit.settled(message.size)
        else:
            for message in messages:
                self._held[message.offset] = message

    def _begin(self, offsets: typing.List[int], hand_out: int) -> None:
        """Tells the broker that the program begins these messages."""
        typing.cast(Link, self.link).send(frames.started(self.channel, ranges_of(offsets), hand_out))

    def _name(self, now: float) -> None:
        """Tells the broker that the program begins messages. Names as many at a time as take it about 2 ms, and
        redelivered ones singly."""
        first = self._ready[0]
        if self._named_left and first.delivered.number == 1:
            return
        seconds = now - self._named_at
        is_quick = seconds < _QUICK_SECONDS
        self._named_count = (min(2 * self._named_count, _NAMED_MAX) if is_quick
                             else max(int(self._named_count * _QUICK_SECONDS / seconds), 1))
        offsets: typing.List[int] = []
        for message in self._ready:
            delivered = message.delivered
            if (delivered.hand_out != first.delivered.hand_out or delivered.number != first.delivered.number
                    or len(offsets) == self._named_count):
                break
            offsets.append(message.offset)
            if delivered.number > 1:
                break
        self._named_left, self._named_at = len(offsets), now
        self._begin(offsets, first.delivered.hand_out)

    def settle(self, message: BaseMessage, how: str, delay: float = 0, reason: str = "") -> None:
        """Settles a message of the program otherwise than by `ack`. Does nothing for one that it does not have any more.
        `how`: release, retry or dead."""
        delay_ms = _milliseconds(delay, "delay")
        message.settled = True
        if self._is_held(message):
            del self._held[message.offset]
            self.credit.settled(message.size)
            self._reject([message], how, delay_ms, reason)

    def _is_held(self, message: BaseMessage) -> bool:
        return self._held.get(message.offset) is message and message.delivered.opens == self.opens

    def ack(self, message: BaseMessage) -> None:
        """Acknowledges a message of the program. Does nothing for one that it does not have any more."""
        message.settled = True
        offset, delivered = message.offset, message.delivered
        if self._held.get(offset) is message and delivered.opens == self.opens:
            del self._held[offset]
            self.credit.settled(len(message.body) if message.attributes is None else message.attributes.size)
            acks = self._acks.get(delivered.hand_out)
            if acks is None:
                acks = self._acks[delivered.hand_out] = []
            acks.append(offset)
            self._ack_count += 1

    def ack_many(self, messages: typing.Iterable[BaseMessage], settler: Settler) -> None:
        """Acknowledges messages of `settler`. Raises InvalidArgument, and changes nothing, if one is not."""
        own = list(messages)
        if not all(message.is_of(settler) for message in own):
            raise InvalidArgument("ack_many takes only messages that this consumer has received")
        for message in own:
            if not message.settled:
                self.ack(message)

    @property
    def is_due(self) -> bool:
        """Tells whether `work` has to send acknowledgements now because there are many."""
        return self._ack_count >= _GATHER_MAX

    def has_work(self, now: float) -> bool:
        """Tells a program that has messages whether `work` should be called. Does not look each time if it is quick."""
        if self._given and self.credit.target > 2 * _MEASURED_TOGETHER:
            return False
        return now >= self.next_timer() or self.credit.due() != (0, 0)

    def _reject(self, messages: typing.List[BaseMessage], how: str, delay_ms: int, reason: str) -> None:
        opened, link = typing.cast(frames.ConsumeOpened, self.opened), self.link
        if link is None:
            return
        flags = 1 if how == "dead" and opened.dead else 4 if how == "release" and opened.leases else 0
        coded = reason.encode()[:256].decode("utf-8", "ignore").encode() if flags & 1 else b""
        by_hand_out: typing.Dict[int, typing.List[int]] = {}
        for message in messages:
            by_hand_out.setdefault(message.delivered.hand_out, []).append(message.offset)
        for hand_out, offsets in by_hand_out.items():
            ranges = ranges_of(offsets)
            for at in range(0, len(ranges), _RANGES_MAX):
                link.send(frames.reject(self.channel, ranges[at:at + _RANGES_MAX], hand_out, 0 if flags else delay_ms, flags, coded))
        self._settled_at = link.queued

    def extend(self, message: BaseMessage, seconds: float) -> None:
        ms = _milliseconds(seconds, "time")
        if self._held.get(message.offset) is message and self.link is not None:
            self.link.send(frames.extend(self.channel, [(message.offset, message.offset + 1)], message.delivered.hand_out, ms))

    def seek(self, to: Start) -> int:
        """Requests another position. Returns the request's number, for `answers`. Requires: open."""
        self.flush()
        link = typing.cast(Link, self.link)
        request = link.request()
        self._requests[request] = "seek"
        link.send(frames.seek(self.channel, request, *start_of(to)))
        return request

    def leave(self) -> int:
        """Returns messages that the program has not begun, and requests the end of the channel. Requires: open."""
        self.flush()
        named = [message for message in self._ready if message.delivered.hand_out][:self._named_left]
        if named:
            self._reject(named, "release", 0, "")
        self._ready.clear()
        link = typing.cast(Link, self.link)
        request = link.request()
        self._requests[request] = "close"
        link.send(frames.encode(frames.CLOSE, channel=self.channel, request=request))
        return request

    @property
    def held(self) -> typing.List[BaseMessage]:
        """The messages that the program has and has not settled."""
        return list(self._held.values())

    @property
    def is_ready(self) -> bool:
        return bool(self._ready)

    def flush(self) -> None:
        """Puts all acknowledgements into the link."""
        if self.link is None or not self._acks:
            return
        for hand_out, offsets in self._acks.items():
            ranges = ranges_of(offsets)
            for at in range(0, len(ranges), _RANGES_MAX):
                self.link.send(frames.acknowledge(self.channel, ranges[at:at + _RANGES_MAX], hand_out))
        self._acks, self._ack_count, self._gathered_at = {}, 0, math.inf
        self._settled_at = self.link.queued

    def check_settled(self, needs_link: bool) -> None:
        """Errors: ConnectionLost, or the final failure, if messages were settled that the broker does not know of, or there
        is no link although one is needed."""
        if self.is_settling_lost or needs_link and self.link is None:
            raise self.failure or ConnectionLost("there is no connection: the messages are delivered again")

    def work(self, now: float) -> None:
        if not self.is_open or self.link is None:
            return
        if self._ack_count and self._gathered_at == math.inf:
            self._gathered_at = now
        if self._ack_count >= _GATHER_MAX or now - self._gathered_at >= _GATHER_SECONDS:
            self.flush()
        messages, size = (0, 0) if self.is_paused else self.credit.due()
        if messages or size:
            self.credit.give(messages, size)
            self.link.send(frames.credit(self.channel, messages, size))

    def next_timer(self) -> float:
        return self._gathered_at + _GATHER_SECONDS if self._acks and self._gathered_at < math.inf else math.inf
