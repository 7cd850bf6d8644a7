"""Connects a producer, consumer or reader to the broker over plain sockets, inside the program's calls. It has no
thread: nothing is sent or received between calls."""
from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import ssl
import threading
import time
import typing

from .core import frames
from .core.attempts import (ATTEMPT_SECONDS, RECEIVE_BYTES, Backoff, as_error, check_certificate, new_link, tls_context)
from .core.link import Channel, Link
from .core.requests import Address, is_final_join
from .errors import Closed, ConnectionLost, Error, Timeout

Join = typing.Callable[[str, str, float], Address]  # topic, type, seconds
_ROUND_SECONDS = 0.1  # so often a call that waits looks for signals and timers


class Wire:
    """A connection with or without TLS. Its socket does not block."""

    def __init__(self, address: Address, seconds: float) -> None:
        plain = self._connected(address, seconds)
        try:
            self.socket = self._wrapped(plain, address) if address.certificate_sha256 else plain
        except BaseException:
            plain.close()
            raise
        self.socket.setblocking(False)

    @staticmethod
    def _connected(address: Address, seconds: float) -> socket.socket:
        if address.unix_path:
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            plain.settimeout(seconds)
            plain.connect(address.unix_path)
            return plain
        plain = socket.create_connection(address.host_and_port, seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain

    @staticmethod
    def _wrapped(plain: socket.socket, address: Address) -> socket.socket:
        wrapped = tls_context().wrap_socket(plain)
        check_certificate(wrapped.getpeercert(binary_form=True), address)
        return wrapped

    def receive(self) -> typing.Optional[bytes]:
        """Returns bytes that have arrived, or None. Errors: ConnectionLost at the end."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        if not data:
            raise ConnectionLost("the broker closed the connection")
        return data

    def send(self, out: bytearray) -> bool:
        """Sends as much as possible, and removes it from `out`. Tells whether it was any."""
        sent = 0
        while out:
            try:
                count = self.socket.send(memoryview(out)[:RECEIVE_BYTES].tobytes())
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            del out[:count]
            sent += count
        return sent > 0

    def wait(self, seconds: float, for_space: bool) -> None:
        """Waits until bytes have arrived, or there is space for some."""
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | (select.POLLOUT if for_space else 0))
        poll.poll(max(0, math.ceil(1000 * seconds)))

    def close(self) -> None:
        self.socket.close()


class _Forks:
    """Counts the forks before this process. To ask the system for the process in each call would take longer."""

    count = 0

    @classmethod
    def add(cls) -> None:
        cls.count += 1


os.register_at_fork(after_in_child=_Forks.add)


class _Call:
    """Surrounds each call of the program."""

    __slots__ = ("_driver", "_lock", "_forks")

    def __init__(self, driver: Driver) -> None:
        self._driver, self._lock, self._forks = driver, threading.Lock(), _Forks.count

    def __enter__(self) -> None:
        if _Forks.count != self._forks:
            raise Closed("this object belongs to the process before the fork: make another one")
        if self._driver.is_closed:
            raise Closed("this object is closed")
        if not self._lock.acquire(False):
            raise Error("another thread is using this object: give each thread its own", "in_use")

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


class Driver:
    """Owns the connection. For one thread at a time; a second one that calls meanwhile receives an error."""

    def __init__(self, channel: Channel, join: Join, name: str) -> None:
        self.channel, self.is_closed = channel, False
        self.last_error: typing.Optional[Error] = None
        self._join, self._name, self._backoff = join, name, Backoff()
        self._wire: typing.Optional[Wire] = None
        self._link: typing.Optional[Link] = None
        self._process, self._not_before, self._since = os.getpid(), 0.0, 0.0
        # For `with`: surrounds each call of the program. Errors: Closed, or Error with the code `in_use`.
        self.call = _Call(self)

    def run(self, is_done: typing.Callable[[], bool], timeout: typing.Optional[float], what: str = "") -> bool:
        """Works until the condition holds. Returns False after so many seconds, or raises Timeout if `what` names the
        call. Errors: the final failure."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            if is_done():
                return True
            if self.channel.failure:
                raise self.channel.failure
            left = deadline - time.monotonic()
            if left <= 0:
                if not what:
                    return False
                raise Timeout(f"{what}: not within {timeout} s{self._reason()}") from self.last_error
            self.step(min(left, _ROUND_SECONDS), is_done)

    def _reason(self) -> str:
        return f"; the last failure: {self.last_error}" if self.last_error and not self.channel.is_open else ""

    def step(self, seconds: float, is_done: typing.Callable[[], bool] = lambda: False) -> None:
        """Connects, sends and receives. Waits up to so many seconds if there is nothing to do."""
        now = time.monotonic()
        try:
            if self._wire is None:
                if now < self._not_before:
                    time.sleep(min(seconds, self._not_before - now))
                    return
                self._connect(max(seconds, ATTEMPT_SECONDS) if seconds else ATTEMPT_SECONDS)
            self._exchange(seconds, is_done)
        except (Error, OSError, ssl.SSLError) as failure:
            self._lost(as_error(failure, "the connection failed"))

    @staticmethod
    def _send(wire: Wire, link: Link, now: float) -> None:
        try:
            if wire.send(link.out):
                link.sent(now)
        finally:
            link.flushed()

    def push(self) -> None:
        """Sends the waiting bytes, as far as that is possible without waiting."""
        if self._link is not None and self._link.out and self._wire is not None:
            try:
                self._send(self._wire, self._link, time.monotonic())
            except (OSError, ssl.SSLError) as failure:
                self._lost(as_error(failure, "the connection failed"))

    def _connect(self, seconds: float) -> None:
        try:
            address = self._join(self.channel.topic, self.channel.join_type, seconds)
        except Error as error:
            if is_final_join(error.code):
                self.channel.fail(error)
            raise
        self._wire = Wire(address, seconds)
        self._since = time.monotonic()
        self._link = new_link(address, self.channel, self._name, self._since)

    def _exchange(self, seconds: float, is_done: typing.Callable[[], bool]) -> None:
        wire, link = typing.cast(Wire, self._wire), typing.cast(Link, self._link)
        has_read, now = self._read(wire), time.monotonic()
        since = link.silent_since(now)
        if since is not None:
            raise ConnectionLost(f"the broker has sent nothing for {now - since:.1f} s")
        self.channel.work(now)
        link.beat(now)
        if link.out:
            self._send(wire, link, now)
        if not has_read and not is_done():
            timer = min(link.next_timer(), self.channel.next_timer())
            wire.wait(min(seconds, max(timer - now, 0)), bool(link.out))
            self._read(wire)
        if not self.channel.is_open and now - self._since > ATTEMPT_SECONDS:
            raise ConnectionLost(f"the broker did not open the topic within {ATTEMPT_SECONDS} s")

    def _read(self, wire: Wire) -> bool:
        """Handles everything that has arrived. Tells whether it was any."""
        data, has_read = wire.receive(), False
        while data is not None:
            self._take(data, time.monotonic())
            data, has_read = wire.receive(), True
        return has_read

    def _take(self, data: bytes, now: float) -> None:
        link = typing.cast(Link, self._link)
        for frame in link.receive(data, now):
            self.channel.handle(frame, now)
            self._backoff.reset()
        if link.welcome is not None and self.channel.link is None:
            self.channel.attach(link, now)

    def _lost(self, error: Error) -> None:
        self.disconnect(error)
        self.last_error = error
        self._not_before = time.monotonic() + self._backoff.next()

    def disconnect(self, error: Error) -> None:
        """Ends the connection. The object may connect again."""
        if self._wire is not None:
            self._wire.close()
        self._wire = self._link = None
        self.channel.detach(error)

    def say_goodbye(self, seconds: float) -> None:
        """Sends everything and the goodbye. The end of the process may follow immediately."""
        link, deadline = self._link, time.monotonic() + seconds
        if link is None or link.welcome is None or self._wire is None:
            return
        link.send(frames.goodbye())
        with contextlib.suppress(Error, OSError):
            while link.out and time.monotonic() < deadline:
                self._wire.send(link.out)
                if link.out:
                    self._wire.wait(_ROUND_SECONDS, True)

    def close(self) -> None:
        """Closes the socket. In a process after a fork, the other one keeps its connection."""
        self.is_closed = True
        if os.getpid() == self._process:
            self.disconnect(Closed("this object is closed"))
        elif self._wire is not None:
            os.close(self._wire.socket.detach())
            self._wire = None
