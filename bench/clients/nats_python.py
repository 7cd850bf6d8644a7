"""NATS's client for Python in suite `clients`, as clients/client_program.hpp specifies. Mode `core`: nothing is
confirmed; mode `jetstream`: a stream in memory, 256 publishes under way."""
import asyncio
import os
import sys
import time

import nats
from numbered import PATIENCE, PIECE, Check, Task

UNDER_WAY = 256


async def produce(connection, task):
    if task.mode == "core":
        for n in range(task.count):
            await connection.publish(task.topic, task.message(n))
        await connection.flush(int(PATIENCE))
        return
    stream = connection.jetstream()
    for first in range(0, task.count, UNDER_WAY):
        numbers = range(first, min(first + UNDER_WAY, task.count))
        await asyncio.gather(*[stream.publish(task.topic, task.message(n), timeout=PATIENCE) for n in numbers])


async def consume(connection, task):
    check = Check(task)
    if task.mode == "core":
        messages = await connection.subscribe(task.topic, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await connection.flush(int(PATIENCE))
        print("ready", flush=True)
        while check.is_unfinished():
            check.take((await messages.next_msg(PATIENCE)).data)
        check.report()
        return
    stream = connection.jetstream()
    await stream.add_stream(name=task.topic, subjects=[task.topic], storage="memory")
    messages = await stream.pull_subscribe(task.topic, durable="bench")
    print("ready", flush=True)
    while check.is_unfinished():
        for m in await messages.fetch(PIECE, timeout=PATIENCE):
            check.take(m.data)
            await m.ack()
    check.report()
    await connection.flush(int(PATIENCE))
    give_up = time.monotonic() + PATIENCE
    while (await messages.consumer_info()).num_ack_pending:  # the server counts acknowledgements in the background
        if time.monotonic() > give_up:
            sys.exit("the server lacks acknowledgements")
    await stream.delete_stream(task.topic)


async def main(task):
    connection = await nats.connect(os.environ["NATS_URL"])
    await (produce if task.role == "produce" else consume)(connection, task)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(Task(sys.argv[1:])))
