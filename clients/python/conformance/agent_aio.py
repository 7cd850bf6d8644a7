#!/usr/bin/env python3
"""The asyncio client's agent for the conformance kit."""
import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import lightq  # noqa: E402
import lightq.aio  # noqa: E402
from agent_lines import (Outcomes, attributes_of, bodies_of, connect_arguments, consumer_arguments, described,  # noqa: E402
                         failed, introduce, producer_arguments, seconds, settle, write_line)

REPORTED_MAX = 500  # messages in a line


class AgentProducer:
    def __init__(self, producer):
        self.producer, self.outcomes = producer, Outcomes()
        producer.on_settled(self.outcomes.settled)

    async def do_produce(self, command):
        sent = 0
        try:
            for body in bodies_of(command):
                await self.producer.send(body, **attributes_of(command, sent))
                sent += 1
        except lightq.Error as error:
            return {**failed(error), "sent": sent}
        return {"sent": sent}

    async def do_flush(self, command):
        await self.producer.flush(seconds(command, "timeout_ms"))

    async def do_close(self, command):
        await self.producer.close(seconds(command, "timeout_ms"))

    def more(self):
        return {"outcomes": self.outcomes.take()}


class AgentConsumer:
    def __init__(self, consumer):
        self.consumer, self.held = consumer, {}

    async def do_receive(self, command):
        received, waiting = 0, []
        with open(command["into"], "ab") as into:
            try:
                while received < command["count"]:
                    message = await self.consumer.receive(0 if waiting else seconds(command, "timeout_ms"))
                    if message is None and not waiting:
                        break
                    if message is not None:
                        into.write(message.body)
                        waiting.append(message)
                        received += 1
                    if message is None or len(waiting) == REPORTED_MAX or received == command["count"]:
                        into.flush()
                        self.report(waiting, command)
                        waiting = []
            finally:
                into.flush()
                self.report(waiting, command)
        return {"received": received}

    def report(self, messages, command):
        """Reports messages, and settles them only after that."""
        if messages:
            write_line({"messages": [described(message) for message in messages]})
        for message in messages:
            if "settle" in command:
                settle(message, command["settle"], command)
            else:
                self.held[message.offset] = message

    async def do_settle(self, command):
        for offset in command["offsets"]:
            if offset in self.held:
                settle(self.held.pop(offset), command["how"], command)
        await self.consumer.flush(seconds(command, "timeout_ms"))

    async def do_revoked(self, command):
        """Works in a message's block until that is cancelled."""
        message = next(iter(self.held.values()))
        left = asyncio.get_running_loop().time() + seconds(command, "timeout_ms")
        async with message:
            while asyncio.get_running_loop().time() < left:
                await asyncio.sleep(0.5)
        return {"revoked": [offset for offset, message in self.held.items() if message.revoked]}

    async def do_seek(self, command):
        return {"offset": await self.consumer.seek(command["to"], seconds(command, "timeout_ms"))}

    async def do_close(self, command):
        await self.consumer.close(seconds(command, "timeout_ms"))

    def more(self):
        return {}


class Agent:
    def __init__(self):
        self.client, self.objects = None, {}

    async def do_connect(self, command):
        self.client = await lightq.aio.connect(**connect_arguments(command))

    async def do_create_topic(self, command):
        await self.client.create_topic(command["topic"], command["broker_type"])

    async def do_delete_topic(self, command):
        await self.client.delete_topic(command["topic"])

    async def do_stats(self, command):
        return {"messages_received": (await self.client.stats(command["topic"]))["messages_received"]}

    async def do_produce_open(self, command):
        made = AgentProducer(await self.client.producer(command["topic"], **producer_arguments(command)))
        self.objects[command["as"]] = made
        producer_id, epoch = made.producer.identity
        return {"producer_id": producer_id, "epoch": epoch}

    async def do_consume_open(self, command):
        self.objects[command["as"]] = AgentConsumer(await self.client.consumer(command["topic"], **consumer_arguments(command)))

    async def do_read(self, command):
        async with self.client.reader(command["topic"]) as reader:
            messages, following = await reader.read(command["begin"], command["end"])
        with open(command["into"], "ab") as into:
            into.write(b"".join(message.body for message in messages))
        write_line({"messages": [described(message) for message in messages]})
        return {"next": following}

    async def run(self, command):
        """Does one command and returns its reply."""
        on = self.objects[command["on"]] if "on" in command else self
        try:
            done = await getattr(on, f"do_{command['do']}")(command)
            reply = {"ok": True, **(done or {})}
        except lightq.Error as error:
            reply = failed(error)
        return {**reply, **(on.more() if on is not self else {})}


async def main():
    introduce("Python asyncio")
    agent, lines = Agent(), asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        command = json.loads(line)
        if command["do"] == "exit":
            return
        write_line({**await agent.run(command), "id": command["id"]})


if __name__ == "__main__":
    asyncio.run(main())
