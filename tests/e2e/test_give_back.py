"""Tests `list_dead`, `retry_dead` and `purge_dead` on a dead-letter topic: a letter goes back to the group in which it died.
The two topics are on different threads of the broker."""
import pytest

from cli_support import CommandLine
from dead_letter_support import ADMINISTRATOR, member, set_group
from session_support import fill, group_of, until_committed
from support import until

ANN = {"user_id": "ann", "password": "anns-secret"}


@pytest.fixture
def broker(make_broker):
    return make_broker("--reactors", "2")


@pytest.fixture
def command(broker):
    return CommandLine(broker)


def told(done):
    assert done.stdout == b""
    return done.stderr.decode()


def make_letters(control, session, payloads, group="billing"):
    """Lets messages of the topic "orders" die in the group."""
    first = control.stats("orders")["next_offset"]
    consumer = member(control, session, "orders", group=group)
    fill(session, "orders", payloads, size=1)
    for message in consumer.receive(len(payloads)):
        consumer.start((message.offset, message.offset + 1))
        consumer.reject_dead(message.offset, reason="no such customer")
    until_committed(control, "orders", first + len(payloads), group)
    consumer.session.close()


@pytest.fixture
def letters(control, session):
    """Two groups of the topic "orders"; three messages died in one of them."""
    control.create("orders", "file")
    control.create("dead", "file")
    set_group(control, "orders", "billing", dead_letter_topic="dead")
    other = member(control, session, "orders", group="other")
    make_letters(control, session, [b"a", b"b", b"c"])
    other.receive(3)
    other.acknowledge((0, 3))
    until_committed(control, "orders", 3, "other")
    return other


def retry(control, **more):
    return control.ok("retry_dead", topic="dead", **more, **ADMINISTRATOR)


def purge(control, **more):
    return control.ok("purge_dead", topic="dead", **more, **ADMINISTRATOR)["messages"]


def listed(control, **more):
    return control.ok("list_dead", topic="dead", **more, **ADMINISTRATOR)["messages"]


def test_a_letter_goes_back_to_its_group_alone(control, session, letters):
    first, *_ = listed(control)
    assert (first["offset"], first["state"], first["cause"], first["reason"]) == (0, "parked", "rejected", "no such customer")
    assert (first["source_topic"], first["source_group"], first["source_offset"]) == ("orders", "billing", 0)
    assert retry(control, preview=True) == {"cmd": "retry_dead", "status": "ok", "messages": 3}
    assert retry(control, offsets=[1]) == {"cmd": "retry_dead", "status": "ok", "messages": 1, "given_back": 1, "published": 0, "group_gone": 0,
                                           "topic_gone": 0, "not_allowed": 0, "failed": 0}
    billing = member(control, session, "orders", group="billing")
    message, = billing.receive(1)
    assert (message.payload, message.offset, message.delivery) == (b"b", 1, 1)
    billing.acknowledge(1)
    assert letters.is_silent(), "the other group has received it, too"
    assert [letter["offset"] for letter in listed(control)] == [0, 2]
    assert retry(control, offsets=[1])["messages"] == 0
    assert control.stats("dead")["next_offset"] == 3
    until_committed(control, "orders", 3, "billing")


def test_a_reader_of_the_letters_is_not_disturbed(control, session, letters):
    reader = member(control, session, "dead", group="reads")
    assert [letter.payload for letter in reader.receive(3)] == [b"a", b"b", b"c"]
    assert retry(control)["given_back"] == 3
    reader.acknowledge((0, 3))
    until_committed(control, "dead", 3, "reads")
    assert reader.is_silent()


def test_a_message_that_its_topic_has_dropped_is_published_anew(control, session, letters):
    control.ok("purge", topic="orders", **ADMINISTRATOR)
    assert retry(control)["published"] == 3
    for consumer in (member(control, session, "orders", group="billing"), letters):
        assert [message.payload for message in consumer.receive(3)] == [b"a", b"b", b"c"]
    assert listed(control) == []


def test_letters_wait_whose_group_or_topic_is_gone(control, session, letters):
    until(lambda: group_of(control, "orders", "billing")["consumers"] == 0, "the consumer's end")
    control.ok("delete_group", topic="orders", group="billing", **ADMINISTRATOR)
    assert retry(control)["group_gone"] == 3
    letters.session.close()
    control.delete("orders")
    assert retry(control)["topic_gone"] == 3
    assert len(listed(control)) == 3


def test_giving_back_needs_rights_on_both_topics(control, letters):
    control.ok("create_user", **ADMINISTRATOR, **ANN, rights=[{"topic": "dead", "rights": ["manage"]}])
    assert control.ok("retry_dead", topic="dead", **ANN)["not_allowed"] == 3
    control.ok("grant", **{**ADMINISTRATOR, "user_id": "ann", "topic": "orders", "rights": ["manage"]})
    assert control.ok("retry_dead", topic="dead", **ANN)["given_back"] == 3


def test_letters_are_selected_and_purged(control, letters):
    assert purge(control, ranges=[[0, 2]], cause="attempts") == 0
    assert purge(control, ranges=[[0, 2]], cause="rejected", preview=True) == 2
    assert purge(control, ranges=[[0, 2]]) == 2
    assert [letter["offset"] for letter in listed(control)] == [2]
    assert control.stats("dead")["queue_size"] == 3, "consumers of the topic find them still"


@pytest.mark.parametrize("when", ["now", "later"])
def test_a_kill_neither_doubles_nor_loses_what_was_given_back(broker, control, session, letters, when):
    assert retry(control, offsets=[0, 1])["given_back"] == 2
    if when == "later":
        billing = member(control, session, "orders", group="billing")
        assert len(billing.receive(2)) == 2
        billing.acknowledge((0, 2))
        until_committed(control, "orders", 3, "billing")
        for cmd in ("pause", "resume"):  # answered when the group is saved
            control.ok(cmd, topic="orders", group="billing", **ADMINISTRATOR)
    broker.kill()
    broker.start()
    control.connect(broker.control_uri)
    assert [letter["offset"] for letter in listed(control)] == [2]
    billing = member(control, session, "orders", group="billing")
    if when == "now":
        assert [message.payload for message in billing.receive(2)] == [b"a", b"b"]
        billing.acknowledge((0, 2))
    assert billing.is_silent()
    assert retry(control)["given_back"] == 1
    assert [message.payload for message in billing.receive(1)] == [b"c"]


def test_the_command_line_lists_shows_and_gives_back(command, control, session, letters):
    lines = command("dlq", "list", "dead").stdout.decode().splitlines()
    assert [line.split("\t")[:4] for line in lines] == [[str(offset), "parked", "rejected", "1"] for offset in range(3)]
    assert [line.split("\t")[6:] for line in lines] == [["orders", "billing", str(offset), "no such customer"] for offset in range(3)]
    record, message = command("dlq", "show", "dead", "1").stdout.decode().splitlines()
    assert record == lines[1] and message.endswith("\tb")
    assert told(command("dlq", "retry", "dead", "--preview")) == "lightq: 3 messages would be delivered again\n"
    assert told(command("dlq", "retry", "dead", "--offsets", "1")) == "lightq: 1 message given back\n"
    assert told(command("dlq", "purge", "dead", "--offsets", "0")) == "lightq: 1 message given up\n"
    control.ok("purge", topic="orders", **ADMINISTRATOR)
    assert told(command("dlq", "retry", "dead")) == \
        "lightq: 0 messages given back\nlightq: 1 message published anew: their topic no longer has them\n"
    assert command.json("dlq", "retry", "dead") == {"cmd": "retry_dead", "status": "ok", "topic": "dead", "messages": 0, "given_back": 0, "published": 0,
                                                    "group_gone": 0, "topic_gone": 0, "not_allowed": 0, "failed": 0}
    assert told(command("dlq", "list", "dead")) == "lightq: no such dead messages\n"
