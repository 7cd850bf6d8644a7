"""A real broker and its clients for the end-to-end tests. Everything is on 127.0.0.1, port 0, in a temporary
directory."""
import contextlib
import json
import os
import pathlib
import signal
import socket as sockets
import subprocess
import tempfile
import time

import zmq

from harness import variable
from secret_book import Secrets, bytes_of, files_below, secret_file  # noqa: F401

BINARY = variable("LIGHTQ_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/lightq"))
# Options of sanitizers, for the environment of every program that a test starts.
SANITIZERS = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
SANITIZED = bool(variable("LIGHTQ_SANITIZE"))
AT_REST = bool(variable("LIGHTQ_TEST_AT_REST"))  # durable topics are encrypted on disk
ADMIN, ADMIN_PASSWORD = "lightq_admin", Secrets.plant("planted-admin-secret-0451")
USER, PASSWORD = "test_user", Secrets.plant("planted-user-secret-1984")
# The thread sanitizer keeps several bytes of its own for each byte that a program touches.
MEMORY_FACTOR = 4 if variable("LIGHTQ_SANITIZE") == "thread" else 1
DEADLINE = 60 if SANITIZED else 20  # seconds after which anything counts as stuck


def until(condition, what, seconds=DEADLINE):
    """Polls until condition() is true and returns its value. If this takes too long, fails with `what`, which
    is a text or a function that returns one."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.005)


def keys_for(server_key, pair=None):
    """Returns the options of a socket that connects to the broker with this key. The socket has a key pair of
    its own."""
    public, secret = pair or zmq.curve_keypair()
    return {"curve_serverkey": server_key.encode(), "curve_publickey": public, "curve_secretkey": secret}


class Address(str):
    """An address to connect to, with the ticket that a join returned for it or the keys that the join
    registered. `present` shows these to the broker."""
    ticket = keys = None

    @classmethod
    def of(cls, reply, pair=None):
        address = cls(reply["bind_uri"])
        address.ticket = reply.get("ticket")
        if "server_key" in reply:
            address.keys = keys_for(reply["server_key"], pair)
        return address


def present(socket, address):
    """Lets a ZeroMQ socket show the address's ticket or key on its next connections."""
    ticket, keys = getattr(address, "ticket", None), getattr(address, "keys", None)
    if keys is not None:
        for name, value in keys.items():
            setattr(socket, name, value)
    elif ticket is not None:
        socket.plain_username, socket.plain_password = ticket["id"].encode(), ticket["secret"].encode()


class Control:
    """A plain REQ client of the control socket. A reply must come within a deadline, or the test fails."""

    def __init__(self, context, uri, server_key=None, pair=None):
        """`server_key` is the key of a broker with encryption."""
        self.context, self.uri, self.socket = context, uri, None
        self.options = keys_for(server_key, pair) if server_key else {}
        self.connect()

    def connect(self, uri=None):
        self.close()
        self.uri = uri or self.uri
        self.socket = self.context.socket(zmq.REQ)
        self.socket.linger = 0
        for name, value in self.options.items():
            setattr(self.socket, name, value)
        self.socket.connect(self.uri)

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def send_raw(self, payload):
        Secrets.said(payload)
        self.socket.send(payload)
        if not self.socket.poll(DEADLINE * 1000):
            self.connect()
            raise AssertionError(f"no reply within {DEADLINE} s to {payload[:200]!r}")
        return Secrets.heard(json.loads(self.socket.recv().decode("utf-8")))

    def __call__(self, cmd, **fields):
        return self.send_raw(json.dumps({"cmd": cmd, **fields}).encode())

    def ok(self, cmd, **fields):
        reply = self(cmd, **fields)
        assert reply["status"] == "ok", reply
        return reply

    def fails(self, code, cmd, **fields):
        reply = self(cmd, **fields)
        assert reply["status"] == "error" and reply["code"] == code, reply
        return reply

    # The commands, with the tests' own credentials.
    def create(self, topic, broker_type="queue", **settings):
        if AT_REST and broker_type in ("file", "queue_file"):
            settings.setdefault("encrypt_at_rest", True)
        return self.ok("create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic=topic,
                       broker_type=broker_type, user_id=USER, password=PASSWORD, **settings)

    def delete(self, topic):
        return self.ok("delete_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic=topic)

    def list(self):
        return self.ok("list_topics", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)["topics"]

    def join(self, topic, kind, **more):
        pair = zmq.curve_keypair() if self.options else None
        if pair:
            more["client_key"] = pair[0].decode()
        asked = {"user_id": USER, "password": PASSWORD, **more}
        return Address.of(self.ok("join", connection_type="zmq", type=kind, topic=topic, **asked), pair)

    def leave(self, topic, uri):
        return self.ok("leave", topic=topic, user_id=USER, password=PASSWORD, bind_uri=uri)

    def stats(self, topic):
        return self.ok("stats", topic=topic, user_id=USER, password=PASSWORD)

    def broker_stats(self):
        return self.ok("stats", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)


class Broker:
    """The real binary as a separate process. `stop()`, or the fixture, ends it and checks its exit code."""

    def __init__(self, directory, *flags, control="tcp://127.0.0.1:0", environment=None, admin=True, prefix=()):
        self.directory = pathlib.Path(directory)
        self.data_dir = self.directory / "data"
        self.context = zmq.Context()
        self.flags, self.prefix = list(flags), list(prefix)
        if AT_REST:
            keys = self.directory / "at-rest.keys"
            keys.touch(0o600)
            keys.write_text("a7" * 32)
            self.flags += ["--storage-key-file", str(keys)]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
        self.environment["HOME"] = str(self.directory)
        self.environment["LIGHTQ_HTTP"] = "off"  # a test that uses HTTP gives --http
        if os.geteuid() != 0:  # otherwise these tests could not read its files in /proc
            self.environment["LIGHTQ_CORE_DUMPS"] = "true"
        if admin:
            self.environment["LIGHTQ_ADMIN_PASSWORD"] = ADMIN_PASSWORD
        self.environment.update(environment or {})
        self.control_uri = control
        self.process = None
        self.held_port = None  # a socket that keeps the control port for the next start
        self.controls, self.clients = [], []
        self.log_path = self.directory / "broker.log"

    def start(self, wait=True):
        command = [*self.prefix, BINARY, "broker", "--data-dir", str(self.data_dir), "--control", self.control_uri]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command + self.flags, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment, cwd=self.directory, start_new_session=True)
        if wait:
            until(self._ready, lambda: f"the broker's start; its log:\n{self.log()}")
            self.release_port()
            self.reconnect_controls()
        return self

    def hold_port(self):
        """Keeps others from being given the control port while no broker has it. Clients are refused, as
        without this. The broker sets SO_REUSEADDR, too, so it can bind the port."""
        scheme, address = self.control_uri.split("://")
        host, _, port = address.rpartition(":")
        if scheme != "tcp" or host != "127.0.0.1" or port == "0" or self.held_port is not None:
            return
        held = sockets.socket()
        held.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            held.bind((host, int(port)))
        except OSError:  # another broker of the test has it
            held.close()
            return
        self.held_port = held

    def release_port(self):
        if self.held_port is not None:
            self.held_port.close()
            self.held_port = None

    def _ready(self):
        assert self.process.poll() is None, f"the broker ended with {self.process.returncode}; its log:\n{self.log()}"
        try:
            found = json.loads((self.data_dir / "broker.json").read_text())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        if found["pid"] != self.process.pid:
            return False
        self.control_uri = found["control_uri"]
        return True

    def reconnect_controls(self):
        for control in self.controls:
            control.connect(self.control_uri)

    @property
    def server_key(self):
        """Returns the broker's key, or None if it does not encrypt."""
        return json.loads((self.data_dir / "broker.json").read_text()).get("server_key")

    def control(self):
        control = Control(self.context, self.control_uri, self.server_key)
        self.controls.append(control)
        return control

    def socket(self, kind, uri, **options):
        """Returns a data socket connected to `uri`, with its ticket if it is an Address. Options have their
        pyzmq names, e.g. sndhwm=1000."""
        socket = self.context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        if kind == zmq.SUB:
            socket.subscribe(b"")
        present(socket, uri)
        socket.connect(uri)
        self.clients.append(socket)
        return socket

    def log(self):
        """Returns the log as written so far. Another thread of the broker writes it, a moment after the
        event."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def logged(self, words, begin=0):
        """Waits until the log contains these words at or after `begin`. Returns the log from there."""
        until(lambda: words in self.log()[begin:], lambda: f"{words!r} in the log:\n{self.log()[begin:][-4000:]}")
        return self.log()[begin:]

    def kill(self):
        """Ends the broker by SIGKILL. The next start() uses the same control port and data directory."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.process = None
        self.hold_port()

    def terminate(self, seconds=DEADLINE, by=signal.SIGTERM):
        """Asks the broker to end. Returns the exit code. stop() requires 0."""
        self.process.send_signal(by)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
            raise AssertionError(f"the broker did not end within {seconds} s of {by.name}; its log:\n{self.log()[-4000:]}")
        self.process = None
        self.hold_port()
        return code

    def stop(self, by=signal.SIGTERM):
        code = self.terminate(by=by)
        assert code == 0, f"exit code {code}; the broker's log:\n{self.log()[-6000:]}"
        assert not (self.data_dir / "broker.json").exists(), "broker.json is left behind"

    def restart(self):
        self.stop()
        return self.start()

    def close_clients(self):
        for socket in self.clients:
            if not socket.closed:
                socket.close()
        self.clients.clear()

    def forget_all(self):
        """Deletes the topics and users of the tests, and closes their sockets at the control port."""
        control = self.control()
        administrator = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
        for topic in control.list():
            control.delete(topic["topic"])
        for user in control.ok("list_users", **administrator)["users"]:
            control.ok("delete_user", **administrator, user_id=user["user_id"])
        for each in self.controls:
            each.close()
        self.controls.clear()

    def close(self):
        """Ends everything. Every fixture calls it last. A broker that still runs must end with code 0."""
        try:
            if self.process is not None:
                assert self.process.poll() is None, (
                    f"the broker crashed with {self.process.returncode}; its log:\n{self.log()[-6000:]}")
                self.show_no_secrets()
                self.close_clients()  # otherwise a broker with a stalled client would use up its deadline
                self.stop()
        finally:
            self.release_port()
            if self.process is not None and self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.close_clients()
            for control in self.controls:
                control.close()
            self.context.destroy(linger=0)
        log = self.log()
        self.search_files()
        for line in ("AddressSanitizer", "ThreadSanitizer", "runtime error:", "Assertion"):
            assert line not in log, log[-6000:]

    def search_for_secrets(self):
        """Fails if the running broker shows a secret: in its log, data directory, command line or
        environment. The end of each test does the same."""
        self.show_no_secrets()
        self.search_files()

    def search_files(self):
        Secrets.of_data_directory(self.data_dir)
        Secrets.absent_from(bytes_of(self.log_path), "the broker's log")
        Secrets.absent_below(self.data_dir)

    def show_no_secrets(self):
        """Checks that the command line and environment of the running broker show no secret to other users."""
        for name in ("cmdline", "environ"):
            Secrets.absent_from(bytes_of(pathlib.Path(f"/proc/{self.process.pid}/{name}")), f"/proc/PID/{name}")

    # The kernel's data about the process.
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def listens_on(self, port):
        """Tells whether the broker itself listens on this TCP port. A connection cannot tell: as soon as the broker
        has closed a port, the kernel may give it to another process."""
        process = pathlib.Path(f"/proc/{self.process.pid}")
        own = set()
        for descriptor in os.listdir(process / "fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                own.add(os.readlink(process / "fd" / descriptor))
        rows = [row.split() for row in (process / "net/tcp").read_text().splitlines()[1:]]
        listening = [row for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == int(port)]
        return any(f"socket:[{row[9]}]" in own for row in listening)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def anonymous_bytes(self):
        """Returns the bytes of memory that are not of a mapped file."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            lines = dict(line.split(":", 1) for line in status)
        return sum(int(lines[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))

    def is_at_rest(self):
        """Returns whether all threads sleep at this moment."""
        states = [bytes_of(pathlib.Path(f"/proc/{self.process.pid}/task/{thread}/stat")).rsplit(b")", 1)[1].split()[0]
                  for thread in os.listdir(f"/proc/{self.process.pid}/task")]
        return all(state == b"S" for state in states)

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running_with_topic():
    """Starts a broker with the topic `t`, and stops it. It must live until then."""
    with tempfile.TemporaryDirectory(prefix="lq-") as directory:
        broker = Broker(directory).start()
        try:
            broker.control().create("t", "file")
            yield broker
        finally:
            broker.close()


@contextlib.contextmanager
def running(directory, *flags, **options):
    broker = Broker(directory, *flags, **options)
    try:
        yield broker.start()
    finally:
        broker.close()


def receive(socket, count, seconds=DEADLINE):
    """Returns `count` single-part messages in order of arrival."""
    messages = []
    deadline = time.monotonic() + seconds
    while len(messages) < count:
        try:
            messages.append(socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            left = deadline - time.monotonic()
            assert left > 0 and (socket.poll(int(left * 1000) + 1) or len(messages) == count), (
                f"{len(messages)} of {count} messages within {seconds} s")
    return messages


def receive_topic(socket, topic, count, seconds=DEADLINE):
    """Receives from a SUB socket. Returns the payloads. The first frame of every message must be the topic's
    name."""
    payloads = []
    deadline = time.monotonic() + seconds
    while len(payloads) < count:
        left = deadline - time.monotonic()
        assert left > 0 and socket.poll(int(left * 1000) + 1), f"{len(payloads)} of {count} messages within {seconds} s"
        frames = socket.recv_multipart()
        assert len(frames) == 2 and frames[0] == topic.encode(), frames[:2]
        payloads.append(frames[1])
    return payloads


def silent(socket, seconds=0.15):
    """Returns True if nothing arrives for `seconds`. Call it after a condition that shows that all work is
    done."""
    return not socket.poll(int(seconds * 1000))


def numbered(first, count, size=0):
    """Returns messages that contain their number, padded to `size` bytes."""
    return [f"{index}|".encode().ljust(size, b".") for index in range(first, first + count)]


def number_of(message):
    return int(message.split(b"|", 1)[0])
