"""The resources of one scenario: its broker, agents, relays and files. All are closed and checked at its end."""
import contextlib
import itertools
import pathlib
import random
import shutil
import tempfile

import kit_paths  # noqa: F401 - makes the modules of the tests importable
from agent_process import AgentProcess
from ledger import bodies_of, fates_of, write_bodies
from relay import ControlRelay, CuttingProxy
from session_client import Session, join
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, Broker, until

SCENARIOS = []
ALL = 1 << 62  # an offset behind every message


def scenario(name, needs=(), is_long=False):
    """Registers a scenario. `needs`: features that an agent must have; without them the table says so."""
    def register(function):
        function.title, function.needs, function.is_long = name, set(needs), is_long
        SCENARIOS.append(function)
        return function
    return register


class Kit:
    """Each agent sends with the object `p` and consumes with `c`, if a scenario does not name others."""

    def __init__(self, command, is_long=False, seed=0):
        self.password = PASSWORD
        self.command, self.is_long, self.random = command, is_long, random.Random(seed)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))  # short: paths of sockets are limited
        self.closing, self.numbers, self.control, self.the_broker = [], itertools.count(), None, None

    def many(self, short, long):
        return long if self.is_long else short

    def broker(self, *flags, topic="t", broker_type="file", **settings):
        """Starts a broker with one topic of the tests' own user."""
        directory = self.directory / f"b{next(self.numbers)}"
        directory.mkdir()
        broker = Broker(directory, *flags)
        self.closing.append(broker)
        self.the_broker, self.control = broker.start(), broker.control()
        if topic:
            self.control.create(topic, broker_type, **settings)
        return broker

    def relay(self, make_proxy=CuttingProxy):
        relay = ControlRelay(self.the_broker, make_proxy)
        self.closing.append(relay)
        return relay

    def process(self):
        agent = AgentProcess(self.command, self.directory)
        self.closing.append(agent)
        return agent

    def agent(self, via=None, **changed):
        """Starts an agent and connects it as the tests' user, directly or through a relay."""
        where = via or self.the_broker
        members = {"uri": via.uri if via else where.control_uri, "user": USER, "password": PASSWORD, "transport": "tcp"}
        if where.server_key:
            members["server_key"] = where.server_key
        agent = self.process()
        agent.ok("connect", **{**members, **changed})
        return agent

    def administrator(self, via=None):
        return self.agent(via, user=ADMIN, password=ADMIN_PASSWORD, admin=True)

    def bodies(self, count=1, size=100, sizes=None, name="m"):
        file = self.directory / f"bodies{next(self.numbers)}"
        return write_bodies(file, sizes or [size] * count, name, self.random.random())

    def file(self):
        return self.directory / f"received{next(self.numbers)}"

    def send(self, agent, sent, **members):
        """Sends the messages and waits for their confirms."""
        self.finish_sending(agent, self.start_sending(agent, sent, **members), sent)

    def start_sending(self, agent, sent, on="p", **members):
        sizes = [len(body) for body in sent.bodies]
        equal = len(set(sizes)) == 1
        what = {"size": sizes[0], "count": len(sizes)} if equal else {"sizes": sizes}
        return agent.start("produce", on=on, file=str(sent.file), **what, **members)

    def finish_sending(self, agent, number, sent, on="p", flushing=None):
        """Waits until everything is sent and confirmed. Returns the fates, which must all be `confirmed`."""
        reply = agent.finish(number)
        assert reply["ok"] and reply["sent"] == len(sent.bodies), reply
        flushed = agent.finish(flushing or agent.start("flush", on=on, timeout_ms=30_000))
        assert flushed["ok"], flushed
        fates = fates_of(reply["outcomes"] + flushed["outcomes"], len(sent.bodies))
        assert set(fates) == {"confirmed"}, flushed
        return fates

    def receive(self, agent, count, on="c", settle="ack", timeout_ms=20_000, **members):
        """Receives messages. Returns their descriptions and bodies."""
        file, before = self.file(), len(agent.messages)
        more = {"settle": settle} if settle else {}
        agent.ok("receive", on=on, count=count, timeout_ms=timeout_ms, into=str(file), **more, **members)
        messages = agent.messages[before:]
        return messages, bodies_of(messages, file)

    def stored(self, topic="t"):
        """Returns the messages in the topic's log, read by the driver's own session client."""
        messages, offset = [], 0
        with Session(join(self.control, topic, "pull"), frame_bytes_max=1 << 26) as session:
            while True:
                some, following = session.read(topic, offset)
                messages += some
                if not some or following == offset:
                    return messages
                offset = following

    def stored_bodies(self, topic="t"):
        return [message.payload for message in self.stored(topic)]

    def stored_count(self, topic="t"):
        return self.control.stats(topic)["next_offset"]

    def group(self, name="default", topic="t"):
        return next((group for group in self.control.stats(topic)["groups"] if group["group"] == name), None)

    def until_processed(self, count, name="default", topic="t"):
        until(lambda: self.group(name, topic)["committed_offset"] == count, lambda: f"the group's end: {self.group(name, topic)}")

    def crash_broker(self):
        """Kills the broker and starts it again, with the same address and data."""
        self.the_broker.kill()
        self.the_broker.start()

    def close(self):
        """Closes everything, in reverse order. Raises the first failure."""
        failures = []
        for each in reversed(self.closing):
            try:
                each.close()
            except AssertionError as failure:
                failures.append(failure)
        shutil.rmtree(self.directory, ignore_errors=True)
        if failures:
            raise failures[0]

    def abandon(self):
        """Closes everything after a failure, which is reported instead of later ones."""
        with contextlib.suppress(AssertionError):
            self.close()
