"""Kills the broker, producers and consumers again and again while messages are acknowledged, released, tried again,
given up and moved to a dead-letter topic, while others wait until they are due or expire, and while letters are given
back. LIGHTQ_KILLS=300 for the whole test of docs/reliability.md; LIGHTQ_SEED chooses another run, as far as the scheduling of processes permits."""
import collections
import json
import random

import pytest

from dead_letter_support import ADMINISTRATOR, check_states, set_group
from delivery_kill_support import ATTEMPTS, REASON, Child, consume, dies, numbers_of, produce, ttl_ms_of
from harness import variable
from session_client import Session, join
from session_support import group_of
from support import DEADLINE, SANITIZED, until

KILLS = int(variable("LIGHTQ_KILLS", 5 if SANITIZED else 12))
SEED = int(variable("LIGHTQ_SEED", 1))
PRODUCERS, DELAYED, EXPIRING, CONSUMERS = 2, 1, 1, 3


def may_expire(producer):
    return producer >= PRODUCERS + DELAYED


class World:
    """The processes, and their reports."""

    def __init__(self, broker):
        self.broker, self.dice, self.started = broker, random.Random(SEED), 0
        self.producing = [dict(name=name, id=0, epoch=0, next=0, confirmed=0, batches=[], stopping=False,
                               delayed=PRODUCERS <= name < PRODUCERS + DELAYED, expiring=may_expire(name))
                          for name in range(PRODUCERS + DELAYED + EXPIRING)]
        self.consuming = [dict(mends=False) for _ in range(CONSUMERS)]
        self.producers = [self._child(produce, state) for state in self.producing]
        self.consumers = [self._child(consume, state) for state in self.consuming]
        self.verdicts = collections.defaultdict(collections.Counter)  # by (producer, number)
        self.mended = set()  # acknowledged after `mend`
        self.kills = collections.Counter()
        self.count = 0  # of verdicts

    def _child(self, work, state):
        self.started += 1
        return Child(work, self.broker, dict(state), f"{SEED} {self.started}")

    def update(self):
        """Reads the reports of all processes."""
        for state, child in zip(self.producing, self.producers):
            for report in child.reports():
                self._note_producer(state, *report)
        for state, child in zip(self.consuming, self.consumers):
            for word, *said in child.reports():
                assert word != "failed", said[0]
                if word == "ended":
                    continue
                producer, number, _ = said
                self.verdicts[producer, number][word] += 1
                self.count += 1
                if state["mends"] and word == "acknowledged":
                    self.mended.add((producer, number))

    @staticmethod
    def _note_producer(state, word, *said):
        assert word != "failed", said[0]
        if word == "identity":
            state["id"], state["epoch"] = said
        elif word == "batch":
            state["batches"].append(said)
            state["next"] = said[1]
        elif word == "confirmed":
            state["confirmed"], = said
            state["batches"] = [batch for batch in state["batches"] if batch[1] > said[0]]

    def wait(self, condition, what):
        def met():
            self.update()
            return condition()
        until(met, lambda: f"{what}: {self.count} verdicts", 3 * DEADLINE)

    def kill_one(self, victims):
        """Kills the broker, or one of the processes, and starts it again."""
        victim = self.dice.choice(victims)
        self.kills[victim] += 1
        if victim == "broker":
            self.broker.kill()
            self.broker.start()
        elif victim == "producer":
            self._replace(self.producers, self.producing, produce)
        else:
            self._replace(self.consumers, self.consuming, consume)

    def _replace(self, children, states, work):
        index = self.dice.randrange(len(children))
        children[index].kill()
        self.update()
        state = states[index]
        if state.get("id"):
            state["epoch"] = (state["epoch"] + 1) % (1 << 16)
        children[index] = self._child(work, state)

    def tell(self, children, word):
        for child in children:
            child.pipe.send(word)

    def close(self):
        for child in self.producers + self.consumers:
            child.kill()

    def sent(self):
        return {(state["name"], number) for state in self.producing for number in range(state["next"])}


def letters_of(control, total):
    """Returns all letters, by message. Fails if a message has two."""
    found = {}
    with Session(join(control, "letters", "pull")) as session:
        offset = 0
        while offset < total:
            messages, offset = session.read("letters", offset)
            for message in messages:
                which = numbers_of(message.payload)
                assert which not in found, f"{which} is there twice"
                found[which] = {name.decode(): value.decode() for name, value in message.said.headers}
    return found


def give_back_some(control, dice, letters):
    """Asks the broker to give letters back, and does not always wait for the reply."""
    first = dice.randrange(letters)
    asked = dict(cmd="retry_dead", topic="letters", ranges=[[first, first + 1 + dice.randrange(letters - first)]], **ADMINISTRATOR)
    control.socket.send(json.dumps(asked).encode())
    if control.socket.poll(dice.choice((0, 2, 10, DEADLINE * 1000))):
        assert json.loads(control.socket.recv())["status"] == "ok"
    control.connect()


@pytest.mark.parametrize("kind", ["file", "queue_file"])
def test_over_many_kills_each_message_is_acknowledged_or_dead_and_given_back_once(broker, control, kind):
    control.create("letters", "file", segment_bytes=1 << 20)
    control.create("work", kind, segment_bytes=1 << 20)
    set_group(control, "work", "g", max_attempts=ATTEMPTS, backoff_ms=[10, 30], dead_letter_topic="letters",
              dead_letter_expired=True)
    world = World(broker)
    try:
        for _ in range(KILLS):
            goal = world.count + world.dice.randrange(100, 600)
            world.wait(lambda: world.count >= goal, "work")
            world.kill_one(["broker", "consumer", "producer", "producer"])
        world.tell(world.producers, "stop")
        world.wait(lambda: all(not state["batches"] for state in world.producing), "the last confirms")
        sent = world.sent()
        until(lambda: control.stats("work")["next_offset"] >= len(sent), "the last due messages")
        long_lived = {which for which in sent if not may_expire(which[0]) or ttl_ms_of(which[1]) > 3_600_000}
        world.wait(lambda: group_of(control, "work", "g")["pending"] == 0, "the end of all messages")
        assert control.stats("work")["next_offset"] == len(sent), "a message was stored twice"
        letters = letters_of(control, control.stats("letters")["next_offset"])
        dead = set(letters)
        assert dead & long_lived == {which for which in long_lived if dies(which[1])}, "the wrong messages died"
        expired = {which for which, headers in letters.items() if headers["lightq-dead-cause"] == "expired"}
        assert expired and not expired & long_lived, "the wrong messages expired"
        for which, headers in letters.items():
            if which in expired:
                assert "lightq-dead-reason" not in headers, headers
                continue
            at_once = world.verdicts[which]["dead"] > 0
            assert headers["lightq-dead-cause"] == ("rejected" if at_once else "attempts"), headers
            assert headers.get("lightq-dead-reason", "") == (REASON if at_once else ""), headers
            assert world.verdicts[which]["acknowledged"] == 0, which
        assert all(world.verdicts[which]["acknowledged"] for which in sent - dead)

        for state in world.consuming:
            state["mends"] = True
        world.tell(world.consumers, "mend")
        for _ in range(max(2, KILLS // 3)):
            give_back_some(control, world.dice, len(dead))
            world.kill_one(["broker", "consumer"])
            world.update()
        while control.ok("list_dead", topic="letters", limit=1, **ADMINISTRATOR)["messages"]:
            control.ok("retry_dead", topic="letters", **ADMINISTRATOR)
        world.wait(lambda: group_of(control, "work", "g")["pending"] == 0 and dead <= world.mended, "the mended messages")
        assert control.stats("work")["next_offset"] == len(sent), "a letter was published anew"
        assert control.stats("letters")["next_offset"] == len(dead), "a message died after it was given back"
        check_states(group_of(control, "work", "g"))
    finally:
        world.close()
    print(f"kills {dict(world.kills)}, {len(sent)} messages, {world.count} verdicts, {len(dead)} letters, "
          f"{len(expired)} of them expired")
