"""Tests that other processes cannot read the program's memory: how the program was built, and that it can be
neither dumped nor traced."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

import pytest

from harness import variable
from support import BINARY, SANITIZED, until

NOBODY = 65534
# The owner of a process's files in /proc if the process may be dumped. Otherwise they belong to root.
OWNER = NOBODY if os.geteuid() == 0 else os.geteuid()


@pytest.fixture
def place():
    """A directory with the program that every user can access."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    shutil.copy(BINARY, path / "lightq")
    os.chmod(path, 0o777)
    yield path
    shutil.rmtree(path)


def run(place, *arguments, **environment):
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen([place / "lightq", *arguments], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env={"HOME": str(place), "PATH": os.environ["PATH"], **environment}, **user)


def protection(process):
    """Returns the owner of the process's files in /proc, and the size of its core dump."""
    limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
    size = next(line.split()[4] for line in limits.splitlines() if line.startswith("Max core file size"))
    return os.stat(f"/proc/{process.pid}/environ").st_uid, size


def broker(*flags):
    return ["broker", "--data-dir", "data", "--control", "tcp://127.0.0.1:0", *flags]


def is_started(place):
    return (place / "data/broker.json").exists()


# Waits, because the password file is a pipe without a writer.
WAITS = ["topic", "list", "--user", "ann", "--password-file", "password"]
HARD_LIMIT = resource.getrlimit(resource.RLIMIT_CORE)[1]
DUMPED = "unlimited" if HARD_LIMIT == resource.RLIM_INFINITY else str(HARD_LIMIT)


@pytest.mark.parametrize("arguments, environment, dumped", [
    (broker(), {}, False),
    (broker("--core-dumps"), {}, True),
    (broker(), {"LIGHTQ_CORE_DUMPS": "true"}, True),
    (broker(), {"LIGHTQ_CORE_DUMPS": "false"}, False),
], ids=["as it is", "flag", "variable", "variable says false"])
def test_a_broker_leaves_no_core_dump_without_the_setting(place, arguments, environment, dumped):
    process = run(place, *arguments, **environment)
    try:
        until(lambda: is_started(place), "its start")
        assert protection(process) == ((OWNER, DUMPED) if dumped else (0, "0"))
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_a_command_that_waits_for_its_password_is_not_dumped(place):
    os.mkfifo(place / "password")
    os.chmod(place / "password", 0o600)
    if os.geteuid() == 0:
        os.chown(place / "password", NOBODY, NOBODY)
    process = run(place, *WAITS)
    try:
        until(lambda: process.poll() is not None or protection(process) == (0, "0"), lambda: protection(process))
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(SANITIZED or variable("LIGHTQ_BUILD_TYPE", "Release") == "Debug", reason="built for something else")
def test_the_program_checks_its_stack_and_its_library_calls():
    symbols = subprocess.run(["readelf", "--wide", "--dyn-syms", BINARY], check=True, capture_output=True, text=True).stdout
    assert "__stack_chk_fail" in symbols
    assert re.search(r"\b__\w+_chk@", symbols), "no call that knows how much room there is"
