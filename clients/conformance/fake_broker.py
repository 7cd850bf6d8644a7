"""A broker's session address that a scenario scripts. It knows docs/session.md through the test vectors' codec."""
import socket
import ssl
import struct
import subprocess
import threading

import kit_paths  # noqa: F401 - makes the modules of the tests importable
import session_frames

WELCOME = dict(version=1, frame_bytes_max=1 << 24, heartbeat_ms=0, channels_max=100, broker=1, session=1)


class FakeBroker:
    """Accepts sessions and answers their frames. `answer(op, channel, request, values)` returns bytes to send,
    or None to close the connection."""

    def __init__(self, answer, certificate=None):
        self.answer, self.certificate, self.seen, self.connections = answer, certificate, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return  # closed
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self.certificate:
                connection = self.certificate.wrap_socket(connection, server_side=True)
            while frame := self._frame(connection):
                reply = self._reply(*session_frames.decode(frame))
                if reply is None:
                    break
                connection.sendall(reply)
        except (OSError, ssl.SSLError):
            pass  # the client has gone
        finally:
            connection.close()

    @staticmethod
    def _frame(connection):
        data, length = b"", 20
        while len(data) < length:
            part = connection.recv(length - len(data))  # a second frame may follow
            if not part:
                return None
            data += part
            if len(data) == 20:
                length += struct.unpack_from("<I", data, 12)[0]
        return data

    def _reply(self, op, _flags, channel, request, values):
        self.seen.append(op)
        if op == "hello":
            return session_frames.encode("welcome", WELCOME, request=request)
        return self.answer(op, channel, request, values)

    def close(self):
        self.listener.close()


def foreign_certificate(directory):
    """Makes a TLS context of a server with a certificate that no broker has."""
    key, certificate = directory / "foreign.key", directory / "foreign.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=foreign", "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
