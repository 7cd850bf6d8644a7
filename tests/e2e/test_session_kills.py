"""Kills a broker again and again while four producers and four consumers work over sessions. Every confirmed
message is delivered, a consumer that resumes by offset receives none twice, and each producer's messages
are in order. LIGHTQ_KILLS=100 for the whole test of docs/reliability.md."""
import collections
import json
import random
import threading
import traceback

import zmq

from harness import variable
from session_client import CARRIER, FLUSHED, OWN, Ended, Session, Ticket, certificate_of
from support import DEADLINE, PASSWORD, SANITIZED, USER, keys_for, until

KILLS = int(variable("LIGHTQ_KILLS", 3 if SANITIZED else 6))
SEED = int(variable("LIGHTQ_SEED", 1))
PRODUCERS, MEMBERS = 4, 2


class World:
    """The state that the threads share: the broker, which stops and starts, and the messages seen."""

    def __init__(self, broker):
        self.broker, self.context = broker, zmq.Context()
        self.control_options = keys_for(broker.server_key) if broker.server_key else {}
        self.changed = threading.Condition()
        self.is_up, self.stopping, self.failure = True, False, None
        self.produced = [None] * PRODUCERS  # how many messages each has sent in all, once it is done
        self.confirmed = [0] * PRODUCERS
        self.seen = [set() for _ in range(PRODUCERS)]  # by producer: the numbers that the group received
        self.redelivered = 0

    def notify(self, **changes):
        with self.changed:
            for name, value in changes.items():
                setattr(self, name, value)
            self.changed.notify_all()

    def wait_for(self, condition, what, seconds=DEADLINE):
        with self.changed:
            met = self.changed.wait_for(lambda: condition() or self.failure, seconds)
        assert not self.failure, self.failure
        assert met, f"not within {seconds} s: {what}"

    def total(self):
        """Returns the number of messages once all producers are done, and None before."""
        return None if None in self.produced else sum(self.produced)

    def group_is_done(self):
        return self.total() is not None and sum(map(len, self.seen)) == self.total()

    def join(self, kind):
        """Returns a ticket. Raises ConnectionError if the broker goes away meanwhile."""
        socket = self.context.socket(zmq.REQ)
        socket.linger = 0
        try:
            for name, value in self.control_options.items():
                setattr(socket, name, value)
            socket.connect(self.broker.control_uri)
            socket.send_json(dict(cmd="join", connection_type=CARRIER, delivery="session", type=kind, topic="t",
                                  user_id=USER, password=PASSWORD))
            for _ in range(DEADLINE * 20):
                if socket.poll(50):
                    reply = json.loads(socket.recv())
                    assert reply["status"] == "ok", reply
                    return Ticket(reply["bind_uri"], f"{reply['ticket']['id']}.{reply['ticket']['secret']}",
                                  certificate=certificate_of(reply))
                if not self.is_up:
                    raise ConnectionError("the broker was killed")
            raise AssertionError("no answer to a join")
        finally:
            socket.close()

    def close(self):
        self.context.destroy(linger=0)


class Worker(threading.Thread):
    """Connects and works until its work is done. Connects again whenever the broker is back."""
    kind = "push"

    def __init__(self, world, number):
        super().__init__(daemon=True, name=f"{type(self).__name__} {number}")
        self.world, self.number = world, number
        self.dice = random.Random(f"{SEED} {self.name}")
        self.start()

    def run(self):
        try:
            while True:
                self.world.wait_for(lambda: self.world.is_up, "the broker")
                try:
                    with Session(self.world.join(self.kind)) as session:
                        self.work(session)
                    return
                except (Ended, OSError):
                    if self.world.failure:
                        return
        except BaseException:
            self.world.notify(failure=f"{self.name}: {traceback.format_exc()}")


def message_of(producer, number, size):
    return f"{producer}|{number}|".encode().ljust(size, b".")


def parts_of(message):
    producer, number, _ = message.split(b"|", 2)
    return int(producer), int(number)


class Producing(Worker):
    """Sends unconfirmed messages again, in the same batches."""
    identity, next = (0, 0), 0

    def work(self, session):
        producer = session.producer("t", *self.identity, level=FLUSHED)
        assert producer.next >= self.world.confirmed[self.number], "what was confirmed is forgotten"
        if self.identity == (0, 0):
            self.identity, self.unconfirmed = (producer.id, producer.epoch), collections.deque()
        for first, messages in self.unconfirmed:
            producer.produce(messages, sequence=first)
        while not self.world.stopping:
            messages = [message_of(self.number, self.next + index, self.dice.randrange(20, 300))
                        for index in range(self.dice.randrange(1, 40))]
            self.unconfirmed.append((self.next, messages))  # recorded before it may be stored
            self.next += len(messages)
            producer.produce(messages, sequence=self.unconfirmed[-1][0])
            session.read_some(0)
            self.note_confirmed(producer)
            while len(self.unconfirmed) > 32 and not self.world.stopping:
                session.read_some(0.05)
                self.note_confirmed(producer)
        if self.unconfirmed:
            producer.wait_confirmed(self.next)
        self.world.confirmed[self.number] = self.next
        self.world.produced[self.number] = self.next
        self.world.notify()

    def note_confirmed(self, producer):
        assert not [frame for frame in producer.session.frames if frame.channel == producer.channel]
        while self.unconfirmed and sum(map(len, self.unconfirmed[0][1:])) + self.unconfirmed[0][0] <= producer.confirmed:
            self.unconfirmed.popleft()
        if producer.confirmed > self.world.confirmed[self.number]:
            self.world.confirmed[self.number] = producer.confirmed
            self.world.notify()


class Member(Worker):
    """A member of a group. Records messages and then acknowledges them."""
    kind = "pull"

    def work(self, session):
        consumer = session.consumer("t", group="g", credit=(1000, 1 << 20))
        while not self.world.group_is_done():
            session.read_some(0.05)
            messages, consumer.messages = consumer.messages, []
            with self.world.changed:
                for message in messages:
                    producer, number = parts_of(message.payload)
                    self.world.redelivered += number in self.world.seen[producer]
                    self.world.seen[producer].add(number)
                self.world.changed.notify_all()
            if messages:
                consumer.acknowledge_all(messages)
                consumer.give(len(messages), sum(len(message.payload) for message in messages))


class Follower(Worker):
    """Has a cursor of its own and continues after the last message it received: each message arrives once and
    in order."""
    kind, automatic = "sub", False
    next, incarnation = 0, 0

    def work(self, session):
        if not hasattr(self, "come"):
            self.come = [0] * PRODUCERS
        consumer = session.consumer("t", mode=OWN, start="offset", value=self.next, incarnation=self.incarnation,
                                    automatic=self.automatic, credit=(2000, 1 << 20))
        self.incarnation = consumer.opened["incarnation"]
        while self.next != self.world.total():
            session.read_some(0.05)
            messages, consumer.messages = consumer.messages, []
            for message in messages:
                assert message.offset == self.next, f"{message.offset} where {self.next} was due"
                producer, number = parts_of(message.payload)
                assert number == self.come[producer], f"producer {producer}: {number} behind {self.come[producer]}"
                self.come[producer] += 1
                self.next += 1
            if messages:
                consumer.give(len(messages), sum(len(message.payload) for message in messages))
                if not self.automatic:
                    consumer.acknowledge_before(self.next)
        assert consumer.lost == 0
        self.world.notify()


class AutomaticFollower(Follower):
    automatic = True


def test_over_many_kills_nothing_confirmed_is_lost_doubled_or_out_of_order(broker, control):
    """LIGHTQ_SEED repeats a run, as far as the scheduling of threads permits."""
    control.create("t", "file", segment_bytes=1 << 20)
    world, dice = World(broker), random.Random(SEED)
    workers = [Producing(world, number) for number in range(PRODUCERS)]
    workers += [Member(world, number) for number in range(MEMBERS)]
    workers += [Follower(world, 0), AutomaticFollower(world, 0)]
    try:
        for _ in range(KILLS):
            goal = sum(world.confirmed) + dice.randrange(500, 6000)
            world.wait_for(lambda: sum(world.confirmed) >= goal, "messages being confirmed")
            world.notify(is_up=False)
            broker.kill()
            broker.start()
            world.notify(is_up=True)
        world.notify(stopping=True)
        for worker in workers:
            until(lambda: not worker.is_alive() or world.failure, f"the end of {worker.name}", 2 * DEADLINE)
            assert not world.failure, world.failure
    finally:
        world.notify(stopping=True, failure=world.failure or "the test is over")
        for worker in workers:
            worker.join(DEADLINE)
        world.close()
    total = sum(world.produced)
    assert control.stats("t")["next_offset"] == total, "a message was stored twice, or one that nobody sent"
    assert all(seen == set(range(count)) for seen, count in zip(world.seen, world.produced))
    for follower in workers[-2:]:
        assert (follower.next, follower.come) == (total, world.produced)
    print(f"{KILLS} kills, {total} messages, {world.redelivered} of them came again to the group")
