"""Tests send_many, receive_many and ack_many of both clients: order and bytes, what they name as started, and errors."""
import asyncio

import batch_bytes
import lightq
import lightq.aio
import pytest
import session_frames
from checksum import crc32c
from lightq.core import batch
from lightq.core.producing import Producing, ProducerOptions
from lightq.errors import InvalidArgument, Refused
from support import DEADLINE
from test_consuming import consumer, delivered

BODIES = [b"%d" % n * (n % 40 + 1) for n in range(3000)] + [b"", b"x" * 200_000, b"last"]


def started(script):
    """Returns the ranges that the consumer has named as started, and forgets its frames."""
    found, out = [], bytes(script.link.out)
    script.link.out.clear()
    while out:
        length = 20 + int.from_bytes(out[12:16], "little")
        op, _, _, _, values = session_frames.decode(out[:length])
        found += values["ranges"] if op == "started" else []
        out = out[length:]
    return found


def pending(client, group):
    [found] = [each for each in client.stats("t")["groups"] if each["group"] == group]
    return found["pending"]


def test_all_messages_arrive_once_and_in_order(where):
    got = []
    with lightq.connect(**where) as q, q.consumer("t", "blocking", start="next") as come:
        come.wait_open(DEADLINE)
        with q.producer("t") as out:
            confirm = out.send_many(BODIES)
            assert (confirm.number, out.next_number) == (len(BODIES) - 1, len(BODIES))
            confirm.wait(DEADLINE)
            assert confirm.done
        while len(got) < len(BODIES):
            messages = come.receive_many(700, DEADLINE)
            assert 1 <= len(messages) <= 700
            got += [message.body for message in messages]
            come.ack_many(messages)
        assert come.receive_many(10, 0) == []
        come.close()
        assert got == BODIES and pending(q, "blocking") == 0


def test_all_messages_arrive_once_and_in_order_with_asyncio(where):
    async def main():
        got = []
        async with lightq.aio.connect(**where) as q, q.consumer("t", "asyncio", start="next") as come:
            async with q.producer("t") as out:
                await (await out.send_many(BODIES))
                assert out.next_number == len(BODIES)
            while len(got) < len(BODIES):
                messages = await come.receive_many(timeout=DEADLINE)
                got += [message.body for message in messages]
                come.ack_many(messages)
            assert await come.receive_many(10, 0) == []
        assert got == BODIES
    asyncio.run(main())
    with lightq.connect(**where) as q:
        assert pending(q, "asyncio") == 0


def test_a_batch_names_exactly_its_messages_as_started():
    script = consumer()
    script.say(delivered(0, 10))
    started(script)
    assert [m.offset for m in script.core.take_many(4, 0.0)] == [0, 1, 2, 3]
    named = {offset for begin, end in started(script) for offset in range(begin, end)}
    assert named == {0, 1, 2, 3}
    assert [m.offset for m in script.core.take_many(100, 0.0)] == [4, 5, 6, 7, 8, 9]
    assert {offset for begin, end in started(script) for offset in range(begin, end)} == {4, 5, 6, 7, 8, 9}


def test_a_redelivered_message_comes_alone():
    script = consumer()
    script.say(delivered(3, 2))
    values = {"delivery": 2, "hand_out": 1, "lost": 0, "batch": batch_bytes.batch([b"again"] * 2, offset=7).hex()}
    script.say(session_frames.encode("deliver", values, channel=5))
    script.say(delivered(9, 1, hand_out=2))
    taken = [[m.offset for m in script.core.take_many(100, 0.0)] for _ in range(5)]
    assert taken == [[3, 4], [7], [8], [9], []]


def test_acknowledgements_of_many_ignore_settled_messages_and_refuse_foreign_ones():
    script, other = consumer(), consumer()
    for each in script, other:
        each.say(delivered(0, 3))
    own, foreign = script.core.take_many(9, 0.0), other.core.take_many(9, 0.0)
    own[1].retry()
    script.link.out.clear()
    with pytest.raises(InvalidArgument):
        script.core.ack_many([*own, *foreign], script.core)
    assert not any(message.settled for message in [own[0], own[2], *foreign])
    script.core.ack_many(own, script.core)
    script.core.flush()
    frame = session_frames.decode(bytes(script.link.out))
    assert (frame[0], frame[4]["ranges"]) == ("acknowledge", [[0, 1], [2, 3]])


@pytest.mark.parametrize("bodies", [[], [b"good", 5], [b"good", None]])
def test_wrong_messages_are_refused_together(where, bodies):
    async def of_asyncio():
        async with lightq.aio.connect(**where) as q, q.producer("t") as out:
            with pytest.raises(InvalidArgument):
                await out.send_many(bodies)
            assert out.next_number == 0
    asyncio.run(of_asyncio())
    with lightq.connect(**where) as q, q.producer("t") as out:
        with pytest.raises(InvalidArgument):
            out.send_many(bodies)
        assert out.next_number == 0


def test_one_message_that_is_too_long_refuses_all(where):
    with lightq.connect(**where) as q, q.producer("t") as out:
        out.wait_open(DEADLINE)
        with pytest.raises(Refused) as failure:
            out.send_many([b"good", bytes((64 << 20) + 1)])
        assert failure.value.code == "too_large" and out.next_number == 0


def test_less_than_one_message_cannot_be_asked_for(where):
    with lightq.connect(**where) as q, q.consumer("t", own=True) as come:
        with pytest.raises(InvalidArgument):
            come.receive_many(0)


@pytest.mark.parametrize("delayed", [False, True])
def test_batches_have_all_messages_and_no_more_bytes_than_allowed(delayed):
    core = Producing("t", ProducerOptions(delayed=delayed, batch_bytes=5000))
    bodies = [b"x" * (n % 700) for n in range(900)]
    core.add_many(bodies, sum(map(batch.size_of, bodies)))
    core.add(b"one more", 12)
    core._close_batch()
    assert core.next_number == 901
    sent = []
    for each in core._waiting:
        coded = bytearray(batch.encode(each.messages, 1, 1, each.first))
        coded[60:64] = crc32c(bytes(coded[:60])).to_bytes(4, "little")  # as the log does
        assert each.first == len(sent) and len(coded) <= 5000
        sent += [message.payload for message in batch_bytes.unbatch(bytes(coded)).messages]
    assert sent == [*bodies, b"one more"]
