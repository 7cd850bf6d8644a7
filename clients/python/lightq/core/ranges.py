"""Ranges [begin, end) of offsets, as the frames have them: in ascending order, and not touching each other."""
from __future__ import annotations

import typing

Range = typing.Tuple[int, int]


def ranges_of(offsets: typing.Iterable[int]) -> typing.List[Range]:
    """Returns the offsets as ranges."""
    ranges: typing.List[Range] = []
    different = set(offsets)
    if different and max(different) - min(different) + 1 == len(different):
        return [(min(different), max(different) + 1)]
    for offset in sorted(different):
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def holds(ranges: typing.Sequence[Range], offset: int) -> bool:
    return any(begin <= offset < end for begin, end in ranges)
