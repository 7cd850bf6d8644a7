"""Tests of the broker's HTTP: addresses, login, rights, TLS, and bad input over sockets."""
import hashlib
import json
import pathlib
import ssl
import subprocess
import sys

import pytest

from http_support import HTTP, HttpClient, RawPeer, address_of, basic, broker, insecure_context  # noqa: F401
from support import ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, Secrets, until

HEAD = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
PASSWORD = Secrets.plant("planted-http-secret-2718")


def make_user(control, name, *rights):
    """Makes a user with rights, each (pattern, right)."""
    asker = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
    control.ok("create_user", **asker, user_id=name, password=PASSWORD,
               rights=[{"topic": pattern, "rights": [right]} for pattern, right in rights])
    return basic(name, PASSWORD)


# --- The address ---

def test_broker_json_and_the_log_name_the_address(broker):
    uri = json.loads((broker.data_dir / "broker.json").read_text())["http_uri"]
    assert uri.startswith("http://127.0.0.1:") and not uri.endswith(":0")
    broker.logged(f'"http: {uri}"')


def test_off_means_no_thread_and_no_socket(make_broker):
    def threads(broker):
        return len(list((broker.data_dir / f"/proc/{broker.process.pid}/task").iterdir()))

    on, off = make_broker(*HTTP), make_broker("--http", "off")
    assert "http_uri" not in json.loads((off.data_dir / "broker.json").read_text())
    assert "http:" not in off.log()
    assert threads(on) == threads(off) + 1


@pytest.mark.clear
def test_other_machines_reach_it_only_encrypted_or_by_permission(make_broker):
    broker = make_broker(start=False)
    command = [BINARY, "broker", "--data-dir", str(broker.data_dir), "--control", "tcp://127.0.0.1:0", "--http", "tcp://0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert done.returncode == 1 and "http: tcp://0.0.0.0:0 is not a loopback address" in done.stderr, done.stderr
    permitted = make_broker("--http", "tcp://0.0.0.0:0", "--insecure")
    permitted.logged('level=warning msg="insecure: http: ')


def test_an_address_that_is_taken_and_was_asked_for_is_an_error(broker, make_broker):
    _, host, port = address_of(broker)
    second = make_broker(start=False)
    done = subprocess.run([BINARY, "broker", "--data-dir", str(second.data_dir), "--control", "tcp://127.0.0.1:0",
                           "--http", f"tcp://{host}:{port}"], capture_output=True, text=True, timeout=DEADLINE, env=second.environment)
    assert done.returncode == 1 and f"http: cannot listen on tcp://{host}:{port}" in done.stderr, done.stderr


def test_a_default_address_that_is_taken_is_a_warning(make_broker):
    """In a network namespace of its own: no other test and no other broker sees that port."""
    prefix = (sys.executable, str(pathlib.Path(__file__).with_name("http_namespace.py")))
    broker = make_broker(start=False, prefix=prefix, environment={"LIGHTQ_HTTP": ""})
    broker.control_uri = f"ipc://{broker.directory}/control.sock"
    broker.start(wait=False)
    until(lambda: broker.process.poll() is not None or "is ready" in broker.log(), lambda: f"its start: {broker.log()}")
    if broker.process.poll() == 77:
        broker.process = None
        pytest.skip("the system permits no network namespaces")
    line = next(line for line in broker.log().splitlines() if "level=warning" in line)
    assert "http: cannot listen on tcp://127.0.0.1:5001" in line and "--http off" in line
    assert "http_uri" not in json.loads((broker.data_dir / "broker.json").read_text())
    broker.stop()


@pytest.mark.parametrize("wrong", ["5001", "http://127.0.0.1:5001", "tcp://127.0.0.1", "tcp://u:p@127.0.0.1:1", "ipc:///x"])
def test_an_address_that_is_none_is_an_error(make_broker, wrong):
    broker = make_broker(start=False)
    done = subprocess.run([BINARY, "broker", "--data-dir", str(broker.data_dir), "--control", "tcp://127.0.0.1:0", "--http", wrong],
                          capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert done.returncode in (1, 2) and "http" in done.stderr, done.stderr


# --- Login and rights ---

def test_metrics_need_a_login(broker):
    client = HttpClient(broker)
    for headers in ({}, basic(password=Secrets.plant("planted-wrong-secret")), basic("nobody"), {"Authorization": "Bearer x"},
                    {"Authorization": "Basic %%%"}):
        answer = client.get("/metrics", **headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith('Basic realm="LightQ"')
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "unauthorized_access"
    assert client.get("/metrics", **basic()).status == 200


def test_wrong_passwords_are_slowed_down_as_on_the_control_socket(broker, control):
    client = HttpClient(broker, basic(password=Secrets.plant("planted-wrong-secret")))
    for _ in range(6):
        assert client.get("/metrics").status == 401
    assert control.broker_stats()["auth_failures"] == 6
    assert HttpClient(broker, basic()).get("/metrics").value("lightq_auth_failures_total", kind="password") == 6


def test_a_user_sees_the_topics_that_stats_would_show(broker, control):
    for topic in ("orders.a", "orders.b", "secret"):
        control.create(topic)
    login = make_user(control, "watcher", ("orders.*", "consume"))
    seen = HttpClient(broker, login).get("/metrics")
    topics = {dict(labels).get("topic") for _, labels in seen.samples()} - {None}
    assert topics == {"orders.a", "orders.b"}
    names = {name for name, _ in seen.samples()}
    assert "lightq_build_info" in names
    assert not any(name.startswith(("process_", "lightq_limits", "lightq_connections", "lightq_append")) for name in names)
    everything = {name for name, _ in HttpClient(broker, basic()).get("/metrics").samples()}
    assert {"process_open_fds", "lightq_limits_reached_total", "lightq_append_seconds_count"} <= everything


def test_a_user_who_is_deleted_is_refused(broker, control):
    login = make_user(control, "watcher", ("*", "consume"))
    client = HttpClient(broker, login)
    assert client.get("/metrics").status == 200
    control.ok("delete_user", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, user_id="watcher")
    assert client.get("/metrics").status == 401


def test_health_needs_no_login_and_names_no_topic(broker, control, session):
    control.create("very-secret-name", "file")
    session("very-secret-name")
    client = HttpClient(broker)
    assert client.get("/healthz").body == b"ok\n"
    answer = client.get("/readyz")
    assert answer.status == 200 and answer.json() == {
        "ready": True, "checks": {"append": "ok", "disk": "ok", "topics": "ok", "descriptors": "ok"}}
    assert "very-secret-name" not in answer.body.decode()


# --- Names and origins ---

@pytest.mark.parametrize("host,status", [("127.0.0.1", 200), ("LOCALHOST:5001", 200), ("[::1]:1", 200), ("evil.example", 421),
                                         ("broker.test", 200), ("a b", 400), ("", 400)])
def test_requests_must_be_addressed_to_this_broker(make_broker, host, status):
    peer = RawPeer(make_broker(*HTTP, "--http-hosts", "broker.test,other.test"))
    peer.say(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert peer.hear().startswith(f"HTTP/1.1 {status} ".encode())


def test_pages_of_other_origins_are_refused(broker):
    client = HttpClient(broker, basic())
    _, host, port = address_of(broker)
    assert client.get("/metrics", Origin=f"http://{host}:{port}").status == 200
    for origin in ("http://evil.example", f"http://{host}", "null"):
        assert client.get("/metrics", Origin=origin).status == 403


# --- Paths, methods, parameters ---

def test_other_paths_and_methods_have_problems(broker):
    client = HttpClient(broker, basic())
    answer = client.get("/nothing")
    assert (answer.status, answer.json()["code"]) == (404, "invalid_cmd")
    answer = client.ask("POST", "/metrics", "x")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    head = client.ask("HEAD", "/metrics")
    assert head.status == 200 and int(head.headers["Content-Length"]) > 1000 and head.body == b""
    for wrong in ("?topic=", "?topic=a/b", "?detail=no", "?zeros=1", "?other=1", "?topic=a&topic=b", "?topic=%2"):
        answer = client.get("/metrics" + wrong)
        assert (answer.status, answer.json()["code"]) == (400, "invalid_request"), wrong


# --- Bad input over sockets ---

@pytest.mark.parametrize("text,status", [
    (b"\x00\x01\x02\x03\r\n\r\n", 400), (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400), (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", 505), (HEAD.encode() + b"X: \xff\x01\r\n\r\n", 400),
    (HEAD.encode() + b"Host: other\r\n\r\n", 400), (HEAD.encode() + b"X: " + b"a" * 40_000, 431), (HEAD.encode() + b"X: y\r\n" * 200 + b"\r\n", 431),
    (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    (b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413),
    (b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
])
@pytest.mark.clear
def test_bad_input_is_answered_and_ends_only_its_connection(broker, text, status):
    peer = RawPeer(broker)
    peer.say(text)
    answer = peer.hear()
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()) and b"Connection: close" in answer, answer
    assert b"application/problem+json" in answer
    assert HttpClient(broker).get("/healthz").status == 200


@pytest.mark.clear
def test_requests_that_arrive_together_are_answered_in_order(broker):
    peer = RawPeer(broker)
    peer.say((HEAD + "\r\n") * 50 + "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answers = peer.hear()
    assert answers.count(b"HTTP/1.1 200 OK") == 50 and answers.rindex(b"HTTP/1.1 404") > answers.rindex(b"HTTP/1.1 200")


@pytest.mark.clear
def test_slow_heads_neither_stay_nor_keep_others_out(make_broker):
    broker = make_broker(*HTTP, "--http-connections-max", "16")
    slow = [RawPeer(broker) for _ in range(32)]
    for peer in slow:
        peer.say("GET /healthz HTTP/1.1\r\nX: ")
    client = HttpClient(broker, basic())
    assert client.get("/healthz").status == 200, "in spite of all of them"
    assert client.get("/metrics").value("lightq_connections", kind="http") <= 16
    ended = [peer.hear() for peer in slow]
    assert all(text == b"" or text.startswith(b"HTTP/1.1 408 ") for text in ended), ended
    reached = HttpClient(broker, basic()).get("/metrics")
    assert reached.value("lightq_limits_reached_total", limit="http_head_ms") >= 1
    assert reached.value("lightq_limits_reached_total", limit="http_connections_max") >= 16


# --- TLS ---

def test_with_encryption_it_is_https_with_the_certificate_of_sessions(make_broker, tmp_path):
    broker = make_broker(*HTTP, "--encrypt")
    scheme, host, port = address_of(broker)
    assert scheme == "https"
    client = HttpClient(broker, basic())
    answer = client.get("/metrics")
    assert answer.status == 200 and answer.value("lightq_connections", kind="http") == 1
    certificate = client.connection.sock.getpeercert(binary_form=True)
    assert hashlib.sha256(certificate).hexdigest() in broker.log()
    assert client.connection.sock.version() == "TLSv1.3"
    assert client.get("/healthz").body == b"ok\n", "on the same connection"


def test_with_encryption_nothing_is_served_in_clear_or_by_older_tls(make_broker):
    broker = make_broker(*HTTP, "--encrypt")
    peer = RawPeer(broker)
    peer.say(HEAD + "\r\n")
    assert b"HTTP/1.1" not in peer.hear()
    older = insecure_context()
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        HttpClient(broker, context=older).get("/healthz")
    assert HttpClient(broker).get("/healthz").status == 200


# --- The end ---

def test_a_stop_does_not_wait_for_connections(broker):
    idle, slow = RawPeer(broker), RawPeer(broker)
    slow.say("GET /heal")
    until(lambda: HttpClient(broker, basic()).get("/metrics").value("lightq_connections", kind="http") >= 3, "the connections")
    broker.stop()
    assert idle.hear() == b"" and slow.hear() == b""


def test_readiness_ends_when_the_disk_is_full(make_broker):
    broker = make_broker(*HTTP, "--min-free-bytes", str(1 << 60))
    answer = HttpClient(broker).get("/readyz")
    assert answer.status == 503 and answer.json()["ready"] is False
    assert "appends wait below" in answer.json()["checks"]["disk"]
    assert answer.json()["checks"]["append"] == "ok"


def test_readiness_ends_when_the_data_directory_cannot_be_written(broker):
    (broker.data_dir / "progress.probe").mkdir()
    answer = HttpClient(broker).get("/readyz")
    assert answer.status == 503 and "cannot make a file" in answer.json()["checks"]["append"], answer.body
    (broker.data_dir / "progress.probe").rmdir()
    until(lambda: HttpClient(broker).get("/readyz").status == 200, "the next check")
