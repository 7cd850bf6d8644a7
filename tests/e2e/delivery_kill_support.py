"""Producers and consumers as processes that a test can kill, for test_delivery_kills.py. A message's number
determines the verdict of consumers. A process reports each step to the test through a pipe before it takes it. So the
test knows all steps that a killed process may have taken."""
import json
import multiprocessing
import os
import random
import signal
import time
import traceback

import zmq

from dead_letter_support import ALL
from session_client import FLUSHED, Ended, Session, batch_bytes, join
from support import Control, Secrets

ATTEMPTS = 8
Message = batch_bytes.Message
REASON = "dead at once"
fork = multiprocessing.get_context("fork")


def kind_of(number):
    """Returns how consumers treat this message: `dead` at once, `fails` each time, `retry` once, `release` at
    times, or `good`."""
    return {3: "dead", 7: "fails", 11: "retry", 13: "retry", 17: "release"}.get(number % 20, "good")


def dies(number):
    return kind_of(number) in ("dead", "fails")


def ttl_ms_of(number):
    """Returns the time to live of a message: of a third of them a blink, of others a second or more than the test
    lasts."""
    return (1 + number % 40, 500 + number % 1000, 10 * 3_600_000)[number % 3]


def payload_of(producer, number, due):
    return f"{producer}|{number}|{due}|".encode().ljust(40 + number * 7919 % 200, b".")


def numbers_of(payload):
    """Returns the producer and the number of a message. Fails if the payload is not as it was sent, or if it is not
    due yet."""
    producer, number, due = map(int, payload.split(b"|", 3)[:3])
    assert payload == payload_of(producer, number, due), payload
    assert due <= now_us(), f"{due - now_us()} us early: {payload}"
    return producer, number


def now_us():
    return time.time_ns() // 1000


def messages_of(state, first, end, begun_us):
    """Returns the messages of a batch. Those of a delayed producer are due within two seconds of `begun_us`, in another
    order. Those of a producer with a time to live expire some time after they were stored."""
    if state["expiring"]:
        return [Message(payload_of(state["name"], number, 0), headers=((b"lightq-ttl-ms", str(ttl_ms_of(number)).encode()),))
                for number in range(first, end)]
    if not state["delayed"]:
        return [payload_of(state["name"], number, 0) for number in range(first, end)]
    dues = {number: begun_us + number * 104_729 % 2_000_000 for number in range(first, end)}
    return [Message(payload_of(state["name"], number, due), due=due) for number, due in dues.items()]


class Child:
    """A process that runs `work(pipe, join, dice, state)` again each time that its session ends. `state` is the
    test's account of the work; the process begins with a copy of it."""

    def __init__(self, work, broker, state, seed):
        self.pipe, there = fork.Pipe()
        place = broker.control_uri, broker.server_key
        self.process = fork.Process(target=self._run, args=(work, there, self.pipe, place, state, seed), daemon=True)
        self.process.start()
        there.close()

    @staticmethod
    def _run(work, pipe, others, place, state, seed):
        others.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        context, dice = zmq.Context(), random.Random(seed)
        try:
            while True:
                try:
                    work(pipe, lambda *what: join_once(context, place, *what), dice, state)
                    break
                except (Ended, OSError, zmq.ZMQError):
                    pass
        except BaseException:
            pipe.send(("failed", traceback.format_exc()))
            pipe.close()
            os._exit(1)
        pipe.send(("ended",))
        pipe.close()
        os._exit(0)

    def reports(self):
        """Yields the reports of the process since the last call."""
        try:
            while self.pipe.poll():
                yield self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return

    def kill(self):
        """Kills the process. Its last reports can still be read."""
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


class BriefControl(Control):
    """Raises ConnectionError if the broker does not answer soon, or is about to end."""

    def send_raw(self, payload):
        Secrets.said(payload)
        self.socket.send(payload)
        if not self.socket.poll(1000):
            raise ConnectionError("no answer: the broker was killed")
        reply = Secrets.heard(json.loads(self.socket.recv()))
        if reply.get("code") == "shutting_down":
            raise ConnectionError(reply)
        return reply


def join_once(context, place, topic, kind):
    control = BriefControl(context, *place)
    try:
        return join(control, topic, kind)
    finally:
        control.close()


def produce(pipe, join_topic, dice, state):
    """Sends messages until the test says `stop`. Continues as the producer in `state`, and sends its unconfirmed
    batches again first."""
    with Session(join_topic("work", "push")) as session:
        producer = session.producer("work", state["id"], state["epoch"], level=FLUSHED, target=int(state["delayed"]))
        pipe.send(("identity", producer.id, producer.epoch))
        state["id"], state["epoch"] = producer.id, producer.epoch
        assert producer.next >= state["confirmed"], f"{producer.next}: confirmed messages are forgotten: {state}"
        for batch in state["batches"]:
            producer.produce(messages_of(state, *batch), sequence=batch[0])
        while True:
            if not state["stopping"] and len(state["batches"]) < 8:
                batch = state["next"], state["next"] + dice.randrange(1, 30), now_us()
                pipe.send(("batch", *batch))
                state["batches"].append(batch)
                state["next"] = batch[1]
                producer.produce(messages_of(state, *batch), sequence=batch[0])
            session.read_some(0.02)
            assert not session.frames, session.frames
            if producer.confirmed > state["confirmed"]:
                state["confirmed"] = producer.confirmed
                state["batches"] = [batch for batch in state["batches"] if batch[1] > producer.confirmed]
                pipe.send(("confirmed", producer.confirmed))
            if pipe.poll():
                state["stopping"] = pipe.recv() == "stop"
            if state["stopping"] and not state["batches"]:
                return


def consume(pipe, join_topic, dice, state):
    """Consumes until the test says `stop`. After `mend` it acknowledges every message."""
    with Session(join_topic("work", "pull"), codecs=ALL) as session:
        consumer = session.consumer("work", "g", credit=(60, 1 << 20))
        while True:
            if pipe.poll():
                word = pipe.recv()
                if word == "stop":
                    return
                state["mends"] = word == "mend"
            session.read_some(0.02)
            session.frames = [frame for frame in session.frames if frame.op not in ("late", "revoked")]
            assert not session.frames, session.frames
            messages, consumer.messages = consumer.messages, []
            for message in messages:
                verdict = verdict_on(message, dice, state["mends"])
                pipe.send((verdict, *numbers_of(message.payload), message.delivery))
                consumer.hand_out = message.hand_out
                consumer.start(message.offset)
                {"acknowledged": lambda offset: consumer.acknowledge(offset),
                 "dead": lambda offset: consumer.reject_dead(offset, reason=REASON),
                 "rejected": lambda offset: consumer.reject(offset, ms=dice.choice((0, 0, 15))),
                 "released": lambda offset: consumer.release(offset)}[verdict](message.offset)
                consumer.give(1, message.size)


def verdict_on(message, dice, mends):
    kind = "good" if mends else kind_of(numbers_of(message.payload)[1])
    if kind == "dead":
        return "dead"
    if kind == "fails" or (kind == "retry" and message.delivery == 1):
        return "rejected"
    if kind == "release" and dice.random() < 0.5:
        return "released"
    return "acknowledged"
