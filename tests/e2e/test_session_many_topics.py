"""Tests frames of many topics that arrive at once on one session: the broker handles a few topics at a time."""
import session_frames
from session_client import join

TOPICS = 40
ROUNDS = 25


def many(control, session):
    """A session with a producer on each topic, and one with a consumer on each."""
    names = [f"t{index}" for index in range(TOPICS)]
    for name in names:
        control.create(name)
    one, other = session(names[0]), session(join(control, names[0], "pull"))
    for name in names[1:]:
        assert one.present(join(control, name)).op == "done"
        assert other.present(join(control, name, "pull")).op == "done"
    return names, [one.producer(name) for name in names], [other.consumer(name) for name in names]


def send_at_once(one, frames):
    """Sends the frames in two pieces. The first ends within a frame."""
    data = b"".join(frames)
    half = len(data) // 2 + 7
    one.send_raw(data[:half])
    one.send_raw(data[half:])


def next_frame(producer, message):
    frame = producer.frame_of([message])
    producer.next += 1
    return frame


def test_frames_of_many_topics_are_stored_confirmed_and_delivered_in_order(control, session):
    names, producers, consumers = many(control, session)
    send_at_once(producers[0].session, [next_frame(producer, b"%d of %d" % (number, producer.channel))
                                        for number in range(ROUNDS) for producer in producers])
    for producer, consumer in zip(producers, consumers):
        producer.wait_confirmed()
        assert [message.payload for message in consumer.receive(ROUNDS)] == [
            b"%d of %d" % (number, producer.channel) for number in range(ROUNDS)]
    assert all(control.stats(name)["messages_received"] == ROUNDS for name in names)


def test_a_channel_closed_between_its_frames_hurts_no_other(control, session):
    names, producers, consumers = many(control, session)
    one = producers[0].session
    gone = producers[7]
    rounds = [next_frame(producer, b"%d" % number) for number in range(ROUNDS) for producer in producers]
    # One channel is closed between its frames, and one frame is sent twice.
    close = session_frames.encode("close", {}, channel=gone.channel, request=9999)
    middle = TOPICS * 10
    send_at_once(one, rounds[:middle] + [close] + rounds[middle - 1:])
    assert one.take(lambda frame: frame.request == 9999, "the answer to close").op == "done"
    for producer, consumer in zip(producers, consumers):
        if producer is gone:
            continue
        producer.wait_confirmed()
        assert [message.payload for message in consumer.receive(ROUNDS)] == [b"%d" % number for number in range(ROUNDS)]
    control.delete(names[3])
    assert producers[3].take_error().code == "topic_deleted"
    send_at_once(one, [next_frame(producer, b"last") for producer in producers if producer not in (gone, producers[3])])
    for producer in producers:
        if producer not in (gone, producers[3]):
            producer.wait_confirmed()
    assert control.stats(names[7])["messages_received"] == 10
