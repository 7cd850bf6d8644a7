"""Tests sessions over TLS, with Python's `ssl` and the documents alone. Nothing is sent unencrypted, and only
the right broker is accepted. Everything else works as without TLS."""
import hashlib
import os
import re
import shutil
import socket
import ssl
import stat
import time

import pytest

from session_client import Session, everything, hello_values, join
from session_wire import WrongCertificate, connect, tls_context
from support import DEADLINE, SANITIZED, Secrets, numbered, until
from tcp_proxy import RecordingProxy

import session_frames  # found through session_client

MIB = 1 << 20
SECRET_TEXT = b"planted-payload-7746"


@pytest.fixture
def encrypted(make_broker):
    broker = make_broker("--encrypt")
    Secrets.of_data_directory(broker.data_dir)
    return broker


@pytest.fixture
def control(encrypted):
    return encrypted.control()


def key_lines(path):
    """Returns the lines that would show a private key in a file or in the log."""
    return path.read_text().splitlines()[1:-2]


def certificate_in(path):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text())).hexdigest()


def ended(connection, seconds=DEADLINE):
    """Reads to the end. Returns the received bytes and the time it took."""
    begun, come = time.monotonic(), b""
    connection.settimeout(seconds)
    try:
        while part := connection.recv(1 << 16):
            come += part
    except ConnectionResetError:
        pass
    return come, time.monotonic() - begun


# --- The certificate -------------------------------------------------------------------------------------------------


def test_a_join_names_the_certificate_that_the_broker_has_made(encrypted, control):
    control.create("t")
    ticket = join(control, "t")
    assert re.fullmatch("[0-9a-f]{64}", ticket.certificate)
    files = [encrypted.data_dir / name for name in ("tls.crt", "tls.key")]
    assert ticket.certificate == certificate_in(files[0])
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in files] == [0o600, 0o600]
    encrypted.logged(ticket.certificate)
    with Session(ticket) as one:
        assert one.socket.version() == "TLSv1.3" and one.socket.cipher()[0] == "TLS_AES_128_GCM_SHA256"
    encrypted.restart()
    assert join(control, "t").certificate == ticket.certificate


def test_only_sessions_over_tcp_use_a_certificate(control):
    control.create("t")
    assert join(control, "t", transport="ipc").certificate is None
    assert join(control, "t", carrier="zmq").certificate is None
    assert join(control, "t", "pull").certificate == join(control, "t").certificate
    with Session(join(control, "t", transport="ipc", carrier="socket")) as over_unix:
        over_unix.producer("t").produce([b"in clear"])


@pytest.mark.clear
def test_a_broker_without_encryption_has_no_certificate(make_broker):
    broker = make_broker()
    control = broker.control()
    control.create("t")
    assert join(control, "t").certificate is None
    assert not (broker.data_dir / "tls.key").exists()


@pytest.fixture
def given(make_broker):
    """A broker with a given certificate, and the paths of the certificate and its key."""
    maker = make_broker("--encrypt")
    maker.stop()
    files = [maker.directory / "given.crt", maker.directory / "given.key"]
    for name, path in zip(("tls.crt", "tls.key"), files):
        shutil.copy(maker.data_dir / name, path)
    flags = [f"--tls-{name}={path}" for name, path in zip(("certificate", "key"), files)]
    yield make_broker("--encrypt", *flags, start=False), *files


def test_a_given_certificate_is_used(given):
    broker, certificate, _ = given
    broker.start()
    control = broker.control()
    control.create("t")
    ticket = join(control, "t")
    assert ticket.certificate == certificate_in(certificate)
    assert not (broker.data_dir / "tls.key").exists()
    with Session(ticket) as one:
        one.producer("t").produce([b"x"])


def refused_start(broker):
    broker.start(wait=False)
    assert broker.process.wait(DEADLINE) == 1, broker.log()
    broker.process = None
    return broker.log()


@pytest.mark.parametrize("how", ["open to others", "missing", "another key", "rubbish", "alone", "not encrypted"])
def test_unusable_key_files_are_reported_at_the_start(given, make_broker, how):
    broker, certificate, key = given
    if how == "open to others":
        os.chmod(key, 0o644)
        sentence = f"tls_key: {key} contains the broker's private key and is open to other users: its mode is 0644; chmod 600 it"
    elif how == "missing":
        key.unlink()
        sentence = f"tls_key: cannot read {key}: No such file or directory"
    elif how == "another key":
        other = make_broker("--encrypt")
        shutil.copy(other.data_dir / "tls.key", key)
        sentence = f"tls_key: {key} is not the key of tls_certificate: {certificate}"
    elif how == "rubbish":
        certificate.write_text("rubbish")
        sentence = f"tls_certificate: {certificate} contains no certificate in PEM"
    elif how == "alone":
        broker.flags.pop()
        sentence = "tls_certificate and tls_key: one is missing; give both or none"
    else:
        broker.flags.remove("--encrypt")
        sentence = "tls_certificate: needs encrypt"
    log = refused_start(broker)
    assert sentence in log, log
    assert "PRIVATE KEY" not in log


# --- Peers that are refused ------------------------------------------------------------------------------------------


def test_a_client_detects_another_certificate(control):
    control.create("t")
    ticket = join(control, "t")
    with pytest.raises(WrongCertificate):
        Session(ticket._replace(certificate="0" * 64))
    assert control.stats("t")["publishers_count"] == 0


def test_an_unencrypted_client_is_refused(encrypted, control):
    control.create("t")
    ticket = join(control, "t")
    hello = session_frames.encode("hello", hello_values(ticket=ticket.text), request=1)
    for said in hello, hello * 20, b"GET / HTTP/1.1\r\n\r\n", b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f" + bytes(54):
        with connect(ticket.uri) as plain:
            plain.sendall(said)
            come, seconds = ended(plain)
            assert come[:1] in (b"", b"\x15") and len(come) < 20, "more than an alert"
            assert seconds < 3
    until(lambda: encrypted.log().count("was refused: TLS: the handshake failed: ") >= 4, "four lines of the log")
    assert control.stats("t")["publishers_count"] == 0


def test_an_older_tls_is_turned_away_with_an_alert(encrypted, control):
    control.create("t")
    ticket = join(control, "t")
    with pytest.raises(ssl.SSLError, match="(?i)alert.protocol.version"):
        tls_context(ssl.TLSVersion.TLSv1_2).wrap_socket(connect(ticket.uri))
    until(lambda: "unsupported protocol" in encrypted.log(), "a line of the log")


@pytest.mark.parametrize("how", ["silent", "half a hello", "no frame"])
def test_one_time_limit_covers_tls_and_the_first_frame(make_broker, how):
    control = make_broker("--encrypt", "--handshake-ms", "1000").control()
    control.create("t")
    ticket = join(control, "t")
    begun = time.monotonic()
    connection = connect(ticket.uri)
    if how == "half a hello":
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with pytest.raises(ssl.SSLWantReadError):
            tls_context().wrap_bio(incoming, outgoing).do_handshake()
        connection.sendall(outgoing.read()[:100])
    elif how == "no frame":
        connection.settimeout(0.6)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection = tls_context().wrap_socket(connection)
    assert ended(connection)[0] == b""
    assert 0.9 < time.monotonic() - begun < 1.5 + DEADLINE / 20
    connection.close()


def test_the_end_of_tls_ends_the_session(control):
    """The client sends its close_notify and keeps the TCP connection open."""
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        producer.produce([b"x"])
        producer.wait_confirmed()
        one.socket.settimeout(DEADLINE)
        plain = one.socket.unwrap()  # waits for the other side's close_notify
        until(lambda: control.stats("t")["publishers_count"] == 0, "its end")
        plain.close()


# --- Bytes on the network --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--encrypt"], pytest.param([], marks=pytest.mark.clear)], ids=["encrypted", "clear"])
def test_a_recording_contains_neither_message_nor_ticket(make_broker, flags):
    """Without encryption both are visible, which shows that this test can fail."""
    control = make_broker(*flags).control()
    control.create("t")
    tickets = [join(control, "t"), join(control, "t", "pull")]
    proxy = RecordingProxy(tickets[0].uri)
    try:
        with Session(tickets[0]._replace(uri=proxy.uri)) as one, Session(tickets[1]._replace(uri=proxy.uri)) as two:
            producer = one.producer("t")
            producer.produce([SECRET_TEXT] * 100)
            producer.wait_confirmed()
            assert [message.payload for message in two.consumer("t").receive(100)] == [SECRET_TEXT] * 100
        seen = proxy.seen()
        assert len(seen) > 2 * 100 * len(SECRET_TEXT)
        secrets = [SECRET_TEXT, b"default", *(ticket.text.split(".")[1].encode() for ticket in tickets)]
        secrets.append(bytes.fromhex("4C515353"))  # the magic of a hello
        assert [secret in seen for secret in secrets] == ([False] * 5 if flags else [True, False, True, True, True])
    finally:
        proxy.close()


# --- Everything else as without TLS ----------------------------------------------------------------------------------


def test_messages_of_16_mib_go_both_ways(encrypted, control):
    control.create("t", "file")
    messages = [os.urandom(16 * MIB - 4096), b"a small one behind it"]
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        for message in messages:
            producer.produce([message])
        producer.wait_confirmed()
    with Session(join(control, "t", "pull"), frame_bytes_max=32 * MIB) as two:
        assert [message.payload for message in two.consumer("t").receive(2)] == messages
    assert encrypted.process.poll() is None


def test_a_client_that_does_not_read_costs_little_and_delays_no_other(make_broker):
    encrypted = make_broker("--encrypt", "--session-heartbeat-ms", "0")
    control = encrypted.control()
    control.create("t", ring_bytes=64 * MIB)
    payloads = numbered(0, 700, 16_000)
    with Session(join(control, "t", "sub")) as slow, Session(join(control, "t", "sub")) as fast:
        stalled = slow.consumer("t", mode=2, start="first")
        reader = fast.consumer("t", mode=2, start="first")
        before = encrypted.anonymous_bytes()
        with Session(join(control, "t")) as one:
            producer = one.producer("t")
            for first in range(0, len(payloads), 20):
                producer.produce(payloads[first:first + 20])
            producer.wait_confirmed()
        assert [message.payload for message in reader.receive(len(payloads))] == payloads
        assert len(stalled.messages) < 100
        grown = encrypted.anonymous_bytes() - before
        # The topic's log, and little else.
        assert SANITIZED or grown < len(payloads) * 16_000 + 16 * MIB, f"{grown} bytes"
        assert [message.payload for message in stalled.receive(len(payloads))] == payloads


def test_heartbeats_go_both_ways(make_broker):
    control = make_broker("--encrypt", "--session-heartbeat-ms", "200").control()
    control.create("t")
    with Session(join(control, "t", "pull"), heartbeat_ms=100) as one:
        one.consumer("t")
        for beat in range(1, 11):  # longer than the broker would wait in silence
            one.wait(lambda: one.heartbeats >= beat, "the broker's heartbeat")
            one.send("heartbeat")
        heard = one.heartbeats
        assert one.goodbye() == "idle" and one.heartbeats > heard


def test_confirmed_messages_survive_a_kill(encrypted, control):
    control.create("t", "file")
    sent, identity = [], (0, 0)
    for _ in range(3):
        with Session(join(control, "t")) as one:
            producer = one.producer("t", *identity)
            identity = (producer.id, producer.epoch)
            messages = numbered(len(sent), 500, 200)
            producer.produce(messages)
            producer.wait_confirmed()
            sent += messages
            encrypted.kill()
        encrypted.start()
    assert everything(encrypted, control, "t", len(sent)) == sent


def test_a_connection_that_breaks_in_the_middle_of_a_record(control):
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        producer.produce([b"first"])
        producer.wait_confirmed()
        raw = socket.socket(fileno=os.dup(one.socket.fileno()))
        raw.sendall(b"\x17\x03\x03\x40\x11" + bytes(1000))  # a record of 16 KiB; only a part of it follows
        raw.shutdown(socket.SHUT_RDWR)
        raw.close()
    until(lambda: control.stats("t")["publishers_count"] == 0, "its end")
    assert control.stats("t")["messages_received"] == 1


def test_garbage_behind_the_handshake_ends_with_an_alert(encrypted, control):
    control.create("t")
    with Session(join(control, "t")) as one:
        producer = one.producer("t")
        producer.produce([b"first"])
        producer.wait_confirmed()
        with socket.socket(fileno=os.dup(one.socket.fileno())) as raw:
            raw.sendall(b"\x17\x03\x03\x00\x40" + bytes(64))
        with pytest.raises((ssl.SSLError, ConnectionError), match="(?i)alert"):
            one.socket.settimeout(DEADLINE)
            while one.socket.recv(1 << 16):
                pass
    assert control.stats("t")["messages_received"] == 1


def test_ended_tls_sessions_leave_nothing_behind(encrypted, control):
    """Ended sessions must leave nothing behind."""
    control.create("t")
    ticket = join(control, "t")
    descriptors = encrypted.descriptors()
    for count in range(300):
        with Session(ticket) as one:
            if count % 3 == 0:
                one.producer("t").produce([b"x" * count])
    until(lambda: encrypted.descriptors() <= descriptors, "their ends")
    until(lambda: control.stats("t")["publishers_count"] == 0, "their ends")
    assert control.stats("t")["messages_received"] <= 100


def test_secrets_are_in_no_file(encrypted, control):
    control.create("t")
    ticket = join(control, "t")
    with Session(ticket) as one:
        one.producer("t").produce([SECRET_TEXT])
    with pytest.raises(ssl.SSLError):
        tls_context(ssl.TLSVersion.TLSv1_2).wrap_socket(connect(ticket.uri))
    encrypted.stop()
    keys = key_lines(encrypted.data_dir / "tls.key")
    assert keys and all(len(line) > 30 for line in keys)
    for secret in (ticket.text.split(".")[1], SECRET_TEXT.decode(), "PRIVATE KEY", *keys):
        assert secret not in encrypted.log()
    encrypted.start()
