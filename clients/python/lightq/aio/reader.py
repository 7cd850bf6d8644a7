"""The asyncio reader."""
from __future__ import annotations

import types
import typing

from ..core.reading import Reading
from ..errors import Error
from ..message import BaseMessage
from .driver import Driver, Join

READ_BYTES_MAX = 64 << 20


class Reader:
    """Reads messages by their offsets, and changes nothing in the topic. Open it with `async with`, or `await` it. One
    read at a time."""

    def __init__(self, topic: str, join: Join, open_timeout: float, name: str) -> None:
        self._core, self._join, self._open_timeout, self._name = Reading(topic), join, open_timeout, name
        self._driver: typing.Optional[Driver] = None
        self._is_reading = False

    async def _open(self) -> Reader:
        if self._driver is None:
            self._driver = Driver(self._core, self._join, self._name)
        try:
            await self._driver.wait(lambda: self._core.is_open, self._open_timeout, f"opening a reader of {self._core.topic}")
        except BaseException:
            self._driver.abandon()
            raise
        return self

    def __await__(self) -> typing.Generator[typing.Any, None, Reader]:
        return self._open().__await__()

    async def read(self, begin: int, end: int, timeout: float = 30.0,
                   bytes_max: int = READ_BYTES_MAX) -> typing.Tuple[typing.List[BaseMessage], int]:
        """Returns the stored messages of [begin, end), of at most so many bytes, but at least one; and the offset at which
        to continue. Errors: Timeout, the broker's."""
        if self._driver is None:
            raise Error("this reader is not open: use `async with`, or await it", "closed")
        self._driver.check()
        if self._is_reading:
            raise Error("another task is reading", "in_use")
        self._is_reading = True
        try:
            self._core.begin(begin, end, bytes_max)
            self._driver.kick()
            await self._driver.wait(lambda: self._core.next is not None or self._core.error is not None, timeout, "reading")
        finally:
            self._is_reading = False
        if self._core.error:
            raise self._core.error
        return self._core.messages, typing.cast(int, self._core.next)

    async def close(self) -> None:
        """Ends the connection. A second call does nothing."""
        if self._driver is not None:
            await self._driver.close()

    async def __aenter__(self) -> Reader:
        return await self._open()

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                        trace: typing.Optional[types.TracebackType]) -> None:
        await self.close()

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and not driver.is_closed and not driver.loop.is_closed():
            driver.loop.call_soon_threadsafe(driver.abandon)
