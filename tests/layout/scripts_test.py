"""Tests scripts/test: the progress that it shows while it builds and tests, and the secrets that it searches for."""
import pathlib
import re
import select
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "scripts/test").read_text()


def function(name):
    """Returns the source of a function of scripts/test."""
    return re.search(rf"^{name}\(\) \{{\n.*?^\}}\n", SCRIPT, re.DOTALL | re.MULTILINE)[0]


SHOW_PROGRESS = function("show_progress")
SILENCE_MAX = 20  # seconds without output; on an idle machine there is output every 5


class Shown:
    """Runs `show_progress`: the test feeds its input and reads its output from a pipe."""

    def __init__(self):
        self.process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", SHOW_PROGRESS + "show_progress"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.text = ""

    def feed(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def wait_for(self, pattern):
        deadline = time.monotonic() + SILENCE_MAX
        while not re.search(pattern, self.text, re.MULTILINE):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.process.stdout], [], [], left)[0], f"no {pattern!r} in {self.text!r}"
            self.text += self.process.stdout.read1(65536).decode()

    def end(self):
        self.text += self.process.communicate(timeout=SILENCE_MAX)[0].decode()
        assert self.process.returncode == 0
        return self.text


@pytest.fixture
def shown():
    shown = Shown()
    yield shown
    shown.process.kill()
    shown.process.communicate()


def test_a_build_without_output_shows_its_progress(shown):
    shown.feed("[3/120] Building CXX object a.cpp.o\n")
    shown.wait_for(r"^ +\d+ s: 3/120 Building CXX object a\.cpp\.o$")
    shown.feed("a.cpp:1: error: no\n")
    assert shown.end().endswith("a.cpp:1: error: no\n")


def test_tests_show_what_runs_and_at_once_what_failed(shown):
    shown.feed("      Start   1: one\n      Start   2: e2e.two\n      Start   3: three\n"
               "  1/9 Test   #1: one .......   Passed    0.01 sec\n")
    shown.wait_for(r"^ +\d+ s: 1/9, 1 passed, 0 not; now (e2e\.two three|three e2e\.two)$")
    shown.feed("  2/9 Test   #3: three .....***Failed    0.02 sec\nwhat it said\n")
    shown.wait_for(r"^ +2/9 Test +#3: three \.+\*\*\*Failed.*\nwhat it said$")
    shown.wait_for(r"^ +\d+ s: 2/9, 1 passed, 1 not; now e2e\.two$")
    assert "Passed" not in shown.end(), "a line for each that passed hides what failed"


def planted_secrets(root):
    script = function("no_secret_in") + function("planted_secrets") + "planted_secrets"
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=root, capture_output=True, text=True)


def test_the_secrets_of_tests_and_of_examples_are_found():
    found = planted_secrets(ROOT)
    assert found.returncode == 0, found.stderr
    secrets = found.stdout.splitlines()
    assert sum(secret.startswith("planted-") for secret in secrets) >= 8
    assert "only for this process" in secrets


@pytest.mark.parametrize("empty", ["tests/support/planted.hpp", "examples/embedded_broker.cpp"])
def test_a_search_that_finds_no_secret_is_an_error(tmp_path, empty):
    for name, text in {"tests/support/planted.hpp": 'char a[] = "planted-one";\n',
                       "examples/embedded_broker.cpp": 'config.admin_password = "two";\n'}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == empty else text)
    found = planted_secrets(tmp_path)
    assert found.returncode != 0
    assert "no secret found in " + empty.split("/embedded")[0] in found.stderr
