"""Records every secret of the end-to-end tests, and searches for them where no secret may be: in logs,
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

# Shorter secrets occur by chance or are words. Tests use such ones where a password must be wrong.
BYTES_MIN = 8
REQUEST_FIELDS = ("password", "admin_password", "new_password")
VARIABLES = ("LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_PASSWORD", "LIGHTQ_NEW_PASSWORD")


def files_below(directory):
    """Returns the paths of the files that exist now. A running broker may remove them at any moment (see
    bytes_of)."""
    return [pathlib.Path(place, name) for place, _, names in os.walk(directory) for name in names]


def bytes_of(path):
    """Returns the content of a file. Returns nothing if the file is gone, is now a directory, or is a socket."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return b""
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return b""


class Secrets:
    """Secrets that may be in no output and no file except their own: passwords, tickets, private keys."""
    known = set()  # each is text or bytes
    ever_known = set()  # also contains those of finished test files
    homes = {}  # the name of the one file in a data directory that may contain the secret
    bytes_read_max = 1 << 20  # of a file; secrets are among settings and names, not behind messages

    @classmethod
    def plant(cls, secret, home=None):
        """Records a secret, so that searches look for it from now on. Returns it."""
        if isinstance(secret, (str, bytes)) and len(secret) >= BYTES_MIN:
            cls.known.add(secret)
            if home:
                cls.homes[secret] = home
        return secret

    @classmethod
    @contextlib.contextmanager
    def of_one_file(cls):
        """A context that forgets at its end the secrets recorded in it. Each test file in a process has its
        own secrets, and a word in one file may be a password in another."""
        kept = [(book, book.copy()) for book in (cls.known, cls.homes, Tickets.known)]
        yield
        cls.ever_known |= cls.known
        for book, before in kept:
            book.clear()
            book.update(before)

    @classmethod
    def said(cls, request):
        """Records the passwords of a request that is about to be sent, as text or as a document."""
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
        """Records the ticket in the answer to a join, if there is one. The answer may contain no other
        secret."""
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
        """Records the keys that a broker has made, and its administrator's password."""
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
        """Fails if `data` contains a secret. Without `tickets` it does not search for tickets: there may
        be thousands. `file` is the name of a file in a data directory: a secret may be in its own
        file."""
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
    """The members of `Secrets.known` that are secrets of tickets."""
    known = set()


def secret_file(path, text, mode=0o600):
    """Writes a file with a password in its first line, as LightQ reads it. Returns the path as text."""
    path = pathlib.Path(path)
    path.write_text(Secrets.plant(text.rstrip("\n")) + "\n", encoding="utf-8")
    path.chmod(mode)
    return str(path)


class WatchedStream:
    """A stream from a process. Fails if the test reads a secret from it, in one piece or in several."""

    kept_max = 4096  # bytes kept of earlier pieces, so that a secret across two pieces is found

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
    """A process of a test. Records the passwords in its environment. Fails if output that the test reads
    contains a secret. `subprocess.run` and `subprocess.Popen` make such processes once a test file has
    imported this module."""

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
    """Searches the output of a passed test, which pytest does not show. If it contains a secret, the test
    fails."""
    try:
        for title, text in report.sections:
            Secrets.absent_from(text, f"what the test printed: {title}")
    except AssertionError as found:
        report.outcome, report.longrepr, report.sections = "failed", str(found), []


def make_key_pair(made_by=zmq.curve_keypair):
    """Makes a client's key pair. Records the secret half."""
    public, secret = made_by()
    Secrets.plant(secret)
    return public, secret


def leave_for_the_whole_suite():
    """Writes the secrets that no other text contains by chance to a file. scripts/test searches the output of
    all tests for them."""
    place = variable("LIGHTQ_SECRETS_FILE")
    texts = [secret for secret in Secrets.ever_known | Secrets.known if isinstance(secret, str) and len(secret) >= 16
             and re.search(r"\d", secret) and secret.isprintable()]
    if place and texts:
        with open(os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write("\n".join(texts) + "\n")


atexit.register(leave_for_the_whole_suite)
subprocess.Popen = WatchedProcess
zmq.curve_keypair = make_key_pair
