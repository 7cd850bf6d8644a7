"""Every secret that the end-to-end tests give out or are given, and the search for them where none must stand: in logs,
outputs, answers, the data directory and /proc."""
import atexit
import contextlib
import errno
import json
import os
import pathlib
import re
import subprocess

import zmq
import zmq.utils.z85

from harness import variable

# Shorter ones occur by chance, or are words: tests use those where a password is to be wrong.
BYTES_MIN = 8
REQUEST_FIELDS = ("password", "admin_password", "new_password")
VARIABLES = ("LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_PASSWORD", "LIGHTQ_NEW_PASSWORD")


def files_below(directory):
    """Paths of the files there now; a broker that runs may take them away again at any moment (see bytes_of)."""
    return [pathlib.Path(place, name) for place, _, names in os.walk(directory) for name in names]


def bytes_of(path):
    """What the file holds; nothing if it is gone by now, a directory in its place, or a socket."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return b""
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return b""


class Secrets:
    """What must stand in no output and no file but its own: passwords, tickets, private keys."""
    known = set()  # of text or bytes
    ever_known = set()  # those of test files that are done, too
    homes = {}  # the name of the one file in a data directory that may hold it
    bytes_read_max = 1 << 20  # of a file: a secret stands among settings and names, not behind messages

    @classmethod
    def plant(cls, secret, home=None):
        """Watches a secret from now on; answers it."""
        if isinstance(secret, (str, bytes)) and len(secret) >= BYTES_MIN:
            cls.known.add(secret)
            if home:
                cls.homes[secret] = home
        return secret

    @classmethod
    @contextlib.contextmanager
    def of_one_file(cls):
        """Forgets in the end what was planted meanwhile: of several test files in one process each has secrets of its
        own, and an ordinary word of one may be a password of another."""
        kept = [(book, book.copy()) for book in (cls.known, cls.homes, Tickets.known)]
        yield
        cls.ever_known |= cls.known
        for book, before in kept:
            book.clear()
            book.update(before)

    @classmethod
    def said(cls, request):
        """Watches the passwords of a request that is about to be sent, as text or as a document."""
        if isinstance(request, (str, bytes)):
            try:
                request = json.loads(request)
            except (ValueError, RecursionError):
                return
        if isinstance(request, dict):
            for name in REQUEST_FIELDS:
                cls.plant(request.get(name))

    @classmethod
    def heard(cls, reply):
        """Watches the ticket of a join's answer, if it has one; the answer holds no other secret."""
        if not isinstance(reply, dict):
            return reply
        cls.absent_from(json.dumps({name: value for name, value in reply.items() if name != "ticket"}),
                        f"the answer to {reply.get('cmd')}", tickets=False)
        if isinstance(reply.get("ticket"), dict):
            Tickets.known.add(cls.plant(reply["ticket"]["secret"]))
        return reply

    @classmethod
    def of_environment(cls, environment):
        for name in VARIABLES:
            cls.plant((environment or {}).get(name))

    @classmethod
    def of_data_directory(cls, directory):
        """Watches the keys that a broker has made, and its administrator's password."""
        for name in ("curve.key", "ticket.key"):
            key = bytes_of(directory / name)
            cls.plant(key, name)
            if name == "curve.key" and len(key) == 32:
                cls.plant(zmq.utils.z85.encode(key), name)
        for line in re.findall(rb"^[A-Za-z0-9+/=]{16,}$", bytes_of(directory / "tls.key"), re.M):
            cls.plant(line, "tls.key")
        with contextlib.suppress(ValueError):
            cls.plant(json.loads(bytes_of(directory / "admin.json")).get("admin_password"), "admin.json")

    @classmethod
    def absent_from(cls, data, where, tickets=True, file=None):
        """`tickets`: whether to look for these too, of which there may be thousands. `file`: its name, in a data
        directory."""
        data = data if isinstance(data, bytes) else data.encode()
        for secret in cls.known if tickets else cls.known - Tickets.known:
            if (secret if isinstance(secret, bytes) else secret.encode()) in data:
                if file is None or cls.homes.get(secret) != file:
                    raise AssertionError(f"a secret stands in {where}")

    @classmethod
    def absent_below(cls, directory):
        for path in files_below(directory):
            if not path.is_file():
                continue
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                cls.absent_from(file.read(cls.bytes_read_max), path, file=path.name)


class Tickets:
    """Those of `Secrets.known` that are tickets' secrets."""
    known = set()


def secret_file(path, text, mode=0o600):
    """A file with a password in its first line, as LightQ takes it; its path as text."""
    path = pathlib.Path(path)
    path.write_text(Secrets.plant(text.rstrip("\n")) + "\n", encoding="utf-8")
    path.chmod(mode)
    return str(path)


class WatchedStream:
    """A stream from a process: what a test reads of it holds no secret, in one piece or in several."""

    kept_max = 4096  # of what was read before, behind which the next piece comes

    def __init__(self, stream, where):
        self._stream, self._where, self._kept = stream, where, None

    def _watch(self, piece):
        if piece:
            self._kept = piece if self._kept is None else self._kept + piece
            Secrets.absent_from(self._kept, self._where)
            self._kept = self._kept[-self.kept_max:]
        return piece

    def read(self, *size):
        return self._watch(self._stream.read(*size))

    def read1(self, *size):
        return self._watch(self._stream.read1(*size))

    def readline(self, *size):
        return self._watch(self._stream.readline(*size))

    def readlines(self, *size):
        return [self._watch(line) for line in self._stream.readlines(*size)]

    def __iter__(self):
        return map(self._watch, self._stream)

    def __getattr__(self, name):
        return getattr(self._stream, name)


class WatchedProcess(subprocess.Popen):
    """Any process of a test: the passwords in its environment are watched, and what it wrote, if the test takes that,
    holds no secret. It is what `subprocess.run` and `subprocess.Popen` make, once a test file imports this."""

    def __init__(self, *arguments, **options):
        Secrets.of_environment(options.get("env"))
        super().__init__(*arguments, **options)
        for name in ("stdout", "stderr"):
            if stream := getattr(self, name):
                setattr(self, name, WatchedStream(stream, f"the output of {self.args}"))

    def communicate(self, *arguments, **options):
        outputs = super().communicate(*arguments, **options)
        for output in outputs:
            Secrets.absent_from(output or b"", f"the output of {self.args}")
        return outputs


def search_printed(report):
    """What a test that passed has printed is shown to nobody: it is looked through here, and fails it if it has a
    secret in it."""
    try:
        for title, text in report.sections:
            Secrets.absent_from(text, f"what the test printed: {title}")
    except AssertionError as found:
        report.outcome, report.longrepr, report.sections = "failed", str(found), []


def make_key_pair(made_by=zmq.curve_keypair):
    """A client's key pair; the secret half is watched."""
    public, secret = made_by()
    Secrets.plant(secret)
    return public, secret


def leave_for_the_whole_suite():
    """The secrets that no other text can hold by chance, for who looks through the output of all tests: scripts/test."""
    place = variable("LIGHTQ_SECRETS_FILE")
    texts = [secret for secret in Secrets.ever_known | Secrets.known if isinstance(secret, str) and len(secret) >= 16
             and re.search(r"\d", secret) and secret.isprintable()]
    if place and texts:
        with open(os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write("\n".join(texts) + "\n")


atexit.register(leave_for_the_whole_suite)
subprocess.Popen = WatchedProcess
zmq.curve_keypair = make_key_pair
