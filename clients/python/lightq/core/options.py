"""Checks the arguments of `producer` and `consumer`."""
from __future__ import annotations

import re
import typing

from ..errors import InvalidArgument
from .consuming import ConsumerOptions
from .producing import ProducerOptions

_LEVELS = {"default": 0, "received": 1, "flushed": 2}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(f"{what} is {name!r}; it has 1 to 128 of A-Z a-z 0-9 . _ - and begins with none of . -")


def producer_options(topic: str, level: str, delayed: bool, identity: typing.Optional[typing.Tuple[int, int]],
                     **more: typing.Any) -> ProducerOptions:
    """Errors: InvalidArgument."""
    check_name(topic, "the topic")
    if level not in _LEVELS:
        raise InvalidArgument(f"level is {level!r}; it is one of {', '.join(_LEVELS)}")
    producer_id, epoch = identity or (0, 0)
    return ProducerOptions(level=_LEVELS[level], delayed=delayed, producer_id=producer_id, epoch=epoch % (1 << 16), **more)


def consumer_options(topic: str, group: str, **more: typing.Any) -> ConsumerOptions:
    """Errors: InvalidArgument."""
    check_name(topic, "the topic")
    if group:
        check_name(group, "the group")
    return ConsumerOptions(group=group, **more)
