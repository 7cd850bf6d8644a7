"""Tests that no password stays in the broker's memory, neither after valid requests nor after refused ones."""
import itertools
import json
from socket import create_connection as connect

import pytest
import zmq

from memory_support import pieces_in_memory, places_in_memory
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, SANITIZED, Secrets, secret_file, until
from test_bad_input import ZMTP_GREETING, ZMTP_READY

pytestmark = pytest.mark.skipif(SANITIZED, reason="sanitizers keep what was freed, in memory without end")
ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
numbers = itertools.count(1)


def password(length):
    """Returns a password of at least 15 characters. No other one has the same beginning or end."""
    number = next(numbers)
    return Secrets.plant(f"{number:04}>begin".ljust(length - 5, "~") + f"<{number:04}")


class Asked:
    """A client that records every password it sends."""

    def __init__(self, broker):
        self.broker, self.sent = broker, {ADMIN_PASSWORD}
        self.control = broker.control()

    def new(self, length=40):
        made = password(length)
        self.sent.add(made)
        return made

    def raw(self, *parts):
        """Sends a message unchanged. Returns the code of the answer, `ok`, or nothing if the connection is
        closed."""
        options = self.control.options
        socket = self.broker.socket(zmq.DEALER, self.broker.control_uri, **options)
        socket.send_multipart(parts)
        answer = json.loads(socket.recv()) if socket.poll(DEADLINE * 1000) else {}
        socket.close()
        return answer.get("code", answer.get("status"))

    def absent(self):
        until(lambda: not pieces_in_memory(self.broker.process, self.sent),
              lambda: f"no piece of a password in memory: {sorted(pieces_in_memory(self.broker.process, self.sent))}")


@pytest.fixture(params=[[], ["--encrypt"]], ids=["clear", "encrypted"])
def asked(make_broker, request):
    asked = Asked(make_broker(*request.param))
    asked.control.ok("list_topics", **ADMINISTRATOR)
    return asked


def test_secrets_in_memory_are_found(asked):
    asked.control.ok("create_topic", **ADMINISTRATOR, topic="a-name-that-is-no-secret", broker_type="queue")
    assert places_in_memory(asked.broker.process, "a-name-that-is-no-secret") > 0
    assert pieces_in_memory(asked.broker.process, {"a-name-tha...", "...at-is-no-secret", "another-name"}) == {
        "a-name-tha...", "...at-is-no-secret"}


# Short strings are inside the string object, long ones on the heap.
@pytest.mark.parametrize("length", [15, 1000])
def test_no_copy_remains_after_valid_and_refused_requests(asked, length):
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


def test_no_copy_remains_after_invalid_requests(asked):
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


def test_no_copy_remains_after_many_concurrent_requests(asked):
    socket = asked.broker.socket(zmq.DEALER, asked.broker.control_uri, **asked.control.options)
    count, passwords = 200, [asked.new() for _ in range(40)]
    for index in range(count):
        request = {"cmd": "stats", "topic": "t", "user_id": "u", "password": passwords[index % 40], "filler": "x" * 700}
        socket.send(json.dumps(request).encode())
    codes = set()
    for _ in range(count):
        assert socket.poll(DEADLINE * 1000)
        codes.add(json.loads(socket.recv())["code"])
    assert "unauthorized_access" in codes and codes <= {"unauthorized_access", "busy"}, codes
    asked.absent()


@pytest.mark.parametrize("size", [10, 100_000])
def test_no_copy_remains_after_a_client_that_leaves_within_its_request(make_broker, size):
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
def test_memory_contains_no_copy_of_the_administrators_password(make_broker, tmp_path, length):
    of_environment, of_file = password(length), password(length)
    broker = make_broker(admin=False, environment={"LIGHTQ_ADMIN_PASSWORD": of_environment})
    until(lambda: not pieces_in_memory(broker.process, {of_environment}), "none of the environment's")
    broker.stop()
    broker.flags += ["--admin-password-file", secret_file(tmp_path / "password", of_file)]
    broker.start()
    broker.control().ok("list_topics", admin_user_id=ADMIN, admin_password=of_file)
    until(lambda: not pieces_in_memory(broker.process, {of_environment, of_file}), "none of the file's")


def test_memory_contains_no_copy_of_the_created_administrators_password(make_broker):
    broker = make_broker(admin=False)
    for _ in range(2):  # the first start makes the password; the second reads it
        made = Secrets.plant(json.loads((broker.data_dir / "admin.json").read_text())["admin_password"], "admin.json")
        until(lambda made=made: not pieces_in_memory(broker.process, {made}), "none of it")
        broker.restart()
