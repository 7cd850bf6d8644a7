"""Tests that a client sends passwords and tickets to other machines encrypted or not at all."""
import json
import socket

import pytest

from cli_support import CommandLine, lightq  # noqa: F401: a fixture
from support import ADMIN_PASSWORD, PASSWORD, USER, Broker

NOBODY = "192.0.2.77"  # an address of RFC 5737 that no machine has
AS_USER = {"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_DATA_DIR": "/nowhere"}


def address_on_the_network():
    """Returns an address of this machine that is not a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((NOBODY, 9))  # connecting a UDP socket sends nothing
            return probe.getsockname()[0]
        except OSError:
            pytest.skip("this machine has loopback alone")


# --- without a key ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["topic list", "stats t", "produce t", "produce t --plain", "consume t -n 1",
                                     "peek t", "user list", "version", "bench -n 1"])
def test_no_password_goes_to_another_machine_in_clear(lightq, command):
    for host in (NOBODY, "no-such-host.invalid"):
        done = lightq(*command.split(), "--broker", f"tcp://{host}:5000", code=2, variables=AS_USER)
        told = done.stderr.decode()
        assert f"tcp://{host}:5000 is not on this machine" in told and "server_key (--server-key" in told, told
        assert len(told.splitlines()) == 1


def test_a_refused_command_opens_no_connection(lightq):
    with socket.create_server((address_on_the_network(), 0)) as outside:
        outside.settimeout(0.5)
        command = ["topic", "list", "--broker", "tcp://%s:%d" % outside.getsockname(), "--request-timeout", "200ms"]
        lightq(*command, code=2, variables=AS_USER)
        with pytest.raises(TimeoutError):
            outside.accept()
        lightq(*command, "--insecure", code=1, variables=AS_USER)
        outside.accept()[0].close()


@pytest.fixture
def exposed(make_broker):
    """A broker that everyone can reach unencrypted, and a command line that works as on another machine."""
    host = address_on_the_network()
    command_line = CommandLine(make_broker("--insecure", "--bind", "0.0.0.0", "--advertise", host,
                                           control="tcp://0.0.0.0:0"))
    port = command_line.broker.control_uri.rsplit(":", 1)[1]
    command_line.environment.update(LIGHTQ_BROKER=f"tcp://{host}:{port}", LIGHTQ_DATA_DIR="/nowhere",
                                    LIGHTQ_ADMIN_PASSWORD=ADMIN_PASSWORD, LIGHTQ_USER=USER, LIGHTQ_PASSWORD=PASSWORD)
    yield command_line
    command_line.close()


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_insecure_permits_unencrypted_passwords_and_warns_once(exposed, how):
    flags = ["--insecure"] if how == "flag" else []
    variables = {} if how == "flag" else {"LIGHTQ_INSECURE": "true"}
    for command, text in {"topic create t": b"", "produce t": b"one\n", "produce t --plain": b"two\n",
                          "produce t --zmq": b"three\n", "consume t -n 3": b"", "stats t": b""}.items():
        done = exposed(*command.split(), *flags, stdin=text, variables=variables)
        warnings = [line for line in done.stderr.splitlines() if b"insecure" in line]
        assert len(warnings) == 1 and b"unencrypted" in warnings[0], done.stderr
    assert b"not on this machine" in exposed("stats", "t", code=2).stderr
    assert b"not on this machine" in exposed("stats", "t", code=2, variables={"LIGHTQ_INSECURE": "false"}).stderr


def test_commands_without_secrets_work_unencrypted(exposed):
    for name in ("LIGHTQ_USER", "LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_PASSWORD"):
        exposed.environment.pop(name)
    for command in ("ping", "version"):
        assert exposed(command).stderr == b""
    for command in (["topic", "list"], ["consume", "t", "-n", "1"]):
        assert b"is not on this machine" in exposed(*command, code=2).stderr


def test_with_the_key_all_commands_work(make_broker):
    host = address_on_the_network()
    command_line = CommandLine(make_broker("--encrypt", "--bind", "0.0.0.0", "--advertise", host,
                                           control="tcp://0.0.0.0:0"))
    port = command_line.broker.control_uri.rsplit(":", 1)[1]
    command_line.environment.update(AS_USER, LIGHTQ_BROKER=f"tcp://{host}:{port}", LIGHTQ_ADMIN_PASSWORD=ADMIN_PASSWORD)
    assert b"is not on this machine" in command_line("topic", "list", code=2).stderr
    command_line.environment.update(LIGHTQ_SERVER_KEY=command_line.broker.server_key)
    command_line("topic", "create", "t")
    for way in ([], ["--plain"], ["--zmq"]):
        command_line("produce", "t", *way, stdin=b"one\n")
        done = command_line("consume", "t", "-n", "1", *way)
        assert (done.stdout, b"insecure" in done.stderr) == (b"one\n", False)
    command_line.close()


@pytest.mark.parametrize("way", ["", "--plain", "--zmq"])
@pytest.mark.parametrize("command", ["produce", "consume"])
def test_a_ticket_stays_local_if_the_control_socket_is_local(make_broker, command, way):
    """There is no Unix socket for the ticket."""
    command_line = CommandLine(make_broker("--insecure", "--advertise", NOBODY, admin=False))
    command_line("topic", "create", "t")
    command_line.broker.data_dir.joinpath("ipc").rmdir()
    done = command_line(command, "t", *way.split(), code=2)
    assert f"the broker's endpoint at tcp://{NOBODY}:".encode() in done.stderr, done.stderr
    assert b"is not on this machine" in done.stderr
    command_line.close()


def test_a_local_command_works_with_an_unreachable_advertised_host(make_broker):
    command_line = CommandLine(make_broker("--insecure", "--advertise", NOBODY, admin=False))
    command_line("topic", "create", "t")
    command_line("produce", "t", stdin=b"one\n")
    assert command_line("consume", "t", "-n", "1").stdout == b"one\n"
    command_line.close()


# --- a broker with encryption that is stopped ------------------------------------------------------------------------
@pytest.fixture
def stopped(make_broker):
    """The command line on the machine of a stopped broker with encryption."""
    command_line = CommandLine(make_broker("--encrypt", admin=False))
    command_line("topic", "create", "t",
                 variables={"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_ADMIN_USER": "lightq_admin"})
    command_line.broker.stop()
    yield command_line
    command_line.close()


def test_a_client_that_knows_an_encrypting_broker_sends_nothing_to_another_in_its_place(stopped, make_broker):
    stranger = Broker(stopped.broker.directory, control=stopped.broker.control_uri)
    stranger.data_dir = stopped.broker.directory / "of the stranger"
    stranger.log_path = stopped.broker.directory / "stranger.log"
    stranger.start()
    try:
        # The broker's address is given, and then found in the data directory.
        for environment in {}, {"LIGHTQ_BROKER": ""}:
            done = stopped("stats", "t", "--request-timeout", "60s", code=1,
                           variables={"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, **environment})
            assert b"does not encrypt" in done.stderr and b"server_key.json" in done.stderr, done.stderr
        assert stranger.control().broker_stats()["auth_failures"] == 0
    finally:
        stranger.close()


def test_clients_return_to_a_broker_that_no_longer_encrypts(stopped):
    file = stopped.broker.data_dir / "server_key.json"
    assert json.loads(file.read_text())["control_uri"] == stopped.broker.control_uri
    assert file.stat().st_mode & 0o777 == 0o644
    stopped.broker.flags.remove("--encrypt")
    stopped.broker.start()
    assert not file.exists()
    stopped("stats", "t")


def test_another_broker_of_the_machine_may_be_used_unencrypted(stopped, make_broker):
    other = make_broker()
    control = other.control()
    control.create("t")
    as_user = {"LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD, "LIGHTQ_BROKER": other.control_uri}
    # Unencrypted, although the data directory is that of the broker with encryption.
    stopped("stats", "t", variables=as_user)
    stopped("stats", "t", variables={**as_user, "LIGHTQ_DATA_DIR": str(other.data_dir)})
