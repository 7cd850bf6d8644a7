"""One session: hello and welcome, heartbeats, requests and the end. Bytes in, bytes out."""
from __future__ import annotations

import math
import typing

from ..errors import ConnectionLost, Error, error_of
from . import frames
from .frames import Frame, FrameReader, Welcome

_PROGRESS_BYTES = 1024  # so many bytes of a frame count as a sign of life


class Link:
    """`out` has the bytes to send, and `receive` takes those that arrive. Times are in seconds of a monotonic clock.
    Errors are raised as Error: the connection is over."""

    def __init__(self, ticket: str, codecs: int, heartbeat_ms: int, name: str, frame_bytes_max: int, now: float) -> None:
        self.out = bytearray()
        self.queued = self.written = 0  # bytes that were put into `out`, and those of them that the system has taken
        self.welcome: typing.Optional[Welcome] = None
        self.peer_said_goodbye = False
        self._reader, self._last_request, self._heartbeat_ms = FrameReader(frame_bytes_max), 0, heartbeat_ms
        self._received_at = self._sent_at = now
        self._unfinished = 0
        self.send(frames.hello(self.request(), frame_bytes_max, heartbeat_ms, codecs, name, ticket))

    def request(self) -> int:
        """Returns a new request number."""
        self._last_request += 1
        return self._last_request

    def send(self, frame: bytes) -> None:
        self.out += frame
        self.queued += len(frame)

    def receive(self, data: bytes, now: float) -> typing.Iterator[Frame]:
        """Yields the frames for the session's object. Errors: of the hello, ProtocolViolation, or the goodbye's."""
        self._reader.feed(data)
        self._unfinished += len(data)
        if self._unfinished >= _PROGRESS_BYTES:
            self._received_at, self._unfinished = now, 0
        while True:
            frame = self._reader.next()
            if frame is None:
                return
            self._received_at, self._unfinished = now, 0
            if self.welcome is None:
                self._greeted(frame)
            elif frame.op == frames.GOODBYE:
                self._ended(frame)
            elif frame.op != frames.HEARTBEAT:
                yield frame

    def _greeted(self, frame: Frame) -> None:
        if frame.op == frames.WELCOME:
            self.welcome = frames.welcome_of(frame.body)
        elif frame.op in (frames.ERROR, frames.GOODBYE):
            failure = frames.failure_of(frame.body)
            raise error_of(failure.code, failure.text or "the broker ended the session")
        else:
            raise error_of("invalid_frame", f"the broker answered hello with op {frame.op}")

    def _ended(self, frame: Frame) -> None:
        self.peer_said_goodbye = True
        failure = frames.failure_of(frame.body)
        if failure.code == "ok":
            raise ConnectionLost("the broker ended the session")
        raise error_of(failure.code, failure.text)

    def sent(self, now: float) -> None:
        """Tells that bytes of `out` were sent."""
        self._sent_at = now

    def flushed(self) -> None:
        """Tells that the system has taken all bytes that are not in `out`."""
        self.written = self.queued - len(self.out)

    def beat(self, now: float) -> None:
        """Sends a heartbeat if it is time."""
        if now >= self._next_heartbeat() and not self.out:
            self.send(frames.encode(frames.HEARTBEAT))

    def silent_since(self, now: float) -> typing.Optional[float]:
        """Returns the time of the last sign of life if the broker counts as dead, else None. Requires: everything that
        has arrived was read. Otherwise a program that was busy for long would blame the broker."""
        is_silent = self._heartbeat_ms and now - self._received_at > 2 * self._heartbeat_ms / 1000
        return self._received_at if is_silent else None

    def _next_heartbeat(self) -> float:
        if self.welcome is None or self.welcome.heartbeat_ms == 0:
            return math.inf
        return self._sent_at + self.welcome.heartbeat_ms / 2000

    def next_timer(self) -> float:
        """Returns the time of the next `beat` or look for silence."""
        silence = self._received_at + 2 * self._heartbeat_ms / 1000 + 0.01 if self._heartbeat_ms else math.inf
        return min(silence, self._next_heartbeat())


class Channel:
    """The base of a producer, consumer or reader without input and output. A driver connects, and calls `attach`,
    `handle`, `work` and `detach`. A final error is kept in `failure`."""

    join_type = ""
    codecs = 0

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.link: typing.Optional[Link] = None
        self.failure: typing.Optional[Error] = None
        self.channel = 0
        self.opens = 0

    @property
    def is_open(self) -> bool:
        return self.channel != 0

    def attach(self, link: Link, now: float) -> None:
        """Called when the welcome has arrived: sends the first requests."""
        self.link = link

    def detach(self, error: Error) -> None:
        """Called when the connection has ended."""
        self.link, self.channel = None, 0

    def handle(self, frame: Frame, now: float) -> None:
        """Handles a frame. Errors: the connection is over; it is final if `failure` is set."""
        raise NotImplementedError

    def work(self, now: float) -> None:
        """Puts frames into the link that are due."""

    def next_timer(self) -> float:
        """Returns the time at which `work` has something to do although nothing arrives."""
        return math.inf

    def fail(self, error: Error) -> Error:
        """Ends the object for good."""
        self.failure = self.failure or error
        return self.failure
