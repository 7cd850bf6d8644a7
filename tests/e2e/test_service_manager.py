"""Tests of the messages to a service manager such as systemd: ready, signs of life, and stopping."""
import os
import signal
import socket
import time

import pytest

from support import DEADLINE


class Manager:
    """The socket of a service manager."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(DEADLINE)

    def wait(self, state):
        """Returns the messages up to one with this line."""
        heard = []
        while not heard or state not in heard[-1]:
            heard.append(self.socket.recv(4096).decode().splitlines())
        return heard

    def close(self):
        self.socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = str(tmp_path / "notify") if request.param == "path" else f"@lightq-test-{os.getpid()}"
    made = Manager(name.replace("@", "\0"))
    made.variables = {"NOTIFY_SOCKET": name}
    yield made
    made.close()


def test_a_broker_says_when_it_is_ready_and_when_it_stops(make_broker, manager):
    broker = make_broker(environment=manager.variables)
    (ready,) = manager.wait("READY=1")
    assert any(line.startswith("STATUS=control tcp://127.0.0.1:") for line in ready)
    broker.control().ok("ping")
    broker.stop()
    assert manager.wait("STOPPING=1") == [["STOPPING=1"]], "nobody asked for signs of life"
    broker.start()


def test_a_broker_gives_signs_of_life_while_its_threads_answer(make_broker, manager):
    broker = make_broker(environment={**manager.variables, "WATCHDOG_USEC": "200000"})
    manager.wait("READY=1")
    for _ in range(5):
        manager.wait("WATCHDOG=1")
    os.kill(broker.process.pid, signal.SIGSTOP)
    manager.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        for _ in range(20):
            manager.wait("WATCHDOG=1")
    os.kill(broker.process.pid, signal.SIGCONT)
    manager.socket.settimeout(DEADLINE)
    manager.wait("WATCHDOG=1")


@pytest.mark.parametrize("level", ["debug", "loud"])
def test_a_reload_is_told_from_its_beginning_to_its_end(make_broker, manager, tmp_path, level):
    config = tmp_path / "lightq.toml"
    config.write_text("")
    broker = make_broker("--config", str(config), environment=manager.variables)
    manager.wait("READY=1")
    config.write_text(f'log_level = "{level}"\n')
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    broker.process.send_signal(signal.SIGHUP)
    begun, ended = manager.wait("READY=1")
    assert begun[0] == "RELOADING=1" and ended == ["READY=1"], "a manager waits for the end of every reload"
    name, number = begun[1].split("=")
    assert name == "MONOTONIC_USEC" and before <= int(number) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


@pytest.mark.parametrize("variables", [{"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"},
                                       {"WATCHDOG_USEC": "0"}, {}])
def test_no_signs_of_life_are_given_unless_they_are_wanted(make_broker, manager, variables):
    broker = make_broker(environment={**manager.variables, **variables})
    manager.wait("READY=1")
    for _ in range(100):
        broker.control().ok("ping")
    broker.stop()
    assert manager.wait("STOPPING=1") == [["STOPPING=1"]]
    broker.start()


@pytest.mark.parametrize("name", ["/nowhere/notify", "relative", "@", "/" + "x" * 200, "vsock:2:3"])
def test_a_manager_that_does_not_listen_disturbs_nothing(make_broker, name):
    broker = make_broker(environment={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "100000"})
    broker.control().ok("ping")
