"""A broker, the library and compilers for the tests of the C client. The environment names the library
(LIGHTQ_C_LIBRARY) and the compilers (LIGHTQ_CC, LIGHTQ_CXX)."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import pytest  # noqa: E402
from harness import variable  # noqa: E402
from support import ADMIN_PASSWORD, DEADLINE, running_with_topic  # noqa: E402

LIBRARY = pathlib.Path(variable("LIGHTQ_C_LIBRARY"))
COMPILERS = {"c": variable("LIGHTQ_CC"), "c++": variable("LIGHTQ_CXX")}
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


@pytest.fixture(scope="session")
def broker():
    with running_with_topic() as made:
        yield made


def compiled(source, program, *flags):
    """Compiles a program, and returns its path."""
    done = subprocess.run([COMPILERS["c"], *STRICT, *flags, str(source), "-o", str(program), f"-L{LIBRARY.parent}", "-llightq"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run(program, broker, *arguments):
    """Runs a program that finds the broker in its environment. Returns its output."""
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(LIBRARY.parent), "LIGHTQ_BROKER": broker.control_uri,
                   "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD, "LIGHTQ_DATA_DIR": str(broker.data_dir)}
    done = subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True, timeout=3 * DEADLINE)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
