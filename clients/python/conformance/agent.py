#!/usr/bin/env python3
"""The blocking client's agent for the conformance kit."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import lightq  # noqa: E402
from agent_lines import (Outcomes, attributes_of, bodies_of, connect_arguments, consumer_arguments, described,  # noqa: E402
                         failed, introduce, producer_arguments, seconds, settle, write_line)

REPORTED_MAX = 500  # messages in a line


class AgentProducer:
    def __init__(self, producer):
        self.producer, self.outcomes = producer, Outcomes()
        producer.on_settled(self.outcomes.settled)

    def do_produce(self, command):
        sent = 0
        try:
            for body in bodies_of(command):
                self.producer.send(body, **attributes_of(command, sent))
                sent += 1
        except lightq.Error as error:
            return {**failed(error), "sent": sent}
        return {"sent": sent}

    def do_flush(self, command):
        self.producer.flush(seconds(command, "timeout_ms"))

    def do_close(self, command):
        self.producer.close(seconds(command, "timeout_ms"))

    def more(self):
        return {"outcomes": self.outcomes.take()}


class AgentConsumer:
    def __init__(self, consumer):
        self.consumer, self.held = consumer, {}

    def do_receive(self, command):
        received, waiting = 0, []
        with open(command["into"], "ab") as into:
            try:
                while received < command["count"]:
                    message = self.consumer.receive(0 if waiting else seconds(command, "timeout_ms"))
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

    def do_settle(self, command):
        for offset in command["offsets"]:
            if offset in self.held:
                settle(self.held.pop(offset), command["how"], command)
        self.consumer.flush(seconds(command, "timeout_ms"))

    def do_revoked(self, command):
        deadline, revoked = time.monotonic() + seconds(command, "timeout_ms"), []
        while not revoked and time.monotonic() < deadline:
            self.consumer.poll(0.02)
            revoked = [offset for offset, message in self.held.items() if message.revoked]
        return {"revoked": revoked}

    def do_seek(self, command):
        return {"offset": self.consumer.seek(command["to"], seconds(command, "timeout_ms"))}

    def do_close(self, command):
        self.consumer.close(seconds(command, "timeout_ms"))

    def more(self):
        return {}


class Agent:
    def __init__(self):
        self.client, self.objects = None, {}

    def do_connect(self, command):
        self.client = lightq.connect(**connect_arguments(command))

    def do_create_topic(self, command):
        self.client.create_topic(command["topic"], command["broker_type"])

    def do_delete_topic(self, command):
        self.client.delete_topic(command["topic"])

    def do_stats(self, command):
        return {"messages_received": self.client.stats(command["topic"])["messages_received"]}

    def do_produce_open(self, command):
        made = AgentProducer(self.client.producer(command["topic"], **producer_arguments(command)))
        self.objects[command["as"]] = made
        producer_id, epoch = made.producer.identity
        return {"producer_id": producer_id, "epoch": epoch}

    def do_consume_open(self, command):
        self.objects[command["as"]] = AgentConsumer(self.client.consumer(command["topic"], **consumer_arguments(command)))

    def do_read(self, command):
        with self.client.reader(command["topic"]) as reader, open(command["into"], "ab") as into:
            messages, following = reader.read(command["begin"], command["end"])
            into.write(b"".join(message.body for message in messages))
        write_line({"messages": [described(message) for message in messages]})
        return {"next": following}

    def run(self, command):
        """Does one command and returns its reply."""
        on = self.objects[command["on"]] if "on" in command else self
        try:
            done = getattr(on, f"do_{command['do']}")(command)
            reply = {"ok": True, **(done or {})}
        except lightq.Error as error:
            reply = failed(error)
        return {**reply, **(on.more() if on is not self else {})}


def main():
    introduce("Python")
    agent = Agent()
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "exit":
            return
        write_line({**agent.run(command), "id": command["id"]})


if __name__ == "__main__":
    main()
