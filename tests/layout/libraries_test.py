"""Checks the tables of folders and libraries in docs/design.md, and checks these checks with planted violations."""
import pytest

import libraries
from layout_test import TREE

TABLES = "\n### Folders\n| `src/a/` | things; `in/`: more | base |\n\n### Libraries\n| `lightq_a` | `src/a/`, `src/a/in/` |\n"
TIDY = {"docs/design.md": TABLES, "src/a/b.cpp": "", "src/a/in/c.cpp": "", "src/a/in/c.hpp": "",
        "src/a/CMakeLists.txt": "# it has (b.cpp)\nadd_library(lightq_a STATIC b.cpp  # one\n  ../a/in/c.cpp)\n"}
SPLIT = "add_library(lightq_a STATIC b.cpp)\nadd_library(lightq_b STATIC in/c.cpp)"


@pytest.mark.parametrize("rule", libraries.RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps(rule):
    found = list(rule(TREE))
    assert not found, "\n" + "\n".join(found)


def test_the_libraries_are_found():
    assert len(libraries.folders_of_libraries(TREE)) >= 10
    assert "src/queue/" in libraries.folders_of_libraries(TREE)["lightq_log"]


def test_a_tree_in_order_is_accepted():
    assert [line for rule in libraries.RULES for line in rule(TIDY)] == []


@pytest.mark.parametrize("change,complaints", [
    ({"src/a/CMakeLists.txt": SPLIT}, ["lightq_a compiles no source of src/a/in/", "lightq_b compiles sources of src/a/in/"]),
    ({"src/a/d.cpp": ""}, ["src/a/d.cpp: 0 libraries"]),
    ({"src/b/CMakeLists.txt": "target_sources(lightq_a PRIVATE ../a/b.cpp)"}, ["src/a/b.cpp: 2 libraries"]),
    ({"src/b/CMakeLists.txt": "target_sources(lightq_a PRIVATE ../a/e.cpp)"}, ["src/a/e.cpp: a library compiles it"]),
    ({"src/a/new/d.hpp": ""}, ["does not name src/a/new/"]),
])
def test_a_planted_violation_is_found(change, complaints):
    found = [line for rule in libraries.RULES for line in rule({**TIDY, **change})]
    assert len(found) == len(complaints), found
    for complaint, line in zip(complaints, found):
        assert complaint in line
