"""Stands between a client and a broker: a proxy that cuts, delays and holds connections, and a relay of the
control socket that leads the client to it."""
import json
import socket
import threading
import time

import kit_paths  # noqa: F401 - makes the modules of the tests importable
import zmq
from support import keys_for
from tcp_proxy import RecordingProxy


class CuttingProxy(RecordingProxy):
    """Forwards bytes. Cuts every connection after `cut_after` bytes (None: never), and discards the broker's
    bytes while `is_holding`."""

    def __init__(self, uri, delay=0, cut_after=None):
        self.cut_after, self.is_holding, self.cuts = cut_after, False, 0
        super().__init__(uri, delay)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            try:
                broker = socket.create_connection(self.target)
            except OSError:
                client.close()  # the broker is not there at the moment
                continue
            with self.lock:
                self.sockets += [client, broker]
            left = [self.cut_after() if self.cut_after else None]
            for come, go, to_client in (client, broker, False), (broker, client, True):
                threading.Thread(target=self._forward, args=(come, go, to_client, left), daemon=True).start()

    def _forward(self, come, go, to_client, left):
        try:
            while data := come.recv(1 << 16):
                if self.delay:
                    time.sleep(self.delay)  # delays all later bytes too, as a slow network does
                if to_client and self.is_holding:
                    continue
                if left[0] is not None and len(data) >= left[0]:
                    go.sendall(data[:left[0]])
                    self.cuts += 1
                    break
                if left[0] is not None:
                    left[0] -= len(data)
                go.sendall(data)
        except OSError:
            pass  # one of the two sockets is closed
        self._end(come, go)

    def _end(self, *ended):
        for each in ended:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # not connected any more
            with self.lock:
                if each in self.sockets:
                    self.sockets.remove(each)
                    each.close()

    def cut(self):
        """Ends all connections."""
        with self.lock:
            ended = [each for each in self.sockets if each is not self.listener]
        self._end(*ended)
        self.cuts += 1


class ControlRelay:
    """Forwards requests to the broker's control socket. In replies to joins it replaces the address by that of
    a listener from `make_proxy`, one for each address."""

    def __init__(self, broker, make_proxy):
        self.broker, self.make_proxy, self.proxies, self.bare = broker, make_proxy, {}, set()
        self.server_key, secret = None, None
        self.context = zmq.Context()
        self.front, self.back = self.context.socket(zmq.ROUTER), self.context.socket(zmq.DEALER)
        if broker.server_key:
            public, secret = zmq.curve_keypair()
            self.server_key = public.decode()
            self.front.curve_server, self.front.curve_secretkey = True, secret
            for name, value in keys_for(broker.server_key).items():
                setattr(self.back, name, value)
        port = self.front.bind_to_random_port("tcp://127.0.0.1")
        self.uri = f"tcp://127.0.0.1:{port}"
        self.back.reconnect_ivl = 20  # milliseconds
        self.back.connect(broker.control_uri)
        self.is_closed = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        poller = zmq.Poller()
        for each in self.front, self.back:
            each.linger = 0
            poller.register(each, zmq.POLLIN)
        while not self.is_closed.is_set():
            for ready, _ in poller.poll(20):
                frames = ready.recv_multipart()
                if ready is self.front:
                    self._ask(frames)
                else:
                    self._answer(frames)

    def _ask(self, frames):
        if b"" not in frames[1:]:  # a client without an envelope
            self.bare.add(frames[0])
            frames.insert(1, b"")
        self.back.send_multipart(frames)

    def _answer(self, frames):
        reply = json.loads(frames[-1])
        if reply.get("bind_uri", "").startswith("tcp://"):
            uri = reply["bind_uri"]
            if uri not in self.proxies:
                self.proxies[uri] = self.make_proxy(uri)
            reply["bind_uri"] = self.proxies[uri].uri
            frames[-1] = json.dumps(reply).encode()
        if frames[0] in self.bare:
            frames.remove(b"")
        self.front.send_multipart(frames)

    def each(self, act):
        for proxy in list(self.proxies.values()):
            act(proxy)

    def close(self):
        self.is_closed.set()
        self.thread.join()
        self.each(lambda proxy: proxy.close())
        self.context.destroy(linger=0)
