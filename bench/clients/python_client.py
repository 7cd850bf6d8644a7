"""The Python client for suite `clients`, as clients/client_program.hpp specifies. Modes: single, batch, asyncio,
asyncio-batch."""
import asyncio
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "clients/python")]
import lightq  # noqa: E402
import lightq.aio  # noqa: E402
from numbered import PATIENCE, PIECE, Check, Task  # noqa: E402


def produce(task):
    with lightq.connect() as q, q.producer(task.topic) as out:
        if task.mode == "batch":
            for first in range(0, task.count, PIECE):
                out.send_many([task.message(n) for n in range(first, min(first + PIECE, task.count))])
        else:
            for n in range(task.count):
                out.send(task.message(n))
        out.close(PATIENCE)


def consume(task):
    check = Check(task)
    with lightq.connect() as q, q.consumer(task.topic, group="bench") as messages:
        messages.wait_open(PATIENCE)
        print("ready", flush=True)
        while check.is_unfinished():
            if task.mode == "batch":
                several = messages.receive_many(PIECE, PATIENCE)
                if not several:
                    sys.exit("no message came in time")
                for m in several:
                    check.take(m.body)
                messages.ack_many(several)
                continue
            m = messages.receive(PATIENCE)
            if m is None:
                sys.exit("no message came in time")
            check.take(m.body)
            m.ack()
        check.report()
        messages.close(PATIENCE)


async def produce_asyncio(task):
    async with lightq.aio.connect() as q, q.producer(task.topic) as out:
        if task.mode == "asyncio-batch":
            for first in range(0, task.count, PIECE):
                await out.send_many([task.message(n) for n in range(first, min(first + PIECE, task.count))])
        else:
            for n in range(task.count):
                await out.send(task.message(n))
        await out.close(PATIENCE)


async def consume_asyncio(task):
    check = Check(task)
    async with lightq.aio.connect() as q, q.consumer(task.topic, group="bench") as messages:
        print("ready", flush=True)
        while check.is_unfinished():
            if task.mode == "asyncio-batch":
                several = await messages.receive_many(PIECE, PATIENCE)
                if not several:
                    sys.exit("no message came in time")
                for m in several:
                    check.take(m.body)
                messages.ack_many(several)
                continue
            m = await messages.receive(PATIENCE)
            if m is None:
                sys.exit("no message came in time")
            check.take(m.body)
            m.ack()
        check.report()
        await messages.close(PATIENCE)


if __name__ == "__main__":
    given = Task(sys.argv[1:])
    if given.mode.startswith("asyncio"):
        asyncio.run((produce_asyncio if given.role == "produce" else consume_asyncio)(given))
    else:
        (produce if given.role == "produce" else consume)(given)
