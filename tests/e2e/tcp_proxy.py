"""A TCP proxy that records the bytes that pass."""
import socket
import threading
import time


class RecordingProxy:
    """A proxy in front of one address. It forwards bytes as they arrive, or `delay` seconds later, as on a
    slow network. It records both directions."""

    def __init__(self, uri, delay=0):
        self.delay = delay
        host, _, port = uri.removeprefix("tcp://").rpartition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock, self.to_broker, self.to_client = threading.Lock(), bytearray(), bytearray()
        self.sockets = [self.listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            broker = socket.create_connection(self.target)
            with self.lock:
                self.sockets += [client, broker]
            for come, go, record in (client, broker, self.to_broker), (broker, client, self.to_client):
                threading.Thread(target=self._pass_on, args=(come, go, record), daemon=True).start()

    def _pass_on(self, come, go, record):
        try:
            while data := come.recv(1 << 16):
                with self.lock:
                    record += data
                time.sleep(self.delay)  # delays all later bytes too, as a slow network does
                go.sendall(data)
            go.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of the two sockets is closed

    def seen(self):
        """Returns everything that has passed in either direction."""
        with self.lock:
            return bytes(self.to_broker) + bytes(self.to_client)

    def close(self):
        with self.lock:
            for each in self.sockets:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # not connected
                each.close()
