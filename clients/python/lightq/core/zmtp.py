"""A client's side of a ZeroMQ connection (ZMTP 3, a REQ socket), without input and output: in clear (NULL), or encrypted
(CURVE, RFC 26) if there is a server key. For the control socket."""
from __future__ import annotations

import os
import struct
import typing

from ..errors import ConnectionLost, ProtocolViolation, Unauthorized
from . import salsa

_REPLY_BYTES_MAX = 1 << 26
_MORE, _LONG, _COMMAND = 1, 2, 4


class Keys(typing.NamedTuple):
    """The broker's public key, and the client's own pair."""
    server: bytes
    public: bytes
    secret: bytes


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | _LONG]) + struct.pack(">Q", len(body)) + body


def _ready_properties() -> bytes:
    return b"\x0bSocket-Type" + struct.pack(">I", 3) + b"REQ" + b"\x08Identity" + struct.pack(">I", 0)


class Connection:
    """`out` has the bytes to send. `receive` returns the last parts of whole messages. Errors: ConnectionLost,
    Unauthorized, ProtocolViolation."""

    def __init__(self, keys: typing.Optional[Keys]) -> None:
        self.keys, self.is_ready = keys, False
        mechanism = b"CURVE" if keys else b"NULL"
        self.out = bytearray(b"\xff" + bytes(8) + b"\x7f\3\0" + mechanism.ljust(20, b"\0") + bytes(32))
        self._mechanism, self._data, self._greeted = mechanism, bytearray(), False
        self._is_first_part = True
        self._is_welcomed = keys is None  # the other side has shown with its WELCOME that it has the broker's key
        self._queued: typing.List[bytes] = []
        self._curve: typing.Optional[_Curve] = _Curve(keys) if keys else None

    def send(self, payload: bytes) -> None:
        """Sends a request: an empty part and the payload. Before the handshake's end it waits."""
        if not self.is_ready:
            self._queued.append(payload)
            return
        for flags, part in ((_MORE, b""), (0, payload)):
            # libzmq sends and expects CURVE's MESSAGE as a message, not as a command.
            self.out += _frame(0, self._curve.message(flags, part)) if self._curve else _frame(flags, part)

    @property
    def is_written(self) -> bool:
        """Tells whether everything that was sent was also taken from `out`."""
        return self.is_ready and not self.out

    def receive(self, data: bytes) -> typing.List[bytes]:
        self._data += data
        messages: typing.List[bytes] = []
        if not self._greeted and not self._greeting():
            return messages
        while True:
            frame = self._next_frame()
            if frame is None:
                return messages
            flags, body = frame
            if not self.is_ready:
                self._handshake(flags, body)
                continue
            if self._curve:
                flags, body = self._curve.opened(body)
            elif flags & _COMMAND:
                continue  # a PING of the broker's library, which may stay unanswered
            if not flags & _MORE:
                messages.append(body)

    def _greeting(self) -> bool:
        if len(self._data) < 64:
            return False
        signature, major, mechanism = self._data[:10], self._data[10], bytes(self._data[12:32]).rstrip(b"\0")
        if signature[0] != 0xFF or signature[9] != 0x7F or major < 3:
            raise ProtocolViolation("no ZeroMQ socket of version 3 listens there")
        if mechanism != self._mechanism:
            need = "give its server_key" if mechanism == b"CURVE" else "a server_key was given"
            raise Unauthorized(f"the broker speaks {mechanism.decode(errors='replace')}, this client {self._mechanism.decode()}: {need}")
        del self._data[:64]
        self._greeted = True
        first = self._curve.hello() if self._curve else b"\x05READY" + _ready_properties()
        self.out += _frame(_COMMAND, first)
        return True

    def _next_frame(self) -> typing.Optional[typing.Tuple[int, bytes]]:
        head = 9 if self._data and self._data[0] & _LONG else 2
        if len(self._data) < head:
            return None
        flags = self._data[0]
        length = struct.unpack_from(">Q", self._data, 1)[0] if flags & _LONG else self._data[1]
        if flags > 7 or length > _REPLY_BYTES_MAX:
            raise ProtocolViolation(f"the broker sent a part of {length} bytes with the flags {flags}")
        if len(self._data) < head + length:
            return None
        body = bytes(self._data[head:head + length])
        del self._data[:head + length]
        return flags, body

    def _handshake(self, flags: int, body: bytes) -> None:
        name = body[1:1 + body[0]] if body else b""
        if not flags & _COMMAND:
            raise ProtocolViolation("the broker sent a message before the end of the handshake")
        if name == b"ERROR":
            raise Unauthorized("the broker refuses this client's key: it has another key, or a list of clients")
        if self._curve and name == b"WELCOME" and not self._is_welcomed:
            self._is_welcomed = True
            self.out += _frame(_COMMAND, self._curve.initiate(body))
            return
        if name != b"READY" or not self._is_welcomed:
            raise ProtocolViolation(f"the broker sent {name[:16]!r} in the handshake")
        if self._curve:
            self._curve.check_ready(body)
        self.is_ready = True
        queued, self._queued = self._queued, []
        for payload in queued:
            self.send(payload)


class _Curve:
    """The client's side of CURVE."""

    def __init__(self, keys: Keys) -> None:
        self._keys, self._number, self._peer_number, self._session_key = keys, 0, 0, b""
        self._public, self._secret = salsa.key_pair()  # for this connection

    def _short_nonce(self) -> bytes:
        self._number += 1
        return struct.pack(">Q", self._number)

    @staticmethod
    def _open(key: bytes, nonce: bytes, box: bytes) -> bytes:
        try:
            return salsa.unseal(key, nonce, box)
        except salsa.BadBox:
            raise Unauthorized("the other side does not have the broker's key") from None

    def hello(self) -> bytes:
        nonce = self._short_nonce()
        box = salsa.seal(salsa.shared_key(self._keys.server, self._secret), b"CurveZMQHELLO---" + nonce, bytes(64))
        return b"\x05HELLO\1\0" + bytes(72) + self._public + nonce + box

    def initiate(self, welcome: bytes) -> bytes:
        if len(welcome) != 168:
            raise ProtocolViolation("the broker sent a WELCOME of a wrong length")
        plain = self._open(salsa.shared_key(self._keys.server, self._secret), b"WELCOME-" + welcome[8:24], welcome[24:])
        server, cookie = plain[:32], plain[32:]
        self._session_key = salsa.shared_key(server, self._secret)
        nonce = os.urandom(16)
        vouch = salsa.seal(salsa.shared_key(server, self._keys.secret), b"VOUCH---" + nonce, self._public + self._keys.server)
        short = self._short_nonce()
        box = salsa.seal(self._session_key, b"CurveZMQINITIATE" + short, self._keys.public + nonce + vouch + _ready_properties())
        return b"\x08INITIATE" + cookie + short + box

    def check_ready(self, ready: bytes) -> None:
        if len(ready) < 30:
            raise ProtocolViolation("the broker sent a READY of a wrong length")
        self._peer_number = struct.unpack_from(">Q", ready, 6)[0]
        self._open(self._session_key, b"CurveZMQREADY---" + ready[6:14], ready[14:])

    def message(self, flags: int, part: bytes) -> bytes:
        nonce = self._short_nonce()
        return b"\x07MESSAGE" + nonce + salsa.seal(self._session_key, b"CurveZMQMESSAGEC" + nonce, bytes([flags]) + part)

    def opened(self, body: bytes) -> typing.Tuple[int, bytes]:
        if body[:8] != b"\x07MESSAGE" or len(body) < 33:
            raise ConnectionLost("the broker ended the connection" if body[:6] == b"\x05ERROR" else "the broker sent no message")
        number = struct.unpack_from(">Q", body, 8)[0]
        if number <= self._peer_number:
            raise ProtocolViolation("the broker repeated a message")
        self._peer_number = number
        plain = self._open(self._session_key, b"CurveZMQMESSAGES" + body[8:16], body[16:])
        return plain[0] & _MORE, plain[1:]
