"""A received message, and the ways to settle it."""
from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from .core.batch import Header


class Settler(typing.Protocol):
    """The part of a consumer that messages use."""

    def settle(self, message: BaseMessage, how: str, delay: float = 0, reason: str = "") -> None: ...

    def extend(self, message: BaseMessage, seconds: float) -> None: ...


class BaseMessage:
    """A message. Settle each exactly once: `ack`, `release`, `retry` or `dead`. A later call does nothing."""

    __slots__ = ("body", "key", "headers", "offset", "delivery", "time", "producer_time", "lost", "expired", "hand_out",
                 "size", "revoked", "settled", "opens", "_settler", "__weakref__")

    def __init__(self, settler: typing.Optional[Settler], body: bytes, offset: int) -> None:
        self._settler = settler
        self.body = body
        self.offset = offset
        self.key = b""
        self.headers: typing.Tuple[Header, ...] = ()
        self.delivery = 1  # how often it was delivered, including this time
        self.time = 0.0  # at which the log took it, in seconds since 1970
        self.producer_time: typing.Optional[float] = None  # as the producer stated it
        self.lost = 0  # messages directly before it that are never delivered
        self.expired = False  # only in replies to `read`
        self.hand_out = 0
        self.size = 0
        self.revoked = False  # the broker has taken it back, or the connection has ended
        self.settled = False
        self.opens = 0

    def __repr__(self) -> str:
        return f"<message at offset {self.offset}, {len(self.body)} bytes, delivery {self.delivery}>"

    def text(self) -> str:
        """Returns the body as UTF-8 text."""
        return self.body.decode()

    def header(self, name: str) -> typing.Optional[bytes]:
        """Returns the value of the first header with this name, or None."""
        return next((value for each, value in self.headers if each == name), None)

    def _settle(self, how: str, delay: float = 0, reason: str = "") -> None:
        if self._settler is not None and not self.settled:
            self._settler.settle(self, how, delay, reason)

    def ack(self) -> None:
        """The message is processed: it is not delivered again."""
        self._settle("ack")

    def release(self) -> None:
        """The message was not begun, or is not at fault: it is delivered again at once, and this delivery does not
        count."""
        self._settle("release")

    def retry(self, delay: float = 0) -> None:
        """The message failed: it is delivered again after so many seconds, or after the group's back-off."""
        self._settle("retry", delay)

    def dead(self, reason: str = "") -> None:
        """No consumer can process the message: it goes to the dead letters. `reason`: at most 256 bytes are kept."""
        self._settle("dead", reason=reason)

    def extend(self, seconds: float) -> None:
        """Asks for so much time from now."""
        if self._settler is not None and not self.settled:
            self._settler.extend(self, seconds)
