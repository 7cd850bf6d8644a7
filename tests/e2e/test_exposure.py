"""Tests that connections from other machines are encrypted, or that the broker reports them as insecure."""
import subprocess

import pytest
from support import BINARY, DEADLINE

OPEN = {
    "control": [],
    "bind": ["--bind", "0.0.0.0", "--advertise", "127.0.0.1"],
    "advertise": ["--advertise", "192.0.2.1"],
    "a name": ["--advertise", "no-such-host.invalid"],
}


def control_of(what):
    return "tcp://0.0.0.0:0" if what == "control" else "tcp://127.0.0.1:0"


@pytest.mark.parametrize("what", OPEN)
def test_addresses_that_other_machines_reach_are_refused_without_encryption(make_broker, what):
    broker = make_broker(start=False)
    command = [BINARY, "broker", "--data-dir", str(broker.data_dir), "--control", control_of(what), *OPEN[what]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert done.returncode == 1 and "--encrypt, or --insecure" in done.stderr, done.stderr
    assert done.stderr.startswith(f"lightq broker: {'advertise' if what == 'a name' else what}: "), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not broker.data_dir.exists(), "refused before anything is made"


@pytest.mark.parametrize("what", OPEN)
def test_insecure_permits_other_machines_and_warns(make_broker, what):
    broker = make_broker(*OPEN[what], "--insecure", control=control_of(what))
    broker.logged('level=warning msg="insecure: ')
    stats = broker.control().broker_stats()
    assert (stats["insecure"], stats["encrypted"]) == (True, False)


@pytest.mark.parametrize("flags", [[], ["--insecure"], ["--bind", "localhost", "--insecure"]], ids=" ".join)
def test_on_loopback_there_is_no_warning_and_insecure_is_false(make_broker, flags):
    broker = make_broker(*flags)
    assert "level=warning" not in broker.log()
    stats = broker.control().broker_stats()
    assert (stats["insecure"], stats["encrypted"]) == (False, False)
