"""Checks of the driver: which messages were sent, stored and received. No client takes part in them."""
import pathlib
import random
import typing


class Sent(typing.NamedTuple):
    """Messages that an agent is told to send. The file has their bodies, one directly after the other."""
    file: pathlib.Path
    bodies: list


def write_bodies(file, sizes, name="m", seed=1):
    """Makes bodies of these sizes. Each begins with its name and number, as far as there is space, so that
    longer ones are unique."""
    source, bodies = random.Random(seed), []
    for number, size in enumerate(sizes):
        head = f"{name}{number}|".encode()[:size]
        bodies.append(head + source.randbytes(size - len(head)))
    file.write_bytes(b"".join(bodies))
    return Sent(file, bodies)


def bodies_of(messages, file):
    """Returns the bodies that an agent wrote for these descriptions, in their order."""
    data, bodies, at = file.read_bytes(), [], 0
    for message in messages:
        bodies.append(data[at:at + message["bytes"]])
        at += message["bytes"]
    assert at == len(data), f"the agent described {at} bytes and wrote {len(data)}"
    return bodies


def fates_of(outcomes, count):
    """Returns the fate of each message that was sent, from an agent's ranges. Each message has exactly one."""
    fates = [None] * count
    for begin, end, fate, _ in outcomes:
        assert 0 <= begin < end <= count, (begin, end, count)
        for number in range(begin, end):
            assert fates[number] is None, f"message {number} was settled twice"
            fates[number] = fate
    return fates


def check_stored(sent, fates, stored):
    """Confirmed messages are stored once and in the order of sending; refused ones are not stored; messages of
    unknown fate are stored at most once."""
    numbers = {body: number for number, body in enumerate(sent.bodies)}
    assert len(numbers) == len(sent.bodies), "the bodies are not unique"
    last = -1
    found = set()
    for body in stored:
        number = numbers.get(body)
        assert number is not None, f"stored bytes that nobody sent: {body[:40]!r}, {len(body)} bytes"
        assert number > last, f"message {number} is stored behind {last}: twice, or out of order"
        assert fates[number] != "refused", f"message {number} was refused and is stored"
        last = number
        found.add(number)
    lost = [number for number, fate in enumerate(fates) if fate == "confirmed" and number not in found]
    assert not lost, f"{len(lost)} confirmed messages are not stored, the first is {lost[0]}"


def check_received(stored, messages, bodies, again=False):
    """Each stored message was received, with its bytes at its offset. Without `again`: once, and in order."""
    for message, body in zip(messages, bodies, strict=True):
        assert body == stored[message["offset"]], f"the message at offset {message['offset']} has other bytes"
    offsets = [message["offset"] for message in messages]
    missing = set(range(len(stored))) - set(offsets)
    assert not missing, f"{len(missing)} messages were not received, the first is {min(missing)}"
    if not again:
        assert offsets == sorted(offsets), "messages were received out of order"
        assert len(offsets) == len(set(offsets)), "messages were received twice"
