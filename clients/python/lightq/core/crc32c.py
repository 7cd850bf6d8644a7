"""CRC-32C (RFC 3720, appendix B.4). Uses the package `google-crc32c` if it is installed (extra `fast`).

In Python, byte by byte takes a second for some megabytes. So long data is shortened first, as one large number. The
checksum is the remainder of a division of polynomials over GF(2). Some multiples of the divisor have few terms, and by
squaring one of them, every exponent doubles. Modulo x^a + x^b + x^c + 1, the term x^(i+a) is x^(i+b) + x^(i+c) + x^i. So
the highest powers are replaced with a few shifts and exclusive ors, which halve the length.
"""
from __future__ import annotations

import importlib
import typing

# Exponents of multiples of the divisor, without the 0 at the end. Short ones for short data.
_MULTIPLES = ((6777, 484, 100), (290, 136, 113, 107, 32))
_SHORT_BYTES = 48


def _make_table() -> typing.List[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def _bytewise(state: int, data: typing.Iterable[int]) -> int:
    table = _TABLE
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 255]
    return state


def _shortened(rest: int, bits: int) -> typing.Tuple[int, int]:
    """Returns a number with the same remainder, and its length in bits. The lowest bit has the highest power. The length
    changes by whole bytes."""
    for highest, *others in _MULTIPLES:
        scale = max((bits // highest).bit_length(), 1) - 1
        while scale >= 0:
            high = highest << scale
            count = min(bits - high, high - (others[0] << scale)) & ~7  # the terms that are replaced
            if count <= 0:
                scale -= 1
                continue
            terms = rest & ((1 << count) - 1)
            rest = rest >> count ^ terms << high - count
            for other in others:
                rest ^= terms << high - (other << scale) - count
            bits -= count
    return rest, bits


def crc32c_python(data: bytes) -> int:
    """Returns the checksum, computed in Python."""
    if len(data) < _SHORT_BYTES:
        return _bytewise(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    rest, bits = _shortened(int.from_bytes(data, "little") ^ 0xFFFFFFFF, 8 * len(data))
    return _bytewise(0, rest.to_bytes(bits // 8, "little")) ^ 0xFFFFFFFF


def _fastest() -> typing.Callable[[bytes], int]:
    try:
        native = importlib.import_module("google_crc32c")
    except ImportError:
        return crc32c_python
    return typing.cast(typing.Callable[[bytes], int], native.value)


crc32c = _fastest()
