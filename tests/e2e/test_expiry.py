"""Tests of messages that expire: docs/protocol.md, "Time to live", and docs/session.md, "Time to live". Their
consumers know only these documents."""
import pytest

from batch_bytes import LZ4, ZSTD, Message
from cli_support import CommandLine
from dead_letter_support import ADMINISTRATOR, check_states, member, set_group
from delayed_support import ID, schedule, scheduler
from session_client import KNOWS_EXPIRED, join
from session_frames import batch
from session_support import fill, group_of
from support import numbered, until

TTL = b"lightq-ttl-ms"


def living(payload, ttl_ms, *headers):
    return Message(payload, headers=((TTL, str(ttl_ms).encode()), *headers))


def set_topic(control, topic="t", **settings):
    assert control("set_topic", topic=topic, **settings, **ADMINISTRATOR) == {"cmd": "set_topic", "status": "ok"}


def until_expired(control, count, topic="t", group="default"):
    """Waits until so many messages have expired. Returns the group's statistics."""
    stats = until(lambda: (found := group_of(control, topic, group))["expired"] == count and found,
                  lambda: f"{count} expired messages: {group_of(control, topic, group)}")
    check_states(stats)
    return stats


@pytest.mark.parametrize("kind", ["file", "queue", "queue_file"])
def test_expired_messages_are_finished_without_consumers(control, session, kind):
    control.create("t", kind)
    control.join("t", "pull")  # makes the group `default`
    fill(session, "t", [living(b"short", 300), living(b"long", 3_600_000), living(b"short too", 300), Message(b"without")])
    before = group_of(control, "t")
    assert before["pending"] + before["expired"] == 4
    stats = until_expired(control, 2)
    assert (stats["pending"], stats["ready"], stats["lost"], stats["next_offset"]) == (2, 2, 0, 1)
    consumer = member(control, session)
    assert [message.payload for message in consumer.receive(2)] == [b"long", b"without"]
    assert consumer.is_silent()


def test_a_full_ring_of_expired_messages_lets_its_producers_go_on(control, session):
    control.create("t", "queue", ring_bytes=64 * 1024)
    control.join("t", "pull")
    producer = session("t").producer("t")
    for _ in range(3):  # three times what the ring holds
        for _ in range(8):
            producer.produce([living(b"x" * 1000, 200)] * 8)
    producer.wait_confirmed()
    until(lambda: group_of(control, "t")["pending"] == 0, "the end of the last messages")
    assert group_of(control, "t")["expired"] == 192


def test_a_topics_time_to_live_acts_on_what_is_stored(broker, control, session):
    control.create("t", "file", message_ttl_ms=3_600_000)
    control.join("t", "pull")
    fill(session, "t", numbered(0, 500))
    assert control.stats("t")["settings"]["message_ttl_ms"] == 3_600_000
    set_topic(control, message_ttl_ms=100)
    until_expired(control, 500)
    broker.restart()
    assert control.stats("t")["settings"]["message_ttl_ms"] == 100, "the change survives a restart"
    assert group_of(control, "t")["pending"] == 0
    set_topic(control, message_ttl_ms=0)
    fill(session, "t", [b"stays"])
    assert [message.payload for message in member(control, session).receive(1)] == [b"stays"]
    control.create("d", "direct")
    control.fails("not_supported", "set_topic", topic="d", message_ttl_ms=1, **ADMINISTRATOR)
    control.fails("topic_not_found", "set_topic", topic="none", message_ttl_ms=1, **ADMINISTRATOR)


def test_messages_expire_after_a_restart_as_before(broker, control, session):
    control.create("t", "file")
    control.join("t", "pull")
    fill(session, "t", [living(b"soon", 3_000), living(b"never", 3_600_000), Message(b"without")])
    broker.restart()
    # `soon` may have expired before the restart. Then the counter begins again, and does not have it.
    check_states(until(lambda: (stats := group_of(control, "t"))["pending"] == 2 and stats, "the expiry of one message"))
    broker.kill()
    broker.start()
    assert [message.payload for message in member(control, session).receive(2)] == [b"never", b"without"]


@pytest.mark.parametrize("codec", [0, LZ4, ZSTD])
def test_a_batch_with_an_invalid_time_to_live_is_refused(control, session, codec):
    control.create("t")
    producer = session("t").producer("t")
    for bad in (b"", b"0", b"01", b"-1", b"1.5", b"1s", b"315619200001", b"99999999999999999999"):
        producer.send_batch(batch([Message(b"good" * 50), Message(b"bad" * 50, headers=((TTL, bad),))], producer.id, producer.epoch,
                                  producer.next, codec=codec))
        refused = producer.take_refuse()
        assert (refused.code, "lightq-ttl-ms" in refused.values["sentence"]) == ("not_supported", True), refused
    producer.send_batch(batch([living(b"twice", 5, (TTL, b"6"))], producer.id, producer.epoch, producer.next, codec=codec))
    assert producer.take_refuse().code == "not_supported"
    producer.send_batch(batch([living(b"longest" * 50, 315_619_200_000)], producer.id, producer.epoch, producer.next, codec=codec))
    producer.next += 1
    producer.wait_confirmed()
    assert control.stats("t")["next_offset"] == 1


def test_a_message_in_flight_stays_with_its_consumer(control, session):
    control.create("t")
    consumer = member(control, session)
    fill(session, "t", [living(b"a", 2_000), living(b"b", 2_000), Message(b"c")])
    consumer.receive(3)
    consumer.start((0, 3))
    until(lambda: group_of(control, "t")["oldest_ms"] > 3500, "the time after which they would have expired")
    assert group_of(control, "t")["in_flight"] == 3
    consumer.acknowledge(0)
    consumer.reject((1, 3))
    again, = consumer.receive(1)
    assert (again.payload, again.delivery) == (b"c", 2)
    stats = until_expired(control, 1)
    assert (stats["acknowledged"], stats["failed"]) == (1, 2)


def test_expired_messages_become_dead_letters(broker, control, session):
    control.create("t", "file")
    control.create("dead", "file")
    control.join("t", "pull")
    control.fails("invalid_request", "set_group", topic="t", group="default", dead_letter_expired=True, **ADMINISTRATOR)
    set_group(control, dead_letter_topic="dead", dead_letter_expired=True)
    control.fails("invalid_request", "set_group", topic="t", group="default", dead_letter_topic="", **ADMINISTRATOR)
    fill(session, "t", [Message(b"lives"), living(b"dies", 200, (b"kind", b"json")), Message(b"lives too")])
    until(lambda: control.stats("dead")["next_offset"] == 1, "the letter")
    consumer = member(control, session, "dead")
    letter, = consumer.receive(1)
    headers = dict(letter.said.headers)
    assert (letter.payload, headers[b"kind"], headers[TTL]) == (b"dies", b"json", b"200"), "nothing of the message is lost"
    assert (headers[b"lightq-dead-cause"], headers[b"lightq-dead-offset"], headers[b"lightq-dead-attempts"]) == (b"expired", b"1", b"0")
    consumer.session.close()
    broker.restart()
    control.join("dead", "pull")
    assert group_of(control, "dead")["pending"] == 1, "a letter does not expire by its own header"
    stats = group_of(control, "t")
    assert (stats["pending"], stats["dead_waiting"], stats["ready"]) == (2, 0, 2)
    assert stats["settings"]["dead_letter_expired"] is True
    assert [message.payload for message in member(control, session).receive(2)] == [b"lives", b"lives too"]


def test_a_letter_that_is_published_anew_does_not_expire_again(broker, control, session):
    control.create("t", "queue")
    control.create("dead", "file")
    control.join("t", "pull")
    set_group(control, dead_letter_topic="dead", dead_letter_expired=True)
    fill(session, "t", [living(b"m", 1, (b"kind", b"json"))])
    until(lambda: control.stats("dead")["next_offset"] == 1 and group_of(control, "t")["pending"] == 0, "the letter")
    CommandLine(broker)("dlq", "retry", "dead")
    message, = member(control, session).receive(1)
    assert (message.payload, message.said.headers) == (b"m", ((b"kind", b"json"),))


def test_reads_show_expired_messages_until_they_are_removed(control, session):
    control.create("t", "file")
    fill(session, "t", [Message(b"a"), living(b"b", 50), living(b"c", 50), Message(b"d")])
    ticket = join(control, "t", "pull")
    reader = session(ticket, codecs=KNOWS_EXPIRED)

    def seen():
        messages, _ = reader.read("t")
        return [(message.payload, message.expired) for message in messages]
    until(lambda: seen() == [(b"a", False), (b"b", True), (b"c", True), (b"d", False)], seen)
    older = session(ticket)
    messages, end = older.read("t")
    assert ([message.payload for message in messages], end) == ([b"a", b"b", b"c", b"d"], 4)
    assert not any(message.expired for message in messages), "a client that does not know the flag does not see it"


def test_a_subscriber_receives_no_expired_message(control, session):
    control.create("t", "queue")
    own = member(control, session, mode=2, group="mine", credit=(0, 0))
    fill(session, "t", [living(b"a", 100), Message(b"b")])
    until_expired(control, 1, group="mine")
    own.give(10, 1000)
    assert [message.payload for message in own.receive(1)] == [b"b"]


# --- The command line. ---

def test_the_command_line_sets_times_to_live(broker, control):
    command = CommandLine(broker)
    command("topic", "create", "made", "--message-ttl", "1h")
    assert command.stats("made")["settings"]["message_ttl_ms"] == 3_600_000
    control.create("t", "file")
    control.create("dead")
    control.join("t", "pull")
    command("produce", "t", "--ttl", "200ms", stdin=b"one\ntwo\n")
    command("produce", "t", stdin=b"three\n")
    until_expired(control, 2)
    assert b"expired 2" in command("stats", "t").stdout
    peeked = command("peek", "t")
    assert b"one" in peeked.stdout and peeked.stderr == b"lightq: 2 messages of them have expired\n"
    assert command("topic", "set", "t", "--message-ttl", "100ms").stderr == b"lightq: topic 't' has new settings\n"
    until_expired(control, 3)
    assert command.json("topic", "set", "t", "--message-ttl", "0") == {"cmd": "set_topic", "status": "ok", "topic": "t"}
    assert control.stats("t")["settings"]["message_ttl_ms"] == 0
    command("group", "set", "t", "default", "--dead-letter-topic", "dead", "--dead-letter-expired")
    assert group_of(control, "t")["settings"]["dead_letter_expired"] is True
    command("produce", "t", "--ttl", "100ms", stdin=b"four\n")
    until(lambda: control.stats("dead")["next_offset"] == 1, "the letter")
    assert b"expired" in command("dlq", "list", "dead").stdout
    command("group", "set", "t", "default", "--no-dead-letter-expired")
    assert group_of(control, "t")["settings"]["dead_letter_expired"] is False


@pytest.mark.parametrize("arguments, says", [
    (["produce", "t", "--ttl", "0"], "'0' is not a TIME"), (["produce", "t", "--ttl", "3654d"], "is not a TIME"),
    (["produce", "t", "--ttl", "1m", "--plain"], "--plain: does not work with keys, headers, --ttl or compression"),
    (["topic", "set", "t"], "give at least one setting to change"), (["topic", "set", "t", "--message-ttl", "long"], "'long' is not a TIME"),
    (["produce", "t", "--ttl", "1m", "--header", "lightq-ttl-ms=5"], "a message has only one ttl"),
])
def test_wrong_usage_is_explained(broker, arguments, says):
    done = CommandLine(broker)(*arguments, code=2)
    assert says in done.stderr.decode(), done.stderr


@pytest.mark.parametrize("kind", ["file", "queue", "queue_file"])
def test_the_time_to_live_of_a_delayed_message_counts_from_its_due_time(control, session, kind):
    control.create("t", kind)
    control.join("t", "pull")
    schedule(session, [Message(b"short", headers=((ID, b"7"), (TTL, b"300")), due=-1_000_000),
                       Message(b"long", headers=((TTL, b"3600000"), (ID, b"8")), due=-1_000_000)])
    until(lambda: control.stats("t")["next_offset"] == 2, "the due time")
    stats = until_expired(control, 1)
    assert (stats["pending"], stats["lost"]) == (1, 0)
    message, = member(control, session).receive(1)
    assert (message.payload, message.said.headers) == (b"long", ((TTL, b"3600000"), (ID, b"8")))


@pytest.mark.parametrize("codec", [0, LZ4])
def test_the_schedule_refuses_a_wrong_time_to_live(control, session, codec):
    control.create("t", "file")
    producer = scheduler(session)
    producer.send_batch(batch([Message(b"x", headers=((TTL, b"0"),), due=-1)], producer.id, producer.epoch, 0, codec=codec))
    refused = producer.take_refuse()
    assert (refused.code, "lightq-ttl-ms" in refused.values["sentence"]) == ("not_supported", True), refused
