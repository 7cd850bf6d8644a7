"""The carriers of the frames of test sessions: a plain connection, one with TLS, shared memory, or a ZeroMQ
socket."""
import contextlib
import ctypes
import fcntl
import hashlib
import mmap
import os
import select
import socket
import ssl
import time

import zmq

from support import DEADLINE


def connect(uri):
    scheme, address = uri.split("://")
    host, _, port = address.rpartition(":")
    if scheme == "tcp":
        made = socket.create_connection((host, int(port)), DEADLINE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    plain.settimeout(DEADLINE)
    plain.connect(address)
    return plain


class WrongCertificate(AssertionError):
    """The broker's certificate is not the one that the join named."""


def tls_context(newest=ssl.TLSVersion.TLSv1_3):
    """Returns a context that checks nothing. The caller must check the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, newest
    return context


def wrap(plain, certificate):
    """Starts TLS 1.3 on a connection. The broker's certificate must have this SHA-256."""
    wrapped = tls_context().wrap_socket(plain)
    found = hashlib.sha256(wrapped.getpeercert(binary_form=True)).hexdigest()
    if found != certificate:
        wrapped.close()
        raise WrongCertificate(f"{found}, not {certificate}")
    assert wrapped.version() == "TLSv1.3", wrapped.version()
    return wrapped


class StreamWire:
    """Frames one after the other on a TCP connection or a Unix socket, with TLS if a certificate is given."""

    def __init__(self, uri, certificate=None):
        self.socket = connect(uri)
        if certificate is not None:
            self.socket = wrap(self.socket, certificate)

    def send(self, data):
        self.socket.settimeout(DEADLINE)
        self.socket.sendall(data)

    def receive(self, seconds):
        """Returns the next bytes that arrive within `seconds`. None means that nothing arrived, empty bytes
        mean the end."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            return self.socket.recv(1 << 20)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""

    def close(self):
        self.socket.close()


class Ring:
    """One direction of shared memory (docs/session.md, "Shared memory")."""

    def __init__(self, memory, words, begin, size):
        def word(at, kind):
            return kind.from_buffer(memory, words + at)
        self.written, self.taken = word(0, ctypes.c_uint64), word(64, ctypes.c_uint64)
        self.reader_waits, self.writer_waits = word(128, ctypes.c_uint32), word(192, ctypes.c_uint32)
        self.bytes = (ctypes.c_char * size).from_buffer(memory, begin)
        self.size = size

    def available(self):
        return self.written.value - self.taken.value

    def room(self):
        return self.size - self.available()

    def store(self, data):
        """Stores as much of the data as there is space for. Returns the number of bytes."""
        data = data[:self.room()]
        at = self.written.value % self.size
        first = data[:self.size - at]
        for place, part in (at, first), (0, data[len(first):]):
            ctypes.memmove(ctypes.addressof(self.bytes) + place, part, len(part))
        self.written.value += len(data)
        return len(data)

    def take(self):
        """Takes everything that is there."""
        count, at = self.available(), self.taken.value % self.size
        first = min(count, self.size - at)
        data = self.bytes[at:at + first] + self.bytes[:count - first]
        self.taken.value += count
        return data


class MemoryWire:
    """Frames in memory that the broker shares. The end of the Unix socket is the end of the session. The
    socket also wakes a side that waits, unless events do."""

    SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW

    def __init__(self, plain, to_broker, to_client, wakes_by_socket=False):
        """`plain` is a connection on which `share` was sent and nothing was read since."""
        self.wakes_by_socket = wakes_by_socket
        self.socket, self.sizes, self.answer, self.out, self.events = plain, (to_broker, to_client), b"", None, []
        self.socket.settimeout(DEADLINE)

    def take_answer(self):
        """Reads and returns the frame that answers `share`. If it is `shared`, the memory arrives with it."""
        data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 4)
        if not descriptors:
            return data
        descriptor, *self.events = descriptors
        self.waking, self.woken = (None, None) if self.wakes_by_socket else self.events
        assert len(self.events) == (0 if self.wakes_by_socket else 2)
        self.waiting = select.poll()
        self.waiting.register(self.socket, select.POLLRDHUP | (select.POLLIN if self.wakes_by_socket else 0))
        if self.woken is not None:
            self.waiting.register(self.woken, select.POLLIN)
        assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & self.SEALS == self.SEALS
        whole = 4096 + sum(self.sizes)
        assert os.fstat(descriptor).st_size == whole
        memory = mmap.mmap(descriptor, whole)
        os.close(descriptor)
        self.out = Ring(memory, 0, 4096, self.sizes[0])
        self.come = Ring(memory, 256, 4096 + self.sizes[0], self.sizes[1])
        return data

    def wake(self):
        if not self.wakes_by_socket:
            return os.eventfd_write(self.waking, 1)
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            self.socket.send(b"\1", socket.MSG_DONTWAIT)

    def hear(self, seconds):
        """Waits until the broker wakes this side. Returns whether the broker is still connected, or None if
        nothing woke it."""
        heard = dict(self.waiting.poll(max(1000 * seconds, 1)))
        if self.woken in heard:
            # Another thread reads the count first; the event then becomes readable again.
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.woken)
        of_socket = heard.get(self.socket.fileno(), 0)
        if of_socket & select.POLLIN and self.socket.recv(1 << 16, socket.MSG_DONTWAIT):
            of_socket &= ~select.POLLIN
        if of_socket:
            return False
        return True if heard else None

    def send(self, data):
        deadline = time.monotonic() + DEADLINE
        while data:
            data = data[self.out.store(data):]
            os.sched_yield()  # the stored bytes must be visible before the broker's flags are read
            if self.out.reader_waits.value:
                self.out.reader_waits.value = 0
                self.wake()
            if not data:
                return
            self.out.writer_waits.value = 1
            os.sched_yield()
            if self.out.room() < self.out.size // 2 and self.hear(deadline - time.monotonic()) is False:
                raise ConnectionError("the broker ended the connection")
            if time.monotonic() > deadline:
                raise TimeoutError

    def receive(self, seconds):
        """Returns the next bytes that arrive within `seconds`. None means that nothing arrived, empty bytes
        mean the end."""
        deadline = time.monotonic() + seconds
        there = True
        while True:
            data = self.come.take()
            if data:
                os.sched_yield()
                if self.come.writer_waits.value:
                    self.come.writer_waits.value = 0
                    self.wake()
                return data
            if there is False:
                return b""
            self.come.reader_waits.value = 1
            os.sched_yield()
            if self.come.available():
                continue
            there = self.hear(deadline - time.monotonic())
            if there is None and time.monotonic() >= deadline:
                return None

    def close(self):
        self.socket.close()
        while self.events:
            os.close(self.events.pop())


class ZmqWire:
    """Frames in the messages of a DEALER socket that connects once."""

    ENDS = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL

    def __init__(self, uri, kind=zmq.DEALER, **options):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        # With -1 (never) libzmq drops messages that have arrived and were not read yet.
        self.socket.reconnect_ivl = 24 * 3600 * 1000
        self.socket.linger = 0
        self.socket.sndhwm = 4  # messages
        for name, value in options.items():
            setattr(self.socket, name, value)
        self.monitor = self.socket.get_monitor_socket(self.ENDS)
        self.poller = zmq.Poller()
        for each in self.socket, self.monitor:
            self.poller.register(each, zmq.POLLIN)
        self.socket.connect(uri)

    def send(self, data):
        self.send_parts([data])

    def send_parts(self, parts):
        self.poller.register(self.socket, zmq.POLLOUT)
        ready = dict(self.poller.poll(DEADLINE * 1000))
        self.poller.register(self.socket, zmq.POLLIN)
        if self.monitor in ready:
            raise ConnectionError("the broker ended the connection")
        assert ready, "no room for a message"
        self.socket.send_multipart(parts, zmq.NOBLOCK)

    def receive(self, seconds):
        """Returns the next message that arrives within `seconds`. None means that nothing arrived, empty
        bytes mean the end."""
        ready = dict(self.poller.poll(max(seconds, 0.001) * 1000))
        if not ready:
            return None
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:  # the connection ended, and no message arrived before that
            return b"" if self.monitor in ready else None
        assert len(parts) == 1 and parts[0], parts
        return parts[0]

    def close(self):
        if not self.socket.closed:
            self.socket.disable_monitor()
            self.monitor.close()
            self.socket.close()
            self.context.term()
