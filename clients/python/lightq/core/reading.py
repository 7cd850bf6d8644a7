"""Reads by offset without input and output: docs/session.md, "read"."""
from __future__ import annotations

import typing

from ..errors import Error, ProtocolViolation, error_of
from ..message import Attributes, BaseMessage, Delivery
from . import batch, frames
from .frames import Frame
from .link import Channel, Link


class Reading(Channel):
    """One read at a time: `begin`, then `messages` until `next` is set."""

    join_type = "pull"
    codecs = frames.KNOWS_EXPIRED

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.messages: typing.List[BaseMessage] = []
        self.next: typing.Optional[int] = None
        self.error: typing.Optional[Error] = None
        self._range: typing.Optional[typing.Tuple[int, int, int]] = None
        self._size = 0  # bytes of the messages
        self._request = 0  # the number of the read that is under way

    def attach(self, link: Link, now: float) -> None:
        super().attach(link, now)
        self.opens, self.channel, self._request = self.opens + 1, -1, 0

    def begin(self, begin: int, end: int, size: int) -> None:
        """Requests the messages [begin, end), of at most so many bytes, but at least one."""
        self.messages, self.next, self.error, self._size = [], None, None, 0
        self._range, self._request = (begin, end, size), 0

    def work(self, now: float) -> None:
        if self.link is not None and self._range and not self._request and self.next is None and self.error is None:
            begin, end, size = self._range
            if self.messages:  # an earlier connection has brought these
                size -= self._size
                begin = self._expected
                if size <= 0 or begin >= end:
                    self.next = begin
                    return
            self._request = self.link.request()
            self.link.send(frames.read(self._request, self.topic, begin, end, size))

    def handle(self, frame: Frame, now: float) -> None:
        if frame.op == frames.DELIVER and frame.request == self._request != 0:
            self._delivered(frames.deliver_of(frame.body, frame.flags))
        elif frame.op == frames.DONE and frame.request == self._request != 0:
            self._done(frames.done_of(frame.body))
        elif frame.op == frames.ERROR and frame.request == self._request != 0:
            failure = frames.failure_of(frame.body)
            self.error, self._request = error_of(failure.code, failure.text), 0
        elif frame.op == frames.ERROR:
            failure = frames.failure_of(frame.body)
            raise error_of(failure.code, failure.text)
        elif not (frame.op in (frames.DELIVER, frames.DONE) and frame.channel == 0):  # of a read that was given up
            raise ProtocolViolation(f"the broker sent op {frame.op} to a reader")

    @property
    def _expected(self) -> int:
        """The least offset that the next message may have."""
        return self.messages[-1].offset + 1 if self.messages else self._bounds[0]

    @property
    def _bounds(self) -> typing.Tuple[int, int, int]:
        return typing.cast(typing.Tuple[int, int, int], self._range)

    def _done(self, following: int) -> None:
        begin, end, _ = self._bounds
        if not self._expected <= following <= max(begin, end):
            raise ProtocolViolation(f"the broker ended a read of [{begin}, {end}) at {following}")
        self.next, self._request = following, 0

    def _delivered(self, deliver: frames.Deliver) -> None:
        come, (begin, end, most) = batch.decode(deliver.batch), self._bounds
        if not self._expected <= come.base_offset or come.base_offset + len(come.bodies) > end:
            raise ProtocolViolation(f"the broker delivered messages from offset {come.base_offset} to a read of [{begin}, {end})")
        delivered = Delivery(0, 0, come.append_time_us / 1e6, 0)
        attributes = come.attributes or [Attributes(len(body)) for body in come.bodies]
        attributes[0].lost = deliver.lost
        for index, (body, each) in enumerate(zip(come.bodies, attributes)):
            if self._size >= most and self.messages:
                raise ProtocolViolation(f"the broker delivered more than {most} bytes to a read")
            self._size += each.size
            each.expired = deliver.expired
            self.messages.append(BaseMessage(None, body, come.base_offset + index, delivered, each))

    def detach(self, error: Error) -> None:
        super().detach(error)
        self._request = 0
