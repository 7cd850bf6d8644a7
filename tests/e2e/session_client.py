"""A session client that knows docs/session.md and nothing of LightQ's code. It uses the encoder and decoder
of the test vectors. LIGHTQ_SESSION_CARRIER in the environment chooses its carrier: plain sockets by
default, `zmq` for ZeroMQ sockets, `tls` for brokers that all encrypt, `memory` for shared memory. It uses
TLS where the join names a certificate. Everything it waits for must come within a deadline, or the test
fails."""
import pathlib
import sys
import time
import typing

import zmq

from harness import variable
from session_wire import MemoryWire, StreamWire, ZmqWire
from support import DEADLINE, PASSWORD, USER, receive, silent

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "vectors"))
import batch_bytes  # noqa: E402
import session_frames  # noqa: E402

MAGIC = 0x5353514C
RECEIVED, FLUSHED = 1, 2
GROUP, OWN = 1, 2
EXPLICIT, AUTOMATIC = 1, 2
STARTS = {"first": 1, "next": 2, "last": 3, "offset": 4, "time": 5}
PART, CUMULATIVE, DEAD_LETTER, LEASES, HAND_OUT, DEAD_LETTERS, EXPIRED, RELEASE = 1, 1, 1, 1, 2, 2, 2, 4
KNOWS_EXPIRED, KNOWS_DEAD_LETTERS, KNOWS_LEASES, MAY_BE_BUSY, HEARS_LATE = (1 << bit for bit in range(26, 31))
PLENTY = (1 << 20, 1 << 40)  # credit: messages, bytes
CODES = ["ok", "invalid_frame", "unsupported_version", "unauthorized_access", "topic_not_found", "unknown_channel",
         "limit_reached", "too_large", "corrupt", "out_of_sequence", "fenced", "unknown_producer", "no_space",
         "io_error", "incarnation_changed", "shutting_down", "topic_deleted", "not_supported", "idle", "internal"]
HEADER_BYTES = 20
WANTED = variable("LIGHTQ_SESSION_CARRIER", "socket")
CARRIER = "zmq" if WANTED == "zmq" else "socket"  # the connection_type that `join` asks for
MEMORY = WANTED == "memory"
# To the broker: as much as a connection holds; from the broker: small, so that it is full at times.
MEMORY_BYTES = (1 << 19, 1 << 15)


class Ended(AssertionError):
    """The broker has closed the connection."""


class Frame(typing.NamedTuple):
    op: str
    flags: int
    channel: int
    request: int
    values: dict

    def __repr__(self):
        values = {name: value if name != "batch" else f"{len(value) // 2} bytes" for name, value in self.values.items()}
        return f"{self.op}(flags={self.flags}, channel={self.channel}, request={self.request}, {values})"

    @property
    def code(self):
        return CODES[self.values["code"]]


class Ticket(typing.NamedTuple):
    """The result of a join."""
    uri: str
    text: str
    carrier: str = CARRIER
    options: dict = {}  # options for a ZeroMQ socket
    certificate: str = None  # SHA-256; None: no TLS


def join(control, topic, kind="push", carrier=CARRIER, **more):
    asked = {"user_id": USER, "password": PASSWORD, **more}
    if MEMORY and carrier == "socket":
        asked.setdefault("transport", "ipc")
    reply = control.ok("join", connection_type=carrier, delivery="session", type=kind, topic=topic, **asked)
    ticket = reply["ticket"]
    assert ticket["expires_ms"] > 0, reply
    return Ticket(reply["bind_uri"], f"{ticket['id']}.{ticket['secret']}", carrier, certificate=certificate_of(reply))


def certificate_of(reply):
    """Returns the certificate that the answer to a join names."""
    return reply["tls"]["certificate_sha256"] if "tls" in reply else None


def hello_values(**changed):
    return {"magic": MAGIC, "oldest_version": 1, "newest_version": 1, "frame_bytes_max": 1 << 20, "heartbeat_ms": 0,
            "codecs": 0, "name": "e2e", "ticket": "", **changed}


class Message(typing.NamedTuple):
    offset: int
    payload: bytes
    delivery: int
    time_us: int
    size: int  # attributes and payload
    said: batch_bytes.Message  # the payload and the attributes
    hand_out: int = 0
    expired: bool = False


class Session:
    """One connection. Frames that no call has taken yet wait in `frames`, in order of arrival. Heartbeats are
    only counted."""

    def __init__(self, where, hello=True, **changed):
        """Connects to `where`, a Ticket or a URI. Sends hello with the ticket and waits for the welcome,
        unless told otherwise."""
        uri, ticket, carrier, options, certificate = where if isinstance(where, Ticket) else Ticket(where, "")
        self.wire = ZmqWire(uri, **options) if carrier == "zmq" else StreamWire(uri, certificate)
        self.come, self.frames, self.producers, self.consumers = bytearray(), [], {}, {}
        self.takes = changed.get("frame_bytes_max", 1 << 20)
        self.heartbeats, self.last_request, self.has_ended = 0, 0, False
        self.goodbye_has_come = False
        self.welcome = None
        if hello:
            answer = self.request("hello", **hello_values(**{"ticket": ticket, **changed}))
            assert answer.op == "welcome", answer
            self.welcome = answer.values
            assert self.welcome["version"] == 1 and self.welcome["channels_max"] > 0, answer
            if MEMORY and uri.startswith("ipc://") and carrier == "socket":
                self.share(*MEMORY_BYTES, wakes_by_socket=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def share(self, to_broker, to_client, wakes_by_socket=False):
        """Moves the session to shared memory. Returns the frame that answers."""
        self.last_request += 1
        flags = 1 if wakes_by_socket else 0
        self.send("share", request=self.last_request, flags=flags, to_broker=to_broker, to_client=to_client)
        wire = MemoryWire(self.wire.socket, to_broker, to_client, wakes_by_socket)
        self.come += wire.take_answer()
        answer = self._whole_frame()
        assert answer.request == self.last_request and not self.come, answer
        if answer.op == "shared":
            assert answer.values == {"to_broker": to_broker, "to_client": to_client}, answer
            assert answer.flags == flags, answer
            self.wire = wire
        return answer

    @property
    def socket(self):
        return self.wire.socket

    def close(self):
        self.wire.close()

    def send_raw(self, data):
        self.wire.send(data)

    def send(self, op, channel=0, request=0, flags=0, **values):
        self.send_raw(session_frames.encode(op, values, flags=flags, channel=channel, request=request))

    def request(self, op, channel=0, **values):
        """Sends a request. Returns the frame that answers it."""
        self.last_request += 1
        number = self.last_request
        self.send(op, channel=channel, request=number, **values)
        return self.take(lambda frame: frame.request == number and frame.op != "deliver", f"the answer to {op}")

    def _whole_frame(self):
        if len(self.come) < HEADER_BYTES:
            return None
        length = int.from_bytes(self.come[12:16], "little")
        assert length <= self.takes, "a frame that is longer than this client takes"
        if len(self.come) < HEADER_BYTES + length:
            return None
        frame = bytes(self.come[:HEADER_BYTES + length])
        del self.come[:HEADER_BYTES + length]
        return Frame(*session_frames.decode(frame))

    def _sort(self, frame):
        assert not self.goodbye_has_come, f"behind goodbye: {frame}"
        self.goodbye_has_come = frame.op == "goodbye"
        if frame.op == "heartbeat":
            self.heartbeats += 1
        elif frame.op == "confirm" and frame.channel in self.producers:
            self.producers[frame.channel].take_confirm(frame.values)
        elif frame.op == "deliver" and frame.channel in self.consumers:
            self.consumers[frame.channel].take_deliver(frame)
        else:
            if frame.op == "done" and frame.channel in self.consumers:
                self.consumers[frame.channel].take_done()
            self.frames.append(frame)

    def read_some(self, seconds):
        """Reads the next bytes within `seconds`. Returns False if nothing arrives. Raises Ended at the end of
        the stream."""
        frame = self._whole_frame()
        if frame is None:
            if self.has_ended:
                raise Ended(f"the stream has ended; what had come: {self.frames}")
            part = self.wire.receive(seconds)
            if part is None:
                return False
            self.has_ended = not part
            self.come += part
            frame = self._whole_frame()
        while frame is not None:
            self._sort(frame)
            frame = self._whole_frame()
        return True

    def wait(self, condition, what, seconds=DEADLINE):
        """Reads until condition() is true, and returns its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            left = deadline - time.monotonic()
            assert left > 0, f"not within {seconds} s: {what}; what has come: {self.frames}"
            self.read_some(left)

    def take(self, fits, what, seconds=DEADLINE):
        """Returns the first frame that fits. The other frames stay."""
        found = self.wait(lambda: [frame for frame in self.frames if fits(frame)], what, seconds)[0]
        self.frames.remove(found)
        return found

    def error_of(self, op, **values):
        """Sends a request. Returns the word of the error code in the answer, which must be an error."""
        answer = self.request(op, **values)
        assert answer.op == "error", answer
        return answer.code

    def goodbye(self, seconds=DEADLINE):
        """Waits for the broker's goodbye and the end of the stream after it. Returns the word of its code."""
        frame = self.take(lambda frame: frame.op == "goodbye", "goodbye", seconds)
        assert self.ended(seconds)
        return frame.code

    def ended(self, seconds=DEADLINE):
        """Waits for the end of the stream. Returns True if no frame arrives before it."""
        seen = len(self.frames)
        try:
            self.wait(lambda: False, "the end of the stream", seconds)
        except Ended:
            return len(self.frames) == seen
        raise AssertionError("unreachable")

    def is_silent(self, seconds=0.2):
        """Returns True if nothing except heartbeats arrives for so long. Call it after a condition that shows
        that all work is done."""
        seen = (len(self.frames), sum(producer.confirms for producer in self.producers.values()))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read_some(deadline - time.monotonic())
        return seen == (len(self.frames), sum(producer.confirms for producer in self.producers.values()))

    def producer(self, topic, producer_id=0, epoch=0, level=0, target=0):
        return Producer(self, topic, producer_id, epoch, level, target)

    def consumer(self, topic, group="", mode=GROUP, **more):
        return Consumer(self, topic, group, mode, **more)

    def read(self, topic, begin=0, end=(1 << 64) - 1, size=1 << 30):
        """Reads a range. Returns its messages, and the offset at which to continue."""
        done = self.request("read", begin=begin, end=end, bytes=size, topic=topic)
        assert done.op == "done", done
        brought = [frame for frame in self.frames if frame.request == done.request]
        self.frames = [frame for frame in self.frames if frame.request != done.request]
        messages = []
        for frame in brought:
            assert (frame.op, frame.channel, frame.values["delivery"]) == ("deliver", 0, 0), frame
            messages += messages_of(frame)
        return messages, done.values["value"]

    def present(self, ticket):
        return self.request("present", ticket=ticket.text)


class Producer:
    """A channel that produces. It keeps its batches as they were sent, so that they can be sent again."""

    def __init__(self, session, topic, producer_id, epoch, level, target):
        self.session = session
        answer = session.request("produce_open", producer_id=producer_id, producer_epoch=epoch, level=level,
                                 target=target, topic=topic)
        assert answer.op == "produce_opened" and answer.values["target"] == target, answer
        self.opened, self.channel = answer.values, answer.channel
        assert self.channel != 0 and self.opened["producer_id"] != 0, answer
        self.id, self.epoch, self.level = (self.opened[name] for name in ("producer_id", "producer_epoch", "level"))
        self.next = self.opened["expected"]
        self.received = self.flushed = self.confirms = 0
        session.producers[self.channel] = self
        for frame in [each for each in session.frames if each.op == "confirm" and each.channel == self.channel]:
            session.frames.remove(frame)  # it has come together with the answer
            self.take_confirm(frame.values)

    def take_confirm(self, values):
        assert values["flushed"] <= values["received"], values
        assert values["received"] >= self.received and values["flushed"] >= self.flushed, "a confirm went back"
        self.received, self.flushed = values["received"], values["flushed"]
        self.next_offset = values["next_offset"]
        self.confirms += 1

    @property
    def confirmed(self):
        """Returns a sequence number. Every message before it is confirmed."""
        return self.flushed if self.level == FLUSHED else self.received

    def batch(self, messages, sequence):
        return session_frames.batch(messages, self.id, self.epoch, sequence)

    def produce(self, messages, sequence=None, flush=False):
        """Sends a batch, by default the next one."""
        sequence = self.next if sequence is None else sequence
        self.send_batch(self.batch(messages, sequence), flush)
        self.next = sequence + len(messages)

    def send_batch(self, batch, flush=False):
        self.session.send("produce", channel=self.channel, flags=int(flush), batch=batch.hex())

    def frame_of(self, messages):
        """Returns the whole frame of the next batch, without sending it."""
        return session_frames.encode("produce", dict(batch=self.batch(messages, self.next).hex()), channel=self.channel)

    def wait_confirmed(self, sequence=None, seconds=DEADLINE):
        """Waits until every message before `sequence` (by default: all that were sent) is confirmed. Fails on
        a refusal, or on an error on this channel."""
        sequence = self.next if sequence is None else sequence

        def is_confirmed():
            bad = [frame for frame in self.session.frames if frame.channel == self.channel]
            assert not bad, bad
            return self.confirmed >= sequence

        self.session.wait(is_confirmed, f"the confirm of {sequence}, at {self.confirmed}", seconds)

    def take_refuse(self):
        return self.session.take(lambda frame: frame.op == "refuse" and frame.channel == self.channel, "refuse")

    def take_error(self):
        return self.session.take(lambda frame: frame.op == "error" and frame.channel == self.channel, "error")

    def close(self):
        """Closes the channel. Returns the answer."""
        return self.session.request("close", channel=self.channel)


def open_values(topic, group="", mode=GROUP, automatic=False, start="first", value=0, credit=PLENTY, holds=False,
                ack_timeout_ms=0, incarnation=0):
    """Returns the fields of consume_open."""
    return dict(mode=mode, acknowledgement=AUTOMATIC if automatic else EXPLICIT, start=STARTS[start], holds=int(holds),
                credit_messages=credit[0], credit_bytes=credit[1], start_value=value, incarnation=incarnation,
                ack_timeout_ms=ack_timeout_ms, topic=topic, group=group)


def messages_of(frame):
    """Returns the messages of a deliver frame, after checking its batch's checksums."""
    batch = session_frames.unbatch(bytes.fromhex(frame.values["batch"]))
    return [Message(batch.offset + index, said.payload, frame.values["delivery"], batch.time_us, size, said,
                    frame.values["hand_out"], bool(frame.flags & EXPIRED))
            for index, (said, size) in enumerate(zip(batch.messages, batch.sizes))]


class Consumer:
    """A channel that consumes. It counts the credit it has given and the messages it has received, and fails
    if it receives too much."""

    def __init__(self, session, topic, group, mode, credit=PLENTY, **more):
        self.session, self.messages, self.lost, self.parts, self.batches = session, [], 0, 0, []
        self.is_seeking = False
        self.credit_messages, self.credit_bytes = credit
        answer = session.request("consume_open", **open_values(topic, group, mode, credit=credit, **more))
        assert answer.op == "consume_opened", answer
        self.opened, self.channel, self.leases = answer.values, answer.channel, bool(answer.flags & LEASES)
        self.dead_letters = bool(answer.flags & DEAD_LETTERS)
        self.hand_out = 1  # with leases: of the last delivery
        assert self.channel != 0, answer
        session.consumers[self.channel] = self
        early = [frame for frame in session.frames if frame.op == "deliver" and frame.channel == self.channel]
        for frame in early:  # arrived together with the answer
            session.frames.remove(frame)
            self.take_deliver(frame)

    def take_deliver(self, frame):
        assert frame.request == 0 and frame.values["delivery"] >= 1 and not frame.flags & EXPIRED, frame
        come = messages_of(frame)
        for message in come:
            assert self.credit_messages > 0 and self.credit_bytes > 0, "more than there was credit for"
            self.credit_messages -= 1
            self.credit_bytes -= message.size
        assert (come[0].hand_out != 0) == self.leases, frame
        self.hand_out = max(self.hand_out, come[0].hand_out)
        self.messages += come
        self.lost += frame.values["lost"]
        self.parts += frame.flags & PART
        self.batches.append(bytes.fromhex(frame.values["batch"]))

    def take_done(self):
        if self.is_seeking:  # drops messages that were sent before the seek
            self.is_seeking, self.messages = False, []

    @property
    def payloads(self):
        return [message.payload for message in self.messages]

    def receive(self, count, seconds=DEADLINE):
        """Waits until `count` messages have arrived since the last call, and takes these. Later messages
        stay."""
        self.session.wait(lambda: len(self.messages) >= count, f"{count} messages, at {len(self.messages)}", seconds)
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    def is_silent(self, seconds=0.2):
        """Returns True if nothing arrives on this channel for so long. Call it after a condition that shows
        that all work is done."""
        seen, deadline = len(self.messages), time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.session.read_some(deadline - time.monotonic())
        return len(self.messages) == seen

    def give(self, messages, size=0):
        self.credit_messages += messages
        self.credit_bytes += size
        self.session.send("credit", channel=self.channel, messages=messages, bytes=size)

    def _request(self, op, flags=0, hand_out=None, **values):
        """Sends a frame about messages. With leases it names their hand-out: by default that of the last
        delivery."""
        if self.leases:
            flags |= HAND_OUT
            values["hand_out"] = self.hand_out if hand_out is None else hand_out
        self.session.send(op, channel=self.channel, flags=flags, **values)

    def acknowledge(self, *ranges, hand_out=None):
        """Acknowledges offsets, or pairs (begin, end)."""
        self._request("acknowledge", ranges=as_ranges(ranges), hand_out=hand_out)

    def acknowledge_before(self, offset):
        self._request("acknowledge", flags=CUMULATIVE, before=offset)

    def acknowledge_all(self, messages):
        if messages:
            self.acknowledge(*merged(message.offset for message in messages))

    def reject(self, *ranges, ms=0, hand_out=None):
        self._request("reject", ms=ms, ranges=as_ranges(ranges), hand_out=hand_out)

    def reject_dead(self, *ranges, reason="", hand_out=None):
        self._request("reject", flags=DEAD_LETTER, ms=0, reason=reason, ranges=as_ranges(ranges), hand_out=hand_out)

    def release(self, *ranges):
        self._request("reject", flags=RELEASE, ms=0, ranges=as_ranges(ranges))

    def extend(self, *ranges, ms):
        self._request("extend", ms=ms, ranges=as_ranges(ranges))

    def start(self, *ranges):
        """Names messages as started."""
        self.session.send("started", channel=self.channel, hand_out=self.hand_out, ranges=as_ranges(ranges))

    def take_revoked(self):
        return self.session.take(lambda frame: frame.op == "revoked" and frame.channel == self.channel, "revoked").values

    def take_late(self):
        late = self.session.take(lambda frame: frame.op == "late" and frame.channel == self.channel, "late")
        return late.values["ranges"]

    def seek(self, start, value=0):
        """Moves the cursor. Returns the next offset to be delivered. Forgets messages that arrived before."""
        self.is_seeking = True
        answer = self.session.request("seek", channel=self.channel, start=STARTS[start], start_value=value)
        assert answer.op == "done" and not self.is_seeking, answer
        return answer.values["value"]

    def take_error(self):
        return self.session.take(lambda frame: frame.op == "error" and frame.channel == self.channel, "error")

    def close(self):
        """Closes the channel. Returns the answer."""
        return self.session.request("close", channel=self.channel)


def as_ranges(ranges):
    return [(each, each + 1) if isinstance(each, int) else each for each in ranges]


def merged(offsets):
    """Returns the offsets as ranges in ascending order that do not touch each other."""
    ranges = []
    for offset in sorted(offsets):
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def everything(broker, control, topic, count):
    """Returns the first `count` messages of a plain puller. There must be no more."""
    consumer = broker.socket(zmq.PULL, control.join(topic, "pull"))
    messages = receive(consumer, count)
    assert silent(consumer)
    consumer.close()
    return messages
