"""Tests that no password appears in an answer, in the broker's log, data directory, command line or
environment, neither after valid requests nor after refused ones."""
import itertools
import json
from socket import create_connection as connect

import pytest
import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE, Secrets, secret_file
from test_bad_input import ZMTP_GREETING, ZMTP_READY

ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
# Length of the parts of a password for which the search looks: a parser's error may quote a part.
PIECE_BYTES = 10
numbers = itertools.count(1)


def password(length):
    """Returns a password of at least 15 characters. No other one has the same beginning or end. Searches look
    for both."""
    number = next(numbers)
    made = Secrets.plant(f"{number:04}>begin".ljust(length - 5, "~") + f"<{number:04}")
    Secrets.plant(made[:PIECE_BYTES])
    Secrets.plant(made[-PIECE_BYTES:])
    return made


class Asked:
    """A client that plants every password it sends. All its answers are searched for them."""

    def __init__(self, broker):
        self.broker = broker
        self.control = broker.control()

    def new(self, length=40):
        return password(length)

    def raw(self, *parts):
        """Sends a message unchanged. Returns the code of the answer, `ok`, or nothing if the connection is
        closed."""
        options = self.control.options
        socket = self.broker.socket(zmq.DEALER, self.broker.control_uri, **options)
        socket.send_multipart(parts)
        answer = socket.recv() if socket.poll(DEADLINE * 1000) else b"{}"
        socket.close()
        Secrets.absent_from(answer, "an answer")
        answer = json.loads(answer)
        return answer.get("code", answer.get("status"))

    def absent(self):
        self.broker.search_for_secrets()


@pytest.fixture(params=[[], ["--encrypt"]], ids=["clear", "encrypted"])
def asked(make_broker, request):
    asked = Asked(make_broker(*request.param))
    asked.control.ok("list_topics", **ADMINISTRATOR)
    return asked


def test_a_piece_of_a_password_is_found(asked):
    piece = asked.new()[:PIECE_BYTES]
    with open(asked.broker.log_path, "ab") as log:
        log.write(b"refused: ... " + piece.encode() + b" ...")
    with pytest.raises(AssertionError, match="a secret stands in the broker's log"):
        asked.absent()
    asked.broker.log_path.write_bytes(b"")


@pytest.mark.parametrize("length", [15, 1000])
def test_valid_and_refused_requests_leave_no_password(asked, length):
    control, new = asked.control, lambda: asked.new(length)
    own, anns = new(), new()
    created = {"topic": "t", "broker_type": "queue", "user_id": "shop", "password": own}
    control.ok("create_topic", **ADMINISTRATOR, **created)
    control.fails("topic_already_exists", "create_topic", **ADMINISTRATOR, **created)
    control.fails("unauthorized_access", "create_topic", admin_user_id=ADMIN, admin_password=new(), **created)
    control.ok("create_user", **ADMINISTRATOR, user_id="ann", password=anns,
               rights=[{"topic": "*", "rights": ["produce", "consume"]}])
    control.fails("user_already_exists", "create_user", **ADMINISTRATOR, user_id="ann", password=new())
    control.fails("invalid_request", "create_user", **ADMINISTRATOR, user_id="bob", password=new(), uid="none")
    asked.absent()
    join = {"type": "push", "delivery": "session"}
    for _ in range(2):  # the second login uses the cached result of the first
        control.ok("join", **join, topic="t", user_id="shop", password=own)
        control.ok("join", **join, topic="t", user_id="ann", password=anns)
    for topic in ("t", "none"):
        for user in ("shop", "ann", "nobody", ADMIN):
            control.fails("unauthorized_access", "join", **join, topic=topic, user_id=user, password=new())
    control.fails("unauthorized_access", "stats", topic="t", user_id="ann", password=new())
    control.fails("unauthorized_access", "list_topics", admin_user_id=ADMIN, admin_password=new())
    control.ok("stats", topic="t", user_id="shop", password=own)
    asked.absent()
    anns_next = new()
    control.ok("set_password", user_id="ann", password=anns, new_password=anns_next)
    control.fails("unauthorized_access", "set_password", user_id="ann", password=anns, new_password=new())
    control.ok("set_password", **ADMINISTRATOR, user_id="ann", new_password=new())
    control.ok("set_password", **ADMINISTRATOR, topic="t", new_password=new())
    control.fails("user_not_found", "set_password", **ADMINISTRATOR, user_id="nobody", new_password=new())
    asked.absent()


def test_invalid_requests_leave_no_password(asked):
    def login(**more):
        return json.dumps({"cmd": "stats", "topic": "t", "user_id": "u", "password": asked.new(), **more}).encode()

    spaced = json.dumps({"password": asked.new(), "cmd": "ping", "z": [1, {"password": asked.new()}]}, indent=30).encode()
    assert asked.raw(spaced) == "ok"
    for bad in (login()[:-1], login()[:-2], login() + b"x", login() + b"\xff", login()[:-1] + b',"n":1e999}',
                login().replace(b"begin", b"\\x41"), b"[" + login(), login() + login()):
        assert asked.raw(bad) == "invalid_json", bad
    twice = login()
    assert asked.raw(twice[:-1] + b',"password":"' + asked.new().encode() + b'"}') == "invalid_request"
    assert asked.raw(b"[" + login() + b"]") == "invalid_cmd"
    assert asked.raw(login(), login()) == "invalid_json"
    assert asked.raw(login(user_id=5)) == "invalid_request"
    assert asked.raw(login(password=asked.new(2000))) == "invalid_request"
    # In several pieces, and longer than the broker keeps.
    assert asked.raw(login(filler="x" * 60_000, topic=5)) == "invalid_request"
    for size in (70_000, 700_000):
        assert asked.raw(login(filler="x" * size)) == "request_too_large"
    asked.absent()


def test_many_concurrent_wrong_logins_leave_no_password(asked):
    socket = asked.broker.socket(zmq.DEALER, asked.broker.control_uri, **asked.control.options)
    count, passwords = 200, [asked.new() for _ in range(40)]
    for index in range(count):
        request = {"cmd": "stats", "topic": "t", "user_id": "u", "password": passwords[index % 40], "filler": "x" * 700}
        socket.send(json.dumps(request).encode())
    codes = set()
    for _ in range(count):
        assert socket.poll(DEADLINE * 1000)
        answer = socket.recv()
        Secrets.absent_from(answer, "an answer")
        codes.add(json.loads(answer)["code"])
    assert "unauthorized_access" in codes and codes <= {"unauthorized_access", "busy"}, codes
    asked.absent()


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_client_that_leaves_within_its_request_leaves_no_password(make_broker, size):
    asked = Asked(make_broker())
    host, port = asked.broker.control_uri.removeprefix("tcp://").rsplit(":", 1)
    request = json.dumps({"password": asked.new(), "filler": "x" * size}).encode()
    with connect((host, int(port)), DEADLINE) as stranger:
        stranger.sendall(ZMTP_GREETING + ZMTP_READY)
        stranger.sendall(b"\x02" + (2 * size).to_bytes(8, "big") + request)
        assert stranger.recv(1)
    asked.control.ok("list_topics", **ADMINISTRATOR)
    asked.absent()


@pytest.mark.parametrize("length", [15, 40, 1000])
def test_the_administrators_password_is_in_no_output(make_broker, tmp_path, length):
    of_environment, of_file = password(length), password(length)
    broker = make_broker(admin=False, environment={"LIGHTQ_ADMIN_PASSWORD": of_environment})
    broker.search_for_secrets()
    broker.stop()
    broker.flags += ["--admin-password-file", secret_file(tmp_path / "password", of_file)]
    broker.start()
    broker.control().ok("list_topics", admin_user_id=ADMIN, admin_password=of_file)
    broker.search_for_secrets()


def test_the_created_administrators_password_is_in_its_file_only(make_broker):
    broker = make_broker(admin=False)
    for _ in range(2):  # the first start makes the password; the second reads it
        made = json.loads((broker.data_dir / "admin.json").read_text())["admin_password"]
        broker.search_for_secrets()
        assert made in Secrets.known
        broker.restart()
