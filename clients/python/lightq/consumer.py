"""The blocking consumer."""
from __future__ import annotations

import functools
import time
import types
import typing
import warnings

from .core.consuming import MANY, Consuming, ConsumerOptions, Start, check_most
from .driver import Driver, Join
from .errors import Error
from .message import BaseMessage

_CLOSE_SECONDS = 5.0


class Message(BaseMessage):
    """A message of a blocking consumer. As a context manager it is acknowledged at the end; an exception rejects it, for
    another attempt; KeyboardInterrupt and other exits release it."""

    __slots__ = ()

    def __enter__(self) -> Message:
        return self

    def __exit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                 trace: typing.Optional[types.TracebackType]) -> None:
        if kind is None:
            self.ack()
        elif issubclass(kind, Exception):
            self.retry()
        else:
            self.release()


class Consumer:
    """Receives a topic's messages, as a member of a group or with a cursor of its own.

    For one thread at a time, including its messages. It sends and receives inside calls only. The broker knows that the
    client may be busy: while the program works on a message it may call nothing for as long as `ack_timeout` (30 minutes
    by default). Acknowledgements are gathered: they are sent when the consumer waits, when there are many, or by `flush`."""

    def __init__(self, topic: str, join: Join, options: ConsumerOptions, name: str) -> None:
        self._core = Consuming(topic, options, functools.partial(Message, self))
        self._driver = Driver(self._core, join, name)

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

    def wait_open(self, timeout: float) -> None:
        """Waits until the topic is open. Errors: Timeout, the final failure."""
        with self._driver.call:
            self._driver.run(lambda: self._core.is_open, timeout, f"opening a consumer of {self.topic}")

    def receive(self, timeout: typing.Optional[float] = None) -> typing.Optional[Message]:
        """Returns the next message, or None if none arrives within so many seconds (None: no limit). Errors: the final
        failure, Closed."""
        with self._driver.call:
            message = self._core.take(self._wait(timeout))
            self._driver.push()  # the broker must know that the message is begun before the program has it
            return typing.cast(typing.Optional[Message], message)

    def receive_many(self, most: int = MANY, timeout: typing.Optional[float] = None) -> typing.List[Message]:
        """Returns the next messages, at most so many. Waits only for the first one: the list is empty if none arrives
        within `timeout` seconds (None: no limit). A message that was delivered before comes alone. Errors: as `receive`;
        InvalidArgument."""
        check_most(most)
        with self._driver.call:
            messages = self._core.take_many(most, self._wait(timeout))
            self._driver.push()
            return typing.cast(typing.List[Message], messages)

    def ack_many(self, messages: typing.Iterable[Message]) -> None:
        """Acknowledges messages of this consumer, as `Message.ack` does for each. Raises InvalidArgument, and acknowledges
        none, if one is of another consumer."""
        with self._driver.call:
            self._core.ack_many(messages, self)
            if self._core.is_due:
                self._driver.step(0)

    def _wait(self, timeout: typing.Optional[float]) -> float:
        """Does the due work, and waits for a message. Returns the time."""
        core, now = self._core, time.monotonic()
        core.asked(now)
        if core.is_ready:
            if core.has_work(now):
                self._driver.step(0)
            return now
        core.flush()
        if timeout == 0:
            self._driver.step(0)
        else:
            self._driver.run(lambda: core.is_ready, timeout)
        return time.monotonic()

    def messages(self, idle_timeout: typing.Optional[float] = None) -> typing.Iterator[Message]:
        """Yields messages, until none arrives for so many seconds. Without a limit it never ends."""
        while True:
            message = self.receive(idle_timeout)
            if message is None:
                return
            yield message

    def __iter__(self) -> typing.Iterator[Message]:
        return self.messages()

    def ack(self, message: BaseMessage) -> None:
        """See `Message.ack`."""
        with self._driver.call:
            self._core.ack(message)
            if self._core.is_due:
                self._driver.step(0)

    def settle(self, message: BaseMessage, how: str, delay: float = 0, reason: str = "") -> None:
        """See `Message.ack` and the others."""
        with self._driver.call:
            self._core.settle(message, how, delay, reason)
            if self._core.next_timer() <= time.monotonic():
                self._driver.step(0)

    def extend(self, message: BaseMessage, seconds: float) -> None:
        with self._driver.call:
            self._core.extend(message, seconds)
            self._driver.step(0)

    def poll(self, timeout: float = 0) -> None:
        """Sends and receives for so many seconds: messages learn that they are `revoked`. Errors: the final failure."""
        with self._driver.call:
            self._core.flush()
            self._driver.step(0)
            self._driver.run(lambda: False, timeout)

    def flush(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Sends everything that was settled. Errors: Timeout, ConnectionLost, the final failure."""
        with self._driver.call:
            self._core.flush()
            self._driver.run(lambda: self._core.link is None or not self._core.link.out, timeout, "sending acknowledgements")
            self._core.check_settled(needs_link=True)

    def seek(self, to: Start, timeout: float = _CLOSE_SECONDS) -> int:
        """Moves the group, or the own cursor. Returns the new offset. Messages that were received before cannot be settled
        any more. Errors: Timeout, ConnectionLost, the broker's."""
        with self._driver.call:
            begun = time.monotonic()
            self._driver.run(lambda: self._core.is_open, timeout, f"opening a consumer of {self.topic}")
            return self._answer(self._core.seek(to), timeout - (time.monotonic() - begun), "the seek")

    def _answer(self, request: int, timeout: float, what: str) -> int:
        answers = self._core.answers
        try:
            self._driver.run(lambda: request in answers, timeout, what)
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

    def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Sends everything that was settled, waits until the broker has it, and ends the connection. Errors: Timeout;
        ConnectionLost or the final failure: settled messages may be delivered again. A second call does nothing."""
        if self._driver.is_closed:
            return
        with self._driver.call:
            try:
                if self._core.is_open:
                    self._answer(self._core.leave(), timeout, "closing")
                    self._driver.say_goodbye(timeout)
                else:
                    self._core.check_settled(needs_link=False)
            finally:
                self._driver.close()

    def __enter__(self) -> Consumer:
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
            warnings.warn(f"a consumer of {self.topic} was not closed; its last acknowledgements may be lost", ResourceWarning, 2)
            driver.close()

