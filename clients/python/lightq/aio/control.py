"""The connection to the control socket, in an event loop."""
from __future__ import annotations

import asyncio
import contextlib
import os
import typing

from ..core import zmtp
from ..core.attempts import RECEIVE_BYTES, as_error
from ..core.discovery import Place, check_exposure, split_tcp
from ..core.requests import Reply, keys_of, may_repeat, reply_of, request_of
from ..errors import Closed, ConnectionLost, Error, InvalidArgument, Timeout

_BUSY_PAUSE = 0.05


class ControlConnection:
    """Sends one request at a time; tasks take turns. Connects again by itself after a failure."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.place, self.timeout, self.is_closed = place, timeout, False
        self._keys, self._process = keys_of(place), os.getpid()
        self._lock: typing.Optional[asyncio.Lock] = None
        self._streams: typing.Optional[typing.Tuple[asyncio.StreamReader, asyncio.StreamWriter]] = None
        self._zmtp: typing.Optional[zmtp.Connection] = None

    async def ask(self, cmd: str, fields: typing.Mapping[str, typing.Any], timeout: typing.Optional[float] = None) -> Reply:
        """Returns the reply. Repeats a request that the broker answers `busy`. Errors: Timeout, ConnectionLost, the
        broker's."""
        if self.is_closed:
            raise Closed("this client is closed")
        if os.getpid() != self._process:
            raise Closed("this client belongs to the process before the fork: make another one")
        payload = request_of(self.place, cmd, fields)
        # A task of its own: before Python 3.12, wait_for swallows a cancel of the caller that comes just when the reply arrives.
        task = asyncio.get_running_loop().create_task(self._asked(payload, cmd))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may want to know it any more
        try:
            await asyncio.wait({task}, timeout=self.timeout if timeout is None else timeout)
        except asyncio.CancelledError:
            await self._stop(task)
            raise
        await self._stop(task)
        if task.cancelled():
            raise Timeout(f"{cmd}: the broker at {self.place.uri} did not reply in time")
        return task.result()

    @staticmethod
    async def _stop(task: "asyncio.Task[Reply]") -> None:
        """Cancels a request that has not ended. It ends the connection: a late reply answers no other request."""
        if task.cancel():
            await asyncio.wait({task})

    async def _asked(self, payload: bytes, cmd: str) -> Reply:
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            while True:
                try:
                    return reply_of(await self._exchange(payload, cmd))
                except Error as error:
                    if error.code != "busy":
                        raise
                await asyncio.sleep(_BUSY_PAUSE)

    async def _exchange(self, payload: bytes, cmd: str) -> bytes:
        """Sends a request. Once more over a new connection, if an old one has ended in the meantime; but not if the broker
        may have executed it and it changes something."""
        if self._streams is not None and (self._streams[0].at_eof() or self._streams[1].is_closing()):
            self.disconnect()
        old = self._zmtp
        try:
            return await self._attempt(payload)
        except (ConnectionLost, OSError) as failure:
            self.disconnect()
            if old is not None and not self.is_closed and may_repeat(cmd, old.is_written):
                return await self._exchange(payload, cmd)
            raise as_error(failure, f"no connection to the broker at {self.place.uri}") from failure
        except BaseException:  # cancelled in the middle: a reply that comes later must not answer another request
            self.disconnect()
            raise

    async def _attempt(self, payload: bytes) -> bytes:
        if self._streams is None:
            self._streams, self._zmtp = await self._connected(), zmtp.Connection(self._keys)
            self._streams[1].transport.set_write_buffer_limits(0)
        (reader, writer), link = self._streams, typing.cast(zmtp.Connection, self._zmtp)
        link.send(payload)
        while True:
            if link.out:
                writer.write(bytes(link.out))
                await writer.drain()  # until the system has taken everything
                link.out.clear()
            data = await reader.read(RECEIVE_BYTES)
            if not data:
                raise ConnectionLost("the broker closed the connection")
            messages = link.receive(data)
            if messages:
                return messages[-1]

    async def _connected(self) -> typing.Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, check_exposure, self.place.uri, self.place)  # may look up a name
        if self.place.uri.startswith("ipc://"):
            return await asyncio.open_unix_connection(self.place.uri[len("ipc://"):])
        host, port = split_tcp(self.place.uri)
        if not host or not port.isdigit():
            raise InvalidArgument(f"{self.place.uri!r} is neither tcp://HOST:PORT nor ipc://PATH")
        return await asyncio.open_connection(host, int(port))

    def disconnect(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = self._zmtp = None

    async def close(self) -> None:
        self.is_closed = True
        streams = self._streams
        self.disconnect()
        if streams is not None:
            with contextlib.suppress(OSError):
                await streams[1].wait_closed()
