"""Tests how tickets and registered keys end, with and without encryption: another ticket key, another
password of the administrator, a shorter `ticket_ms`. A restart alone ends none."""
import pytest
import zmq

from curve_support import try_out
from session_client import Session, Ticket, certificate_of, hello_values
from support import ADMIN, ADMIN_PASSWORD, PASSWORD, USER, Secrets, keys_for

YEAR_MS = "31536000000"
OTHER_PASSWORD = Secrets.plant("planted-other-admin-secret-1138")
ASKERS = {"user": {"user_id": USER, "password": PASSWORD},
          "administrator": {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}}
ALL = {f"{who}, {kind}" for who in ASKERS for kind in ("plain", "session")} | {"nobody, session"}


class World:
    """A broker, and the results of its joins."""

    def __init__(self, make_broker, encrypted):
        self.broker = make_broker(*(["--encrypt"] if encrypted else []), environment={"LIGHTQ_TICKET_MS": YEAR_MS})
        self.control = self.broker.control()
        self.control.create("t", "file")
        self.control.ok("create_topic", topic="open", broker_type="queue", open=True, **ASKERS["administrator"])
        self.plain = {who: self.join_plain(asker) for who, asker in ASKERS.items()}
        self.tickets = {who: self.join_session("t", asker)[1] for who, asker in ASKERS.items()}
        self.tickets["nobody"] = self.join_session("open", {})[1]

    def join_plain(self, asker):
        """Returns the address to connect to, and the options of the socket."""
        pair = zmq.curve_keypair()
        more = {"client_key": pair[0].decode()} if self.broker.server_key else {}
        reply = self.control.ok("join", topic="t", type="push", **asker, **more)
        if more:
            return reply["bind_uri"], keys_for(reply["server_key"], pair)
        ticket = reply["ticket"]
        return reply["bind_uri"], {"plain_username": ticket["id"].encode(), "plain_password": ticket["secret"].encode()}

    def join_session(self, topic, asker):
        """Returns the address of the topic's sessions as a Ticket, and the text of the ticket."""
        reply = self.control.ok("join", topic=topic, type="push", connection_type="socket", delivery="session", **asker)
        text = "{id}.{secret}".format(**reply["ticket"])
        return Ticket(reply["bind_uri"], text, "socket", certificate=certificate_of(reply)), text

    def lets_in(self, address):
        event, socket = try_out(self.broker, zmq.PUSH, address[0], **address[1])
        socket.close()
        return event == zmq.EVENT_HANDSHAKE_SUCCEEDED

    def good(self):
        """Returns the names of the results that are still admitted."""
        found = {f"{who}, plain" for who, address in self.plain.items() if self.lets_in(address)}
        where, _ = self.join_session("t", ASKERS["user"])
        for who, ticket in self.tickets.items():
            with Session(where, hello=False) as session:
                if session.request("hello", **hello_values(ticket=ticket)).op == "welcome":
                    found.add(f"{who}, session")
        return found

    def restart(self, **environment):
        self.broker.close_clients()
        self.broker.stop()
        self.broker.environment.update(environment)
        self.broker.start()

    def says_if_it_encrypts(self, words):
        if self.broker.server_key:
            self.broker.logged(words)
        assert (words in self.broker.log()) == bool(self.broker.server_key)


@pytest.fixture(params=[False, True], ids=["clear", "encrypted"])
def world(request, make_broker):
    return World(make_broker, request.param)


def test_a_restart_ends_no_ticket_or_key(world):
    assert world.good() == ALL
    world.restart()
    assert world.good() == ALL
    world.broker.kill()
    world.broker.start()
    assert world.good() == ALL
    assert "registered client keys" not in world.broker.log()


def test_a_new_password_of_the_administrator_ends_the_administrators_keys_for_good(world):
    left = {each for each in ALL if not each.startswith("administrator")}
    world.restart(LIGHTQ_ADMIN_PASSWORD=OTHER_PASSWORD)
    assert world.good() == left
    world.says_if_it_encrypts("dropped 1 registered client keys: the administrator's password")
    asker = {"admin_user_id": ADMIN, "admin_password": OTHER_PASSWORD}
    assert world.lets_in(world.join_plain(asker)), "a new one"
    world.restart(LIGHTQ_ADMIN_PASSWORD=ADMIN_PASSWORD)
    assert world.good() == left, "the old password does not bring them back"
    assert world.lets_in(world.join_plain(ASKERS["administrator"]))


def test_without_the_ticket_key_all_tickets_and_keys_end(world):
    world.broker.stop()
    (world.broker.data_dir / "ticket.key").unlink()
    world.broker.start()
    assert world.good() == set()
    world.says_if_it_encrypts("dropped 2 registered client keys: the ticket key")
    assert all(world.lets_in(world.join_plain(asker)) for asker in ASKERS.values()), "new ones"


def test_tickets_with_a_too_late_end_are_refused(world):
    world.restart(LIGHTQ_TICKET_MS="60000")
    assert world.good() == {each for each in ALL if each.endswith("session")}, "theirs are good for ten minutes"
    assert world.lets_in(world.join_plain(ASKERS["user"]))
    world.restart(LIGHTQ_TICKET_MS=YEAR_MS)
    assert world.good() == ALL, "nothing was taken away for good"
