"""How many messages a consumer requests ahead of its program: docs/session.md, "Credit"."""
from __future__ import annotations

import typing

_FIRST, _MOST = 16, 10_000
_AHEAD_SECONDS = 0.1  # of work
_UNACKNOWLEDGED_MAX = 10_000
_WEIGHT = 0.125  # of the newest measurement


class Credit:
    """Without a fixed number, requests as many messages as the program works off in 0.1 s, measured. Bytes are always
    fixed, and given back as messages are settled."""

    def __init__(self, fixed: typing.Optional[int], size: int) -> None:
        self.fixed, self.size = fixed, size
        self.target = fixed or _FIRST
        self._seconds = 0.0  # of work on a message
        self.reset()

    def reset(self) -> typing.Tuple[int, int]:
        """Begins a channel. Returns its first credit."""
        self._granted, self._granted_bytes, self._waiting, self._unsettled, self._settled_bytes = self.target, self.size, 0, 0, 0
        return self.target, self.size

    def take(self, *sizes: int) -> bool:
        """Takes the credit of delivered messages, one or more. Returns False if there was not enough. The last message may
        have more bytes than were left."""
        total = sum(sizes)
        if self._granted < len(sizes) or self._granted_bytes <= total - sizes[-1]:
            return False
        self._granted -= len(sizes)
        self._granted_bytes -= total
        self._waiting += len(sizes)
        self._unsettled += len(sizes)
        return True

    def begun(self, count: int = 1) -> None:
        """The program has received so many messages."""
        self._waiting -= count

    def worked(self, seconds: float, count: int = 1) -> None:
        """The program has asked for more messages, so many seconds after it received `count`."""
        weight = _WEIGHT if count == 1 else 1 - (1 - _WEIGHT) ** count
        self._seconds += weight * (seconds / count - self._seconds)
        if self.fixed is None:
            wanted = max(1, min(_MOST, int(_AHEAD_SECONDS / max(self._seconds, 1e-6))))
            self.target = min(self.target + count, wanted)

    def settled(self, size: int) -> None:
        self._unsettled -= 1
        self._settled_bytes += size

    def dropped(self, size: int) -> None:
        """A message that the program has not begun is not its own any more."""
        self._waiting -= 1
        self.settled(size)

    def due(self) -> typing.Tuple[int, int]:
        """Returns the messages and bytes to give now, (0, 0) if it is not worth a frame."""
        ahead = self._unsettled if self.fixed else self._waiting
        messages = max(0, min(self.target - ahead, _UNACKNOWLEDGED_MAX - self._unsettled) - self._granted)
        low = self._granted <= 0 or self._granted + ahead <= self.target // 2
        if not (messages and low) and self._settled_bytes < self.size // 4:
            return 0, 0
        return messages, self._settled_bytes

    def give(self, messages: int, size: int) -> None:
        """Tells that `due` was given."""
        self._granted += messages
        self._granted_bytes += size
        self._settled_bytes -= size
