"""The asyncio client."""
from __future__ import annotations

import types
import typing

from ..core.commands import Commands
from ..core.consuming import Start
from ..core.discovery import discover
from ..core.options import check_name, consumer_options, producer_options
from ..core.requests import Address, Reply, address_of, transport_of
from .consumer import Consumer
from .control import ControlConnection
from .producer import Producer
from .reader import Reader

_SECONDS = 5.0


class Client(Commands):
    """A broker, and the credentials for it. Commands are awaited. Tasks of one event loop may share a client."""

    def __init__(self, control: ControlConnection, transport: str, name: str) -> None:
        self._control, self._transport, self._name = control, transport_of(control.place, transport), name

    def _ask(self, cmd: str, **fields: typing.Any) -> typing.Awaitable[Reply]:
        return self._control.ask(cmd, fields)

    async def _join(self, topic: str, kind: str, seconds: float) -> Address:
        reply = await self._control.ask("join", {"topic": topic, "type": kind, "connection_type": "socket", "delivery": "session",
                                                 "transport": self._transport}, seconds)
        return address_of(self._control.place, reply)

    @property
    def uri(self) -> str:
        """The address of the control socket."""
        return self._control.place.uri

    def producer(self, topic: str, *, level: str = "default", delayed: bool = False,
                 identity: typing.Optional[typing.Tuple[int, int]] = None, retry_refused: bool = True,
                 resend_in_doubt: bool = False, send_timeout: float = 30.0, timeout: float = _SECONDS) -> Producer:
        """Makes a producer: open it with `async with`, or await it. The arguments are those of `lightq.Client.producer`."""
        options = producer_options(topic, level, delayed, identity, retry_refused=retry_refused, resend_in_doubt=resend_in_doubt)
        return Producer(topic, self._join, options, send_timeout, timeout, self._name)

    def consumer(self, topic: str, group: str = "", *, own: bool = False, start: Start = "first", holds: bool = False,
                 automatic: bool = False, prefetch: typing.Optional[int] = None, prefetch_bytes: int = 1 << 20,
                 ack_timeout: float = 0, timeout: float = _SECONDS) -> Consumer:
        """Makes a consumer: open it with `async with`, or await it. The arguments are those of `lightq.Client.consumer`."""
        options = consumer_options(topic, group, own=own, start=start, holds=holds, automatic=automatic, prefetch=prefetch,
                                   prefetch_bytes=prefetch_bytes, ack_timeout=ack_timeout)
        return Consumer(topic, self._join, options, timeout, self._name)

    def reader(self, topic: str, *, timeout: float = _SECONDS) -> Reader:
        """Makes a reader, which reads by offset: open it with `async with`, or await it."""
        check_name(topic, "the topic")
        return Reader(topic, self._join, timeout, self._name)

    async def _open(self) -> Client:
        try:
            await self._control.ask("ping", {})
        except BaseException:
            await self._control.close()
            raise
        return self

    def __await__(self) -> typing.Generator[typing.Any, None, Client]:
        return self._open().__await__()

    async def close(self) -> None:
        """Ends the control connection. Producers, consumers and readers go on until they have to connect again."""
        await self._control.close()

    async def __aenter__(self) -> Client:
        return await self._open()

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                        trace: typing.Optional[types.TracebackType]) -> None:
        await self._control.close()


def connect(uri: str = "", *, user: str = "", password: str = "", admin: str = "", admin_password: str = "",
            server_key: str = "", client_key_file: str = "", insecure: bool = False, data_dir: str = "", transport: str = "",
            timeout: float = _SECONDS, name: str = "") -> Client:
    """Makes a client: `async with connect() as q`, or `q = await connect()`. The arguments are those of `lightq.connect`."""
    place = discover(uri, user, password, admin, admin_password, server_key, client_key_file, insecure, data_dir)
    return Client(ControlConnection(place, timeout), transport, name)
