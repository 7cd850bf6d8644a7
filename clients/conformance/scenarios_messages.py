"""Scenarios without interruptions: sizes, attributes, order, positions and transports."""
from kit import ALL, scenario
from ledger import check_received
from session_client import Session, join
from support import until


def through(kit, agent, sent, check_order=True, **members):
    """Sends messages to a topic and consumes them again, with one agent."""
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(agent, sent, **members)
    stored = kit.stored_bodies()
    assert stored == sent.bodies, "other bytes, order or number of messages are stored"
    agent.ok("consume_open", **{"as": "c"}, topic="t")
    messages, bodies = kit.receive(agent, len(sent.bodies))
    check_received(stored, messages, bodies, again=not check_order)
    agent.ok("close", on="c")
    kit.until_processed(len(stored))
    agent.ok("close", on="p")
    return messages


@scenario("many small messages")
def many_small_messages(kit):
    kit.broker()
    through(kit, kit.agent(), kit.bodies(kit.many(10_000, 100_000)))


@scenario("messages of 0 B to 16 MiB")
def large_messages(kit):
    kit.broker()
    through(kit, kit.agent(), kit.bodies(sizes=[1 << 24, 0, 1, 1 << 20, 65536, 17]))


@scenario("topic in memory")
def topic_in_memory(kit):
    kit.broker(broker_type="queue")
    through(kit, kit.agent(), kit.bodies(1000))


@scenario("keys and headers", needs=["keys"])
def keys_and_headers(kit):
    kit.broker()
    headers = [["content-type", "text/plain"], ["empty", ""], ["empty", "twice: ü"]]
    messages = through(kit, kit.agent(), kit.bodies(50), keys=["tea", "schön", ""], headers=headers)
    assert [message.get("key", "") for message in messages[:3]] == ["tea", "schön", ""], messages[:3]
    assert all(message["headers"] == headers for message in messages), messages[0]
    said = kit.stored()[1].said
    assert said.key == "schön".encode()
    assert said.headers == tuple((name.encode(), value.encode()) for name, value in headers)


@scenario("Unix socket", needs=["ipc"])
def unix_socket(kit):
    kit.broker()
    through(kit, kit.agent(transport="ipc"), kit.bodies(1000))


@scenario("TLS", needs=["tls"])
def tls(kit):
    kit.broker("--encrypt")
    through(kit, kit.agent(), kit.bodies(sizes=[100] * 1000 + [1 << 20]))


@scenario("two members of a group")
def two_members(kit):
    kit.broker()
    sent, sender, members = kit.bodies(400), kit.agent(), [kit.agent(), kit.agent()]
    for member in members:
        member.ok("consume_open", **{"as": "c"}, topic="t", group="billing", prefetch=20)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    files = [kit.file() for _ in members]
    numbers = [member.start("receive", on="c", count=ALL, timeout_ms=500, into=str(file), settle="ack")
               for member, file in zip(members, files)]
    kit.send(sender, sent)
    for member, number in zip(members, numbers):
        assert member.finish(number)["ok"]
    for member, file in zip(members, files):
        member.ok("receive", on="c", count=ALL, timeout_ms=500, into=str(file), settle="ack")
    assert all(member.messages for member in members), "a member received nothing"
    for member in members:
        member.ok("close", on="c")
    offsets = sorted(message["offset"] for member in members for message in member.messages)
    assert offsets == list(range(400)), "not each message went to one member"
    kit.until_processed(400, "billing")


@scenario("own cursor, seek and read", needs=["seek", "read"])
def positions(kit):
    kit.broker()
    agent, sent = kit.agent(), kit.bodies(100)
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(agent, sent)
    agent.ok("consume_open", **{"as": "c"}, topic="t", own=True, **{"from": 90})
    messages, _ = kit.receive(agent, 10)
    assert [message["offset"] for message in messages] == list(range(90, 100))
    assert agent.ok("seek", on="c", to=50)["offset"] == 50
    messages, bodies = kit.receive(agent, 20)
    assert [message["offset"] for message in messages] == list(range(50, 70)) and bodies == sent.bodies[50:70]
    agent.ok("close", on="c")
    file, before = kit.file(), len(agent.messages)
    assert agent.ok("read", topic="t", begin=10, end=30, into=str(file))["next"] == 30
    assert [message["offset"] for message in agent.messages[before:]] == list(range(10, 30))
    assert file.read_bytes() == b"".join(sent.bodies[10:30])
    assert not kit.control.stats("t")["groups"], "a read or a cursor without a name left something"


@scenario("delayed messages", needs=["delayed"])
def delayed_messages(kit):
    kit.broker()
    agent, sent = kit.agent(), kit.bodies(5)
    agent.ok("produce_open", **{"as": "p"}, topic="t", delayed=True)
    number = kit.start_sending(agent, sent, delay_ms=3_600_000)
    kit.finish_sending(agent, number, sent)
    assert kit.control.stats("t")["delayed"]["messages"] == 5 and not kit.stored()
    kit.control.ok("hurry_delayed", topic="t", user_id="test_user", password=kit.password, all=True)
    until(lambda: kit.stored_count() == 5, "the messages that are due now")
    assert kit.stored_bodies() == sent.bodies


@scenario("time to live", needs=["ttl"])
def time_to_live(kit):
    kit.broker()
    agent, gone, kept = kit.agent(), kit.bodies(3, name="gone"), kit.bodies(3, name="kept")
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    number = kit.start_sending(agent, gone, ttl_ms=1)
    assert agent.finish(number)["sent"] == 3
    agent.ok("flush", on="p")
    with Session(join(kit.control, "t", "pull"), codecs=1 << 26) as session:
        until(lambda: all(message.expired for message in session.read("t")[0]), "the end of three messages")
    number = kit.start_sending(agent, kept, ttl_ms=3_600_000)
    assert agent.finish(number)["sent"] == 3
    agent.ok("flush", on="p")
    agent.ok("consume_open", **{"as": "c"}, topic="t")
    _, bodies = kit.receive(agent, 3)
    assert bodies == kept.bodies


@scenario("control commands", needs=["control"])
def control_commands(kit):
    kit.broker(topic=None)
    agent, sent = kit.administrator(), kit.bodies(10)
    agent.ok("create_topic", topic="made", broker_type="file")
    agent.fails(["topic_already_exists"], "create_topic", topic="made", broker_type="file")
    agent.fails(["invalid_request", "invalid_argument"], "create_topic", topic="no name", broker_type="file")
    agent.ok("produce_open", **{"as": "p"}, topic="made")
    kit.send(agent, sent)
    assert agent.ok("stats", topic="made")["messages_received"] == 10
    agent.ok("close", on="p")
    agent.ok("delete_topic", topic="made")
    agent.fails(["topic_not_found"], "stats", topic="made")
    agent.fails(["topic_not_found"], "produce_open", **{"as": "q"}, topic="made")
