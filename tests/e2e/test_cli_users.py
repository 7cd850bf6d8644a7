"""Tests `lightq user`: the effect of each command, the sources of passwords, and that no output shows a
password."""
import os
import pty
import select
import subprocess

import pytest

from cli_support import lightq  # noqa: F401: a fixture
from support import BINARY, DEADLINE, Secrets, secret_file, until

SECRET, OTHER = "planted-cli-secret-3001", "planted-cli-secret-4002"


@pytest.fixture(autouse=True)
def no_secret_is_shown(lightq):
    yield
    assert SECRET not in lightq.broker.log() and OTHER not in lightq.broker.log()


def as_user(name, password):
    return {"LIGHTQ_USER": name, "LIGHTQ_PASSWORD": password, "LIGHTQ_ADMIN_USER": "", "LIGHTQ_DATA_DIR": "/nowhere"}


def users(lightq):
    return {user["user_id"]: user for user in lightq.json("user", "list")["users"]}


def test_a_user_is_made_changed_and_removed(lightq):
    lightq("topic", "create", "orders.eu")
    assert b"lightq user add" in lightq("user", "list").stderr
    done = lightq("user", "add", "ann", "--produce", "orders.*", "--consume", "orders.*", "--consume", "*.us",
                  stdin=f"{SECRET}\n".encode())
    assert (done.stdout, done.stderr) == (b"", b"lightq: user 'ann' is created\n")
    assert lightq("user", "list").stdout == b"ann\t-\torders.*=produce,consume\t*.us=consume\n"
    lightq("user", "grant", "ann", "--manage", "orders.*", "--produce", "new", "-q")
    lightq("user", "revoke", "ann", "--consume", "orders.*", "--consume", "*.us")
    assert users(lightq)["ann"]["rights"] == [{"topic": "orders.*", "rights": ["produce", "manage"]},
                                              {"topic": "new", "rights": ["produce"]}]
    lightq("produce", "orders.eu", stdin=b"one\n", variables=as_user("ann", SECRET))
    refused = lightq("consume", "orders.eu", "-n", "1", code=1, variables=as_user("ann", SECRET))
    assert b"lightq user grant ann --consume orders.eu" in refused.stderr and SECRET.encode() not in refused.stderr
    assert lightq.json("user", "remove", "ann") == {"cmd": "delete_user", "status": "ok", "user_id": "ann"}
    assert users(lightq) == {}
    assert b"there is no user ann" in lightq("user", "remove", "ann", code=1).stderr


def test_an_administrator_among_the_users_can_do_everything_that_the_administrator_can(lightq, tmp_path):
    secret_file(tmp_path / "secret", SECRET)
    lightq("user", "add", "chief", "--admin", "--new-password-file", str(tmp_path / "secret"))
    assert lightq("user", "list").stdout == b"chief\tadmin\n"
    chief = {"LIGHTQ_ADMIN_USER": "chief", "LIGHTQ_ADMIN_PASSWORD": SECRET, "LIGHTQ_DATA_DIR": "/nowhere"}
    lightq("topic", "create", "t", variables=chief)
    assert lightq.json("user", "list", variables=chief)["users"][0]["admin"] is True


def test_a_password_is_changed_by_an_administrator_and_by_its_user(lightq):
    lightq("user", "add", "ann", "--consume", "t", variables={"LIGHTQ_NEW_PASSWORD": SECRET})
    lightq("topic", "create", "t")
    lightq("stats", "t", variables=as_user("ann", SECRET))
    lightq("user", "password", "ann", variables={**as_user("ann", SECRET), "LIGHTQ_NEW_PASSWORD": OTHER})
    lightq("stats", "t", code=1, variables=as_user("ann", SECRET))
    lightq("stats", "t", variables=as_user("ann", OTHER))
    # The administrator sets it. Standard input has no newline at its end.
    lightq("user", "password", "ann", stdin=SECRET.encode())
    lightq("stats", "t", variables=as_user("ann", SECRET))


def test_a_topics_own_user_gets_another_password(lightq):
    lightq("topic", "create", "t", variables={"LIGHTQ_USER": "own", "LIGHTQ_PASSWORD": SECRET, "LIGHTQ_ADMIN_USER": "lightq_admin"})
    lightq("user", "password", "own", "--topic", "t", stdin=f"{OTHER}\n".encode())
    lightq("stats", "t", code=1, variables=as_user("own", SECRET))
    lightq("stats", "t", variables=as_user("own", OTHER))


def test_invalid_passwords_and_rights_are_reported_and_nothing_changes(lightq):
    lightq("user", "add", "ann", stdin=b"", code=2)
    lightq("user", "add", "ann", stdin=b"\n", code=2)
    lightq("user", "add", "ann", "--new-password-file", "/nowhere/file", code=2)
    assert b"rights" in lightq("user", "grant", "ann", code=2).stderr
    assert b"rights.topic" in lightq("user", "add", "ann", "--produce", "a b", stdin=b"pw\n", code=1).stderr
    assert b"did you mean 'user add'" in lightq("user", "ad", "ann", code=2).stderr
    assert users(lightq) == {}


def on_terminal(lightq, lines, *arguments):
    """Types each line at its prompt. Returns the text that the terminal showed, and the exit code."""
    master, slave = pty.openpty()
    process = subprocess.Popen([BINARY, *arguments], stdin=slave, stdout=slave, stderr=slave, env=lightq.environment,
                               start_new_session=True)
    os.close(slave)
    shown = b""

    def read():
        nonlocal shown
        if select.select([master], [], [], 0.01)[0]:
            try:
                shown += os.read(master, 4096)
            except OSError:  # the command has closed the terminal
                return True
        return process.poll() is not None

    for prompt, line in lines:
        until(lambda prompt=prompt: read() or prompt in shown, lambda: f"{prompt} in {shown}")
        os.write(master, line + b"\n")
    until(read, "the end")
    while not read() or select.select([master], [], [], 0)[0]:
        try:
            shown += os.read(master, 4096)
        except OSError:
            break
    os.close(master)
    Secrets.absent_from(shown, f"what {arguments} showed")
    return shown, process.wait(DEADLINE)


def test_on_a_terminal_a_new_password_is_typed_twice_and_hidden(lightq):
    twice = [(b"new password: ", SECRET.encode()), (b"repeat it: ", SECRET.encode())]
    shown, code = on_terminal(lightq, twice, "user", "add", "ann")
    assert code == 0 and SECRET.encode() not in shown and b"is created" in shown, shown
    differing = [(b"new password: ", SECRET.encode()), (b"repeat it: ", OTHER.encode())]
    shown, code = on_terminal(lightq, differing, "user", "password", "ann")
    assert code == 2 and OTHER.encode() not in shown and b"differ" in shown, shown
    lightq("topic", "create", "t")
    lightq("user", "grant", "ann", "--consume", "t")
    lightq("stats", "t", variables=as_user("ann", SECRET))
