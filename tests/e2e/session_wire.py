"""What carries the frames of a session of the tests: a plain connection, one with TLS, or a ZeroMQ socket."""
import hashlib
import socket
import ssl

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
    """Another one than the join has named."""


def tls_context(newest=ssl.TLSVersion.TLSv1_3):
    """Checks nothing: whoever uses it looks at the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, newest
    return context


def wrap(plain, certificate):
    """TLS 1.3 on a connection, with the one broker that has the certificate of this SHA-256."""
    wrapped = tls_context().wrap_socket(plain)
    found = hashlib.sha256(wrapped.getpeercert(binary_form=True)).hexdigest()
    if found != certificate:
        wrapped.close()
        raise WrongCertificate(f"{found}, not {certificate}")
    assert wrapped.version() == "TLSv1.3", wrapped.version()
    return wrapped


class StreamWire:
    """Frames one behind the other on a TCP connection or a Unix socket; with TLS where a certificate is named."""

    def __init__(self, uri, certificate=None):
        self.socket = connect(uri)
        if certificate is not None:
            self.socket = wrap(self.socket, certificate)

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
