"""Bounds on what all topics together may take."""
import zmq

from support import until

MIB = 1 << 20


def fill(broker, control, topic, payload=b"x" * 65536):
    """Sends to the topic until the broker holds its producers back for want of disk."""
    push = broker.socket(zmq.PUSH, control.join(topic, "push"), sndhwm=4)
    sent = 0

    def held():
        nonlocal sent
        for _ in range(64):
            try:
                push.send(payload, zmq.DONTWAIT)
                sent += 1
            except zmq.Again:
                break
        return control.stats(topic)["blocked_by"] == "disk"

    until(held, "the quota to be reached")
    return push


def bytes_of_topics(broker):
    return sum(path.stat().st_size for path in (broker.data_dir / "topics").rglob("*") if path.is_file())


def test_topics_wait_at_the_quota_and_go_on_when_another_is_deleted(make_broker):
    broker = make_broker("--disk-bytes-max", str(8 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    for topic in ("first", "second"):
        control.create(topic, "file", segment_bytes=MIB)
    fill(broker, control, "first")
    assert bytes_of_topics(broker) <= 8 * MIB + MIB  # the segments, and what lies beside them
    kept = control.stats("first")["messages_received"]
    assert kept > 60  # 65,536 bytes each

    second = broker.socket(zmq.PUSH, control.join("second", "push"))
    second.send(b"waits")
    until(lambda: control.stats("second")["blocked_by"] == "disk", "the other topic to wait, too")
    assert "the most they may take of the disk" in broker.log()

    pull = broker.socket(zmq.PULL, control.join("first", "pull"))
    assert pull.recv() == b"x" * 65536  # what is there can be read
    control.delete("first")
    until(lambda: control.stats("second")["messages_received"] == 1, "the other topic to go on")


def test_the_quota_counts_what_an_earlier_life_left(make_broker):
    broker = make_broker("--disk-bytes-max", str(4 * MIB), "--min-free-bytes", "0")
    control = broker.control()
    control.create("t", "file", segment_bytes=MIB)
    fill(broker, control, "t").close()
    before = control.stats("t")["messages_received"]
    broker.restart()
    until(lambda: control.stats("t")["next_offset"] >= before, "the topic to be there")
    fill(broker, control, "t")
    assert bytes_of_topics(broker) <= 5 * MIB
