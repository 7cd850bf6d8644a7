"""The asyncio consumer."""
from __future__ import annotations

import asyncio
import functools
import types
import typing
import warnings

from ..core.consuming import MANY, Consuming, ConsumerOptions, Start, check_most
from ..core.link import Link
from ..errors import Error, Revoked
from ..message import BaseMessage
from .driver import Driver, Join

_CLOSE_SECONDS = 5.0
_YIELD_MESSAGES = 64  # after so many messages the consumer lets other tasks run


class Message(BaseMessage):
    """A message of an asyncio consumer. With `async with` it is acknowledged at the end; an exception rejects it, for
    another attempt; a cancel releases it. If the broker takes the message back, the block is cancelled, and the program
    goes on behind it."""

    __slots__ = ("_task", "_was_cancelled")

    _task: typing.Optional[asyncio.Task[typing.Any]]  # not set before the block begins
    _was_cancelled: bool

    async def __aenter__(self) -> Message:
        if self.revoked:
            raise Revoked(f"the broker has taken the message at offset {self.offset} back")
        self._task, self._was_cancelled = asyncio.current_task(), False
        return self

    def cancel_work(self) -> None:
        """Called when the broker has taken the message back."""
        task = getattr(self, "_task", None)
        if task is not None and not task.done():
            self._was_cancelled = True
            task.cancel()

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                        trace: typing.Optional[types.TracebackType]) -> bool:
        task, self._task = self._task, None
        if self._was_cancelled:
            return await self._absorbed(task, kind)
        if kind is None:
            self.ack()
        elif issubclass(kind, Exception):
            self.retry()
        else:
            self.release()
        return False

    @staticmethod
    async def _absorbed(task: typing.Optional[asyncio.Task[typing.Any]], kind: typing.Optional[typing.Type[BaseException]]) -> bool:
        """Ends the cancel that `cancel_work` began. Returns False if an exception of the program, or a cancel by others,
        must go on."""
        if kind is None:
            try:
                await asyncio.sleep(0)  # the cancel arrives here at the latest
            except asyncio.CancelledError:
                kind = asyncio.CancelledError
        uncancel = getattr(task, "uncancel", None)  # since Python 3.11
        is_cancelled_by_others = uncancel is not None and uncancel() > 0
        return kind is None or issubclass(kind, asyncio.CancelledError) and not is_cancelled_by_others


class _Settler:
    """Settles messages. Apart from the consumer, which may be garbage-collected."""

    def __init__(self, topic: str, options: ConsumerOptions) -> None:
        self.core = Consuming(topic, options, functools.partial(Message, self))
        self.core.on_revoked = lambda message: typing.cast(Message, message).cancel_work()
        self.driver: typing.Optional[Driver] = None

    def opened(self) -> Driver:
        if self.driver is None:
            raise Error("this consumer is not open: use `async with`, or await it", "closed")
        self.driver.check()
        return self.driver

    def ack(self, message: BaseMessage) -> None:
        driver = self.opened()
        self.core.ack(message)
        driver.kick()

    def settle(self, message: BaseMessage, how: str, delay: float = 0, reason: str = "") -> None:
        driver = self.opened()
        self.core.settle(message, how, delay, reason)
        driver.kick()

    def extend(self, message: BaseMessage, seconds: float) -> None:
        driver = self.opened()
        self.core.extend(message, seconds)
        driver.kick()


def _written(core: Consuming, link: Link) -> typing.Callable[[], bool]:
    """Returns a condition: the system has taken everything that the link now has, or the connection is over."""
    until = link.queued
    return lambda: core.link is not link or link.written >= until


class Consumer:
    """Receives a topic's messages, as a member of a group or with a cursor of its own. Tasks of one event loop may share
    it. Open it with `async with`, or `await` it. Settled messages are gathered for up to 0.1 s."""

    def __init__(self, topic: str, join: Join, options: ConsumerOptions, open_timeout: float, name: str) -> None:
        self._settler = _Settler(topic, options)
        self._core = self._settler.core
        self._join, self._name, self._open_timeout, self._until_yield = join, name, open_timeout, _YIELD_MESSAGES

    async def _open(self) -> Consumer:
        if self._settler.driver is None:
            self._settler.driver = Driver(self._core, self._join, self._name)
        driver = self._settler.driver
        try:
            await driver.wait(lambda: self._core.is_open, self._open_timeout, f"opening a consumer of {self.topic}")
        except BaseException:
            driver.abandon()
            raise
        return self

    def __await__(self) -> typing.Generator[typing.Any, None, Consumer]:
        return self._open().__await__()

    @property
    def topic(self) -> str:
        return self._core.topic

    @property
    def late(self) -> int:
        """Messages that were settled too late: the broker had already taken them back."""
        return self._core.late

    @property
    def lost(self) -> int:
        """Messages that were dropped or damaged before they could be delivered."""
        return self._core.lost

    async def receive(self, timeout: typing.Optional[float] = None) -> typing.Optional[Message]:
        """Returns the next message, or None if none arrives within so many seconds (None: no limit). Errors: the final
        failure, Closed. A cancelled call takes no message."""
        driver = await self._wait(timeout, 1)
        message = self._core.take(driver.loop.time())
        driver.push()  # the broker must know that the message is begun before the program has it
        driver.kick()
        return typing.cast(typing.Optional[Message], message)

    async def receive_many(self, most: int = MANY, timeout: typing.Optional[float] = None) -> typing.List[Message]:
        """Returns the next messages, at most so many. Waits only for the first one: the list is empty if none arrives
        within `timeout` seconds (None: no limit). A message that was delivered before comes alone. Errors: as `receive`;
        InvalidArgument. A cancelled call takes no message."""
        check_most(most)
        driver = await self._wait(timeout, _YIELD_MESSAGES)
        messages = self._core.take_many(most, driver.loop.time())
        driver.push()
        driver.kick()
        return typing.cast(typing.List[Message], messages)

    def ack_many(self, messages: typing.Iterable[Message]) -> None:
        """Acknowledges messages of this consumer, as `Message.ack` does for each. Raises InvalidArgument, and acknowledges
        none, if one is of another consumer."""
        driver = self._settler.opened()
        self._core.ack_many(messages, self._settler)
        driver.kick()

    async def _wait(self, timeout: typing.Optional[float], count: int) -> Driver:
        """Waits for a message. Lets other tasks run after so many calls that `count` adds up to enough."""
        driver = self._settler.opened()
        self._core.asked(driver.loop.time())
        self._until_yield -= count
        if self._until_yield <= 0:
            self._until_yield = _YIELD_MESSAGES
            await asyncio.sleep(0)
        if not self._core.is_ready:
            self._core.flush()
            driver.kick()
            await driver.wait(lambda: self._core.is_ready, timeout)
        driver.check()  # another task may have closed it
        return driver

    async def messages(self, idle_timeout: typing.Optional[float] = None) -> typing.AsyncIterator[Message]:
        """Yields messages, until none arrives for so many seconds. Without a limit it never ends."""
        while True:
            message = await self.receive(idle_timeout)
            if message is None:
                return
            yield message

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Message:
        message = None
        while message is None:
            message = await self.receive()
        return message

    async def flush(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Sends everything that was settled. Errors: Timeout, ConnectionLost, the final failure."""
        driver = self._settler.opened()
        self._core.flush()
        driver.push()
        if self._core.link is not None:
            await driver.wait(_written(self._core, self._core.link), timeout, "sending acknowledgements")
        self._core.check_settled(needs_link=True)

    async def seek(self, to: Start, timeout: float = _CLOSE_SECONDS) -> int:
        """Moves the group, or the own cursor. Returns the new offset. Messages that were received before cannot be settled
        any more. Errors: Timeout, ConnectionLost, the broker's."""
        driver, begun = self._settler.opened(), asyncio.get_running_loop().time()
        await driver.wait(lambda: self._core.is_open, timeout, f"opening a consumer of {self.topic}")
        request = self._core.seek(to)
        return await self._answer(request, timeout - (driver.loop.time() - begun), "the seek")

    async def _answer(self, request: int, timeout: float, what: str) -> int:
        driver, answers = self._settler.opened(), self._core.answers
        driver.kick()
        try:
            await driver.wait(lambda: request in answers, timeout, what)
            answer = answers[request]
        finally:
            self._core.forget(request)
        if isinstance(answer, Error):
            raise answer
        return answer

    def pause(self) -> None:
        """Asks for no more messages until `resume`. Those under way still arrive."""
        self._core.is_paused = True

    def resume(self) -> None:
        self._core.is_paused = False
        if self._settler.driver is not None:
            self._settler.driver.kick()

    async def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Sends everything that was settled, waits until the broker has it, and ends the connection. Errors: Timeout;
        ConnectionLost or the final failure: settled messages may be delivered again. A second call does nothing."""
        driver = self._settler.driver
        if driver is None or driver.is_closed:
            return
        try:
            driver.check()
            if self._core.is_open:
                await self._answer(self._core.leave(), timeout, "closing")
                driver.say_goodbye()
            else:
                self._core.check_settled(needs_link=False)
        finally:
            await driver.close(min(timeout, 1.0))

    async def __aenter__(self) -> Consumer:
        return await self._open()

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                        trace: typing.Optional[types.TracebackType]) -> None:
        try:
            await self.close()
        except Error:
            if kind is None:
                raise

    def __del__(self) -> None:
        driver = self._settler.driver if hasattr(self, "_settler") else None
        if driver is not None and not driver.is_closed:
            warnings.warn(f"a consumer of {self.topic} was not closed; its last acknowledgements may be lost", ResourceWarning, 2)
            if not driver.loop.is_closed():
                driver.loop.call_soon_threadsafe(driver.abandon)
