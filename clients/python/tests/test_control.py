"""Tests the connections to the control socket with a scripted broker: which requests are sent twice, and cancels."""
import asyncio
import contextlib
import socket
import struct
import threading

import lightq.aio.control
import lightq.control
import pytest
from lightq.core.discovery import Place
from support import DEADLINE, until

SHORT = 0.3


class ControlSocket:
    """Answers requests, but `never` the second one. Or ends the connection once: `after` the first answer, `instead` of the
    second one, or `within` the second request. `requests` counts those whose beginning has come."""

    def __init__(self, ends):
        self.ends, self.requests, self.listener, self.connection = ends, 0, socket.create_server(("127.0.0.1", 0)), None
        self.place = Place(f"tcp://127.0.0.1:{self.listener.getsockname()[1]}")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):  # at the end
            while True:
                connection, _ = self.listener.accept()
                self.connection = connection
                with connection, contextlib.suppress(OSError, struct.error):
                    self.talk(connection)

    def talk(self, connection):
        connection.sendall(b"\xff" + bytes(8) + b"\x7f\3\0" + b"NULL".ljust(20, b"\0") + bytes(32) + b"\4\6\5READY")
        connection.recv(64, socket.MSG_WAITALL)
        while True:
            flags, = struct.unpack("B", connection.recv(1))
            length, = struct.unpack(">Q" if flags & 2 else "B", connection.recv(8 if flags & 2 else 1, socket.MSG_WAITALL))
            is_request = not flags & 5
            self.requests += is_request
            if is_request and self.requests == 2 and self.ends == "within":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            connection.recv(length, socket.MSG_WAITALL)
            if is_request and self.requests == 2 and self.ends == "instead":
                return
            if is_request and not (self.requests == 2 and self.ends == "never"):
                connection.sendall(b"\1\0\0\x0f{\"status\":\"ok\"}")
            if is_request and self.requests == 1 and self.ends == "after":
                return


# A request of many bytes cannot be written completely before the connection ends.
@pytest.mark.parametrize("ends,cmd,fields,times", [
    ("instead", "set_topic", {}, 2), ("instead", "list_topics", {}, 3), ("instead", "join", {}, 3), ("after", "set_topic", {}, 2),
    ("within", "set_topic", {"text": "x" * (32 << 20)}, 3)], ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("is_asyncio", [False, True])
def test_only_harmless_requests_are_sent_twice(is_asyncio, ends, cmd, fields, times):
    raises = pytest.raises(lightq.ConnectionLost) if times == 2 and ends == "instead" else contextlib.nullcontext()

    def blocking(place):
        connection = lightq.control.ControlConnection(place, DEADLINE)
        connection.ask("ping", {})
        if ends == "after":
            until(connection._has_ended, "the end of the connection")
        with raises:
            connection.ask(cmd, fields)
        connection.close()

    async def main(place):
        connection = lightq.aio.control.ControlConnection(place, DEADLINE)
        await connection.ask("ping", {})
        while ends == "after" and not connection._streams[0].at_eof():
            await asyncio.sleep(0.001)
        with raises:
            await connection.ask(cmd, fields)
        await connection.close()

    with ControlSocket(ends) as server:
        asyncio.run(main(server.place)) if is_asyncio else blocking(server.place)
        assert server.requests == times


@pytest.mark.parametrize("is_timeout", [False, True])
def test_a_cancel_that_comes_with_the_reply_ends_the_call(monkeypatch, is_timeout):
    """Also if it comes when the time of the call is over."""
    attempt, asking = lightq.aio.control.ControlConnection._attempt, []

    async def attempt_and_cancel(connection, payload):
        try:
            reply = await attempt(connection, payload)
        finally:
            if asking:
                asking.pop().cancel()
        return reply

    async def main(place):
        connection = lightq.aio.control.ControlConnection(place, DEADLINE)
        await connection.ask("ping", {})

        async def ask():
            await connection.ask("stats", {}, SHORT)
            raise AssertionError("the cancelled task goes on")
        monkeypatch.setattr(lightq.aio.control.ControlConnection, "_attempt", attempt_and_cancel)
        asking.append(asyncio.create_task(ask()))
        with pytest.raises(asyncio.CancelledError):
            await asking[0]
        assert (await connection.ask("ping", {}))["status"] == "ok"
        await connection.close()

    with ControlSocket("never" if is_timeout else "") as server:
        asyncio.run(main(server.place))
        assert server.requests == 3


def test_a_late_reply_answers_no_other_request():
    async def main(place):
        connection = lightq.aio.control.ControlConnection(place, DEADLINE)
        await connection.ask("ping", {})
        with pytest.raises(lightq.Timeout):
            await connection.ask("stats", {}, SHORT)
        assert connection._streams is None
        assert (await connection.ask("ping", {}))["status"] == "ok"
        await connection.close()

    with ControlSocket("never") as server:
        asyncio.run(main(server.place))
        assert server.requests == 3
