"""The connection to the control socket, over plain sockets."""
from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
import typing

from .core import zmtp
from .core.attempts import RECEIVE_BYTES, as_error
from .core.discovery import Place, check_exposure, split_tcp
from .core.requests import Reply, keys_of, may_repeat, reply_of, request_of
from .errors import Closed, ConnectionLost, Error, InvalidArgument, Timeout

_BUSY_PAUSE = 0.05


class ControlConnection:
    """Sends one request at a time. Threads may share it: they take turns. Connects again by itself after a failure and in
    a process after a fork."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.place, self.timeout, self.is_closed = place, timeout, False
        self._keys, self._lock, self._process = keys_of(place), threading.Lock(), os.getpid()
        self._socket: typing.Optional[socket.socket] = None
        self._zmtp: typing.Optional[zmtp.Connection] = None

    def ask(self, cmd: str, fields: typing.Mapping[str, typing.Any], timeout: typing.Optional[float] = None) -> Reply:
        """Returns the reply. Repeats a request that the broker answers `busy`. Errors: Timeout, ConnectionLost, the
        broker's."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        if self.is_closed:
            raise Closed("this client is closed")
        if os.getpid() != self._process:
            self._socket, self._lock, self._process = None, threading.Lock(), os.getpid()
        payload = request_of(self.place, cmd, fields)
        with self._lock:
            while True:
                try:
                    return reply_of(self._exchange(payload, cmd, deadline))
                except Error as error:
                    if error.code != "busy" or time.monotonic() + _BUSY_PAUSE > deadline:
                        raise
                time.sleep(_BUSY_PAUSE)

    def _exchange(self, payload: bytes, cmd: str, deadline: float) -> bytes:
        """Sends a request. Once more over a new connection, if an old one has ended in the meantime; but not if the broker
        may have executed it and it changes something."""
        if self._has_ended():
            self.disconnect()
        old = self._zmtp if self._socket is not None else None
        try:
            return self._attempt(payload, deadline)
        except TimeoutError:
            self.disconnect()
            raise Timeout(f"{cmd}: the broker at {self.place.uri} did not reply in time") from None
        except (ConnectionLost, OSError) as failure:
            self.disconnect()
            if old is not None and not self.is_closed and may_repeat(cmd, old.is_written):
                return self._exchange(payload, cmd, deadline)
            raise as_error(failure, f"no connection to the broker at {self.place.uri}") from failure
        except Error:
            self.disconnect()
            raise

    def _attempt(self, payload: bytes, deadline: float) -> bytes:
        if self._socket is None:
            self._socket, self._zmtp = self._connected(deadline - time.monotonic()), zmtp.Connection(self._keys)
        connection, link = self._socket, typing.cast(zmtp.Connection, self._zmtp)
        link.send(payload)
        while True:
            self._wait(connection, deadline, bool(link.out))
            if link.out:
                del link.out[:self._sent(connection, link.out)]
            data = self._received(connection)
            if data is None:
                continue
            messages = link.receive(data)
            if messages:
                return messages[-1]

    def _has_ended(self) -> bool:
        """Tells whether the broker has ended the connection since the last request."""
        try:
            return self._socket is not None and not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    @staticmethod
    def _sent(connection: socket.socket, out: bytearray) -> int:
        try:
            return connection.send(out)
        except BlockingIOError:
            return 0

    @staticmethod
    def _received(connection: socket.socket) -> typing.Optional[bytes]:
        try:
            data = connection.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionLost("the broker closed the connection")
        return data

    @staticmethod
    def _wait(connection: socket.socket, deadline: float, for_space: bool) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(connection, select.POLLIN | (select.POLLOUT if for_space else 0))
        if left <= 0 or not poll.poll(math.ceil(1000 * left)):
            raise TimeoutError

    def _connected(self, seconds: float) -> socket.socket:
        check_exposure(self.place.uri, self.place)
        seconds = max(seconds, 0.001)
        if self.place.uri.startswith("ipc://"):
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(seconds)
            made.connect(self.place.uri[len("ipc://"):])
        else:
            host, port = split_tcp(self.place.uri)
            if not host or not port.isdigit():
                raise InvalidArgument(f"{self.place.uri!r} is neither tcp://HOST:PORT nor ipc://PATH")
            made = socket.create_connection((host, int(port)), seconds)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setblocking(False)
        return made

    def disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._zmtp = None

    def close(self) -> None:
        self.is_closed = True
        self.disconnect()
