"""Connects a producer, consumer or reader to the broker in an asyncio event loop. A task connects again after an
interruption; bytes are handled as they arrive, and heartbeats are sent by the loop's timers."""
from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import ssl
import typing

from ..core import frames
from ..core.attempts import ATTEMPT_SECONDS, Backoff, as_error, check_certificate, new_link, tls_context
from ..core.link import Channel, Link
from ..core.requests import Address, is_final_join
from ..errors import Closed, ConnectionLost, Error, Timeout

Join = typing.Callable[[str, str, float], typing.Awaitable[Address]]  # topic, type, seconds
_SUSPECT_SECONDS = 0.1


class _Session(asyncio.Protocol):
    """One connection. `ended` gets the reason of its end."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.is_paused = driver, False
        self.ended: asyncio.Future[Error] = driver.loop.create_future()
        self.transport: typing.Optional[asyncio.Transport] = None
        self.link: typing.Optional[Link] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = typing.cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(1, 0)  # paused: the system has not taken everything

    def data_received(self, data: bytes) -> None:
        link, now = self.link, self.driver.loop.time()
        if link is None or self.ended.done():
            return
        try:
            for frame in link.receive(data, now):
                self.driver.channel.handle(frame, now)
                self.driver.backoff.reset()
            if link.welcome is not None and self.driver.channel.link is None:
                self.driver.channel.attach(link, now)
        except Error as error:
            self.end(error)
        self.driver.progress()

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        self.look()
        self.driver.progress()

    def look(self) -> None:
        """Tells the link that everything is written, if that is so."""
        if self.link is not None and not self.is_paused and self.transport is not None and not self.transport.is_closing():
            self.link.flushed()

    def connection_lost(self, failure: typing.Optional[BaseException]) -> None:
        self.end(as_error(failure, "the connection failed") if failure else ConnectionLost("the broker closed the connection"))

    def end(self, error: Error) -> None:
        if not self.ended.done():
            self.ended.set_result(error)
        if self.transport is not None:
            self.transport.abort()


class Driver:
    """Owns the connection, and the task that makes it. For the loop in which it was made."""

    def __init__(self, channel: Channel, join: Join, name: str) -> None:
        self.channel, self.loop, self.backoff, self.is_closed = channel, asyncio.get_running_loop(), Backoff(), False
        self.last_error: typing.Optional[Error] = None
        self._join, self._name, self._process = join, name, os.getpid()
        self._session: typing.Optional[_Session] = None
        self._waiters: typing.Set[asyncio.Future[None]] = set()
        self._timer: typing.Optional[asyncio.TimerHandle] = None
        self._suspected: typing.Optional[float] = None  # the last sign of life of a broker that seems to be silent
        self._is_kicked = False
        self._task = self.loop.create_task(self._run())

    def check(self) -> None:
        """Errors: Closed, or Error with the code `in_use` if another thread or loop calls."""
        if os.getpid() != self._process:
            raise Closed("this object belongs to the process before the fork: make another one")
        if self.is_closed:
            raise Closed("this object is closed")
        try:
            is_own = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_own = False
        if not is_own:
            raise Error("this object belongs to another event loop or thread", "in_use")

    # --- Connecting. -------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self.is_closed:
            try:
                error = await self._connected()
            except (Error, OSError, ssl.SSLError, asyncio.TimeoutError) as failure:
                error = as_error(failure, "the connection failed")
            self._lost(error)
            if self.channel.failure:
                return
            await asyncio.sleep(self.backoff.next())

    async def _connected(self) -> Error:
        """Connects, and waits for the end of the connection. Returns its reason."""
        try:
            address = await self._join(self.channel.topic, self.channel.join_type, ATTEMPT_SECONDS)
        except Error as error:
            if is_final_join(error.code):
                self.channel.fail(error)
            raise
        session = await asyncio.wait_for(self._connect(address), ATTEMPT_SECONDS)
        # Before Python 3.12, a cancel is lost if it comes when what wait_for waits for has just ended.
        if self.is_closed:
            session.end(Closed("this object is closed"))
            raise Closed("this object is closed")
        self._session = session
        session.link = new_link(address, self.channel, self._name, self.loop.time())
        self.progress()
        await asyncio.wait({session.ended}, timeout=ATTEMPT_SECONDS)
        if not session.ended.done() and not self.channel.is_open:
            session.end(ConnectionLost(f"the broker did not open the topic within {ATTEMPT_SECONDS} s"))
        return await session.ended

    async def _connect(self, address: Address) -> _Session:
        session = _Session(self)
        if address.unix_path:
            await self.loop.create_unix_connection(lambda: session, address.unix_path)
            return session
        host, port = address.host_and_port
        context = tls_context() if address.certificate_sha256 else None
        transport, _ = await self.loop.create_connection(lambda: session, host, port, ssl=context)
        try:
            if context is None:
                transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            else:
                check_certificate(transport.get_extra_info("ssl_object").getpeercert(binary_form=True), address)
        except BaseException:
            transport.abort()
            raise
        return session

    def _lost(self, error: Error) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.end(error)
        self.last_error = error
        self.channel.detach(error)
        self._wake()

    # --- Sending and waiting. ----------------------------------------------------------------------------------------

    def push(self) -> None:
        """Writes the bytes that the link has."""
        session = self._session
        if session is None or session.link is None or session.transport is None or session.ended.done():
            return
        if session.link.out:
            session.transport.write(bytes(session.link.out))
            session.link.out.clear()
            session.link.sent(self.loop.time())
            session.look()

    def progress(self) -> None:
        """Lets the channel and the link do their due work, and wakes waiting calls."""
        self._is_kicked = False
        session, now = self._session, self.loop.time()
        if session is not None and session.link is not None and not session.ended.done():
            try:
                if not session.is_paused:
                    self.channel.work(now)
                session.link.beat(now)
            except Error as error:
                session.end(error)
            self.push()
            self._schedule(min(session.link.next_timer(), math.inf if session.is_paused else self.channel.next_timer()))
        self._wake()

    def kick(self) -> None:
        """Requests `progress` soon; once for many calls."""
        if not self._is_kicked:
            self._is_kicked = True
            self.loop.call_soon(self.progress)

    def _schedule(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when == math.inf else self.loop.call_at(max(when, self.loop.time() + 0.001), self._on_timer)

    def _on_timer(self) -> None:
        """Does the due work, and ends the connection to a silent broker. A program that kept the loop busy is given a moment
        to read before."""
        session = self._session
        since = session.link.silent_since(self.loop.time()) if session is not None and session.link is not None else None
        if session is not None and since is not None and since == self._suspected:
            session.end(ConnectionLost(f"the broker has sent nothing for {self.loop.time() - since:.1f} s"))
        self.progress()
        if since is not None:
            self._schedule(self.loop.time() + _SUSPECT_SECONDS)
        self._suspected = since

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, is_done: typing.Callable[[], bool], timeout: typing.Optional[float], call: str = "") -> bool:
        """Waits until the condition holds. Returns False after so many seconds, or raises Timeout if `call` is its
        name. Errors: the final failure, Closed."""
        deadline = math.inf if timeout is None else self.loop.time() + timeout
        while not is_done():
            if self.channel.failure:
                raise self.channel.failure
            if self.is_closed:
                raise Closed("this object was closed")
            left = deadline - self.loop.time()
            if left <= 0:
                if not call:
                    return False
                reason = f"; the last failure: {self.last_error}" if self.last_error and not self.channel.is_open else ""
                raise Timeout(f"{call}: not within {timeout} s{reason}") from self.last_error
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait({waiter}, timeout=None if left == math.inf else left)
            finally:
                self._waiters.discard(waiter)
        return True

    def say_goodbye(self) -> None:
        session = self._session
        if session is not None and session.link is not None and session.link.welcome is not None:
            session.link.send(frames.goodbye())
            self.push()

    async def close(self, timeout: float = 0) -> None:
        """Ends the connection. Written bytes have so many seconds to be sent."""
        if self.is_closed:
            return
        session = self._session
        if session is not None and session.transport is not None and timeout > 0 and not session.ended.done():
            session.transport.close()
            await asyncio.wait({session.ended}, timeout=timeout)
        self.abandon()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def abandon(self) -> None:
        """Ends the connection immediately. Also called when an open object is garbage-collected."""
        self.is_closed = True
        if os.getpid() != self._process:
            return
        self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._lost(Closed("this object is closed"))
