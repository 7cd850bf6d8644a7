"""Tests that a client that guesses passwords keeps no other client out, with any names and addresses. If an
old password is set again, old tickets stay invalid. A topic's own user learns of no other topic."""
import collections
import contextlib
import json
import threading

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, until

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
WAITING = 16  # the broker lets so many guesses wait from an address that it slows down
COPIES = 16  # copies of each guess that the attacker sends


class Attacker:
    """Keeps more wrong passwords waiting than one address may have, until it is stopped. It replaces each
    answered guess immediately."""

    def __init__(self, broker, source, names):
        self.uri = broker.control_uri.replace("tcp://", f"tcp://{source}:0;")
        self.context, self.names = broker.context, names
        self.guesses, self.codes = 0, collections.Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        socket = self.context.socket(zmq.DEALER)
        socket.linger = socket.sndhwm = socket.rcvhwm = 0
        socket.connect(self.uri)
        # Sends wrong passwords one after the other, so few that all are computed. After that the broker slows
        # the address down, for each name.
        for _ in range(WAITING):
            self.guess(socket, 1)
        waiting = WAITING
        while waiting and not self.stopping.is_set():
            waiting -= self.hear(socket)
        self.failed = dict(self.codes)
        while not self.stopping.is_set():
            while waiting <= WAITING * COPIES:
                self.guess(socket, COPIES)
                waiting += COPIES
            while waiting > WAITING * (COPIES - 1) and self.hear(socket):
                waiting -= 1
        socket.close()

    def guess(self, socket, copies):
        self.guesses += 1
        guess = {"cmd": "stats", "topic": "t", "user_id": self.names[self.guesses % len(self.names)],
                 "password": f"guess {self.guesses}"}
        for _ in range(copies):
            socket.send_multipart([b"", json.dumps(guess).encode()])

    def hear(self, socket):
        if not socket.poll(20):
            return False
        self.codes[json.loads(socket.recv_multipart()[-1])["code"]] += 1
        return True


@contextlib.contextmanager
def attack(broker, sources, names):
    attackers = [Attacker(broker, source, names) for source in sources]
    for attacker in attackers:
        attacker.thread.start()
    try:
        until(lambda: all(each.codes["busy"] >= 100 for each in attackers), "each has more waiting than it may", DEADLINE * 3)
        assert all(each.failed == {"unauthorized_access": WAITING} for each in attackers)
        yield attackers
        assert all(set(each.codes) == {"busy", "unauthorized_access"} for each in attackers)
    finally:
        for attacker in attackers:
            attacker.stopping.set()
        for attacker in attackers:
            attacker.thread.join()


@pytest.mark.parametrize("sources", [["127.0.0.1"], [f"127.0.0.{n}" for n in range(2, 7)]], ids=["same", "elsewhere"])
@pytest.mark.parametrize("names", [["zed"], [f"zed{n}" for n in range(WAITING)]], ids=["one_name", "many_names"])
def test_a_correct_password_is_accepted_beside_many_wrong_ones(broker, control, sources, names):
    control.create("t")
    users = {name: {"user_id": name, "password": f"planted-login-{name}"} for name in ("ann", *(f"u{n}" for n in range(5)))}
    for user in users.values():
        control.ok("create_user", **ROOT, **user, rights=[{"topic": "*", "rights": ["consume"]}])
    ann = users.pop("ann")
    control.ok("stats", topic="t", **ann)  # from here on the credential is remembered
    with attack(broker, sources, names) as attackers:
        before = sum(each.codes.total() for each in attackers)
        for user in users.values():
            control.ok("ping")
            control.ok("version")
            control.ok("stats", topic="t", **ann)
            control.ok("stats", **ROOT)
            control.ok("stats", topic="t", **user)  # the broker has not verified this one before
        control.ok("create_user", **ROOT, user_id="late", password="planted-login-late")
        assert sum(each.codes.total() for each in attackers) > before, "the attack went on"


@pytest.mark.parametrize("flags", [[], ["--encrypt"]], ids=["clear", "encrypted"])
def test_a_restored_password_does_not_restore_its_tickets(make_broker, flags):
    broker = make_broker(*flags)
    control = broker.control()
    control.create("t")
    control.create("other")  # a second topic of the same user and password, which stays
    old = control.join("t", "push")

    def refused():
        return control.ok("stats", **ROOT, topic="t")["refused_connections"]

    def stored():
        return control.ok("stats", **ROOT, topic="t")["messages_received"]

    socket = broker.socket(zmq.PUSH, old)
    socket.send(b"before")
    until(lambda: stored() == 1, "the first message")
    socket.close()
    for new in ("planted-second-password", PASSWORD):
        control.ok("set_password", **ROOT, topic="t", new_password=new)
        before = refused()
        socket = broker.socket(zmq.PUSH, old)
        socket.send(b"never")
        until(lambda: refused() > before, "the old ticket is refused")
        socket.close()
    broker.restart()
    before = refused()
    socket = broker.socket(zmq.PUSH, old)
    socket.send(b"never")
    until(lambda: refused() > before, "the old ticket is refused after a restart, too")
    socket.close()
    before = stored()
    socket = broker.socket(zmq.PUSH, control.join("t", "push"))
    socket.send(b"after")
    until(lambda: stored() > before, "a message with a new ticket")
    assert stored() == before + 1 and before <= 1


def test_a_topics_own_user_cannot_see_other_topics(control):
    control.create("mine")
    control.ok("create_topic", **ROOT, topic="theirs", broker_type="queue", user_id="another", password="planted-login-other")
    control.ok("create_topic", **ROOT, topic="nobodys", broker_type="queue")
    asked = {"join": {"type": "pull"}, "leave": {"bind_uri": "tcp://192.0.2.1:5"}, "stats": {}, "pause": {}, "resume": {},
             "purge": {}, "delete_group": {}, "set_password": {"new_password": "planted-login-new"}}
    for cmd, fields in asked.items():
        answers = [control.fails("topic_not_found", cmd, topic=topic, user_id=USER, password=PASSWORD, **fields)
                   for topic in ("theirs", "nobodys", "none")]
        assert answers[0] == answers[1] == answers[2], cmd
