"""Tests rights over TLS: every request of a session needs its right when it is made, and for as long as it
lasts."""
import pathlib
import shutil
import tempfile

import pytest

from session_client import GROUP, OWN, Session, Ticket, certificate_of, hello_values, join, open_values
from support import ADMIN, ADMIN_PASSWORD, Secrets, running

ROOT = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
ANN = {"user_id": "ann", "password": Secrets.plant("planted-user-secret-2526")}
NEEDS = {"produce": "produce", "consume": "consume", "read": "consume", "seek": "consume", "pause": "manage"}
TYPES = {"produce": "push", "consume": "pull", "read": "sub", "seek": "sub"}
EVERYTHING = (1 << 64) - 1


@pytest.fixture(scope="module")
def shared():
    # Short: the path of a socket has at most 107 bytes.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    try:
        with running(directory, "--encrypt") as broker:
            yield broker.control()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def control(shared):
    """A control connection to a broker with the topics `t`, which has one message, and `other`. The user
    `ann` may use `other`."""
    for topic in ("t", "other"):
        shared.create(topic, "file")
    with Session(join(shared, "t", carrier="socket")) as session:
        producer = session.producer("t")
        producer.produce([b"kept"])
        producer.wait_confirmed()
    shared.ok("create_user", **ROOT, **ANN, rights=[{"topic": "other", "rights": list(set(NEEDS.values()))}])
    yield shared
    for topic in ("t", "other"):
        shared.delete(topic)
    shared.ok("delete_user", **ROOT, user_id="ann")


def ticket_of(reply):
    assert certificate_of(reply), "this is not over TLS"
    ticket = reply["ticket"]
    return Ticket(reply["bind_uri"], f"{ticket['id']}.{ticket['secret']}", "socket", certificate=certificate_of(reply))


def asked_to_join(control, topic, kind):
    return control("join", connection_type="socket", delivery="session", type=kind, topic=topic, **ANN)


@pytest.fixture
def session(control):
    """A session of ann. A ticket for `other` opens it, so it stays open."""
    with Session(ticket_of(asked_to_join(control, "other", "push"))) as session:
        yield session


def open_channel(session, request, name="g"):
    """Asks for the channel that the request needs. Returns the answer."""
    if request == "produce":
        return session.request("produce_open", producer_id=0, producer_epoch=0, level=0, topic="t")
    return session.request("consume_open", **open_values("t", name, GROUP if request == "consume" else OWN))


def outcome(control, session, request):
    """Returns the result of ann's request on the topic `t`: ok, or a code."""
    if request == "pause":
        reply = control("pause", topic="t", **ANN)
        return "ok" if reply["status"] == "ok" else reply["code"]
    if request == "read":
        answer = session.request("read", begin=0, end=EVERYTHING, bytes=1 << 20, topic="t")
        session.frames = [frame for frame in session.frames if frame.op != "deliver"]
    else:
        answer = open_channel(session, request, "another")
        if answer.op != "error" and request == "seek":
            answer = session.request("seek", channel=answer.channel, start=1, start_value=0)
    return answer.code if answer.op == "error" else "ok"


@pytest.mark.parametrize("has", ["nothing", "produce", "consume", "manage"])
@pytest.mark.parametrize("request_kind", NEEDS)
def test_each_request_needs_its_right(control, session, request_kind, has):
    if has != "nothing":
        control.ok("grant", **ROOT, user_id="ann", topic="t", rights=[has])
    permitted = NEEDS[request_kind] == has
    # A client that may not join asks without a ticket for `t`, but shows tickets of every kind that it can
    # get.
    for kind in set(TYPES.values()):
        reply = asked_to_join(control, "t", kind)
        may_join = has == ("produce" if kind == "push" else "consume")
        assert (reply["status"] == "ok") == may_join, reply
        if may_join:
            assert session.present(ticket_of(reply)).op != "error"
    before = control.ok("stats", topic="t", **ROOT)
    assert outcome(control, session, request_kind) == ("ok" if permitted else "unauthorized_access")
    after = control.ok("stats", topic="t", **ROOT)
    if not permitted:
        for name in ("publishers_count", "subscribers_count", "deliveries", "messages_received", "paused"):
            assert after.get(name) == before.get(name), name


@pytest.mark.parametrize("request_kind", [kind for kind in NEEDS if kind != "pause"])
def test_a_revoked_right_ends_its_waiting_request_and_no_other(control, session, request_kind):
    for right in ("produce", "consume"):
        control.ok("grant", **ROOT, user_id="ann", topic="t", rights=[right])
    for kind in set(TYPES.values()):
        assert session.present(ticket_of(asked_to_join(control, "t", kind))).op != "error"
    channel = open_channel(session, request_kind)
    assert channel.op != "error", channel
    assert outcome(control, session, request_kind) == "ok"
    control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=[NEEDS[request_kind]])
    ended = session.take(lambda frame: frame.op == "error" and frame.channel == channel.channel, "its end")
    assert ended.code == "unauthorized_access"
    if request_kind == "seek":
        answer = session.request("seek", channel=channel.channel, start=1, start_value=0)
        assert answer.op == "error", "the channel is there no more"
    assert outcome(control, session, request_kind) == "unauthorized_access"
    other = "produce" if NEEDS[request_kind] == "consume" else "read"
    assert outcome(control, session, other) == "ok", "that right is there"


def test_a_ticket_is_invalid_after_its_right_is_revoked(control):
    """This also holds if nothing was opened with the ticket."""
    control.ok("grant", **ROOT, user_id="ann", topic="t", rights=["consume"])
    ticket = ticket_of(asked_to_join(control, "t", "pull"))
    control.ok("revoke", **ROOT, user_id="ann", topic="t", rights=["consume"])
    with Session(ticket, hello=False) as session:
        answer = session.request("hello", **hello_values(ticket=ticket.text))
        assert (answer.op, answer.code) == ("error", "unauthorized_access"), answer
