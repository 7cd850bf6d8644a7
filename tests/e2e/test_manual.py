"""Tests of the manual pages with the programs that show them."""
import shutil
import subprocess

import pytest

from cli_support import lightq
from support import DEADLINE


@pytest.fixture
def pages(lightq, tmp_path):
    lightq("man", "--output-dir", str(tmp_path / "man1"))
    found = sorted((tmp_path / "man1").iterdir())
    assert len(found) > 15 and {"lightq.1", "lightq-topic.1", "lightq-broker.1"} <= {page.name for page in found}
    return found


@pytest.mark.parametrize("checker", [["mandoc", "-Tlint", "-Wstyle"], ["man", "--warnings", "-l"]], ids=["mandoc", "man"])
def test_the_pages_have_no_faults(pages, checker):
    if shutil.which(checker[0]) is None:
        pytest.skip(f"{checker[0]} is not installed (scripts/setup test)")
    for page in pages:
        done = subprocess.run([*checker, str(page)], capture_output=True, timeout=DEADLINE)
        report = done.stderr if checker[0] == "man" else done.stdout + done.stderr
        assert done.returncode == 0 and report == b"", (page.name, report)


def test_a_page_shows_the_commands_flags_and_examples(lightq, pages):
    page = next(page for page in pages if page.name == "lightq-topic.1")
    assert lightq("man", "topic").stdout == page.read_bytes()
    assert lightq("man").stdout == next(page for page in pages if page.name == "lightq.1").read_bytes()
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed (scripts/setup test)")
    shown = subprocess.run(["mandoc", "-Tutf8", str(page)], capture_output=True, timeout=DEADLINE, check=True).stdout
    text = subprocess.run(["col", "-bx"], input=shown, capture_output=True, timeout=DEADLINE).stdout.decode()
    for words in ("lightq-topic", "lightq topic create [FLAGS] TOPIC", "--retention-messages COUNT", "LIGHTQ_RETENTION_MESSAGES",
                  "lightq topic create orders --type file --retention 7d"):
        assert words in text, words


def test_an_unknown_page_is_wrong_usage(lightq):
    assert b"there is no command 'nonsense'" in lightq("man", "nonsense", code=2).stderr
