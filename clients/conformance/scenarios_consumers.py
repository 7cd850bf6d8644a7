"""Scenarios of consumers: slow members, leases, and all ways to settle a message."""
from kit import scenario
from ledger import check_received
from support import until


def filled(kit, count, **broker):
    """Starts a broker with so many messages in its topic. Returns these."""
    kit.broker(**broker)
    sender, sent = kit.agent(), kit.bodies(count)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(sender, sent)
    sender.ok("close", on="p")
    return sent


@scenario("slow reader")
def slow_reader(kit):
    """A member that works on a message keeps no more from the others than it asked for."""
    sent, slow, quick = filled(kit, 500), kit.agent(), kit.agent()
    slow.ok("consume_open", **{"as": "c"}, topic="t", prefetch=10)
    first, body = kit.receive(slow, 1, settle=None)
    quick.ok("consume_open", **{"as": "c"}, topic="t")
    others, bodies = kit.receive(quick, 490)
    assert len(others) == 490, f"the quick member received {len(others)}"
    slow.ok("settle", on="c", offsets=[first[0]["offset"]], how="ack")
    rest, later = kit.receive(slow, 9)
    check_received(sent.bodies, first + others + rest, body + bodies + later, again=True)
    slow.ok("close", on="c")
    quick.ok("close", on="c")
    kit.until_processed(500)


@scenario("reader that stops reading")
def reader_that_stops(kit):
    """More messages wait than the connection holds. The client receives them all, later."""
    kit.broker()
    sender, agent, sent = kit.agent(), kit.agent(), kit.bodies(kit.many(40, 400), size=200_000)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    agent.ok("consume_open", **{"as": "c"}, topic="t", prefetch=1000)
    kit.receive(agent, 0, settle=None)
    kit.send(sender, sent)
    messages, bodies = kit.receive(agent, len(sent.bodies))
    check_received(sent.bodies, messages, bodies)


@scenario("revoked message", needs=["leases"])
def revoked_message(kit):
    sent, slow, other = filled(kit, 3), kit.agent(), kit.agent()
    slow.ok("consume_open", **{"as": "c"}, topic="t", prefetch=1, ack_timeout_ms=300)
    first, _ = kit.receive(slow, 1, settle=None)
    assert slow.ok("revoked", on="c", timeout_ms=20_000)["revoked"] == [first[0]["offset"]] == [0]
    other.ok("consume_open", **{"as": "c"}, topic="t", ack_timeout_ms=60_000)
    messages, bodies = kit.receive(other, 1, settle=None)
    again = messages[0]["offset"]
    # The other member has the message now. A late acknowledgement must not finish it.
    slow.ok("settle", on="c", offsets=[0], how="ack")
    slow.call("close", on="c")  # may report the late acknowledgement
    more, others = kit.receive(other, 2)
    received = messages + more
    assert sorted(message["offset"] for message in received) == [0, 1, 2], received
    assert {message["offset"]: message["delivery"] for message in received}[0] == 2, received
    check_received(sent.bodies, received, bodies + others, again=True)
    assert kit.group()["in_flight"] >= 1
    other.ok("settle", on="c", offsets=[again], how="ack")
    other.ok("close", on="c")
    kit.until_processed(3)


@scenario("release, retry and dead", needs=["dead"])
def ways_to_settle(kit):
    sent, agent = filled(kit, 3), kit.agent()
    agent.ok("consume_open", **{"as": "c"}, topic="t", prefetch=1)
    [released], _ = kit.receive(agent, 1, settle="release")
    [again], bodies = kit.receive(agent, 1, settle="retry", delay_ms=50)
    assert (released["offset"], again["offset"], again["delivery"]) == (0, 0, 1), "a release counts as a delivery"
    assert bodies == sent.bodies[:1]
    everything, _ = kit.receive(agent, 2, settle="dead", reason="not an order: ü")
    everything += kit.receive(agent, 1)[0]
    assert sorted(message["offset"] for message in everything) == [0, 1, 2], everything
    assert {message["offset"]: message["delivery"] for message in everything}[0] == 2, everything
    agent.ok("close", on="c")
    until(lambda: kit.group()["parked"] == 2, lambda: f"two dead messages: {kit.group()}")
    assert (kit.group()["failed"], kit.group()["released"], kit.group()["dead"]) == (3, 1, 2), kit.group()
    listed = kit.control.ok("list_dead", topic="t", group="default", user_id="test_user", password=kit.password)
    assert {dead["reason"] for dead in listed["messages"]} == {"not an order: ü"}, listed


@scenario("close returns what waits")
def close_returns(kit):
    """Messages that the program has not begun go to others at once, and their delivery does not count."""
    sent, first, second = filled(kit, 50), kit.agent(), kit.agent()
    first.ok("consume_open", **{"as": "c"}, topic="t", prefetch=50)
    begun, bodies = kit.receive(first, 5)
    first.ok("close", on="c")
    second.ok("consume_open", **{"as": "c"}, topic="t")
    rest, others = kit.receive(second, 45)
    check_received(sent.bodies, begun + rest, bodies + others, again=True)
    assert {message["delivery"] for message in rest} == {1}, "a delivery that nobody began was counted"
