"""A broker with CURVE encryption, and plain clients that know docs/protocol.md alone."""
import socket
import threading

import zmq

from support import ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, Broker, Control, keys_for, until  # noqa: F401


class CurveControl(Control):
    """A REQ client with encryption."""

    def joined(self, topic, kind, pair=None, **more):
        """Joins a plain endpoint and registers a key. Returns the answer, and the options for the socket that
        connects there."""
        pair = pair or zmq.curve_keypair()
        more = {"user_id": USER, "password": PASSWORD, **more}
        reply = self.ok("join", topic=topic, type=kind, client_key=pair[0].decode(), **more)
        return reply["bind_uri"], keys_for(reply["server_key"], pair)


class CurveBroker(Broker):
    """A broker that runs with --encrypt."""

    def __init__(self, directory, *flags, **options):
        super().__init__(directory, "--encrypt", *flags, **options)

    def control(self, **more):
        control = CurveControl(self.context, self.control_uri, self.server_key, **more)
        self.controls.append(control)
        return control

    def connected(self, control, kind, topic, **options):
        """Joins, and returns a connected data socket."""
        word = {zmq.PUSH: "push", zmq.PULL: "pull", zmq.SUB: "sub"}[kind]
        transport = options.pop("transport", "tcp")
        uri, keys = control.joined(topic, word, options.pop("pair", None), transport=transport)
        return self.socket(kind, uri, **keys, **options)


class Recorder:
    """A proxy on a TCP port that forwards everything and keeps a copy."""

    def __init__(self, port):
        self.to = port
        self.recorded = bytearray()
        self.lock = threading.Lock()
        self.sockets = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def uri(self):
        return f"tcp://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                ours, _ = self.listening.accept()
            except OSError:
                return
            theirs = socket.create_connection(("127.0.0.1", self.to), DEADLINE)
            for each in ours, theirs:
                each.settimeout(None)
            self.sockets += [ours, theirs]
            for pair in (ours, theirs), (theirs, ours):
                self.threads.append(threading.Thread(target=self._pass_on, args=pair, daemon=True))
                self.threads[-1].start()

    def _pass_on(self, source, target):
        try:
            while data := source.recv(1 << 16):
                with self.lock:
                    self.recorded += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def has(self, text):
        with self.lock:
            return text.encode() in self.recorded

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for each in self.sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(DEADLINE)
        for each in self.sockets:
            each.close()


def event_of(monitor):
    until(lambda: monitor.poll(0), "what becomes of the connection")
    return int.from_bytes(monitor.recv_multipart()[0][:2], "little")


def try_out(broker, kind, uri, **options):
    """Tries to connect. Returns the result that libzmq reports, and the socket."""
    made = broker.context.socket(kind)
    broker.clients.append(made)
    made.linger = 0
    if kind == zmq.SUB:
        made.subscribe(b"")
    for name, value in options.items():
        setattr(made, name, value)
    monitor = made.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH |
                                      zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    made.connect(uri)
    event = event_of(monitor)
    made.disable_monitor()
    return event, made
