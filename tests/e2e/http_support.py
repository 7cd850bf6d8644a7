"""A client of the broker's HTTP: whole requests, and raw bytes."""
import base64
import http.client
import json
import re
import socket
import ssl
import time
import urllib.parse

import pytest

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, Secrets

HTTP = ("--http", "tcp://127.0.0.1:0")
ASKER = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def address_of(broker):
    """Returns the scheme, host and port of the broker's HTTP."""
    uri = json.loads((broker.data_dir / "broker.json").read_text())["http_uri"]
    parts = urllib.parse.urlsplit(uri)
    return parts.scheme, parts.hostname, parts.port


def basic(user=ADMIN, password=ADMIN_PASSWORD):
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    Secrets.plant(text)
    return {"Authorization": f"Basic {text}"}


@pytest.fixture
def broker(make_broker):
    """A broker that serves HTTP, instead of the one of conftest.py: import this fixture."""
    return make_broker(*HTTP)


@pytest.fixture(name="http")
def administrator(broker, control):
    """A client that has logged in as the administrator. There is a topic `orders`."""
    control.ok("create_topic", **ASKER, topic="orders", broker_type="queue_file")
    return HttpClient(broker, basic())


class Response:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def samples(self):
        """Returns the values of a text of metrics by name and labels: {(name, frozenset of labels): value}."""
        found = {}
        for line in self.body.decode().splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.fullmatch(line).groups()
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in found, f"twice: {line}"
            found[key] = float(value)
        return found

    def value(self, name, **labels):
        return self.samples().get((name, frozenset(labels.items())))


class HttpClient:
    """Sends requests over one connection. `login`: headers of `basic`, or {}."""

    def __init__(self, broker, login=None, context=None):
        scheme, self.host, self.port = address_of(broker)
        if scheme == "https":
            context = context or insecure_context()
            self.connection = http.client.HTTPSConnection(self.host, self.port, timeout=DEADLINE, context=context)
        else:
            self.connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        self.login = login or {}

    def ask(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, {**self.login, **headers})
        return Response(self.connection.getresponse())

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def close(self):
        self.connection.close()


def insecure_context():
    """Accepts any certificate: the tests compare its fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class RawPeer:
    """A connection that sends bytes as they are."""

    def __init__(self, broker):
        _, host, port = address_of(broker)
        self.socket = socket.create_connection((host, port), timeout=DEADLINE)

    def say(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def hear(self):
        """Returns all bytes until the broker ends the connection."""
        heard = b""
        while True:
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                return heard
            if not piece:
                return heard
            heard += piece

    def close(self):
        self.socket.close()


def seconds_of(call):
    """Returns how long a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


class EventReader:
    """Reads server-sent events over a connection of its own."""

    def __init__(self, broker, path, login=None, source=None, **headers):
        self.client = HttpClient(broker, login)
        self.client.connection.source_address = source and (source, 0)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.client.connection.request("GET", path, None, {**self.client.login, **headers})
        self.response = self.client.connection.getresponse()
        self.status = self.response.status

    def next(self):
        """Returns the next event as (event, id, data), or None at the end. Comments are skipped."""
        event = {}
        while line := self.response.readline():
            if line == b"\n":
                if event:
                    return event.get("event"), event.get("id"), json.loads(event["data"])
            elif not line.startswith(b":"):
                name, value = line.rstrip(b"\n").decode().split(": ", 1)
                event[name] = value
        return None

    def payloads(self, count):
        return [self.next()[2]["payload"] for _ in range(count)]

    def close(self):
        self.response.close()
        self.client.close()
