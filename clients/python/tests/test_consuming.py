"""Tests consumers and readers with a scripted broker: lost acknowledgements, late answers, and messages not requested."""
import asyncio
import contextlib
import socket
import struct
import threading

import batch_bytes
import lightq
import lightq.aio.consumer
import lightq.consumer
import pytest
import session_frames
from lightq.core import frames
from lightq.core.consuming import Consuming, ConsumerOptions
from lightq.core.link import Link
from lightq.core.reading import Reading
from lightq.core.requests import Address
from lightq.errors import ConnectionLost, NotFound, ProtocolViolation, Timeout
from lightq.message import BaseMessage
from support import DEADLINE, until

SHORT = 0.2


def delivered(first, count, request=0, channel=5, hand_out=1):
    """Returns a frame with so many messages of 4 bytes."""
    values = {"delivery": 1, "hand_out": hand_out, "lost": 0,
              "batch": batch_bytes.batch([b"body"] * count, offset=first).hex()}
    return session_frames.encode("deliver", values, channel=channel, request=request)


def opened(request, leases=True):
    values = {"next": 0, "committed": 0, "next_offset": 9, "incarnation": 1, "ack_timeout_ms": 0}
    return session_frames.encode("consume_opened", values, channel=5, request=request, flags=int(leases))


def read_frame(data):
    reader = frames.FrameReader(1 << 20)
    reader.feed(data)
    return reader.next()


class Script:
    """Talks to a consumer's or reader's core without input and output."""

    def __init__(self, core):
        self.core = core

    def connect(self):
        """Attaches the core to a new connection. Returns the number of its first request."""
        if self.core.link is not None:
            self.core.detach(ConnectionLost("cut"))
        self.link = Link("t.s", self.core.codecs, 0, "", 1 << 20, 0.0)
        self.core.attach(self.link, 0.0)
        return self.link._last_request

    def say(self, frame):
        self.core.handle(read_frame(frame), 0.0)


def consumer(**options):
    script = Script(Consuming("t", ConsumerOptions(**options), lambda *parts: BaseMessage(script.core, *parts)))
    script.say(opened(script.connect()))
    return script


# --- Acknowledgements that were lost. ---------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["ack", "retry", "dead"])
@pytest.mark.parametrize("is_flushed", [False, True])
def test_what_was_settled_and_not_written_is_lost_with_the_connection(how, is_flushed):
    script = consumer()
    script.say(delivered(0, 1))
    getattr(script.core.take(0.0), how)()
    if is_flushed:
        script.core.flush()
    script.core.detach(ConnectionLost("cut"))
    with pytest.raises(ConnectionLost):
        script.core.check_settled(needs_link=False)
    request = script.connect()
    with pytest.raises(ConnectionLost):
        script.core.check_settled(needs_link=True)
    script.say(opened(request))  # the message comes again
    script.core.check_settled(needs_link=True)


def test_the_final_failure_is_the_reason_of_lost_acknowledgements():
    script = consumer()
    script.say(delivered(0, 1))
    script.core.take(0.0).ack()
    with pytest.raises(NotFound):
        script.say(session_frames.encode("error", {"code": frames.CODES.index("topic_deleted"), "sentence": ""}, channel=5))
    script.core.detach(ConnectionLost("cut"))
    with pytest.raises(NotFound):
        script.core.check_settled(needs_link=False)


def test_what_was_written_counts_as_sent():
    script = consumer()
    script.say(delivered(0, 1))
    script.core.take(0.0).ack()
    script.core.flush()
    script.link.out.clear()
    script.link.flushed()
    script.core.detach(ConnectionLost("cut"))
    script.core.check_settled(needs_link=False)


class Broker:
    """Listens, and delivers a message to the first consumer that comes. After that it reads nothing, until `cut`."""

    def __init__(self):
        self.listener, self.connection = socket.create_server(("127.0.0.1", 0)), None
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    @property
    def address(self):
        return Address(f"tcp://127.0.0.1:{self.listener.getsockname()[1]}", "t.s")

    def serve(self):
        self.connection, _ = self.listener.accept()
        request = self.read("hello")
        welcome = {"version": 1, "frame_bytes_max": 1 << 20, "heartbeat_ms": 0, "channels_max": 9, "broker": 1, "session": 1}
        self.connection.sendall(session_frames.encode("welcome", welcome, request=request))
        request = self.read("consume_open")
        self.connection.sendall(opened(request) + delivered(0, 1))

    def read(self, op):
        head = self.connection.recv(20, socket.MSG_WAITALL)
        self.connection.recv(struct.unpack_from("<I", head, 12)[0], socket.MSG_WAITALL)
        assert head[0] == session_frames.OPS[op][0]
        return struct.unpack_from("<I", head, 8)[0]

    def cut(self):
        """Ends the connection, and accepts no other one."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        if self.connection is not None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.connection = None


@pytest.mark.parametrize("is_written", [False, True])
def test_close_and_flush_tell_of_lost_acknowledgements(is_written):
    with Broker() as broker:
        address = broker.address
        orders = lightq.consumer.Consumer("t", lambda *_: address, ConsumerOptions(), "")
        message = orders.receive(DEADLINE)
        if not is_written:
            orders._core.link.send(bytes(32 << 20))  # more than the system takes
        message.ack()
        with contextlib.nullcontext() if is_written else pytest.raises(Timeout):
            orders.flush(SHORT)
        broker.cut()
        until(lambda: orders._driver.step(0.01) or not orders._core.is_open, "the end of the connection")
        with pytest.raises(ConnectionLost):
            orders.flush(SHORT)
        with contextlib.nullcontext() if is_written else pytest.raises(ConnectionLost):
            orders.close()


@pytest.mark.parametrize("is_written", [False, True])
def test_close_and_flush_tell_of_lost_acknowledgements_with_asyncio(is_written):
    async def main(broker):
        address = broker.address

        async def join(*_):
            return address
        orders = await lightq.aio.consumer.Consumer("t", join, ConsumerOptions(), DEADLINE, "")
        message = await orders.receive(DEADLINE)
        if not is_written:
            orders._core.link.send(bytes(32 << 20))
        message.ack()
        with contextlib.nullcontext() if is_written else pytest.raises(Timeout):
            await orders.flush(SHORT)
        broker.cut()
        await orders._settler.driver.wait(lambda: not orders._core.is_open, DEADLINE, "the end of the connection")
        with pytest.raises(ConnectionLost):
            await orders.flush(SHORT)
        with contextlib.nullcontext() if is_written else pytest.raises(ConnectionLost):
            await orders.close()

    with Broker() as broker:
        asyncio.run(main(broker))


def late_answer(core):
    """Answers the seek that nobody waits for."""
    [request] = core._requests
    core.handle(read_frame(session_frames.encode("done", {"value": 4}, channel=5, request=request)), 0.0)
    assert core.answers == {} and core._requests == {}
    assert core._unwanted == set()


def test_the_late_answer_to_a_seek_is_forgotten():
    with Broker() as broker:
        address = broker.address
        orders = lightq.consumer.Consumer("t", lambda *_: address, ConsumerOptions(), "")
        message = orders.receive(DEADLINE)
        with pytest.raises(Timeout):
            orders.seek("first", SHORT)
        late_answer(orders._core)
        assert message.revoked  # the broker has moved the position
        with pytest.raises(Timeout):
            orders.seek("first", SHORT)
        orders._driver.disconnect(ConnectionLost("cut"))
        assert orders._core.answers == {}
        assert orders._core._unwanted == set()
        orders.close()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_late_answer_to_a_seek_is_forgotten_with_asyncio(is_cancelled):
    async def main(broker):
        address = broker.address

        async def join(*_):
            return address
        orders = await lightq.aio.consumer.Consumer("t", join, ConsumerOptions(), DEADLINE, "")
        with pytest.raises(asyncio.TimeoutError if is_cancelled else Timeout):
            await asyncio.wait_for(orders.seek("first", DEADLINE if is_cancelled else SHORT), DEADLINE if not is_cancelled else SHORT)
        late_answer(orders._core)
        broker.cut()
        await orders._settler.driver.wait(lambda: not orders._core.is_open, DEADLINE, "the end of the connection")
        await orders.close()

    with Broker() as broker:
        asyncio.run(main(broker))


# --- Messages that were not requested. --------------------------------------------------------------------------------

def test_more_messages_than_requested_are_a_violation():
    script = consumer(prefetch=3)
    script.say(delivered(0, 3))
    with pytest.raises(ProtocolViolation):
        script.say(delivered(3, 1))
    script = consumer(prefetch=3)
    with pytest.raises(ProtocolViolation):
        script.say(delivered(0, 4))
    assert not script.core.is_ready


def test_more_bytes_than_requested_are_a_violation():
    script = consumer(prefetch_bytes=5)
    script.say(delivered(0, 2))  # the last one may have more bytes than were left
    with pytest.raises(ProtocolViolation):
        script.say(delivered(2, 1))
    script = consumer(prefetch_bytes=5)
    script.say(delivered(0, 2))
    for _ in range(2):
        script.core.take(0.0).ack()
    script.core.work(0.0)  # gives the bytes back
    script.say(delivered(2, 2))


def reader(begin, end, size=1 << 20):
    script = Script(Reading("t"))
    script.connect()
    script.core.begin(begin, end, size)
    script.core.work(0.0)
    script.request = script.link._last_request
    script.messages = lambda first, count: script.say(delivered(first, count, script.request, 0))
    script.done = lambda at: script.say(session_frames.encode("done", {"value": at}, request=script.request))
    return script


@pytest.mark.parametrize("first,count", [(9, 1), (20, 1), (19, 2), (9, 3), ((1 << 64) - 1, 1)])
def test_messages_outside_of_the_range_that_is_read_are_a_violation(first, count):
    script = reader(10, 20)
    with pytest.raises(ProtocolViolation):
        script.messages(first, count)
    assert script.core.messages == []


def test_messages_of_a_read_ascend():
    script = reader(10, 20)
    script.messages(12, 2)
    with pytest.raises(ProtocolViolation):
        script.messages(13, 1)


@pytest.mark.parametrize("at", [0, 9, 13, 21])
def test_a_read_that_ends_outside_of_its_range_is_a_violation(at):
    script = reader(10, 20)
    script.messages(12, 2)
    with pytest.raises(ProtocolViolation):
        script.done(at)
    assert script.core.next is None


def test_a_read_of_more_bytes_than_requested_is_a_violation():
    script = reader(0, 20, 5)
    script.messages(0, 1)
    script.messages(1, 1)  # the last one may have more bytes than were left
    with pytest.raises(ProtocolViolation):
        script.messages(2, 1)
    script = reader(0, 20, 5)
    with pytest.raises(ProtocolViolation):
        script.messages(0, 3)


def test_what_comes_after_the_end_of_a_read_is_ignored():
    script = reader(10, 20)
    script.messages(10, 1)
    script.done(11)
    script.messages(11, 1)
    script.done(12)
    assert [message.offset for message in script.core.messages] == [10] and script.core.next == 11
    script = reader(10, 10)
    script.done(10)
    assert script.core.next == 10


def test_a_read_goes_on_over_another_connection():
    script = reader(10, 20, 12)
    script.messages(10, 2)
    script.connect()
    script.core.work(0.0)
    script.request = script.link._last_request
    with pytest.raises(ProtocolViolation):
        script.messages(11, 1)
    script.messages(12, 1)
    script.done(13)
    assert [message.offset for message in script.core.messages] == [10, 11, 12] and script.core.next == 13
