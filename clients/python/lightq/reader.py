"""The blocking reader."""
from __future__ import annotations

import types
import typing

from .core.reading import Reading
from .driver import Driver, Join
from .message import BaseMessage

READ_BYTES_MAX = 64 << 20


class Reader:
    """Reads messages by their offsets, and changes nothing in the topic. For one thread at a time."""

    def __init__(self, topic: str, join: Join, name: str) -> None:
        self._core = Reading(topic)
        self._driver = Driver(self._core, join, name)

    def wait_open(self, timeout: float) -> None:
        """Waits until there is a connection. Errors: Timeout, the final failure."""
        with self._driver.call:
            self._driver.run(lambda: self._core.is_open, timeout, f"opening a reader of {self._core.topic}")

    def read(self, begin: int, end: int, timeout: float = 30.0,
             bytes_max: int = READ_BYTES_MAX) -> typing.Tuple[typing.List[BaseMessage], int]:
        """Returns the stored messages of [begin, end), of at most so many bytes, but at least one; and the offset at which
        to continue. Errors: Timeout, the broker's."""
        with self._driver.call:
            self._core.begin(begin, end, bytes_max)
            self._driver.run(lambda: self._core.next is not None or self._core.error is not None, timeout, "reading")
            if self._core.error:
                raise self._core.error
            return self._core.messages, typing.cast(int, self._core.next)

    def close(self) -> None:
        """Ends the connection. A second call does nothing."""
        if not self._driver.is_closed:
            self._driver.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                 trace: typing.Optional[types.TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_driver", None) is not None:
            self.close()
