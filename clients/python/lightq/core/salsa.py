"""The cryptography of CURVE in Python: X25519, and the boxes of XSalsa20 and Poly1305, as NaCl defines them.

Slow, and not hardened against an observer who measures times on this machine. It protects a few hundred bytes for each
request on the control socket; messages are protected by TLS.
"""
from __future__ import annotations

import os
import struct

_P = 2**255 - 19
_SIGMA = b"expand 32-byte k"
_MASK = 0xFFFFFFFF
_DOUBLE_ROUND = ((4, 0, 12, 7), (9, 5, 1, 7), (14, 10, 6, 7), (3, 15, 11, 7),
                 (8, 4, 0, 9), (13, 9, 5, 9), (2, 14, 10, 9), (7, 3, 15, 9),
                 (12, 8, 4, 13), (1, 13, 9, 13), (6, 2, 14, 13), (11, 7, 3, 13),
                 (0, 12, 8, 18), (5, 1, 13, 18), (10, 6, 2, 18), (15, 11, 7, 18),
                 (1, 0, 3, 7), (6, 5, 4, 7), (11, 10, 9, 7), (12, 15, 14, 7),
                 (2, 1, 0, 9), (7, 6, 5, 9), (8, 11, 10, 9), (13, 12, 15, 9),
                 (3, 2, 1, 13), (4, 7, 6, 13), (9, 8, 11, 13), (14, 13, 12, 13),
                 (0, 3, 2, 18), (5, 4, 7, 18), (10, 9, 8, 18), (15, 14, 13, 18))


class BadBox(ValueError):
    """A box was not made with these keys, or was changed."""


def x25519(secret: bytes, point: bytes) -> bytes:
    """Multiplies a point by a secret (RFC 7748)."""
    scalar = int.from_bytes(secret, "little") & ~7 & ((1 << 255) - 1) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for position in range(254, -1, -1):
        bit = scalar >> position & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % _P, b * b % _P, d * a % _P, c * b % _P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % _P, u * (da - cb) ** 2 % _P
        x2, z2 = aa * bb % _P, e * (aa + 121665 * e) % _P
    if swap:
        x2, x3, z2, z3 = x3, x2, z3, z2
    return (x2 * pow(z2, _P - 2, _P) % _P).to_bytes(32, "little")


def key_pair() -> "tuple[bytes, bytes]":
    """Returns (public, secret)."""
    secret = os.urandom(32)
    return public_of(secret), secret


def public_of(secret: bytes) -> bytes:
    return x25519(secret, (9).to_bytes(32, "little"))


def _rounds(state: "list[int]") -> "list[int]":
    x = list(state)
    for _ in range(10):
        for target, one, other, turn in _DOUBLE_ROUND:
            value = x[one] + x[other] & _MASK
            x[target] ^= value << turn & _MASK | value >> 32 - turn
    return x


def _state(key: bytes, block: bytes) -> "list[int]":
    sigma, k, n = struct.unpack("<4I", _SIGMA), struct.unpack("<8I", key), struct.unpack("<4I", block)
    return [sigma[0], *k[:4], sigma[1], *n, sigma[2], *k[4:], sigma[3]]


def _hsalsa20(key: bytes, block: bytes) -> bytes:
    x = _rounds(_state(key, block))
    return struct.pack("<8I", *(x[at] for at in (0, 5, 10, 15, 6, 7, 8, 9)))


def _xsalsa20(key: bytes, nonce: bytes, length: int) -> bytes:
    """Returns so many bytes of the key stream."""
    key, stream = _hsalsa20(key, nonce[:16]), b""
    for counter in range((length + 63) // 64):
        state = _state(key, nonce[16:] + struct.pack("<Q", counter))
        stream += struct.pack("<16I", *(a + b & _MASK for a, b in zip(_rounds(state), state)))
    return stream[:length]


def _poly1305(key: bytes, data: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return (total + int.from_bytes(key[16:32], "little") & (1 << 128) - 1).to_bytes(16, "little")


def _exclusive_or(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def shared_key(public: bytes, secret: bytes) -> bytes:
    """Returns the key of boxes between the owners of these halves."""
    return _hsalsa20(x25519(secret, public), bytes(16))


def seal(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    stream = _xsalsa20(key, nonce, 32 + len(plain))
    hidden = _exclusive_or(plain, stream[32:])
    return _poly1305(stream[:32], hidden) + hidden


def unseal(key: bytes, nonce: bytes, box: bytes) -> bytes:
    """Errors: BadBox."""
    stream = _xsalsa20(key, nonce, 16 + len(box))
    tag, hidden = box[:16], box[16:]
    if _exclusive_or(tag.ljust(16, b"\0"), _poly1305(stream[:32], hidden)) != bytes(16):
        raise BadBox("a box was not made with these keys")
    return _exclusive_or(hidden, stream[32:])


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85_decode(text: str) -> bytes:
    """Errors: ValueError."""
    if len(text) != 40 or any(letter not in _Z85 for letter in text):
        raise ValueError("a key has 40 characters of Z85")
    data = b""
    for at in range(0, 40, 5):
        value = 0
        for letter in text[at:at + 5]:
            value = 85 * value + _Z85.index(letter)
        data += (value & _MASK).to_bytes(4, "big")
    return data
