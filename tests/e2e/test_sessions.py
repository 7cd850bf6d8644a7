"""Tests producing over sessions, with a client that knows only docs/session.md and a real broker."""
import time

import pytest
import zmq

from session_client import FLUSHED, RECEIVED, Session, Ticket, everything, hello_values, join
from support import number_of, numbered, receive, silent, until

pytestmark = pytest.mark.one_broker

KIB = 1024
DURABLE = ["file", "queue_file"]


def open_group(broker, control, topic):
    """Makes a group that exists without a consumer, so that the log keeps its messages. Returns the address
    at which its puller may connect again."""
    uri = control.join(topic, "pull")
    consumer = broker.socket(zmq.PULL, uri)
    until(lambda: control.stats(topic)["subscribers_count"] == 1, "the puller's handshake")
    consumer.close()
    until(lambda: control.stats(topic)["subscribers_count"] == 0, "the puller's end")
    return uri


# --- Beginning and end ---


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_hello_is_answered_with_the_brokers_values(control, session, transport):
    control.create("t")
    first = session(join(control, "t", transport=transport), name="billing-7")
    second = session(join(control, "t", transport=transport))
    assert first.welcome["frame_bytes_max"] >= 64 * KIB
    assert first.welcome["broker"] == second.welcome["broker"]
    assert first.welcome["session"] != second.welcome["session"]


def test_the_brokers_number_changes_with_its_start(broker, control, session):
    control.create("t", "file")
    before = session("t").welcome["broker"]
    broker.restart()
    assert session("t").welcome["broker"] != before


def test_the_newest_common_version_is_used(control, session):
    control.create("t")
    assert session("t", newest_version=9).welcome["version"] == 1


def test_a_client_of_another_version_receives_unsupported_version(control, session):
    control.create("t")
    ticket = join(control, "t")
    late = session(ticket, hello=False)
    answer = late.request("hello", **hello_values(oldest_version=2, newest_version=9, ticket=ticket.text))
    assert answer.op == "error" and answer.code == "unsupported_version"
    assert "1" in answer.values["sentence"], "the sentence names the broker's own"
    assert late.goodbye() == "unsupported_version"


def test_a_silent_connection_is_closed_after_a_second(control, session):
    control.create("t")
    mute = session("t", hello=False)
    began = time.monotonic()
    mute.wait(lambda: mute.frames or mute.has_ended, "to be turned away")
    assert time.monotonic() - began > 0.5
    mute.wait(lambda: mute.has_ended, "the end of the stream")
    assert {frame.op for frame in mute.frames} <= {"goodbye"}


def test_half_a_hello_is_no_hello(control, session):
    control.create("t")
    slow = session("t", hello=False)
    slow.send_raw(b"\x01\0\0\0\0\0\0\0\1\0\0\0")
    slow.wait(lambda: slow.has_ended, "the end of the stream")


def test_the_broker_sends_heartbeats_as_often_as_the_client_requests(control, session):
    control.create("t")
    quiet = session("t", heartbeat_ms=100)
    began = time.monotonic()
    quiet.wait(lambda: quiet.heartbeats >= 10, "ten heartbeats")
    assert time.monotonic() - began > 0.2, "one for each half of the time that was asked for"
    silent_one = session("t", heartbeat_ms=0)
    assert silent_one.is_silent(0.3) and silent_one.heartbeats == 0


def test_a_client_that_sends_nothing_for_twice_the_heartbeat_is_closed(make_broker):
    broker = make_broker("--session-heartbeat-ms", "200")
    control = broker.control()
    control.create("t")
    ticket = join(control, "t")
    with Session(ticket) as mute, Session(ticket) as alive:
        assert mute.welcome["heartbeat_ms"] == 200
        alive_until = time.monotonic() + 1.5
        while time.monotonic() < alive_until:
            alive.send("heartbeat")
            alive.read_some(0.05)
        assert mute.goodbye() == "idle"
        producer = alive.producer("t")
        producer.produce([b"still here"])
        producer.wait_confirmed()


def test_goodbye_is_answered_behind_the_confirms_of_all_that_was_sent(broker, control, session):
    control.create("t", "file")
    leaving = session("t")
    producer = leaving.producer("t")
    messages = numbered(0, 500, 100)
    for first in range(0, 500, 10):
        producer.produce(messages[first:first + 10])
    leaving.send("goodbye", code=0, sentence="")
    assert leaving.goodbye() == "ok"
    assert producer.confirmed == 500
    assert everything(broker, control, "t", 500) == messages


def test_a_clean_stop_confirms_received_messages_and_sends_goodbye(broker, control, session):
    control.create("t", "file")
    last = session("t")
    producer = last.producer("t", level=RECEIVED)
    producer.produce([b"before the end"])
    producer.wait_confirmed()
    broker.stop()
    assert last.goodbye() == "shutting_down"
    broker.start()
    assert everything(broker, control, "t", 1) == [b"before the end"]


def test_close_ends_a_channel_and_not_the_session(broker, control, session):
    control.create("t")
    one = session("t")
    first, second = one.producer("t"), one.producer("t")
    assert first.channel != second.channel and first.id != second.id
    first.produce([b"of the first"])
    answer = first.close()
    assert (answer.op, answer.values) == ("done", {"value": 0})
    one.wait(lambda: first.confirmed == 1, "the confirm: what was sent before is treated as ever")
    first.produce([b"behind close"])  # ignored
    second.produce([b"of the second"])
    second.wait_confirmed()
    assert everything(broker, control, "t", 2) == [b"of the first", b"of the second"]
    assert one.request("close", channel=4711).code == "unknown_channel"


# --- Permissions ---


def test_a_ticket_permits_its_topic_and_its_role(control, session):
    control.create("mine")
    control.create("other")
    one = session("mine")
    for topic in ("other", "nowhere"):
        fields = dict(producer_id=0, producer_epoch=0, level=0, topic=topic)
        assert one.error_of("produce_open", **fields) == "unauthorized_access"
    one.producer("mine")


@pytest.mark.parametrize("spoil", [
    lambda text: "", lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"), lambda text: text.split(".")[0] + ".",
    lambda text: "999999." + text.split(".")[1], lambda text: text * 3, lambda text: "\x00.\x00",
], ids=["none", "another secret", "no secret", "another id", "too much", "rubbish"])
def test_a_wrong_ticket_permits_nothing(control, session, spoil):
    control.create("t")
    ticket = join(control, "t")
    stranger = session(ticket._replace(text=""), hello=False)
    answer = stranger.request("hello", **hello_values(ticket=spoil(ticket.text)))
    if answer.op == "welcome":  # the ticket is checked here at the latest
        answer = stranger.request("produce_open", producer_id=0, producer_epoch=0, level=0, topic="t")
    assert answer.op == "error" and answer.code == "unauthorized_access", answer
    assert control.stats("t")["messages_received"] == 0


def test_one_session_serves_two_topics_with_a_ticket_for_each(broker, control, session):
    control.create("a")
    control.create("b", "file")
    one, ticket = session("a"), join(control, "b")
    assert one.present(Ticket("", ticket.text + "0")).code == "unauthorized_access"
    answer = one.present(ticket)
    assert (answer.op, answer.values) == ("done", {"value": 0})
    assert one.present(ticket).op == "done", "again does no harm"
    producers = {topic: one.producer(topic) for topic in ("a", "b")}
    for index in range(100):
        for topic, producer in producers.items():
            producer.produce([f"{topic} {index}".encode()])
    for topic, producer in producers.items():
        producer.wait_confirmed()
        assert everything(broker, control, topic, 100) == [f"{topic} {index}".encode() for index in range(100)]


def test_a_deleted_topic_closes_its_channels(control, session):
    control.create("t")
    control.create("stays")
    one = session("stays")
    one.present(join(control, "t"))
    gone, stays = one.producer("t"), one.producer("stays")
    control.delete("t")
    assert gone.take_error().code == "topic_deleted"
    stays.produce([b"on"])
    stays.wait_confirmed()


@pytest.mark.parametrize("ended_how", ["deleted", "never there"])
def test_a_ticket_of_an_unknown_topic_is_refused_like_a_wrong_one(control, session, ended_how):
    control.create("t")
    control.create("stays")
    late = join(control, "t")
    wrong = late._replace(text=late.text[:-5] + ("A" if late.text[-5] != "A" else "B") + late.text[-4:])
    control.delete("t")
    if ended_how == "never there":
        control.create("t")  # another topic of the same name

    def hello(ticket):
        with Session(ticket, hello=False) as refused:
            answer = refused.request("hello", **hello_values(ticket=ticket.text))
            return answer.op, answer.values, refused.goodbye()

    assert hello(late) == hello(wrong)
    assert hello(late)[2] == "unauthorized_access"
    one = session("stays")
    answer = one.request("present", ticket=late.text)
    assert answer.op == "error" and answer.code == "unauthorized_access", "nor is it taken later"


# --- Producing ---


@pytest.mark.parametrize("broker_type, level, meant", [
    ("queue", 0, RECEIVED), ("queue", RECEIVED, RECEIVED), ("file", 0, FLUSHED), ("file", RECEIVED, RECEIVED),
    ("file", FLUSHED, FLUSHED), ("queue_file", 0, FLUSHED), ("queue_file", RECEIVED, RECEIVED)])
def test_confirmed_messages_are_stored_in_order(broker, control, session, broker_type, level, meant):
    control.create("t", broker_type)
    producer = session("t").producer("t", level=level)
    assert producer.level == meant and producer.next == 0
    messages = [b"", b"\0" * 3, *numbered(2, 997, 64), b"x" * 100_000]
    for first in range(0, 1000, 25):
        producer.produce(messages[first:first + 25])
    producer.wait_confirmed()
    assert producer.received == producer.next_offset == 1000
    assert 1 <= producer.confirms <= 40, "at most one for each batch"
    stats = control.stats("t")
    assert stats["messages_received"] == 1000 and stats["next_offset"] == 1000
    assert stats["durable_offset"] >= producer.flushed
    assert everything(broker, control, "t", 1000) == messages


def test_a_topic_in_memory_never_confirms_flushed(control, session):
    control.create("t")
    one = session("t")
    assert one.error_of("produce_open", producer_id=0, producer_epoch=0, level=FLUSHED, topic="t") == "not_supported"
    producer = one.producer("t")
    producer.produce([b"m"], flush=True)
    producer.wait_confirmed()
    assert producer.flushed == 0


@pytest.mark.parametrize("broker_type", DURABLE)
def test_flushed_does_not_wait_for_the_flush_interval(make_broker, broker_type):
    broker = make_broker("--flush-interval-ms", "3600000")
    control = broker.control()
    control.create("t", broker_type)
    with Session(join(control, "t")) as one:
        producer = one.producer("t", level=FLUSHED)
        for index in range(20):
            producer.produce([b"%d" % index])
            producer.wait_confirmed()
        assert control.stats("t")["durable_offset"] == 20
        asking = one.producer("t", level=RECEIVED)
        asking.produce([b"soon on disk"], flush=True)
        until(lambda: control.stats("t")["durable_offset"] == 21, "the flush that was asked for")


def test_many_producers_share_a_session_and_a_topic(broker, control, session):
    control.create("t", "file")
    one = session("t")
    producers = [one.producer("t") for _ in range(8)]
    for index in range(50):
        for number, producer in enumerate(producers):
            producer.produce([b"%d %d" % (number, index)])
    for producer in producers:
        producer.wait_confirmed()
    messages = everything(broker, control, "t", 400)
    for number in range(8):
        assert [m for m in messages if m.startswith(b"%d " % number)] == [b"%d %d" % (number, i) for i in range(50)]


# --- Sending again ---


@pytest.mark.parametrize("broker_type", ["queue", "file", "queue_file"])
def test_a_batch_that_was_confirmed_is_confirmed_again_and_stored_once(broker, control, session, broker_type):
    control.create("t", broker_type)
    first = session("t").producer("t")
    batches = [numbered(0, 10), numbered(10, 1), numbered(11, 5)]
    for batch in batches:
        first.produce(batch)
    first.wait_confirmed()
    first.session.close()
    again = session("t").producer("t", first.id, first.epoch)
    assert (again.id, again.epoch, again.next) == (first.id, first.epoch, 16)
    again.next = 0
    for batch in batches:
        again.produce(batch)
    again.produce([b"16|new"])
    again.wait_confirmed()
    assert control.stats("t")["next_offset"] == 17
    assert everything(broker, control, "t", 17) == numbered(0, 16) + [b"16|new"]


@pytest.mark.parametrize("begin", [4, 6, 1 << 40], ids=["overlaps", "leaves a gap", "leaves a large gap"])
def test_a_batch_out_of_sequence_and_its_successors_are_refused(broker, control, session, begin):
    control.create("t")
    producer = session("t").producer("t")
    producer.produce(numbered(0, 5))
    producer.wait_confirmed()
    producer.produce(numbered(begin, 2), sequence=begin)
    refuse = producer.take_refuse()
    assert refuse.code == "out_of_sequence"
    assert [refuse.values[name] for name in ("begin", "end", "expected")] == [begin, begin + 2, 5]
    producer.produce(numbered(7, 2), sequence=7)  # sent behind the refused one, and dropped without an answer
    producer.produce(numbered(5, 3), sequence=5)
    producer.wait_confirmed()
    assert producer.next == 8 and producer.session.is_silent()
    assert everything(broker, control, "t", 8) == numbered(0, 8)


def test_a_higher_epoch_takes_the_id_over(broker, control, session):
    control.create("t")
    old = session("t").producer("t")
    old.produce([b"of the old"])
    old.wait_confirmed()
    new = session("t").producer("t", old.id, old.epoch + 1)
    assert (new.id, new.epoch, new.next) == (old.id, old.epoch + 1, 1)
    assert old.take_error().code == "fenced"
    old.produce([b"too late"])
    new.produce([b"of the new"])
    new.wait_confirmed()
    late = session("t")
    assert late.error_of("produce_open", producer_id=old.id, producer_epoch=old.epoch, level=0, topic="t") == "fenced"
    assert everything(broker, control, "t", 2) == [b"of the old", b"of the new"]


def test_an_unknown_producer_id_is_refused(control, session):
    control.create("t")
    control.create("other")
    elsewhere = session("other").producer("other")
    one = session("t")
    for number in (1, elsewhere.id ^ 1, (1 << 64) - 1):
        fields = dict(producer_id=number, producer_epoch=0, level=0, topic="t")
        assert one.error_of("produce_open", **fields) == "unknown_producer"


# --- Refusals ---


def flipped(batch, at):
    return batch[:at] + bytes([batch[at] ^ 4]) + batch[at + 1:]


def test_a_damaged_batch_is_refused_and_a_sound_copy_is_accepted(broker, control, session):
    control.create("t", "file")
    producer = session("t").producer("t")
    producer.produce([b"first"])
    good = producer.batch([b"damaged", b"on the way"], 1)
    for at in (len(good) - 1, 64, 70):  # a payload, a length, a payload
        producer.send_batch(flipped(good, at))
        producer.send_batch(producer.batch([b"behind it"], 3))
        refuse = producer.take_refuse()
        assert refuse.code == "corrupt" and refuse.values["expected"] == 1
    producer.send_batch(good)
    producer.wait_confirmed(3)
    assert everything(broker, control, "t", 3) == [b"first", b"damaged", b"on the way"]


@pytest.mark.parametrize("at", [12, 32, 40, 47, 48], ids=["count", "id", "sequence", "its end", "epoch"])
def test_damage_in_a_batch_s_header_is_reported_like_any_other(control, session, at):
    """This also holds behind a refusal, where a batch that is not the expected one is dropped without an
    answer."""
    control.create("t")
    producer = session("t").producer("t")
    good = producer.batch([b"m"], 0)
    high = 255 if at == 47 else good[at] ^ 4
    damaged = good[:at] + bytes([high]) + good[at + 1:]
    for _ in range(2):
        producer.send_batch(damaged)
        refuse = producer.take_refuse()
        assert (refuse.code, refuse.values["expected"]) == ("corrupt", 0)
        assert refuse.values["begin"] == 0 < refuse.values["end"]
    producer.send_batch(good)
    producer.wait_confirmed(1)


def test_a_message_or_batch_that_is_too_large_is_refused(make_broker):
    broker = make_broker("--message-bytes-max", "100000")
    control = broker.control()
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        assert producer.opened["message_bytes_max"] == 100_000
        producer.produce([b"a", b"x" * 100_001, b"b"])
        refuse = producer.take_refuse()
        assert refuse.code == "too_large" and refuse.values["expected"] == 0
        producer.produce([b"x" * 100_000], sequence=0)
        producer.wait_confirmed(1)
        count = producer.opened["batch_bytes_max"] // 100_000 + 1
        if 64 + count * 100_004 <= one.welcome["frame_bytes_max"]:
            producer.produce([b"y" * 100_000] * count, sequence=1)
            refuse = producer.take_refuse()
            assert refuse.code == "too_large" and refuse.values["expected"] == 1
        assert everything(broker, control, "t", 1) == [b"x" * 100_000]


def test_a_full_topic_that_rejects_reports_it_and_accepts_the_same_later(broker, control, session):
    control.create("t", ring_bytes=64 * KIB, overflow="reject")
    puller = open_group(broker, control, "t")
    producer = session("t").producer("t")
    batches = [numbered(10 * index, 10, 800) for index in range(20)]
    for batch in batches:
        producer.produce(batch)
    refuse = producer.take_refuse()
    assert refuse.code == "limit_reached"
    expected = refuse.values["expected"]
    assert refuse.values["begin"] == expected and refuse.values["end"] == expected + 10 and 0 < expected < 200
    producer.wait_confirmed(expected)
    assert producer.session.is_silent(), "the ones behind it are dropped in silence"
    consumer = broker.socket(zmq.PULL, puller)
    messages = receive(consumer, expected)
    until(lambda: control.stats("t")["log_bytes"] == 0, "room")
    for batch in batches[expected // 10:]:
        producer.produce(batch, sequence=number_of(batch[0]))
        producer.wait_confirmed()
        messages += receive(consumer, 10)
    assert messages == numbered(0, 200, 800)


def test_a_full_topic_that_blocks_confirms_when_there_is_room(broker, control, session):
    control.create("t", ring_bytes=64 * KIB)
    puller = open_group(broker, control, "t")
    held = session("t", heartbeat_ms=100)
    producer = held.producer("t")
    messages = numbered(0, 200, 800)
    for first in range(0, 200, 10):
        producer.produce(messages[first:first + 10])
    until(lambda: control.stats("t")["blocked_by"] == "group:default", "the topic to be full")
    beats = held.heartbeats
    held.wait(lambda: held.heartbeats >= beats + 5, "the broker goes on to be heard")
    confirmed = producer.confirmed
    assert 0 < confirmed < 200
    assert held.is_silent(0.3) and producer.confirmed == confirmed
    consumer = broker.socket(zmq.PULL, puller)
    assert receive(consumer, 200) == messages
    producer.wait_confirmed()
    assert silent(consumer)


def test_a_waiting_producer_does_not_delay_others(broker, control, session):
    control.create("full", ring_bytes=64 * KIB)
    control.create("free")
    open_group(broker, control, "full")
    held = session("full").producer("full")
    for first in range(0, 200, 10):
        held.produce(numbered(first, 10, 800))
    until(lambda: control.stats("full")["blocked_by"] == "group:default", "the topic to be full")
    other = session("free").producer("free")
    for index in range(100):
        other.produce([b"%d" % index])
        other.wait_confirmed()
    assert held.confirmed < 200
