"""Tests a broker that answers only listed keys (`allowed_client_keys`), administered by the command line; and
`lightq key`."""
import json
import pathlib
import shutil
import tempfile

import pytest
import zmq

from cli_support import CommandLine
from curve_support import CurveBroker
from support import PASSWORD, Secrets, secret_file


def make_key(lightq, name):
    """Makes a key file with `lightq key new`. Returns the file and the printed public key. Records the secret
    half."""
    file = lightq.broker.directory / name
    public = lightq("key", "new", str(file)).stdout.decode().strip()
    Secrets.plant(file.read_text().strip())
    return file, public


@pytest.fixture
def lightq():
    """The command line beside a broker that is not started yet, because its list does not exist."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    broker = CurveBroker(directory, "--allowed-client-keys", str(directory / "allowed.txt"), admin=False)
    command_line = CommandLine(broker)
    yield command_line
    command_line.close()
    try:
        broker.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def key_file(lightq):
    """The file of the only key on the list of a running broker."""
    file, public = make_key(lightq, "client.key")
    (lightq.broker.directory / "allowed.txt").write_text(public + "\n")
    lightq.broker.start()
    lightq.environment["LIGHTQ_BROKER"] = lightq.broker.control_uri
    return str(file)


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_the_command_line_administers_a_broker_with_listed_keys(lightq, key_file, by):
    flag = ["--client-key-file", key_file] if by == "flag" else []
    if by == "variable":
        lightq.environment["LIGHTQ_CLIENT_KEY_FILE"] = key_file

    def run(*words, **more):
        return lightq(*words, *flag, **more)

    run("ping")
    run("topic", "create", "t")
    new_password = secret_file(lightq.broker.directory / "ann.txt", PASSWORD)
    run("user", "add", "ann", "--produce", "t", "--consume", "t", "--new-password-file", new_password)
    assert b"ann" in run("user", "list").stdout
    ann = ["--user", "ann", "--password-file", new_password]
    for way in [], ["--zmq"], ["--plain"]:
        for who in [], ann:
            run("produce", "t", *way, *who, stdin=b"one\ntwo\n")
            assert run("consume", "t", "-n", "2", *way, *who).stdout == b"one\ntwo\n"
    assert json.loads(run("stats", "--json").stdout)["encrypted"] is True
    run("user", "grant", "ann", "--manage", "t")
    run("topic", "pause", "t", *ann)
    run("user", "remove", "ann")
    run("topic", "delete", "t")


def test_without_a_listed_key_a_command_reports_the_reason(lightq, key_file):
    for words in ["ping"], ["stats"], ["topic", "create", "t"], ["user", "list"], ["produce", "t"], ["consume", "t"]:
        done = lightq(*words, "--request-timeout", "60s", code=1)
        assert b"allowed_client_keys" in done.stderr and b"--client-key-file" in done.stderr, done.stderr
        assert b"--password-file" not in done.stderr, "it is not for want of a password"
    file, public = make_key(lightq, "other.key")
    done = lightq("ping", "--client-key-file", str(file), "--request-timeout", "60s", code=1)
    assert b"the key of %s is %s" % (str(file).encode(), public.encode()) in done.stderr, done.stderr
    lightq("ping", "--client-key-file", key_file)


def test_a_key_file_is_the_owners_alone_and_never_written_over(lightq):
    file, public = make_key(lightq, "client.key")
    assert file.stat().st_mode & 0o777 == 0o600
    assert zmq.curve_public(file.read_bytes().strip()).decode() == public
    assert lightq("key", "public", str(file)).stdout.decode() == public + "\n"
    assert lightq.json("key", "public", str(file)) == {"cmd": "key", "file": str(file), "public_key": public, "status": "ok"}
    before = file.read_bytes()
    assert b"exists already" in lightq("key", "new", str(file), code=1).stderr
    assert file.read_bytes() == before
    link = file.with_name("link.key")
    link.symlink_to(file.with_name("elsewhere"))
    lightq("key", "new", str(link), code=1)
    assert not file.with_name("elsewhere").exists()
    file.chmod(0o640)
    for words in ["key", "public", str(file)], ["ping", "--server-key", public, "--client-key-file", str(file)]:
        done = lightq(*words, code=2)
        assert b"its mode is 0640; chmod 600 it" in done.stderr, done.stderr


def test_a_key_given_for_a_file_name_is_not_shown(lightq):
    secret = "-"
    while secret.startswith("-"):  # a value that looks like a flag
        file, public = make_key(lightq, "client.key")
        secret = file.read_text().strip()
        file.unlink()
    for words in ["key", "public", secret], ["ping", "--server-key", public, "--client-key-file", secret]:
        done = lightq(*words, code=2)
        assert b"looks like the key" in done.stderr and secret.encode() not in done.stderr


@pytest.mark.parametrize("text", ["", "short\n", "x" * 39 + "\n", "x" * 41 + "\n", "~" * 40 + "\n", "#" * 40 + "\n"])
def test_a_text_that_is_not_a_key_is_refused(lightq, text):
    file = lightq.broker.directory / "bad.key"
    file.touch(0o600)
    file.write_text(text)
    done = lightq("key", "public", str(file), code=2)
    assert b"contains no secret key" in done.stderr, done.stderr
    if len(text) > 8:
        assert text.strip().encode() not in done.stderr
