"""A received message, and the ways to settle it."""
from __future__ import annotations

import typing

Header = typing.Tuple[str, bytes]


class Settler(typing.Protocol):
    """The part of a consumer that messages use."""

    def ack(self, message: BaseMessage) -> None: ...

    def settle(self, message: BaseMessage, how: str, delay: float = 0, reason: str = "") -> None: ...

    def extend(self, message: BaseMessage, seconds: float) -> None: ...


class Attributes:
    """The attributes that only some messages have. `size`: the bytes of attributes and payload."""

    __slots__ = ("size", "key", "headers", "producer_time", "lost", "expired")

    def __init__(self, size: int, key: bytes = b"", headers: typing.Tuple[Header, ...] = (),
                 producer_time: typing.Optional[float] = None) -> None:
        self.size, self.key, self.headers, self.producer_time = size, key, headers, producer_time
        self.lost, self.expired = 0, False


class Delivery:
    """The facts that all messages of one delivered batch share. `opens`: the connection on which it came."""

    __slots__ = ("number", "hand_out", "time", "opens")

    def __init__(self, number: int, hand_out: int, time: float, opens: int) -> None:
        self.number, self.hand_out, self.time, self.opens = number, hand_out, time, opens


class BaseMessage:
    """A message. Settle each exactly once: `ack`, `release`, `retry` or `dead`. A later call does nothing."""

    __slots__ = ("body", "offset", "revoked", "settled", "delivered", "attributes", "_settler", "__weakref__")

    def __init__(self, settler: typing.Optional[Settler], body: bytes, offset: int, delivered: Delivery,
                 attributes: typing.Optional[Attributes]) -> None:
        self._settler = settler
        self.body = body
        self.offset = offset
        self.delivered = delivered
        self.attributes = attributes  # None: it has none
        self.revoked = False  # the broker has taken it back, or the connection has ended
        self.settled = False

    def is_of(self, settler: Settler) -> bool:
        """Tells whether this part of a consumer has received the message."""
        return self._settler is settler

    @property
    def delivery(self) -> int:
        """How often the message was delivered, including this time; 0 of a message that was read."""
        return self.delivered.number

    @property
    def time(self) -> float:
        """When the log took the message, in seconds since 1970."""
        return self.delivered.time

    @property
    def key(self) -> bytes:
        return self.attributes.key if self.attributes else b""

    @property
    def headers(self) -> typing.Tuple[Header, ...]:
        return self.attributes.headers if self.attributes else ()

    @property
    def producer_time(self) -> typing.Optional[float]:
        """The time that the producer stated, in seconds since 1970, or None."""
        return self.attributes.producer_time if self.attributes else None

    @property
    def lost(self) -> int:
        """Messages directly before this one that are never delivered."""
        return self.attributes.lost if self.attributes else 0

    @property
    def expired(self) -> bool:
        """The time to live is over. Only messages that were read may be expired."""
        return self.attributes.expired if self.attributes else False

    @property
    def size(self) -> int:
        """The bytes of attributes and payload."""
        return self.attributes.size if self.attributes else len(self.body)

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
        if self._settler is not None and not self.settled:
            self._settler.ack(self)

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
