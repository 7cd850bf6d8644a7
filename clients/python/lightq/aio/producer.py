"""The asyncio producer."""
from __future__ import annotations

import asyncio
import types
import typing
import warnings

from ..core import batch
from ..core.producing import Producing, ProducerOptions
from ..errors import Error, Timeout
from .driver import Driver, Join

_YIELD_MESSAGES = 64  # after so many messages `send` lets other tasks run
_FLUSH_SECONDS = 30.0
_CANCELLED_SECONDS = 1.0
Body = typing.Union[bytes, bytearray, memoryview, str]
Callback = typing.Callable[[int, int, typing.Optional[Error]], None]


class _Fates:
    """Collects the fates of messages. Apart from the producer, which may be garbage-collected."""

    def __init__(self) -> None:
        self.failure: typing.Optional[Error] = None
        self.unstored = 0
        self.callback: typing.Optional[Callback] = None
        self.thrown: typing.Optional[BaseException] = None

    def settled(self, begin: int, end: int, error: typing.Optional[Error]) -> None:
        if error:
            self.failure, self.unstored = error, self.unstored + end - begin
        if self.callback:
            try:
                self.callback(begin, end, error)
            except BaseException as thrown:  # noqa: BLE001 - raised by the next call
                self.thrown = self.thrown or thrown

    def raise_failures(self) -> None:
        """Raises the exception of a callback, or the reason why messages were not stored; each once."""
        thrown, self.thrown = self.thrown, None
        if thrown is not None:
            raise thrown
        failure, unstored = self.failure, self.unstored
        self.failure, self.unstored = None, 0
        if failure:
            raise type(failure)(f"{unstored} messages were not confirmed: {failure}", failure.code) from failure


class Confirm:
    """The fate of a message that was sent. `await` it to wait until the message is stored. Errors: the reason why it is
    not stored, or in doubt."""

    __slots__ = ("number", "_producer")

    def __init__(self, producer: Producer, number: int) -> None:
        self._producer, self.number = producer, number

    @property
    def done(self) -> bool:
        """Tells whether the fate is known."""
        return self._producer._core.is_settled(self.number)

    def __await__(self) -> typing.Generator[typing.Any, None, None]:
        return self._producer._wait_settled(self.number).__await__()


class Producer:
    """Sends messages to a topic. Each is stored once, in order, also over broken connections. Tasks of one event loop may
    share it. Open it with `async with`, or `await` it."""

    def __init__(self, topic: str, join: Join, options: ProducerOptions, send_timeout: float, open_timeout: float, name: str) -> None:
        self._core, self._fates = Producing(topic, options), _Fates()
        self._core.on_settled = self._fates.settled
        self._join, self._name, self._send_timeout, self._open_timeout = join, name, send_timeout, open_timeout
        self._driver: typing.Optional[Driver] = None
        self._until_yield = _YIELD_MESSAGES

    async def _open(self) -> Producer:
        if self._driver is None:
            self._driver = Driver(self._core, self._join, self._name)
        try:
            await self._driver.wait(lambda: self._core.is_open, self._open_timeout, f"opening a producer of {self.topic}")
        except BaseException:
            self._driver.abandon()
            raise
        return self

    def __await__(self) -> typing.Generator[typing.Any, None, Producer]:
        return self._open().__await__()

    def _open_driver(self) -> Driver:
        if self._driver is None:
            raise Error("this producer is not open: use `async with`, or await it", "closed")
        self._driver.check()
        return self._driver

    def on_settled(self, callback: Callback) -> None:
        """Calls back with ranges of messages [begin, end) and None, or the reason why they are not stored. Messages are
        numbered from 0 (`Confirm.number`). The next `flush` raises an exception of the callback."""
        self._fates.callback = callback

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

    async def send(self, body: Body, *, key: typing.Union[str, bytes] = b"", headers: batch.Headers = (),
                   time: typing.Optional[float] = None, delay: typing.Optional[float] = None,
                   deliver_at: typing.Optional[float] = None, ttl: typing.Optional[float] = None, id: str = "") -> Confirm:
        """Takes a message; waits only while the memory for unconfirmed messages is full. Times are in seconds. `delay`
        and `deliver_at` need a producer with `delayed`. Errors: InvalidArgument, Refused (too large), Timeout, the final
        failure. After an error, or if the call is cancelled, the message was not taken."""
        message: batch.Waiting
        if key or headers or id or not (time is delay is deliver_at is ttl is None):
            message = batch.outgoing(body, key, headers, time, delay, deliver_at, ttl, id)
        else:
            message = batch.plain(body)
        driver = self._open_driver()
        size = self._core.check(message)
        self._until_yield -= 1
        if self._until_yield <= 0:
            self._until_yield = _YIELD_MESSAGES
            await asyncio.sleep(0)
        if not self._core.has_room(size):
            await driver.wait(lambda: self._core.has_room(size), self._send_timeout, f"sending to {self.topic}")
        driver.check()  # another task may have closed it
        number = self._core.add(message, size)
        driver.kick()
        return Confirm(self, number)

    async def send_many(self, bodies: typing.Iterable[Body]) -> Confirm:
        """Takes messages without attributes, as `send` does for each, with less work. Returns the Confirm of the last one.
        Errors: as `send`. InvalidArgument (also without a message) and Refused: no message was taken. After others, or a
        cancel, the first ones may have been taken; `next_number` counts all that were."""
        messages, driver = batch.plain_many(bodies), self._open_driver()
        self._core.check_length(max(map(len, messages)))
        for piece in batch.pieces(messages):
            size = sum(map(batch.size_of, piece))
            if not self._core.has_room(size):
                await driver.wait(lambda: self._core.has_room(size), self._send_timeout, f"sending to {self.topic}")
            driver.check()  # another task may have closed it
            self._core.add_many(piece, size)
            last = self._core.next_number - 1
            driver.kick()
            await asyncio.sleep(0)
        return Confirm(self, last)

    @property
    def next_number(self) -> int:
        """The number of the next message: how many were taken."""
        return self._core.next_number

    async def flush(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Waits until every message is stored. Errors: Timeout; the reason of the last message since the last flush that
        was not stored; the final failure."""
        driver = self._open_driver()
        self._core.flush()
        driver.kick()
        until = self._core.next_number
        await driver.wait(lambda: self._core.settled_before >= until, timeout, f"flushing {self.topic}")
        self._fates.raise_failures()
        if self._core.failure:
            raise self._core.failure

    async def _wait_settled(self, number: int) -> None:
        if not self._core.is_settled(number):
            driver = self._open_driver()
            self._core.flush()
            driver.kick()
            await driver.wait(lambda: self._core.is_settled(number), None)
        error = self._core.error_of_message(number)
        if error:
            raise error

    async def close(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Flushes and ends the connection. Messages that are not confirmed in time are in doubt. Errors: those of
        `flush`. A second call does nothing."""
        driver = self._driver
        if driver is None or driver.is_closed:
            return
        try:
            await self.flush(timeout)
            driver.say_goodbye()
        finally:
            self._core.give_up(Timeout("the producer was closed before the confirm came"))
            await driver.close(min(timeout, _CANCELLED_SECONDS))

    async def __aenter__(self) -> Producer:
        return await self._open()

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                        trace: typing.Optional[types.TracebackType]) -> None:
        is_cancelled = kind is not None and not issubclass(kind, Exception)
        try:
            await self.close(_CANCELLED_SECONDS if is_cancelled else _FLUSH_SECONDS)
        except Error:
            if kind is None:
                raise

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and not driver.is_closed:
            warnings.warn(f"a producer of {self.topic} was not closed; its last messages may be lost", ResourceWarning, 2)
            if not driver.loop.is_closed():
                driver.loop.call_soon_threadsafe(driver.abandon)
