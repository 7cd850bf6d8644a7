"""What carries the frames of a session of the tests: a plain connection, or a ZeroMQ socket."""
import socket

import zmq

from support import DEADLINE


def connect(uri):
    scheme, address = uri.split("://")
    host, _, port = address.rpartition(":")
    if scheme == "tcp":
        return socket.create_connection((host, int(port)), DEADLINE)
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    plain.settimeout(DEADLINE)
    plain.connect(address)
    return plain


class StreamWire:
    """Frames one behind the other on a TCP connection or a Unix socket."""

    def __init__(self, uri):
        self.socket = connect(uri)

    def send(self, data):
        self.socket.settimeout(DEADLINE)
        self.socket.sendall(data)

    def receive(self, seconds):
        """What comes first within `seconds`; None: nothing; nothing in it: the end."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            return self.socket.recv(1 << 20)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""

    def close(self):
        self.socket.close()


class ZmqWire:
    """Frames in the messages of a DEALER, which connects once."""

    ENDS = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL

    def __init__(self, uri, kind=zmq.DEALER, **options):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.reconnect_ivl = 24 * 3600 * 1000  # -1, never, takes away what had come and was not read yet
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
        """As of the other one: the message that comes first."""
        ready = dict(self.poller.poll(max(seconds, 0.001) * 1000))
        if not ready:
            return None
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:  # an end, and nothing came before it
            return b"" if self.monitor in ready else None
        assert len(parts) == 1 and parts[0], parts
        return parts[0]

    def close(self):
        if not self.socket.closed:
            self.socket.disable_monitor()
            self.monitor.close()
            self.socket.close()
            self.context.term()
