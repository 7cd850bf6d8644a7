"""Checks that the bugs of tests/mutants fit the sources, and that a patch that does not fit is named."""
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/mutants"))

import apply  # noqa: E402 - lies in tests/mutants

SOURCE = "one();\ntwo();\nthree();\ntwo();\n"
FITTING = "A bug.\n\n--- src/a.cpp\n@@\n one();\n-two();\n+if (!BUG) two();\n"


def applied(folder, **patches):
    """Applies patches to a source. Returns the changed copy and the header with the names of the bugs."""
    (folder / "src").mkdir()
    (folder / "src/a.cpp").write_text(SOURCE, encoding="utf-8")
    (folder / "patches").mkdir()
    for name, text in patches.items():
        (folder / f"patches/{name}.patch").write_text(text, encoding="utf-8")
    apply.main(folder, folder / "out", folder / "patches")
    return [(folder / "out" / path).read_text(encoding="utf-8") for path in ("src/a.cpp", "mutants/bugs.hpp")]


def test_the_bugs_fit_the_sources(tmp_path):
    apply.main(ROOT, tmp_path)
    names = re.findall(r'^    "(\w+)",$', (tmp_path / "mutants/bugs.hpp").read_text(encoding="utf-8"), re.M)
    assert len(names) == 1 + len(list((ROOT / "tests/mutants").glob("*.patch"))) > 40
    for copy in tmp_path.rglob("*.cpp"):
        assert "test::seeded(" in copy.read_text(encoding="utf-8"), copy


def test_production_code_knows_no_bugs():
    for room in "src", "include", "apps":
        for path in (ROOT / room).rglob("*.[ch]pp"):
            assert not re.search(r"seeded|mutant", path.read_text(encoding="utf-8"), re.I), path


def test_a_bug_is_put_into_a_copy(tmp_path):
    copy, bugs = applied(tmp_path, kept=FITTING)
    assert copy == ('#include "mutants/seeded_bug.hpp"\none();\nif (!test::seeded(test::Bug::kept)) two();\n'
                    "three();\ntwo();\n")
    assert "  /// A bug.\n  kept,\n" in bugs


def test_patches_do_not_see_each_other(tmp_path):
    added = "Another.\n\n--- src/a.cpp\n@@\n one();\n+if (BUG) return;\n two();\n"
    copy, _ = applied(tmp_path, kept=FITTING, added=added)
    assert copy.splitlines()[1:4] == ["one();", "if (test::seeded(test::Bug::added)) return;",
                                      "if (!test::seeded(test::Bug::kept)) two();"]


@pytest.mark.parametrize("patches,complaint", [
    ({"late": FITTING.replace(" one", " zero")}, r"late\.patch, change 1 \(src/a\.cpp\): the source does not contain"),
    ({"vague": FITTING.replace(" one();\n", "")}, r"vague\.patch, change 1 .*contains 2 times"),
    ({"first": FITTING, "second": FITTING}, r"second\.patch, change 1 .*same lines as .*first\.patch"),
    ({"always": FITTING.replace("!BUG", "false")}, r"always\.patch: no new line contains BUG"),
    ({"lost": FITTING.replace("a.cpp", "b.cpp")}, r"lost\.patch, change 1 \(src/b\.cpp\): there is no such file"),
    ({"mute": FITTING.replace("A bug.", "")}, r"mute\.patch: it needs a description"),
    ({"torn": FITTING + "two();\n"}, r"torn\.patch: not a line of a change: two\(\);"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_a_patch_that_does_not_fit_is_named(tmp_path, patches, complaint):
    with pytest.raises(apply.Misfit, match=complaint):
        applied(tmp_path, **patches)
