"""The blocking client."""
from __future__ import annotations

import types
import typing

from .consumer import Consumer
from .control import ControlConnection
from .core.commands import Commands
from .core.consuming import Start
from .core.discovery import discover
from .core.options import check_name, consumer_options, producer_options
from .core.requests import Address, Reply, address_of, transport_of
from .producer import Producer
from .reader import Reader

_SECONDS = 5.0


class Client(Commands):
    """A broker, and the credentials for it. Threads may share a client; each producer, consumer and reader belongs to one
    thread at a time."""

    def __init__(self, control: ControlConnection, transport: str, name: str) -> None:
        self._control, self._transport, self._name = control, transport_of(control.place, transport), name

    def _ask(self, cmd: str, **fields: typing.Any) -> Reply:
        return self._control.ask(cmd, fields)

    def _join(self, topic: str, kind: str, seconds: float) -> Address:
        reply = self._control.ask("join", {"topic": topic, "type": kind, "connection_type": "socket", "delivery": "session",
                                           "transport": self._transport}, seconds)
        return address_of(self._control.place, reply)

    @property
    def uri(self) -> str:
        """The address of the control socket."""
        return self._control.place.uri

    def producer(self, topic: str, *, level: str = "default", delayed: bool = False,
                 identity: typing.Optional[typing.Tuple[int, int]] = None, retry_refused: bool = True,
                 resend_in_doubt: bool = False, send_timeout: float = 30.0, timeout: float = _SECONDS) -> Producer:
        """Opens a producer. `level`: a confirm says that a message is in the log (`received`) or survives a power cut
        (`flushed`); the default is the topic's. `delayed`: messages may have a delay. `identity`: continues after another
        producer, with its id and an epoch one higher. `retry_refused`: messages that the broker refuses, for example
        because the topic is full, are sent again later. `resend_in_doubt`: messages are sent again under a new id if the
        broker has forgotten the producer; some may then be stored twice. Errors: Timeout, NotFound, Unauthorized …"""
        options = producer_options(topic, level, delayed, identity, retry_refused=retry_refused, resend_in_doubt=resend_in_doubt)
        producer = Producer(topic, self._join, options, send_timeout, self._name)
        return _opened(producer, timeout)

    def consumer(self, topic: str, group: str = "", *, own: bool = False, start: Start = "first", holds: bool = False,
                 automatic: bool = False, prefetch: typing.Optional[int] = None, prefetch_bytes: int = 1 << 20,
                 ack_timeout: float = 0, timeout: float = _SECONDS) -> Consumer:
        """Opens a consumer: a member of a group (by default of the group `default`), or with `own` a cursor of its own,
        which the broker keeps if `group` names it. `start`: `first`, `next`, `last`, an offset, or ("time", seconds since
        1970), if there is no position yet. `holds`: the cursor keeps messages from being dropped. `automatic`: a message
        counts as processed when it is sent. `prefetch`: messages that are requested ahead; by default as many as the
        program works off in 0.1 s. `ack_timeout`: the time for a message in seconds; 0: the broker's, 30 minutes.
        Errors: Timeout, NotFound, Unauthorized …"""
        options = consumer_options(topic, group, own=own, start=start, holds=holds, automatic=automatic, prefetch=prefetch,
                                   prefetch_bytes=prefetch_bytes, ack_timeout=ack_timeout)
        return _opened(Consumer(topic, self._join, options, self._name), timeout)

    def reader(self, topic: str, *, timeout: float = _SECONDS) -> Reader:
        """Opens a reader, which reads by offset. Errors: Timeout, NotFound, Unauthorized …"""
        check_name(topic, "the topic")
        return _opened(Reader(topic, self._join, self._name), timeout)

    def close(self) -> None:
        """Ends the control connection. Producers, consumers and readers go on until they have to connect again."""
        self._control.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: typing.Optional[typing.Type[BaseException]], error: typing.Optional[BaseException],
                 trace: typing.Optional[types.TracebackType]) -> None:
        self.close()


Opened = typing.TypeVar("Opened", Producer, Consumer, Reader)


def _opened(made: Opened, timeout: float) -> Opened:
    try:
        made.wait_open(timeout)
    except BaseException:
        made._driver.close()
        raise
    return made


def connect(uri: str = "", *, user: str = "", password: str = "", admin: str = "", admin_password: str = "",
            server_key: str = "", client_key_file: str = "", insecure: bool = False, data_dir: str = "", transport: str = "",
            timeout: float = _SECONDS, name: str = "") -> Client:
    """Connects to a broker, and checks that it replies. Arguments that are not given come from the environment (LIGHTQ_BROKER,
    LIGHTQ_USER, LIGHTQ_PASSWORD, LIGHTQ_SERVER_KEY …) and, on the broker's machine, from its files, as for the command line.
    With a `server_key` everything is encrypted. `transport`: `ipc` uses the broker's Unix socket, `tcp` does not. `timeout`:
    seconds for each request. `name`: for the broker's log. Errors: Timeout, ConnectionLost, Unauthorized,
    InvalidArgument."""
    place = discover(uri, user, password, admin, admin_password, server_key, client_key_file, insecure, data_dir)
    client = Client(ControlConnection(place, timeout), transport, name)
    try:
        client.ping()
    except BaseException:
        client.close()
        raise
    return client
