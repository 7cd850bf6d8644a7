"""Scenarios in which the broker, or something that claims to be one, refuses."""
import socket

import session_frames
from fake_broker import FakeBroker, foreign_certificate
from kit import scenario
from ledger import check_stored, fates_of
from session_client import CODES, Session, join
from support import ADMIN, ADMIN_PASSWORD, until

# The words with which a client may report a code. The first is the wire's.
SYNONYMS = {"fenced": ["in_use"], "topic_deleted": ["topic_not_found"], "unsupported_version": ["not_supported"],
            "incarnation_changed": ["invalid_argument"]}  # for a consumer, the offset to begin with is the fault
# After these codes a client tries again, and a call ends with its time.
AGAIN = {"invalid_frame", "unauthorized_access", "unknown_channel", "limit_reached", "corrupt", "out_of_sequence", "no_space",
         "io_error", "incarnation_changed", "shutting_down", "idle", "internal", "unknown_producer"}


def words_for(code):
    return [code, *SYNONYMS.get(code, []), *(["timeout"] if code in AGAIN else [])]


@scenario("refused messages")
def refused_messages(kit):
    """A full topic refuses messages. The client names these, and sends later ones in order."""
    kit.broker(broker_type="queue", ring_bytes=65536, overflow="reject")
    with Session(join(kit.control, "t", "pull")) as reader:  # a group, which holds the log
        consumer = reader.consumer("t", credit=(1, 1))
        agent, sent = kit.agent(), kit.bodies(400, size=1000)
        agent.ok("produce_open", **{"as": "p"}, topic="t", retry_refused=False)
        produced = agent.finish(kit.start_sending(agent, sent))
        flushed = agent.fails(["limit_reached"], "flush", on="p", timeout_ms=20_000)
        outcomes = produced["outcomes"] + flushed["outcomes"]
        fates = fates_of(outcomes, 400)
        assert set(fates) == {"confirmed", "refused"}, outcomes
        assert {code for *_, fate, code in outcomes if fate == "refused"} == {"limit_reached"}, outcomes
        check_stored(sent, fates, kit.stored_bodies())
        consumer.seek("next")
        more = kit.bodies(5, name="later")
        reply = agent.finish(kit.start_sending(agent, more))
        agent.ok("flush", on="p")
        assert reply["sent"] == 5 and kit.stored_bodies()[-5:] == more.bodies


@scenario("rights taken away")
def rights_taken_away(kit):
    kit.broker()
    administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    ann = {"user_id": "ann", "password": kit.password}
    kit.control.ok("create_user", **administrator, **ann, rights=[{"topic": "t", "rights": ["produce", "consume"]}])
    producer, consumer = (kit.agent(user="ann") for _ in range(2))
    producer.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(producer, kit.bodies(10))
    consumer.ok("consume_open", **{"as": "c"}, topic="t")
    kit.receive(consumer, 10)
    kit.control.ok("revoke", **administrator, user_id="ann", topic="t", rights=["produce", "consume"])
    more = kit.bodies(1, name="late")
    producer.finish(kit.start_sending(producer, more))
    producer.fails(["unauthorized_access"], "flush", on="p")
    consumer.fails(["unauthorized_access"], "receive", on="c", count=1, timeout_ms=10_000, into=str(kit.file()))
    assert kit.stored_count() == 10


@scenario("wrong password")
def wrong_password(kit):
    broker = kit.broker()
    agent = kit.process()
    reply = agent.call("connect", uri=broker.control_uri, user="test_user", password="wrong", transport="tcp")
    if reply["ok"]:  # a client may give its password only with its first command
        agent.fails(["unauthorized_access"], "produce_open", **{"as": "p"}, topic="t")
        agent.fails(["unauthorized_access"], "consume_open", **{"as": "c"}, topic="t")
    else:
        assert reply["error"] == "unauthorized_access", reply


@scenario("no broker")
def no_broker(kit):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    agent = kit.process()
    reply = agent.call("connect", uri=f"tcp://127.0.0.1:{port}", user="u", password="p", transport="tcp")
    assert not reply["ok"] and reply["error"] in ("io_error", "timeout"), reply


@scenario("foreign certificate", needs=["tls"])
def foreign_tls(kit):
    """Another process listens at the address of the join. It must not receive the ticket."""
    kit.broker("--encrypt")
    fake = FakeBroker(lambda *_: None, foreign_certificate(kit.directory))
    kit.closing.append(fake)
    agent = kit.agent(kit.relay(lambda _: fake))
    reply = agent.call("produce_open", **{"as": "p"}, topic="t", timeout_ms=2000)
    assert not reply["ok"], reply
    until(lambda: fake.connections > 0, "a connection")
    assert fake.seen == [], "the client sent a frame to a foreign broker"


@scenario("fenced producer", needs=["epoch"])
def fenced_producer(kit):
    kit.broker()
    older, newer = kit.agent(), kit.agent()
    first, second = kit.bodies(10, name="first"), kit.bodies(10, name="second")
    identity = older.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(older, first)
    wanted = {"producer_id": identity["producer_id"], "epoch": identity["epoch"] + 1}
    opened = newer.ok("produce_open", **{"as": "p"}, topic="t", **wanted)
    assert {name: opened[name] for name in wanted} == wanted, "the agent opened another producer than asked"
    kit.send(newer, second)
    late = kit.bodies(1, name="late")
    older.finish(kit.start_sending(older, late))
    older.fails(words_for("fenced"), "flush", on="p")
    assert kit.stored_bodies() == first.bodies + second.bodies


@scenario("cursor taken over")
def cursor_taken_over(kit):
    kit.broker()
    older, newer = kit.agent(), kit.agent()
    for agent in older, newer:
        agent.ok("consume_open", **{"as": "c"}, topic="t", own=True, group="audit")
    older.fails(words_for("fenced"), "receive", on="c", count=1, timeout_ms=10_000, into=str(kit.file()))
    newer.ok("close", on="c")


@scenario("every error code")
def every_error_code(kit):
    """A client reports each code, or tries again until its time is over. Unknown codes count as internal."""
    kit.broker()
    codes = range(1, len(CODES))
    current = [0]

    def answer(op, _channel, request, _values):
        if op != "goodbye":
            return session_frames.encode("error", dict(code=current[0], sentence="as the scenario says"), request=request)
        return None

    fake = FakeBroker(answer)
    kit.closing.append(fake)
    agent = kit.agent(kit.relay(lambda _: fake))
    for number, do in [(number, do) for number in [*codes, 999] for do in ("produce_open", "consume_open")]:
        current[0] = number
        word = CODES[number] if number < len(CODES) else "internal"
        reply = agent.call(do, **{"as": f"{do}{number}"}, topic="t", timeout_ms=60 if word in AGAIN else 5000)
        assert not reply["ok"] and reply["error"] in words_for(word), (word, do, reply)


@scenario("malformed frames")
def malformed_frames(kit):
    """A peer that violates the protocol ends the connection, and not the program."""
    kit.broker()
    broken = [bytes.fromhex(vector["frame"]) for vector in session_frames.vectors()["broken"]]
    current = [b""]
    fake = FakeBroker(lambda *_: current[0])
    kit.closing.append(fake)
    agent = kit.agent(kit.relay(lambda _: fake))
    chosen = broken if kit.is_long else kit.random.sample(broken, 8)
    for number, frame in enumerate(chosen):
        current[0] = frame
        reply = agent.call("consume_open", **{"as": f"c{number}"}, topic="t", timeout_ms=100)
        assert not reply["ok"], (frame, reply)
    assert fake.connections >= len(chosen)


@scenario("topic deleted")
def topic_deleted(kit):
    kit.broker()
    agent = kit.agent()
    agent.ok("consume_open", **{"as": "c"}, topic="t")
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    kit.control.delete("t")
    agent.fails(words_for("topic_deleted"), "receive", on="c", count=1, timeout_ms=10_000, into=str(kit.file()))
    agent.finish(kit.start_sending(agent, kit.bodies(1)))
    agent.fails(words_for("topic_deleted"), "flush", on="p")
