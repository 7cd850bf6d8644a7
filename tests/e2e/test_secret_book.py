"""Tests that the search for secrets, which all other files rely on, finds them."""
import json
import shutil
import subprocess
import tempfile
import types

import pytest
import zmq
import zmq.utils.z85

from cli_support import lightq  # noqa: F401: a fixture
from secret_book import search_printed
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, Broker, Secrets, secret_file


@pytest.fixture
def leaky():
    """A broker that the test itself stops, and the secrets that its clients know."""
    directory = tempfile.mkdtemp(prefix="lq-")
    broker = Broker(directory, "--encrypt").start()
    yield broker
    with pytest.raises(AssertionError, match="a secret stands in"):
        broker.close()
    shutil.rmtree(directory, ignore_errors=True)


def its_secrets(broker):
    """Returns one secret of each kind that a test and its broker have, by kind."""
    control = broker.control()
    control.create("t", "file")
    ticket = control.ok("join", connection_type="socket", delivery="session", type="push", topic="t", user_id=USER,
                        password=PASSWORD)["ticket"]["secret"]
    control("create_user", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, user_id="ann", password="planted-anns-19")
    curve_key = (broker.data_dir / "curve.key").read_bytes()
    tls_key = (broker.data_dir / "tls.key").read_text().splitlines()[1]
    return {"administrator's password": ADMIN_PASSWORD, "user's password": PASSWORD, "new user's": "planted-anns-19",
            "ticket": ticket, "client's key": control.options["curve_secretkey"], "curve.key": curve_key,
            "curve.key as text": zmq.utils.z85.encode(curve_key), "tls.key": tls_key,
            "ticket.key": (broker.data_dir / "ticket.key").read_bytes()}


KINDS = ["administrator's password", "user's password", "new user's", "ticket", "client's key", "curve.key",
         "curve.key as text", "tls.key", "ticket.key"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["the log", "a file", "another secret's file"])
def test_each_kind_of_secret_is_found(leaky, kind, where):
    found = its_secrets(leaky)
    assert list(found) == KINDS
    secret = found[kind] if isinstance(found[kind], bytes) else found[kind].encode()
    name = {"the log": "../broker.log", "a file": "topics/odd", "another secret's file": "admin.json"}[where]
    with open(leaky.data_dir / name, "ab") as file:
        file.write(b"... " + secret + b" ...")


def test_only_its_own_file_may_contain_a_secret(make_broker):
    """The same check runs at the end of every test, which would fail otherwise."""
    broker = make_broker("--encrypt", admin=False)
    Secrets.of_data_directory(broker.data_dir)
    password = json.loads((broker.data_dir / "admin.json").read_text())["admin_password"]
    assert password in Secrets.known
    Secrets.absent_below(broker.data_dir)
    (broker.data_dir / "copy.json").write_text(password)
    with pytest.raises(AssertionError, match="copy.json"):
        Secrets.absent_below(broker.data_dir)
    (broker.data_dir / "copy.json").unlink()


def test_the_output_of_a_process_is_searched(lightq, tmp_path):
    planted = secret_file(tmp_path / "secret", "planted-in-an-output")
    for stream in ("", " >&2"):
        with pytest.raises(AssertionError, match="the output of"):
            subprocess.run(["sh", "-c", f'cat "$0"{stream}', planted], capture_output=True, timeout=DEADLINE)
    with pytest.raises(AssertionError, match="the output of"):
        subprocess.Popen(["env"], stdout=subprocess.PIPE, env={"LIGHTQ_PASSWORD": "planted-in-an-environment",
                                                               "PATH": "/usr/bin:/bin"}).communicate()
    # Output of the command line is searched too. Here it contains a secret as a topic's name.
    Secrets.plant("planted-topic-name")
    with pytest.raises(AssertionError, match="the output of"):
        lightq("topic", "create", "planted-topic-name")
    Secrets.known.discard("planted-topic-name")


@pytest.mark.parametrize("text", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("read", [lambda stream: stream.read(), lambda stream: stream.readline(), list,
                                  lambda stream: stream.readlines(), lambda stream: [stream.read(5) for _ in range(9)]],
                         ids=["read", "readline", "lines", "readlines", "in pieces"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_read_piece_by_piece_is_searched(stream, read, text):
    shell = {"stdout": "echo", "stderr": "echo >&2"}[stream]
    with subprocess.Popen(["sh", "-c", f"{shell} said planted-$0", "piece-58"], **{stream: subprocess.PIPE}, text=text) as said:
        Secrets.plant("planted-piece-58")
        with pytest.raises(AssertionError, match="the output of"):
            read(getattr(said, stream))


def test_the_output_of_a_test_is_searched():
    report = types.SimpleNamespace(outcome="passed", longrepr=None, sections=[("Captured stdout call", "nothing")])
    search_printed(report)
    assert report.outcome == "passed"
    report.sections.append(("Captured stderr call", f"... {PASSWORD} ..."))
    search_printed(report)
    assert report.outcome == "failed" and PASSWORD not in report.longrepr and report.sections == []


def test_replies_are_searched_except_for_their_ticket():
    with pytest.raises(AssertionError, match="the answer to stats"):
        Secrets.heard({"cmd": "stats", "status": "ok", "topic": PASSWORD})
    reply = {"cmd": "join", "ticket": {"id": "x", "secret": "planted-ticket-55"}}
    assert Secrets.heard(reply) == reply == Secrets.heard(reply)
    with pytest.raises(AssertionError, match="an output"):
        Secrets.absent_from("... planted-ticket-55 ...", "an output")


def test_the_environment_of_a_broker_is_searched(make_broker):
    broker = make_broker()
    broker.show_no_secrets()
    Secrets.plant(str(broker.directory))
    try:
        with pytest.raises(AssertionError, match="a secret stands in /proc"):
            broker.show_no_secrets()
    finally:
        Secrets.known.discard(str(broker.directory))


def test_secrets_of_one_file_are_searched_for_in_the_whole_suite():
    with Secrets.of_one_file():
        Secrets.said({"password": "an-ordinary-word", "user_id": "u"})
        Secrets.heard({"cmd": "join", "ticket": {"id": "x", "secret": "planted-ticket-56"}})
        Secrets.plant("planted-key-57", home="its.key")
        for text in ("an-ordinary-word", "planted-ticket-56", "planted-key-57"):
            with pytest.raises(AssertionError, match="an output"):
                Secrets.absent_from(f"... {text} ...", "an output")
    Secrets.absent_from("... an-ordinary-word planted-ticket-56 planted-key-57 ...", "an output")
    assert PASSWORD in Secrets.known, "what they all have stays"
    assert {"an-ordinary-word", "planted-ticket-56", "planted-key-57"} <= Secrets.ever_known
