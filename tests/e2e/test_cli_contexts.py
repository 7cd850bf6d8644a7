"""Tests of named brokers: `lightq context`, and how commands use the one in use."""

import pytest

from cli_support import lightq

PASSWORD = "of-ann-12"


@pytest.fixture
def named(lightq, tmp_path):
    """A command line that finds its broker only by a context. Yields it with the broker's URI."""
    lightq("topic", "create", "t")
    lightq("user", "add", "ann", "--produce", "t", "--consume", "t", variables={"LIGHTQ_NEW_PASSWORD": PASSWORD})
    password = tmp_path / "ann.txt"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    uri = lightq.environment.pop("LIGHTQ_BROKER")
    data_dir = lightq.environment.pop("LIGHTQ_DATA_DIR")
    lightq.environment |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": str(tmp_path / "state")}
    yield lightq, uri
    lightq.environment |= {"LIGHTQ_BROKER": uri, "LIGHTQ_DATA_DIR": data_dir}


def contexts(lightq):
    return {context["name"]: context for context in lightq.json("context", "list")["contexts"]}


def test_a_context_in_use_names_broker_and_user(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "prod", "--broker", uri, "--user", "ann", "--password-file", "ann.txt", cwd=tmp_path,
           stdout=None, stderr=None)
    path = tmp_path / ".config" / "lightq" / "contexts.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in path.read_text() and str(tmp_path / "ann.txt") in path.read_text()
    assert not contexts(lightq)["prod"]["used"]
    lightq("context", "use", "prod")
    assert contexts(lightq)["prod"]["used"] and lightq("context", "list").stdout.startswith(b"*\tprod\t")
    lightq("produce", "t", stdin=b"one\n")
    assert lightq("consume", "t", "-n", "1").stdout == b"one\n"
    assert b"user 'ann'" in lightq("topic", "create", "u", code=1).stderr
    lightq("context", "remove", "prod")
    assert contexts(lightq) == {}
    assert b"context list" in lightq("context", "use", "prod", code=2).stderr


def test_flags_and_variables_come_before_the_context(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "dead", "--broker", "tcp://127.0.0.1:1")
    lightq("context", "add", "live", "--broker", uri)
    lightq("context", "use", "dead")
    ping = ["ping", "--request-timeout", "1s"]
    assert b"127.0.0.1:1" in lightq(*ping, code=1).stderr
    assert lightq.json(*ping, "--broker", uri)["status"] == "ok"
    assert lightq.json(*ping, variables={"LIGHTQ_BROKER": uri})["status"] == "ok"
    assert lightq.json(*ping, "--context", "live")["status"] == "ok"
    assert lightq.json(*ping, variables={"LIGHTQ_CONTEXT": "live"})["status"] == "ok"
    assert b"no context 'nowhere'" in lightq(*ping, "--context", "nowhere", code=2).stderr
    lightq("context", "use", "")
    assert not any(context["used"] for context in contexts(lightq).values())


def test_the_password_of_a_context_goes_to_no_other_broker(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "prod", "--broker", "tcp://127.0.0.1:1", "--user", "ann", "--password-file", str(tmp_path / "ann.txt"))
    lightq("context", "use", "prod")
    told = lightq("stats", "t", "--broker", uri, code=1).stderr
    assert b"no credentials were given" in told, "the context's user is not used beside a broker that a flag names"
    told = lightq("ping", "--user", "bob", code=2).stderr
    assert b"'bob' needs a password" in told, "nor its password beside another user"


def test_a_context_and_another_broker_are_not_mixed(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "prod", "--broker", "tcp://127.0.0.1:1", "--user", "ann", "--password-file", str(tmp_path / "ann.txt"))
    for more in ({"LIGHTQ_BROKER": uri}, {"LIGHTQ_BROKER": uri, "LIGHTQ_CONTEXT": "prod"}):
        told = lightq("stats", "t", "--context", "prod", variables=more, code=2).stderr
        assert b"name different brokers" in told, "the password of the context's user stays here"
    same = lightq("ping", "--context", "prod", "--broker", "tcp://127.0.0.1:1", "--request-timeout", "1s", code=1).stderr
    assert b"127.0.0.1:1" in same
    told = lightq("context", "add", "bad", "--broker", "tcp://ann:planted@127.0.0.1:1", code=2).stderr
    assert b"must not contain a user or password" in told and b"planted" not in told
    assert set(contexts(lightq)) == {"prod"}


def test_a_context_with_control_characters_is_read_again(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "a\x1b[31m\x01", "--broker", uri)
    assert set(contexts(lightq)) == {"a\x1b[31m\x01"}
    path = tmp_path / ".config" / "lightq" / "contexts.json"
    path.unlink()
    path.mkdir()
    assert b"not a regular file" in lightq("ping", code=2).stderr


def test_a_file_that_others_may_change_is_refused(named, tmp_path):
    lightq, uri = named
    lightq("context", "add", "prod", "--broker", uri)
    path = tmp_path / ".config" / "lightq" / "contexts.json"
    path.chmod(0o666)
    assert b"chmod 600" in lightq("ping", code=2).stderr
    assert lightq.json("ping", "--broker", uri)["status"] == "ok", "a command that does not need it goes on"
    path.chmod(0o600)
    path.write_text("{")
    assert b"not a file of contexts" in lightq("context", "list", code=2).stderr


def test_a_context_needs_a_place(named):
    lightq, _ = named
    assert b"--broker URI or --data-dir DIR" in lightq("context", "add", "prod", code=2).stderr
