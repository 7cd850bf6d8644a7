"""Checks the repository's language against language.py, and the rules against planted violations."""
import pathlib

import pytest

import language
from layout_test import TREE

EXCEPTIONS = language.exceptions(pathlib.Path(__file__).with_name("language_exceptions.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", language.RULES, ids=lambda rule: rule.__name__)
def test_the_texts_keep(rule):
    found = list(language.beyond_the_exceptions(rule, TREE, EXCEPTIONS))
    assert not found, "\n" + "\n".join(found)


def test_each_exception_names_a_rule():
    assert {rule for rule, _ in EXCEPTIONS} <= {rule.__name__ for rule in language.RULES}


PLANTED = [
    (language.headless_sentences, "src/a.cpp", "/// Who shows a ticket may enter.\n", "begins with 'Who'"),
    (language.headless_sentences, "docs/a.md", "A ticket. Likewise a key.\n", "begins with 'Likewise'"),
    (language.banned_words, "src/a.cpp", "int a;  // strangers come first\n", "'strangers'"),
    (language.banned_words, "tests/a.py", '"""Messages that were\npassed over."""\n', "'passed over'"),
    (language.banned_words, "clients/ruby/a.rb", "x = '#'  # strangers come first\n", "'strangers'"),
    (language.banned_words, "clients/ruby/a.rb", "=begin\nstrangers\n=end\n", "'strangers'"),
    (language.banned_words, "clients/lua/a.lua", 'local x = "--"  --- strangers come first\n', "'strangers'"),
    (language.banned_words, "clients/lua/a.lua", "--[[ A message that was\npassed over. ]]\n", "'passed over'"),
    (language.banned_words_in_texts, "src/a.cpp", 'auto a = "a message was "\n"passed over";\n', "'passed over' in"),
    (language.banned_words_in_texts, "include/lightq/a.hpp", 'say("no proof was given\\n");\n', "'proof'"),
    (language.banned_words_in_texts, "apps/a.cpp", 'say("a" + name + ": one more inlet");\n', "'inlet'"),
    (language.headless_texts, "src/a.cpp", 'fail("nothing of what came is kept");\n', "…nothing of what came is kept…"),
    (language.headless_pages, "docs/a.md", "It knows what it has. It says what comes.", "2 clauses"),
    (language.headless_folders, "src/log/a.cpp", "// Keeps what came.\n// Drops what went.\n", "2 clauses"),
    (language.long_sentences, "docs/a.md", "one " * 31 + ".", "31 words"),
    (language.heads_that_say_only_the_layer, "src/log/a.cpp", "/// Layer: log.\n#include <a>\n", "nothing but"),
]


@pytest.mark.parametrize("rule,path,text,complaint", PLANTED)
def test_a_planted_violation_is_found(rule, path, text, complaint):
    found = list(language.beyond_the_exceptions(rule, {path: text}, {}))
    assert any(complaint in line for line in found), found


def test_an_exception_allows_so_many_and_no_fewer():
    tree = {"docs/a.md": "The strangers."}
    count = lambda allowed: list(language.beyond_the_exceptions(language.banned_words, tree, allowed))
    assert count({("banned_words", "docs/a.md"): 1}) == []
    assert "occurs 1 times now" in count({("banned_words", "docs/a.md"): 2})[0]


def test_plain_texts_are_left_alone():
    tree = {"src/log/a.cpp": '/// Appends records. Layer: log.\nauto a = "what", b = "door";  // A client who asks. Returns the end.\n',
            "src/log/b.cpp": '#include "log/inlet.hpp"\nauto c = word("held") + R"(rest)" + "a user who asks";  // Returns the end.\n',
            "clients/ruby/a.rb": "raise 'strangers' # Who asks? A client who asks.\nx = \"#{strangers} # strangers\"\n",
            "clients/lua/a.lua": "local a = [[ strangers\n-- strangers ]] -- Returns the end.\n",
            "docs/a.md": "A client who sends receives an answer.\n\n    who what whose\n"}
    for rule in language.RULES:
        assert list(rule(tree)) == []
