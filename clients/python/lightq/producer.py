"""The blocking producer."""
from __future__ import annotations

import time
import types
import typing
import warnings

from .core import batch
from .core.producing import Producing, ProducerOptions
from .driver import Driver, Join
from .errors import Error, Timeout

_POLL_MESSAGES = 64  # after so many messages `send` looks for confirms
_FLUSH_SECONDS = 30.0
Body = typing.Union[bytes, bytearray, memoryview, str]


class Confirm:
    """The fate of a message that was sent."""

    __slots__ = ("number", "_producer")

    def __init__(self, producer: Producer, number: int) -> None:
        self._producer, self.number = producer, number

    @property
    def done(self) -> bool:
        """Tells whether the fate is known: `wait` then returns or raises at once."""
        return self._producer._core.is_settled(self.number)

    def wait(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Waits until the message is stored. Errors: Timeout; the reason why it is not stored, or in doubt."""
        self._producer._wait_settled(self.number, timeout)


class Producer:
    """Sends messages to a topic. Each is stored once, in order, also over broken connections.

    For one thread at a time. It sends and receives inside calls only: call `flush` or `poll` now and then. After a long
    time without a call the broker ends the connection; the next call connects again and nothing is lost."""

    def __init__(self, topic: str, join: Join, options: ProducerOptions, send_timeout: float, name: str) -> None:
        self._core = Producing(topic, options)
        self._driver = Driver(self._core, join, name)
        self._send_timeout, self._until_poll = send_timeout, _POLL_MESSAGES
        self._failure: typing.Optional[Error] = None
        self._unstored = 0
        self._callback: typing.Optional[typing.Callable[[int, int, typing.Optional[Error]], None]] = None
        self._thrown: typing.Optional[BaseException] = None
        self._core.on_settled = self._settled

    def _settled(self, begin: int, end: int, error: typing.Optional[Error]) -> None:
        if error:
            self._failure, self._unstored = error, self._unstored + end - begin
        if self._callback:
            try:
                self._callback(begin, end, error)
            except BaseException as thrown:  # noqa: BLE001 - raised by the call when its work is done
                self._thrown = self._thrown or thrown

    def _rethrow(self) -> None:
        thrown, self._thrown = self._thrown, None
        if thrown is not None:
            raise thrown

    def on_settled(self, callback: typing.Callable[[int, int, typing.Optional[Error]], None]) -> None:
        """Calls back within later calls, with ranges of messages [begin, end) and None, or the reason why they are not
        stored. Messages are numbered from 0 (`Confirm.number`). The callback must not use the producer. An exception of
        it leaves the call."""
        self._callback = callback

    @property
    def topic(self) -> str:
        return self._core.topic

    @property
    def identity(self) -> typing.Tuple[int, int]:
        """The producer's id and epoch; the id is 0 if the broker has assigned none yet."""
        return self._core.producer_id, self._core.epoch

    @property
    def lost(self) -> int:
        """Confirmed messages that the broker lost later: by a power cut at level `received`, or a restore."""
        return self._core.lost

    def wait_open(self, timeout: float) -> None:
        """Waits until the topic is open. Errors: Timeout, the final failure."""
        with self._driver.call:
            self._driver.run(lambda: self._core.is_open, timeout, f"opening a producer of {self.topic}")

    def send(self, body: Body, *, key: typing.Union[str, bytes] = b"", headers: batch.Headers = (),
             time: typing.Optional[float] = None, delay: typing.Optional[float] = None,
             deliver_at: typing.Optional[float] = None, ttl: typing.Optional[float] = None, id: str = "") -> Confirm:
        """Takes a message; waits only while the memory for unconfirmed messages is full. Times are in seconds. `delay`
        and `deliver_at` need a producer with `delayed`. Errors: InvalidArgument, Refused (too large), Timeout, the final
        failure: the message was not taken."""
        message: batch.Waiting
        if key or headers or id or not (time is delay is deliver_at is ttl is None):
            message = batch.outgoing(body, key, headers, time, delay, deliver_at, ttl, id)
        else:
            message = batch.plain(body)
        with self._driver.call:
            size = self._core.check(message)
            if not self._core.has_room(size):
                self._driver.run(lambda: self._core.has_room(size), self._send_timeout, f"sending to {self.topic}")
            number = self._core.add(message, size)
            self._until_poll -= 1
            if self._until_poll <= 0:
                self._until_poll = _POLL_MESSAGES
                self._driver.step(0)
                self._rethrow()
        return Confirm(self, number)

    def send_many(self, bodies: typing.Iterable[Body]) -> Confirm:
        """Takes messages without attributes, as `send` does for each, with less work. Returns the Confirm of the last one.
        Errors: as `send`. InvalidArgument (also without a message) and Refused: no message was taken. Others: the first
        ones may have been taken; `next_number` counts all that were."""
        messages = batch.plain_many(bodies)
        with self._driver.call:
            self._core.check_length(max(map(len, messages)))
            for piece in batch.pieces(messages):
                size = sum(map(batch.size_of, piece))
                if not self._core.has_room(size):
                    self._driver.run(lambda: self._core.has_room(size), self._send_timeout, f"sending to {self.topic}")
                self._core.add_many(piece, size)
                self._driver.step(0)
                self._rethrow()
        return Confirm(self, self._core.next_number - 1)

    @property
    def next_number(self) -> int:
        """The number of the next message: how many were taken."""
        return self._core.next_number

    def poll(self, timeout: float = 0) -> None:
        """Sends and receives for so many seconds. Errors: the final failure."""
        with self._driver.call:
            self._driver.step(0)
            self._driver.run(lambda: False, timeout)
            self._rethrow()

    def flush(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Waits until every message is stored. Errors: Timeout; the reason of the last message since the last flush that
        was not stored; the final failure."""
        with self._driver.call:
            self._flush(timeout)

    def _flush(self, timeout: float) -> None:
        self._core.flush()
        try:
            self._driver.run(lambda: self._core.settled_before == self._core.next_number, timeout, f"flushing {self.topic}")
        finally:
            self._rethrow()
        failure, unstored = self._failure, self._unstored
        self._failure, self._unstored = None, 0
        if failure:
            error = type(failure)(f"{unstored} messages were not confirmed: {failure}", failure.code)
            raise error from failure
        if self._core.failure:
            raise self._core.failure

    def _wait_settled(self, number: int, timeout: float) -> None:
        if not self._core.is_settled(number):
            with self._driver.call:
                self._core.flush()
                self._driver.run(lambda: self._core.is_settled(number), timeout, f"the confirm of message {number}")
                self._rethrow()
        error = self._core.error_of_message(number)
        if error:
            raise error

    def close(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Flushes and ends the connection. Messages that are not confirmed in time are in doubt. Errors: those of
        `flush`. A second call does nothing."""
        if self._driver.is_closed:
            return
        with self._driver.call:
            begun = time.monotonic()
            try:
                self._flush(timeout)
                self._driver.say_goodbye(max(timeout - (time.monotonic() - begun), 0))
            finally:
                self._core.give_up(Timeout("the producer was closed before the confirm came"))
                self._driver.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                 trace: typing.Optional[types.TracebackType]) -> None:
        try:
            self.close()
        except Error:
            if kind is None:
                raise

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and not driver.is_closed:
            warnings.warn(f"a producer of {self.topic} was not closed; its last messages may be lost", ResourceWarning, 2)
            driver.close()
