"""Scenarios in which broker, network or client end at a random moment. Nothing may be lost, and no producer's
message may be stored twice."""
from kit import ALL, scenario
from ledger import bodies_of, check_received, check_stored
from relay import CuttingProxy
from support import DEADLINE, until


def until_stored(kit, count):
    until(lambda: kit.stored_count() >= count, lambda: f"{count} stored messages, at {kit.stored_count()}")


def produce_through(kit, interrupt, times, count, via=None):
    """Sends messages and interrupts so many times, each at a random number of stored messages."""
    agent, sent = kit.agent(via), kit.bodies(count)
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    sending, flushing = kit.start_sending(agent, sent), agent.start("flush", on="p", timeout_ms=50_000)
    for at in sorted(kit.random.sample(range(count), times)):
        until_stored(kit, at)
        interrupt()
    fates = kit.finish_sending(agent, sending, sent, flushing=flushing)
    check_stored(sent, fates, kit.stored_bodies())
    agent.ok("close", on="p")


def consume_through(kit, interrupt, times, count, via=None):
    """Consumes messages and interrupts so many times, each at a random number of received messages."""
    sender, agent, sent = kit.agent(), kit.agent(via), kit.bodies(count)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(sender, sent)
    agent.ok("consume_open", **{"as": "c"}, topic="t")
    file = kit.file()
    receive = {"on": "c", "count": ALL, "timeout_ms": 500, "into": str(file), "settle": "ack"}
    number = agent.start("receive", **receive)
    for at in sorted(kit.random.sample(range(count), times)):
        agent.until_messages(at)
        interrupt()
    assert agent.finish(number)["ok"]
    until(lambda: agent.ok("receive", **receive) and kit.group()["committed_offset"] == count,
          lambda: f"the group's end: {kit.group()}")
    agent.call("close", on="c")
    check_received(sent.bodies, agent.messages, bodies_of(agent.messages, file), again=True)
    kit.until_processed(count)


@scenario("broker killed while producing")
def broker_killed_while_producing(kit):
    kit.broker()
    produce_through(kit, kit.crash_broker, kit.many(2, 10), kit.many(20_000, 100_000))


@scenario("broker killed while consuming")
def broker_killed_while_consuming(kit):
    kit.broker()
    consume_through(kit, kit.crash_broker, kit.many(1, 5), kit.many(3_000, 30_000))


@scenario("broker restarted while producing")
def broker_restarted(kit):
    broker = kit.broker()
    produce_through(kit, broker.restart, kit.many(1, 5), kit.many(10_000, 50_000))


@scenario("connections cut while producing")
def connections_cut_while_producing(kit):
    kit.broker()
    count = kit.many(3_000, 50_000)
    relay = kit.relay(lambda uri: CuttingProxy(uri, cut_after=lambda: kit.random.randrange(40_000, 200_000)))
    produce_through(kit, lambda: relay.each(CuttingProxy.cut), kit.many(2, 10), count, relay)
    assert sum(proxy.cuts for proxy in relay.proxies.values()) > kit.many(2, 10)


@scenario("connections cut while consuming")
def connections_cut_while_consuming(kit):
    kit.broker()
    relay = kit.relay(lambda uri: CuttingProxy(uri, cut_after=lambda: kit.random.randrange(20_000, 200_000)))
    consume_through(kit, lambda: relay.each(CuttingProxy.cut), kit.many(1, 5), kit.many(2_000, 20_000), relay)
    assert sum(proxy.cuts for proxy in relay.proxies.values()) > 1


@scenario("slow network")
def slow_network(kit):
    kit.broker()
    relay, sent = kit.relay(lambda uri: CuttingProxy(uri, delay=0.02)), kit.bodies(500)
    agent = kit.agent(relay)
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(agent, sent)
    agent.ok("consume_open", **{"as": "c"}, topic="t")
    messages, bodies = kit.receive(agent, 500)
    check_received(sent.bodies, messages, bodies)


@scenario("batches sent again")
def batches_sent_again(kit):
    """The broker has stored messages, but its confirms are lost with the connection."""
    kit.broker()
    relay, sent = kit.relay(), kit.bodies(20)
    agent = kit.agent(relay)
    agent.ok("produce_open", **{"as": "p"}, topic="t")
    relay.each(lambda proxy: setattr(proxy, "is_holding", True))
    number = kit.start_sending(agent, sent)
    assert agent.finish(number)["sent"] == 20
    flushing = agent.start("flush", on="p", timeout_ms=DEADLINE * 1000)
    until_stored(kit, 1)
    relay.each(lambda proxy: (setattr(proxy, "is_holding", False), proxy.cut()))
    reply = agent.finish(flushing)
    assert reply["ok"], reply
    assert kit.stored_bodies() == sent.bodies
    # The client asks where to continue, and may therefore leave out batches that are stored.
    assert kit.stored_count() == 20


@scenario("client killed while consuming")
def client_killed(kit):
    kit.broker()
    sender, killed, other, sent = kit.agent(), kit.agent(), kit.agent(), kit.bodies(100)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(sender, sent)
    killed.ok("consume_open", **{"as": "c"}, topic="t", prefetch=30)
    first, bodies = kit.receive(killed, 10, settle=None)
    killed.kill()
    other.ok("consume_open", **{"as": "c"}, topic="t")
    again, others = kit.receive(other, 100)
    check_received(sent.bodies, first + again, bodies + others, again=True)
    deliveries = {message["offset"]: message["delivery"] for message in again}
    assert len(deliveries) == 100 and deliveries[0] == 2 and deliveries[99] == 1, deliveries


@scenario("client stopped for a while", needs=["leases"], is_long=True)
def client_stopped(kit):
    """A process that is stopped keeps the message that it has begun. Other messages go to others."""
    kit.broker()
    sender, stopped, other, sent = kit.agent(), kit.agent(), kit.agent(), kit.bodies(20)
    sender.ok("produce_open", **{"as": "p"}, topic="t")
    kit.send(sender, sent)
    stopped.ok("consume_open", **{"as": "c"}, topic="t", prefetch=10)
    kit.receive(stopped, 1, settle=None)
    stopped.stop()
    other.ok("consume_open", **{"as": "c"}, topic="t")
    messages, _ = kit.receive(other, 19, timeout_ms=90_000)
    assert sorted(message["offset"] for message in messages) == list(range(1, 20))
    stopped.resume()
    stopped.ok("settle", on="c", offsets=[0], how="ack")
    stopped.ok("close", on="c")
    other.ok("close", on="c")
    kit.until_processed(20)
