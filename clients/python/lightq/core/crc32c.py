"""CRC-32C (RFC 3720, appendix B.4). Uses the package `google-crc32c` if it is installed (extra `fast`).

In Python, byte by byte takes a second for some megabytes. So long data is split into lanes of equal length, and
each step advances all lanes by one byte at once, as the digits of one large number.
"""
from __future__ import annotations

import importlib
import typing

_LANE_BYTES = 256


def _make_table() -> typing.List[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()
_PLANES = [bytes(value >> shift & 255 for value in _TABLE) for shift in (0, 8, 16, 24)]


def _bytewise(state: int, data: typing.Iterable[int]) -> int:
    for byte in data:
        state = state >> 8 ^ _TABLE[(state ^ byte) & 255]
    return state


def _make_skips() -> typing.List[typing.List[int]]:
    """Returns, for each byte of a state and each of its values, the state after a lane of zeros."""
    bits = [_bytewise(1 << bit, bytes(_LANE_BYTES)) for bit in range(32)]
    skips = []
    for first in (0, 8, 16, 24):
        row = []
        for value in range(256):
            total = 0
            for bit in range(8):
                if value >> bit & 1:
                    total ^= bits[first + bit]
            row.append(total)
        skips.append(row)
    return skips


_SKIPS = _make_skips()


def _lanewise(state: int, data: bytes) -> int:
    """Returns the state after `data`, which must be a whole number of lanes. The first lane begins with `state`,
    the others with 0."""
    lanes = len(data) // _LANE_BYTES
    low, second, third, high = (state >> shift & 255 for shift in (0, 8, 16, 24))
    from_bytes = int.from_bytes
    for step in range(_LANE_BYTES):
        index = (low ^ from_bytes(data[step::_LANE_BYTES], "little")).to_bytes(lanes, "little")
        low = second ^ from_bytes(index.translate(_PLANES[0]), "little")
        second = third ^ from_bytes(index.translate(_PLANES[1]), "little")
        third = high ^ from_bytes(index.translate(_PLANES[2]), "little")
        high = from_bytes(index.translate(_PLANES[3]), "little")
    state = 0
    planes = [plane.to_bytes(lanes, "little") for plane in (low, second, third, high)]
    for a, b, c, d in zip(*planes):
        state = (_SKIPS[0][state & 255] ^ _SKIPS[1][state >> 8 & 255] ^ _SKIPS[2][state >> 16 & 255]
                 ^ _SKIPS[3][state >> 24] ^ (a | b << 8 | c << 16 | d << 24))
    return state


def crc32c_python(data: bytes) -> int:
    """Returns the checksum, computed in Python."""
    whole = len(data) // _LANE_BYTES * _LANE_BYTES
    if whole < 16 * _LANE_BYTES:
        return _bytewise(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    return _bytewise(_lanewise(0xFFFFFFFF, data[:whole]), data[whole:]) ^ 0xFFFFFFFF


def _fastest() -> typing.Callable[[bytes], int]:
    try:
        native = importlib.import_module("google_crc32c")
    except ImportError:
        return crc32c_python
    return typing.cast(typing.Callable[[bytes], int], native.value)


crc32c = _fastest()
