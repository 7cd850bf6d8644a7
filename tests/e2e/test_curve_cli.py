"""Tests the command line with a broker that encrypts: it finds the key on the same machine, and needs the
broker's key elsewhere."""
import json
import pathlib
import shutil
import tempfile

import pytest
import zmq

from cli_support import CommandLine
from curve_support import CurveBroker
from support import Broker


@pytest.fixture
def make():
    made = []

    def one(kind=CurveBroker, **options):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
        broker = kind(directory, admin=False, **options).start()
        made.append(CommandLine(broker))
        return made[-1]

    yield one
    for command_line in reversed(made):
        command_line.close()
        try:
            command_line.broker.close()
        finally:
            shutil.rmtree(command_line.broker.directory, ignore_errors=True)


@pytest.fixture
def lightq(make):
    return make()


def elsewhere(lightq, **more):
    """Returns variables as on another machine: without a data directory, and with the administrator's
    password."""
    admin = lightq.broker.data_dir / "admin.json"
    password = json.loads(admin.read_text())["admin_password"]
    return {"LIGHTQ_DATA_DIR": str(lightq.broker.directory / "nothing"), "LIGHTQ_ADMIN_PASSWORD": password, **more}


@pytest.mark.parametrize("way", [["--plain"], ["--zmq"]], ids=" ".join)
def test_on_the_same_machine_encryption_works_without_settings(lightq, way):
    lightq("topic", "create", "hello")
    lightq("produce", "hello", *way, stdin=b"one\ntwo\n")
    assert lightq("consume", "hello", "-n", "2", *way).stdout == b"one\ntwo\n"
    assert lightq.stats()["encrypted"] is True
    assert b"encrypted" in lightq("stats").stdout


def test_on_another_machine_the_broker_key_is_needed(lightq):
    key = lightq.broker.server_key
    given = elsewhere(lightq)
    for how in {"LIGHTQ_SERVER_KEY": key}, {}:
        flag = [] if how else ["--server-key", key]
        lightq("ping", *flag, variables={**given, **how})
        lightq("topic", "list", *flag, variables={**given, **how})
    done = lightq("ping", "--request-timeout", "60s", code=1, variables=given)
    assert b"requires encryption" in done.stderr and b"--server-key" in done.stderr, done.stderr
    other = zmq.curve_keypair()[0].decode()
    done = lightq("ping", "--request-timeout", "60s", "--server-key", other, code=1, variables=given)
    assert b"refuses the connection. Its key may differ" in done.stderr, done.stderr
    done = lightq("ping", "--server-key", "short", code=2, variables=given)
    assert b"40 characters" in done.stderr, done.stderr


def test_a_client_with_a_key_sends_nothing_to_a_broker_without_encryption(make):
    lightq = make(kind=Broker)
    other = zmq.curve_keypair()[0].decode()
    done = lightq("topic", "list", "--request-timeout", "60s", "--server-key", other, code=1)
    assert b"does not encrypt" in done.stderr, done.stderr
    lightq("topic", "list")
