"""Misuse of both clients: each ends in an error, and never hangs or crashes."""
import asyncio
import gc
import os
import signal
import socket
import threading
import time
import warnings

import lightq
import lightq.aio
import lightq.core.attempts
import pytest
from lightq.aio.driver import Driver
from support import DEADLINE, until

SHORT = 0.3
CLIENTS = []


@pytest.fixture(autouse=True)
def closed_clients():
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def connected(where):
    """Returns a blocking client that is closed at the end of the test."""
    CLIENTS.append(lightq.connect(**where))
    return CLIENTS[-1]


def filled(where, count=3):
    """Puts messages into a group of its own. Returns the group's name and the client."""
    group = f"g{time.monotonic_ns()}"
    q = connected(where)
    with q.consumer("t", group, start="next"):
        pass
    with q.producer("t") as out:
        for number in range(count):
            out.send(b"%d" % number)
    return q, group


async def until_left(client, group):
    """Waits until the group has no consumer."""
    deadline = time.monotonic() + DEADLINE
    while True:
        [found] = [each for each in (await client.stats("t"))["groups"] if each["group"] == group]
        if found["consumers"] == 0:
            return
        assert time.monotonic() < deadline, found


def test_closed_twice_and_used_after_it(where):
    q, group = filled(where)
    out, orders, reader = q.producer("t"), q.consumer("t", group), q.reader("t")
    message = orders.receive(DEADLINE)
    for each in (out, orders, reader, q):
        each.close()
        each.close()
    for use in (lambda: out.send(b"x"), out.flush, lambda: orders.receive(1), message.ack, lambda: orders.seek("first"),
                lambda: reader.read(0, 1), q.ping):
        with pytest.raises(lightq.Closed):
            use()


def test_closed_twice_and_used_after_it_with_asyncio(where):
    _, group = filled(where)

    async def main():
        q = await lightq.aio.connect(**where)
        out, orders = await q.producer("t"), await q.consumer("t", group)
        message = await orders.receive(DEADLINE)
        for each in (out, orders, q):
            await each.close()
            await each.close()
        with pytest.raises(lightq.Closed):
            await out.send(b"x")
        with pytest.raises(lightq.Closed):
            await orders.receive(1)
        with pytest.raises(lightq.Closed):
            message.ack()
        with pytest.raises(lightq.Closed):
            await q.ping()
    asyncio.run(main())


def test_not_opened(where):
    async def main():
        q = lightq.aio.connect(**where)
        for use in (q.producer("t").send(b"x"), q.consumer("t").receive(1), q.reader("t").read(0, 1)):
            with pytest.raises(lightq.Error) as error:
                await use
            assert error.value.code == "closed"
    asyncio.run(main())


def test_two_threads(where):
    """A second thread gets an error while the first one waits. The first one is not disturbed."""
    q, group = filled(where, 0)
    orders, errors = q.consumer("t", group), []
    waiting = threading.Thread(target=lambda: errors.append(orders.receive(1)))
    waiting.start()
    until(orders._driver.call._lock.locked, "the other thread's call")
    with pytest.raises(lightq.Error) as error:
        orders.receive(1)
    assert error.value.code == "in_use"
    waiting.join()
    assert errors == [None]
    orders.close()


def test_two_tasks_share_a_producer_and_a_consumer(where):
    _, group = filled(where, 0)

    async def main():
        async with lightq.aio.connect(**where) as q, q.producer("t") as out, q.consumer("t", group) as orders:
            async def send(name):
                for number in range(100):
                    await out.send(b"%s%d" % (name, number))

            async def take():
                async for message in orders:
                    async with message:
                        bodies.append(message.body)
                    if len(bodies) == 200:
                        return

            bodies, takers = [], [asyncio.create_task(take()) for _ in range(2)]
            await asyncio.gather(send(b"a"), send(b"b"))
            _, waiting = await asyncio.wait(takers, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
            assert len(bodies) == 200 and len(set(bodies)) == 200 and len(waiting) == 1
            waiting.pop().cancel()
    asyncio.run(main())


def test_another_event_loop(where):
    async def make():
        return await lightq.aio.connect(**where).producer("t")

    loop = asyncio.new_event_loop()
    out = loop.run_until_complete(make())
    with pytest.raises(lightq.Error) as error:
        asyncio.run(out.send(b"x"))
    assert error.value.code == "in_use"
    loop.run_until_complete(out.close())
    loop.close()


def test_after_a_fork(where):
    """The child gets an error, and its end does not disturb the parent's connection."""
    q = connected(where)
    out = q.producer("t")
    out.send(b"before")
    out.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            out.send(b"in the child")
        except lightq.Closed:
            lightq.connect(**where).producer("t").close()  # new objects work
            code = 0
        finally:
            out.__del__()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    out.send(b"after")
    out.flush()
    out.close()


@pytest.mark.parametrize("after", [0, 0.0005, 0.003, 0.01, 0.03])
def test_cancelled_in_the_middle(where, after):
    """After any cancel the objects can be used or closed, and messages are neither lost nor doubled."""
    _, group = filled(where, 0)

    async def work(q, accepted):
        async with q.producer("t") as out, q.consumer("t", group) as orders:
            while True:
                await out.send(b"%d %d" % (os.getpid(), len(accepted)))
                accepted.append(b"%d %d" % (os.getpid(), len(accepted)))
                await out.flush()
                message = await orders.receive(1)
                async with message:
                    await asyncio.sleep(0)

    async def main():
        accepted = []
        async with lightq.aio.connect(**where) as q:
            task = asyncio.create_task(work(q, accepted))
            await asyncio.sleep(after)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, DEADLINE)
            assert (await q.ping())["status"] == "ok"
            await until_left(q, group)
    asyncio.run(main())


def test_a_connection_that_is_made_when_its_object_is_given_up_ends(where, monkeypatch):
    _, group = filled(where, 0)
    connect, opening = Driver._connect, []

    async def connect_and_give_up(driver, address):
        session = await connect(driver, address)
        opening[0].cancel()
        return session

    async def main():
        async with lightq.aio.connect(**where) as q:
            async def open_one():
                return await q.consumer("t", group)
            monkeypatch.setattr(Driver, "_connect", connect_and_give_up)
            opening.append(asyncio.create_task(open_one()))
            with pytest.raises(asyncio.CancelledError):
                await opening[0]
            for _ in range(100):  # a connection that goes on would join the group
                await q.ping()
            await until_left(q, group)
    asyncio.run(main())


def test_a_cancelled_block_releases_and_a_failed_one_retries(where):
    _, group = filled(where, 2)

    async def main():
        async with lightq.aio.connect(**where) as q, q.consumer("t", group, prefetch=1) as orders:
            async def work():
                async with await orders.receive(DEADLINE):
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            while not orders._core.held:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            message = await orders.receive(DEADLINE)
            assert (message.body, message.delivery) == (b"0", 1)
            with pytest.raises(ZeroDivisionError):
                async with message:
                    1 / 0
            deliveries = {}
            while len(deliveries) < 2:
                async with await orders.receive(DEADLINE) as message:
                    deliveries[message.body] = message.delivery
            assert deliveries == {b"0": 2, b"1": 1}
    asyncio.run(main())


def test_garbage_collected_while_open(where):
    q, group = filled(where, 0)
    stats = lambda: next(each for each in q.stats("t")["groups"] if each["group"] == group)  # noqa: E731
    orders = q.consumer("t", group)
    assert stats()["consumers"] == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del orders
        gc.collect()
    assert any(issubclass(each.category, ResourceWarning) for each in caught)
    until(lambda: stats()["consumers"] == 0, "the consumer's end")


def test_garbage_collected_while_open_with_asyncio(where):
    q, group = filled(where, 0)

    async def main():
        async with lightq.aio.connect(**where) as client:
            orders = await client.consumer("t", group)
            assert orders.topic == "t"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                del orders
                gc.collect()
            assert any(issubclass(each.category, ResourceWarning) for each in caught)
            await until_left(client, group)
    asyncio.run(main())


def test_no_broker_and_a_wrong_password(where):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(lightq.ConnectionLost):
        lightq.connect(f"tcp://127.0.0.1:{port}", user="u", password="p", data_dir="nothing")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        lightq.connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}", user="u", password="p", timeout=SHORT, data_dir="nothing")
    wrong = connected({**where, "password": "wrong"})
    with pytest.raises(lightq.Unauthorized):
        wrong.producer("t")
    with pytest.raises(lightq.Unauthorized):
        wrong.stats("t")


def test_secrets_are_not_sent_to_other_machines_in_clear():
    with pytest.raises(lightq.InvalidArgument, match="nothing is encrypted"):
        lightq.connect("tcp://192.0.2.1:5000", user="u", password="p", data_dir="nothing")
    with pytest.raises(lightq.InvalidArgument, match="a user or a password"):
        lightq.connect("tcp://u:p@127.0.0.1:5000", data_dir="nothing")


def test_a_callback_that_throws(where):
    q, seen = connected(where), []
    out = q.producer("t")

    def callback(begin, end, error):
        seen.append((begin, end, error))
        raise ZeroDivisionError

    out.on_settled(callback)
    out.send(b"x")
    with pytest.raises(ZeroDivisionError):
        out.flush()
    assert seen == [(0, 1, None)]
    out.on_settled(lambda *_: None)
    out.send(b"y")
    out.flush()
    out.close()


@pytest.mark.parametrize("use,error", [
    (lambda q: q.producer("no name"), lightq.InvalidArgument), (lambda q: q.consumer("t", "no group"), lightq.InvalidArgument),
    (lambda q: q.consumer("t", prefetch=0), lightq.InvalidArgument), (lambda q: q.consumer("t", start="middle"), lightq.InvalidArgument),
    (lambda q: q.producer("t", level="high"), lightq.InvalidArgument), (lambda q: q.producer("missing"), lightq.Error),
    (lambda q: q.producer("t").send(5), lightq.InvalidArgument), (lambda q: q.producer("t").send(b"x", delay=1), lightq.Error),
    (lambda q: q.producer("t").send(bytes(17 << 20)), lightq.Refused), (lambda q: q.command("no_such_command"), lightq.Error)])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_wrong_arguments(where, use, error):
    with lightq.connect(**where) as q, pytest.raises(error):
        use(q)


def test_settled_twice(where):
    q, group = filled(where, 1)
    with q.consumer("t", group) as orders:
        message = orders.receive(DEADLINE)
        message.ack()
        message.retry()
        message.dead("too late")
        assert orders.receive(SHORT) is None
    until(lambda: next(each for each in q.stats("t")["groups"] if each["group"] == group)["pending"] == 0, "the acknowledgement")


def test_a_program_that_is_busy_for_long_keeps_its_connection(where, monkeypatch):
    """It calls nothing for longer than the broker may be silent. The heartbeats that came meanwhile count."""
    monkeypatch.setattr(lightq.core.attempts, "HEARTBEAT_MS", 100)
    q, group = filled(where, 2)
    with q.consumer("t", group) as orders:
        message = orders.receive(DEADLINE)
        time.sleep(0.4)  # the work
        assert orders.receive(DEADLINE).offset == message.offset + 1 and not message.revoked
        assert orders._core.opens == 1

    async def main():
        async with lightq.aio.connect(**where) as client, client.consumer("t", group, start="next", own=False) as orders:
            for _ in range(3):
                time.sleep(0.4)  # keeps the loop busy
                orders.resume()  # does something at once afterwards
                await asyncio.sleep(0.01)
            assert orders._core.opens == 1
    asyncio.run(main())


def test_a_silent_broker_is_noticed(where, monkeypatch, broker):
    """A broker that does not answer any more counts as dead, although its system keeps the connection."""
    monkeypatch.setattr(lightq.core.attempts, "HEARTBEAT_MS", 100)
    with connected(where).producer("t") as out:
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            until(lambda: out.poll(0.01) or not out._core.is_open, "the end of the connection")
            assert "sent nothing" in str(out._driver.last_error)
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        out.send(b"later")
        out.flush()


def test_a_silent_broker_is_noticed_with_asyncio(where, monkeypatch, broker):
    monkeypatch.setattr(lightq.core.attempts, "HEARTBEAT_MS", 100)

    async def main():
        async with lightq.aio.connect(**where) as client, client.producer("t") as out:
            os.kill(broker.process.pid, signal.SIGSTOP)
            try:
                await out._driver.wait(lambda: not out._core.is_open, DEADLINE, "the end of the connection")
                assert "sent nothing" in str(out._driver.last_error)
            finally:
                os.kill(broker.process.pid, signal.SIGCONT)
            await out.send(b"later")
            await out.flush()
    asyncio.run(main())
