"""Tests limits on the state that session clients can make a topic or a session keep, as the broker's settings
give them."""
import session_client
import session_frames
from session_client import Session
from support import until


def broker_with(make_broker, *flags):
    """Returns the broker's control connection with a topic, and a function that returns how often a limit was
    reached."""
    broker = make_broker(*flags)
    control = broker.control()
    control.create("t")
    return control, lambda: sum(control.broker_stats()["limits_reached"].values())


def numbered(count, size=0):
    return [f"{index}|".encode().ljust(size, b".") for index in range(count)]


def stored(control, messages):
    with Session(session_client.join(control, "t")) as session:
        producer = session.producer("t")
        producer.produce(messages)
        producer.wait_confirmed()


def group_of(control, name):
    return next(group for group in control.stats("t")["groups"] if group["group"] == name)


def test_a_consumer_receives_at_most_its_messages_in_flight(make_broker):
    control, reached = broker_with(make_broker, "--in-flight-messages-max", "3")
    messages = numbered(10)
    stored(control, messages)
    ticket = session_client.join(control, "t", "pull")
    with Session(ticket) as session, Session(ticket) as other:
        first = session.consumer("t")
        taken = first.receive(3)
        assert [message.payload for message in taken] == messages[:3]
        second = other.consumer("t")
        assert [message.payload for message in second.receive(3)] == messages[3:6], "the others of its group are"
        first.acknowledge(taken[1].offset)
        assert [message.payload for message in first.receive(1)] == messages[6:7]
        first.acknowledge_before(3)
        assert [message.payload for message in first.receive(2)] == messages[7:9]
        assert control.stats("t")["groups"][0]["unacknowledged"] == 6 and not first.messages and not second.messages
        automatic = session.consumer("t", "all", automatic=True)
        assert len(automatic.receive(10)) == 10, "what is acknowledged at once is not in flight"
    assert reached() == 0


def test_a_consumer_that_leaves_many_gaps_is_ended_and_its_messages_go_to_another(make_broker):
    control, reached = broker_with(make_broker, "--outstanding-ranges-max", "4")
    stored(control, numbered(12))
    ticket = session_client.join(control, "t", "pull")
    with Session(ticket) as session, Session(ticket) as other:
        careless = session.consumer("t")
        careless.receive(12)
        careless.acknowledge(1, 3, 5)
        careful = other.consumer("t", "careful")
        taken = careful.receive(12)
        session.read("t", begin=12)
        assert group_of(control, "default")["consumers"] == 1, "as many ranges as the limit"
        careless.acknowledge(7)
        error = careless.take_error()
        assert error.code == "limit_reached" and "4 ranges of offsets" in error.values["sentence"]
        again = session.consumer("t")
        for offset in 0, 2, 4, 6, 8, 9, 10, 11:
            assert again.receive(1)[0].offset == offset
            again.acknowledge(offset)
        careful.acknowledge_all(taken)
        until(lambda: group_of(control, "careful")["unacknowledged"] == 0, "the other group, which has not noticed")
    assert reached() == 1


def test_a_group_receives_nothing_new_while_much_waits_for_redelivery(make_broker):
    control, _ = broker_with(make_broker, "--group-state-bytes-max", "300")
    stored(control, numbered(4))
    with Session(session_client.join(control, "t", "pull")) as session:
        consumer = session.consumer("t")
        consumer.receive(4)
        consumer.reject(0, ms=60_000)
        consumer.acknowledge(1)
        stored(control, [b"newer"])
        assert consumer.receive(1)[0].payload == b"newer", "one due time takes less than 300 bytes, and two more"
        consumer.reject(2, ms=1_500)
        consumer.acknowledge((3, 5))
        unaware = session.consumer("t", "another")
        unaware.receive(5)
        stored(control, [b"newest"])
        assert unaware.receive(1)[0].payload == b"newest"
        assert [message.offset for message in consumer.receive(2)] == [2, 5], "what was rejected, and then the newest"


def test_a_topic_remembers_at_most_producers_max(make_broker):
    control, reached = broker_with(make_broker, "--producers-max", "2")
    control.create("u")
    ticket = session_client.join(control, "t")
    with Session(ticket) as session:
        session.present(session_client.join(control, "u"))
        elsewhere = session.producer("u")
        known = []
        for _ in range(3):
            producer = session.producer("t")
            producer.produce([b"x"])
            producer.wait_confirmed()
            known.append(dict(producer_id=producer.id, producer_epoch=producer.epoch + 1, level=0, topic="t"))
            producer.close()
        assert session.error_of("produce_open", **known[0]) == "unknown_producer"
        for each in known[1:]:
            assert session.request("produce_open", **each).op == "produce_opened"
        assert reached() == 0
        assert session.error_of("produce_open", **{**known[0], "producer_id": 0, "producer_epoch": 0}) == "limit_reached"
        assert reached() == 1
        elsewhere.produce([b"x"])
        elsewhere.wait_confirmed()


def test_reads_of_a_session_are_bounded_in_number_and_in_bytes(make_broker):
    control, reached = broker_with(make_broker, "--session-reads-max", "2", "--read-bytes-max", "2500")
    messages = numbered(10, 1000)
    stored(control, messages)
    ticket = session_client.join(control, "t", "pull")
    with Session(ticket) as session, Session(ticket) as other:
        brought, next_offset = session.read("t")
        assert [message.payload for message in brought] == messages[:2] and next_offset == 2
        brought, next_offset = session.read("t", begin=next_offset)
        assert [message.payload for message in brought] == messages[2:4] and next_offset == 4
        # Sends all reads at once: the broker has all three before it starts the first.
        asked = dict(begin=0, end=10, bytes=1 << 30, topic="t")
        session.send_raw(b"".join(session_frames.encode("read", asked, request=request) for request in range(101, 104)))
        answers = {}
        for request in range(101, 104):
            answer = session.take(lambda frame, request=request: frame.request == request and frame.op != "deliver", "answer")
            answers[request] = answer.code if answer.op == "error" else answer.op
        assert answers == {101: "done", 102: "done", 103: "limit_reached"}
        assert reached() == 1
        assert other.read("t", begin=9)[1] == 10
