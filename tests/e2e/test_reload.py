"""Tests of `reload` and SIGHUP: settings, certificates and lists of keys change without a restart, and nothing changes
if anything is wrong."""
import hashlib
import json
import os
import shutil
import signal
import ssl

import pytest
import zmq

from cli_support import CommandLine
from curve_support import keys_for, try_out
from http_support import HTTP, HttpClient, basic
from session_client import Session, join
from session_wire import WrongCertificate
from support import ADMIN, ADMIN_PASSWORD, Control, Secrets, until

ASKER = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}


class Reloadable:
    """A broker with a configuration file."""

    def __init__(self, make_broker, *flags, **settings):
        self.broker = make_broker(*flags, start=False)
        self.config = self.broker.directory / "lightq.toml"
        self.broker.flags += ["--config", str(self.config)]
        self.write(**settings)

    def start(self):
        self.broker.start()
        self.control = self.broker.control()
        return self

    def write(self, **settings):
        self.config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))

    def reload(self):
        reply = self.control.ok("reload", **ASKER)
        return reply["changed"], reply["needs_restart"]


@pytest.fixture
def plain(make_broker):
    return Reloadable(make_broker, *HTTP, "--topics-max", "100").start()


def test_a_reload_names_what_changed_and_what_needs_a_restart(plain):
    assert plain.reload() == ([], [])
    plain.write(users_max=1, log_level="debug", stop_deadline_ms=4000, topics_max=1)
    assert plain.reload() == (["log_level", "users_max"], ["stop_deadline_ms"]), "the flag overrides topics_max"
    plain.broker.logged("reload: changed: log_level, users_max; needs a restart: stop_deadline_ms")
    assert plain.reload() == ([], ["stop_deadline_ms"]), "it still needs a restart"
    plain.control.ok("create_user", **ASKER, user_id="ann", uid=77)
    plain.control.fails("limit_reached", "create_user", **ASKER, user_id="bob", uid=78)
    plain.write(users_max=2)
    assert plain.reload() == (["log_level", "users_max"], [])
    plain.control.ok("create_user", **ASKER, user_id="bob", uid=78)


def test_sighup_reloads_and_the_log_level_acts_at_once(plain):
    plain.write(log_level="error")
    plain.broker.process.send_signal(signal.SIGHUP)
    until(lambda: plain.reload() == ([], []), "the reload")
    end = len(plain.broker.log())
    plain.write(log_level="info", ring_bytes_max="1MiB")
    plain.broker.process.send_signal(signal.SIGHUP)
    plain.broker.logged("reload: changed: log_level, ring_bytes_max", end)
    assert "level=info" in plain.broker.log()[end:]
    plain.control.fails("limit_reached", "create_topic", **ASKER, topic="t", broker_type="queue", ring_bytes=2 << 20)
    plain.control.create("t", ring_bytes=1 << 20)


@pytest.mark.parametrize("text, why", [("users_max = 3\nlog_level = 'loud'\n", "lightq.toml:2:13: log_level: "),
                                       ("users_max = 3\n\n  user_max = 1\n", "lightq.toml:3:3: user_max: there is no such setting"),
                                       ("users_max = 3\nlog_level\n", "lightq.toml:2:"),
                                       ("users_max = 3\ntls_certificate = 'x'\n", "tls_certificate and tls_key: one is missing")])
def test_an_invalid_configuration_changes_nothing_and_says_why(plain, text, why):
    plain.config.write_text(text)
    refusal = plain.control.fails("invalid_argument", "reload", **ASKER)
    assert why in refusal["description"]
    end = len(plain.broker.log())
    plain.broker.process.send_signal(signal.SIGHUP)
    assert why in plain.broker.logged("reload: nothing has changed: ", end)
    plain.write()
    assert plain.reload() == ([], [])


def test_a_file_that_is_gone_changes_nothing(plain):
    plain.config.unlink()
    assert "lightq.toml" in plain.control("reload", **ASKER)["description"]
    plain.write()
    assert plain.reload() == ([], [])


def test_settings_from_a_pipe_are_not_read_again_as_an_empty_file(make_broker):
    piped = ("bash", "-c", 'exec "$@" --config <(echo users_max = 1)', "bash")
    control = make_broker(*HTTP, prefix=piped).control()
    assert "is a pipe or a terminal" in control.fails("invalid_argument", "reload", **ASKER)["description"]
    control.ok("create_user", **ASKER, user_id="ann", uid=77)
    control.fails("limit_reached", "create_user", **ASKER, user_id="bob", uid=78)


def test_only_administrators_reload(plain):
    password = Secrets.plant("planted-reload-secret-3391")
    plain.control.ok("create_user", **ASKER, user_id="ann", password=password, rights=[{"topic": "*", "rights": ["manage"]}])
    plain.control.fails("unauthorized_access", "reload", admin_user_id="ann", admin_password=password)
    plain.control.fails("unauthorized_access", "reload", admin_user_id=ADMIN, admin_password="wrong")
    plain.control.fails("invalid_request", "reload")
    plain.write(users_max=5)
    http = HttpClient(plain.broker, basic("ann", password))
    assert http.ask("POST", "/api/v1/reload").status == 403
    answer = HttpClient(plain.broker, basic()).ask("POST", "/api/v1/reload")
    assert answer.status == 200 and answer.json() == {"cmd": "reload", "status": "ok", "changed": ["users_max"], "needs_restart": []}
    command = CommandLine(plain.broker)
    assert command("reload").stdout == b"nothing has changed\n"
    plain.write(users_max=6, reactors=3)
    assert command("reload").stdout == b"changed: users_max\nneeds a restart: reactors\n"
    assert command.json("reload") == {"cmd": "reload", "status": "ok", "changed": [], "needs_restart": ["reactors"]}
    plain.write(reactors="many")
    assert b"lightq.toml:1:" in command("reload", code=2).stderr


def test_the_audit_log_has_reloads_over_both_ways(make_broker, tmp_path):
    path = tmp_path / "audit.json"
    audited = Reloadable(make_broker, *HTTP, "--audit-log", str(path)).start()
    audited.reload()
    assert HttpClient(audited.broker, basic()).ask("POST", "/api/v1/reload").status == 200
    until(lambda: path.read_text().count("\n") == 2, "two lines")
    for line in map(json.loads, path.read_text().splitlines()):
        assert (line["from"], line["user"], line["cmd"], line["allowed"], line["status"]) == \
            ("127.0.0.1", ADMIN, "reload", True, "ok")


# --- Certificates and keys --------------------------------------------------------------------------------------------


def fingerprint_in(path):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text())).hexdigest()


@pytest.fixture
def two_certificates(make_broker):
    """A broker with a certificate in files, and the files of another certificate."""
    pairs = []
    for name in ("first", "second"):
        maker = make_broker("--encrypt")
        maker.stop()
        pairs.append([maker.directory / f"{name}.{kind}" for kind in ("crt", "key")])
        for place, kind in zip(pairs[-1], ("crt", "key")):
            shutil.copy(maker.data_dir / f"tls.{kind}", place)
    used = [pairs[0][0].parent / f"used.{kind}" for kind in ("crt", "key")]
    place_files(pairs[0], used)
    made = Reloadable(make_broker, "--encrypt", *HTTP, tls_certificate=str(used[0]), tls_key=str(used[1]))
    return made.start(), used, pairs


def place_files(pair, used):
    """Replaces both files, each at once, as tools that renew certificates do."""
    for source, target in zip(pair, used):
        shutil.copy(source, f"{target}.new")
        os.replace(f"{target}.new", target)


def http_fingerprint(broker):
    http = HttpClient(broker, basic())
    http.get("/healthz")
    return http, hashlib.sha256(http.connection.sock.getpeercert(binary_form=True)).hexdigest()


def test_a_certificate_changes_without_ending_a_session(two_certificates):
    made, used, pairs = two_certificates
    control = made.control
    control.create("t")
    old = join(control, "t")
    web, shown = http_fingerprint(made.broker)
    assert old.certificate == shown == fingerprint_in(pairs[0][0])
    with Session(old) as session, Session(join(control, "t", "pull")) as reader:
        producer, consumer = session.producer("t"), reader.consumer("t", "g")
        producer.produce([b"before"])
        place_files(pairs[1], used)
        assert made.reload() == (["tls_certificate"], [])
        producer.produce([b"after"])
        producer.wait_confirmed()
        assert [message.payload for message in consumer.receive(2)] == [b"before", b"after"]
        new = join(control, "t")
        assert new.certificate == fingerprint_in(pairs[1][0]) != old.certificate
        with Session(new) as late:
            late.producer("t").produce([b"late"])
            assert [message.payload for message in consumer.receive(1)] == [b"late"]
        with pytest.raises(WrongCertificate):
            Session(old)
        assert web.get("/healthz").status == 200, "its connection stays"
        assert http_fingerprint(made.broker)[1] == new.certificate
    assert made.reload() == ([], [])


def test_a_half_replaced_certificate_changes_nothing(two_certificates):
    made, used, pairs = two_certificates
    made.control.create("t")
    place_files(pairs[1][:1], used[:1])
    refusal = made.control.fails("invalid_argument", "reload", **ASKER)
    assert "is not the key of" in refusal["description"]
    with Session(join(made.control, "t")) as session:
        session.producer("t").produce([b"x"])
    assert join(made.control, "t").certificate == fingerprint_in(pairs[0][0])
    place_files(pairs[1][1:], used[1:])
    assert made.reload() == (["tls_certificate"], [])


def test_a_changed_list_of_client_keys_acts_on_new_connections(make_broker):
    pairs = [zmq.curve_keypair() for _ in range(2)]
    for _, secret in pairs:
        Secrets.plant(secret)
    made = Reloadable(make_broker, "--encrypt")
    allowed = made.broker.directory / "allowed.txt"
    allowed.write_text(pairs[0][0].decode() + "\n")
    made.write(allowed_client_keys=str(allowed))
    made.broker.start()

    def connect(pair):
        control = Control(made.broker.context, made.broker.control_uri, made.broker.server_key, pair)
        made.broker.controls.append(control)
        return control

    def is_refused(pair):
        keys = keys_for(made.broker.server_key, pair)
        return try_out(made.broker, zmq.REQ, made.broker.control_uri, **keys)[0] == zmq.EVENT_HANDSHAKE_FAILED_AUTH

    made.control = connect(pairs[0])
    made.control.ok("ping")
    assert is_refused(pairs[1])
    allowed.write_text(pairs[1][0].decode() + "\n")
    assert made.reload() == (["allowed_client_keys"], [])
    connect(pairs[1]).ok("ping")
    made.control.ok("ping")
    assert is_refused(pairs[0])
    allowed.write_text("# none\n")
    assert "allowed_client_keys" in made.control.fails("invalid_argument", "reload", **ASKER)["description"]
    connect(pairs[1]).ok("ping")


def is_admitted(broker, server_key):
    keys = keys_for(server_key, zmq.curve_keypair())
    Secrets.plant(keys["curve_secretkey"])
    return try_out(broker, zmq.REQ, broker.control_uri, **keys)[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED


def test_a_renewed_curve_key_ends_no_connection_and_the_former_one_works_until_its_file_is_removed(make_broker):
    made = Reloadable(make_broker, "--encrypt").start()
    broker, control = made.broker, made.control
    control.create("t")
    pull = broker.socket(zmq.PULL, control.join("t", "pull"))
    push = broker.socket(zmq.PUSH, control.join("t", "push"))
    push.send(b"first")
    assert pull.recv() == b"first"
    former = broker.server_key
    assert made.reload() == ([], [])
    new = CommandLine(broker)("broker", "key", "--renew", "--data-dir", str(broker.data_dir)).stdout.decode().strip()
    assert new != former
    assert is_admitted(broker, former) and not is_admitted(broker, new), "nothing changes before the reload"

    assert made.reload() == (["curve.key", "curve_former.key"], [])
    broker.logged("reload: changed: curve.key, curve_former.key")
    for name in ("broker.json", "server_key.json"):
        assert json.loads((broker.data_dir / name).read_text())["server_key"] == new
    assert control.join("t", "push").keys["curve_serverkey"] == new.encode()
    assert is_admitted(broker, former) and is_admitted(broker, new)

    (broker.data_dir / "curve_former.key").unlink()
    assert made.reload() == (["curve_former.key"], [])
    assert not is_admitted(broker, former) and is_admitted(broker, new)
    push.send(b"over a connection from before")
    assert pull.recv() == b"over a connection from before"
    control.ok("ping")


def test_a_wrong_or_missing_curve_key_changes_nothing(make_broker):
    made = Reloadable(make_broker, "--encrypt").start()
    key = made.broker.data_dir / "curve.key"
    first = key.read_bytes()
    key.write_bytes(b"too short")
    assert "curve.key" in made.control.fails("corrupt", "reload", **ASKER)["description"]
    key.unlink()
    assert made.reload() == ([], ["curve.key"])
    assert not key.exists(), "a reload creates no key"
    made.broker.logged("reload: nothing has changed; needs a restart: curve.key")
    assert is_admitted(made.broker, made.broker.server_key)
    key.write_bytes(first)
    key.chmod(0o600)
    assert made.reload() == ([], [])


# --- SIGUSR1 ----------------------------------------------------------------------------------------------------------


def test_sigusr1_opens_the_log_file_again(make_broker, tmp_path):
    path = tmp_path / "lightq.log"
    broker = make_broker("--log-file", str(path))
    until(lambda: path.exists() and "is ready" in path.read_text(), "the log file")
    moved = path.rename(tmp_path / "moved.log")
    broker.process.send_signal(signal.SIGUSR1)
    until(lambda: path.exists() and "opened again on SIGUSR1" in path.read_text(), "the new file")
    assert "SIGUSR1" not in moved.read_text()
    broker.control().ok("ping")
