"""Checks the repository against the house rules (rules.py), and checks the rules with planted violations."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import go_rules
import python_rules
import rules
import script_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED_ROOMS = {"build", ".git", ".cache", "__pycache__", ".pytest_cache"}
TEXT = (".hpp", ".cpp", ".h", ".c", ".py", ".go", ".rb", ".lua", ".md", ".txt", ".cmake", ".json", ".toml", ".in", ".supp", "")


def repository():
    tree = {}
    for folder, rooms, files in os.walk(ROOT):
        rooms[:] = [room for room in rooms if room not in SKIPPED_ROOMS]
        for name in files:
            path = pathlib.Path(folder, name)
            relative = path.relative_to(ROOT).as_posix()
            if path.suffix in TEXT and "/corpus/" not in relative:
                tree[relative] = path.read_text(encoding="utf-8", errors="replace")
    return tree


TREE = repository()


def test_the_walk_finds_the_repository():
    assert "include/lightq/base/error.hpp" in TREE and "scripts/test" in TREE
    assert len(rules.sources(TREE)) > 20


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps(rule):
    found = list(rule(TREE))
    assert not found, "\n" + "\n".join(found)


def test_the_repository_is_formatted():
    tool = shutil.which("clang-format-19")
    if tool is None:
        pytest.skip("clang-format-19 is not installed (scripts/setup format)")
    files = sorted(rules.sources(TREE))
    done = subprocess.run([tool, "--dry-run", "--Werror", *files], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]


# --- Each rule can fail. Each row: the rule, a path, its text, and words of the complaint. ---------------------------
LONG_BODY = "\n" * 80
MANY_METHODS = "".join(f"  [[nodiscard]] std::map<int, A<int>> f{i}(std::function<void(int)> x = {{}}) const;\n" for i in range(41))
MANY_MEMBERS = "".join(f"    std::function<void(int)> m{i} = [] {{ return f(); }};\n" for i in range(26))
PLANTED = [
    (rules.upward_includes, "src/log/a.cpp", '#include "delivery/topic.hpp"', "layer 'log' includes"),
    (rules.upward_includes, "src/delivery/a.cpp", '#include "topic/reactor/reactor.hpp"', "'topic'"),
    (rules.upward_includes, "src/topic/a.hpp", '#include "control/catalogue/catalogue.hpp"', "'control'"),
    (rules.upward_includes, "include/lightq/base/a.hpp", "#include <lightq/protocol/control.hpp>", "'protocol'"),
    (rules.upward_includes, "include/lightq/protocol/a.hpp", "#include <lightq/client.hpp>", "'client'"),
    (rules.upward_includes, "src/client/a.cpp", '#include "broker/broker.hpp"', "'broker'"),
    (rules.upward_includes, "src/log/a.cpp", '#include "helper.hpp"', "no layer owns"),
    (rules.upward_includes, "src/net/a.hpp", '#include "zmtp/zmtp.hpp"', "'zmtp'"),
    (rules.foreign_includes, "src/log/a.cpp", "#include <zmq.hpp>", "zmq outside"),
    (rules.foreign_includes, "include/lightq/protocol/a.hpp", "#include <zmq.h>", "zmq outside"),
    (rules.foreign_includes, "src/delivery/a.cpp", "#include <nlohmann/json.hpp>", "nlohmann outside"),
    (rules.foreign_includes, "src/control/catalogue/catalogue.cpp", "#include <nlohmann/json.hpp>", "nlohmann outside"),
    (rules.foreign_includes, "src/control/a.cpp", "#include <spdlog/spdlog.h>", "spdlog outside"),
    (rules.foreign_includes, "src/log/segment.cpp", "#include <sys/mman.h>", "mman.h outside"),
    (rules.foreign_includes, "src/log/segment.cpp", "#include <unistd.h>", "system calls outside"),
    (rules.foreign_includes, "src/queue/a.cpp", "#include <sys/syscall.h>", "system calls outside"),
    (rules.foreign_includes, "src/net/a.cpp", "#include <sodium.h>", "libsodium outside"),
    (rules.foreign_includes, "src/delivery/a.cpp", "#include <lightq/protocol/session_consuming.hpp>", "session frames"),
    (rules.foreign_includes, "src/topic/a.hpp", "#include <lightq/protocol/session_link.hpp>", "session frames"),
    (rules.foreign_includes, "src/delivery/a.cpp", "#include <zstd.h>", "zstd outside"),
    (rules.foreign_includes, "src/session/a.cpp", "#include <openssl/ssl.h>", "OpenSSL outside"),
    (rules.impure_layers, "src/log/a.cpp", "auto t = std::chrono::steady_clock::now();", "steady_clock"),
    (rules.impure_layers, "src/delivery/a.cpp", "#include <sys/socket.h>", "socket"),
    (rules.long_files, "src/log/a.cpp", "\n" * 501, "501 lines"),
    (rules.long_functions, "src/log/a.cpp", "namespace a {\nint f(int x) {" + LONG_BODY + "}\n}", ":2: a function of"),
    (rules.long_functions, "src/log/a.cpp", "struct A {\n  template <class T>\n  T f() const {" + LONG_BODY + "}\n};", ":2:"),
    (rules.long_functions, "tests/log/a.cpp", 'TEST(A, B) {\n if (x) { f("}"); }' + LONG_BODY + "}", ":1:"),
    (rules.headless_files, "src/log/a.cpp", "#pragma once\n", "does not begin"),
    (rules.headless_files, "src/log/a.cpp", "/// What it is.\n#pragma once\n", "its layer"),
    (rules.wrong_layers, "src/net/a.cpp", "/// A thing. Layer:\n/// endpoint.\n", "names the layer 'endpoint'"),
    (rules.machine_paths, "docs/a.md", "see /ro" + "ot/notes", "somebody's machine"),
    (rules.stray_definitions, "include/lightq/a.hpp", "#include <lightq/impl/a.hpp>", "outside #if defined"),
    (rules.stray_definitions, "include/lightq/a.hpp",
     rules.DEFINITIONS_GUARD + "#include <lightq/impl/a.hpp>\n#endif\n#include <lightq/impl/b.hpp>", "impl/b.hpp"),
    (rules.large_classes, "src/log/a.hpp", "namespace a {\nclass A final : public B<C> {\n public:\n" + MANY_METHODS + "};\n}",
     "A has 41 methods, 40 allowed"),
    (rules.large_classes, "src/log/a.hpp", "struct A {\n  struct B {\n" + MANY_MEMBERS + "    void f() {}\n  };\n};",
     "B has 26 data members, 25 allowed"),
    (rules.merged_layouts, "src/log/a.cpp", "  using namespace batch_layout;", "use a namespace alias"),
    (rules.operations_that_know_requests, "src/control/commands/topic_operations.hpp",
     '#include "control/rights/permissions.hpp"', "an operation knows no requests"),
    (rules.operations_that_know_requests, "src/control/commands/user_operations.cpp",
     "void create(const protocol::CreateUser& request);", "'protocol::CreateUser'"),
    (rules.operations_that_know_requests, "src/control/commands/topic_quota.cpp",
     "authenticator.verify(Authenticator::VerifyDone());", "'Authenticator'"),
    (rules.operations_that_know_requests, "src/control/rights/permissions.hpp",
     '#include "control/answer.hpp"', "'control/answer.hpp': a check of an asker knows no commands"),
    (rules.operations_that_know_requests, "src/control/rights/asker_rights.cpp",
     "protocol::Reply refusal() const;", "'protocol::Reply': a check of an asker knows no commands"),
    (rules.leftovers, "src/log/a.cpp", "// TO" + "DO: later", "left for later"),
    (rules.upward_includes, "clients/conformance/cpp/a.cpp", '#include "broker/broker.hpp"', "'broker'"),
    (rules.upward_includes, "clients/conformance/cpp/a.hpp", '#include "other.hpp"', "no layer owns"),
    (rules.foreign_includes, "clients/conformance/cpp/a.cpp", "#include <zmq.hpp>", "zmq outside"),
    (python_rules.python_client_imports, "clients/python/lightq/a.py", "import zmq", "imports zmq"),
    (python_rules.python_client_imports, "clients/python/lightq/core/a.py", "from socket import socket", "imports socket in core"),
    (python_rules.python_client_imports, "clients/python/lightq/core/a.py", "from ..driver import Driver", "module driver"),
    (python_rules.python_client_imports, "clients/python/lightq/core/a.py", "from .. import driver", "module driver"),
    (python_rules.python_client_imports, "clients/python/lightq/aio/a.py", "from ..driver import Driver", "module driver"),
    (rules.long_files, "clients/go/a.go", "\n" * 501, "501 lines"),
    (rules.long_files, "include/lightq/a.h", "\n" * 501, "501 lines"),
    (go_rules.go_client_imports, "clients/go/a.go", 'import "example.org/x/zmq"', "imports example.org/x/zmq"),
    (go_rules.go_client_imports, "clients/go/a.go", 'import (\n\t"net"\n\tz "C"\n)', "imports C"),
    (go_rules.go_client_imports, "clients/go/internal/wire/a.go", 'import (\n\t"net"\n)', "imports net in wire"),
    (go_rules.go_client_imports, "clients/go/internal/control/a.go", 'import "lightq"', "imports lightq, which is of a higher layer"),
    (go_rules.long_go_functions, "clients/go/a.go", "func f() {\n" + "\tg()\n" * 71 + "}\n", ":1: a function of 73"),
    (rules.long_files, "clients/lua/a.lua", "\n" * 501, "501 lines"),
    (script_rules.script_client_loads, "clients/ruby/lib/a.rb", 'require "zmq"', "loads zmq"),
    (script_rules.script_client_loads, "clients/lua/lightq/a.lua", 'local c = require "cjson"', "loads cjson"),
    (script_rules.long_script_functions, "clients/ruby/a.rb", "  def f\n" + "    g\n" * 71 + "  end\n", ":1: a function of 73"),
    (script_rules.long_script_functions, "clients/ruby/a.rb", "  private def f\n" + "    g\n" * 71 + "  end\n", ":1: a function of 73"),
    (script_rules.long_script_functions, "clients/ruby/a.rb", "  define_method(:f) do |x|\n" + "    g\n" * 71 + "  end\n", ":1: a function of 73"),
    *((script_rules.long_script_functions, "clients/lua/a.lua", indent + head + "\n" + (indent + "  g()\n") * 71 + indent + "end" + tail + "\n",
       ":1: a function of 73")
      for indent in ("", "  ")
      for head, tail in (("local function f()", ""), ("function M.f()", ""), ("M.f = function(a)", ""), ("local f = function(a)", ""),
                         ("f = function (a)", ""), ("return function()", ""), ("each(function(a)", ")"))),
    (python_rules.long_python_functions, "clients/conformance/a.py", "def f():\n" + "    g()\n" * 71, ":1: a function of 72"),
    (rules.sleeping_tests, "tests/log/a_test.cpp", "std::this_thread::sleep_for(1s);", "sleeps"),
]


@pytest.mark.parametrize("rule,path,text,complaint", PLANTED)
def test_a_planted_violation_is_found(rule, path, text, complaint):
    found = list(rule({path: text}))
    assert any(complaint in line for line in found), found


def test_one_file_too_many_is_found():
    tree = {"src/client/a.cpp": "#include <CLI/CLI.hpp>", "src/client/b.cpp": "#include <CLI/CLI.hpp>"}
    assert any("2 files" in line for line in rules.foreign_includes(tree))


@pytest.mark.parametrize("folder", ["src/net", "bench/peers"])
def test_a_folder_with_too_many_files_is_found(folder):
    tree = {f"{folder}/a{number}.cpp": "" for number in range(rules.FOLDER_FILES_MAX + 1)}
    assert any("41 source files" in line for line in rules.full_folders(tree))


def test_a_cycle_of_folders_is_found():
    tree = {"src/topic/a.hpp": '#include "topic/parts/b.hpp"', "src/topic/parts/b.hpp": '#include "net/c.hpp"',
            "src/net/c.hpp": '#include "topic/a.hpp"', "src/log/d.hpp": '#include "log/e.hpp"\n#include "topic/a.hpp"',
            "src/log/e.hpp": ""}
    assert [line.partition(":")[0] for line in rules.folder_cycles(tree)] == ["src/net", "src/topic", "src/topic/parts"]


def test_methods_and_members_of_a_class_are_counted():
    text = """/// A { in a comment;
template <typename T>
class [[nodiscard]] A final : public B<C<T>> {
 public:
  using Done = std::function<void(T)>;
  enum class Kind { one, two };
  struct Options {
    int a = 0;
    std::vector<int> b{1, 2};
  };
  explicit A(int x) : a_{x}, b_(2) { run(); }
  A(const A&) = delete;
  ~A() override = default;
  template <std::invocable F>
    requires(!std::same_as<F, A>)
  void g(F f) { if (f) { f({1}); } struct Local { int l; void m(); }; }
  friend bool operator==(const A&, const A&) = default;
  bool operator<(const A& other) const;
  T* operator->() { return t_; }
  auto h() -> std::optional<int>;
  virtual void pure(int x = 0) = 0;
  void i(int x = 1, B b = {}) { run(x); }
  void j() { i(); }
  static std::string s();
 private:
  friend class D;
  class Hidden;
  static constexpr int none = 1;
  static inline const std::string text = f("{");
  alignas(64) std::atomic<int> a_{0};
  const std::function<void(int)> b_ = [](int) {};
  std::map<int, std::array<int, 3>> c_, d_;
  char brace_ = '{';
};
class A::Hidden { int a; };
int free_function(int x) { return x; }
"""
    # `c_` and `d_` count as one, because they are one declaration.
    assert list(rules.classes(text)) == [("Options", 0, 2), ("A", 9, 4), ("A::Hidden", 0, 1)]


def test_an_exception_that_nothing_needs_is_found():
    exceptions = {("src/net/a.hpp", "zmtp/zmtp.hpp")}
    assert list(rules.unneeded_exceptions({"src/net/a.hpp": '#include "zmtp/zmtp.hpp"'}, exceptions)) == []
    found = list(rules.unneeded_exceptions({"src/net/a.hpp": "#pragma once"}, exceptions))
    assert len(found) == 1 and "no longer includes zmtp/zmtp.hpp" in found[0], found


@pytest.mark.parametrize("text,complaint", [
    ("class A {\n" + MANY_METHODS * 2 + "};", "A has 82 methods, 79 allowed"),
    ("class A {\n" + MANY_METHODS + "};", "has 41 methods and 0 data members now: correct"),
    ("class Other {};", "no class A: drop it"),
])
def test_an_exception_for_a_large_class_may_only_shrink(text, complaint):
    path = "src/session/a.hpp"
    found = list(rules.large_classes({path: text}, {(path, "A"): (79, 0)}))
    assert len(found) == 1 and complaint in found[0], found


def test_imports_of_lower_layers_are_left_alone():
    tree = {"clients/python/lightq/core/a.py": "import struct\nfrom ..errors import Error\nfrom . import frames\nfrom .. import message",
            "clients/python/lightq/aio/b.py": "import asyncio\nfrom ..core import frames\nfrom ..core.link import Link\nfrom .c import C",
            "clients/python/lightq/d.py": "import socket\nfrom .core.link import Link\nfrom .driver import Driver"}
    assert list(python_rules.python_client_imports(tree)) == []


def test_a_record_may_have_any_number_of_fields():
    assert list(rules.large_classes({"src/log/a.hpp": "struct A {\n" + MANY_MEMBERS + "};"})) == []


def test_definitions_that_no_program_compiles_are_found():
    tree = {rules.SOURCE: "#include <lightq/a.hpp>",
            "include/lightq/a.hpp": rules.DEFINITIONS_GUARD + "#include <lightq/impl/a.hpp>\n#endif",
            "include/lightq/impl/a.hpp": "", "include/lightq/impl/b.hpp": ""}
    assert list(rules.lost_definitions(tree)) == ["include/lightq/impl/b.hpp: lightq/source.hpp does not reach it"]
    assert list(rules.stray_definitions(tree)) == []


def test_a_file_in_order_is_left_unchanged():
    text = """/// A thing. Layer: log.
#include <lightq/base/error.hpp>

#include "log/log.hpp"

// a { in a comment, steady_clock::now too
namespace lightq::log {
constexpr int table[] = {1, 2, 3};
struct A {
  A() : a_{1}, b_(2) {}
  int a_;
  int b_ = '{';
};
""" + "".join(f"int f{i}() {{\n  return {i};\n}}\n" for i in range(40)) + "}\n"
    for rule in rules.RULES:
        assert list(rule({"src/log/a.cpp": text})) == []


# --- Documents -------------------------------------------------------------------------------------------------------

def code_blocks(text, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```$", text, re.S | re.M)


@pytest.mark.parametrize("example", ["producer", "consumer"])
def test_the_readme_shows_the_example_that_is_compiled(example):
    blocks = code_blocks(TREE["README.md"], "cpp")
    # The README leaves out the comment at the head of the file.
    source = re.sub(r"\A(///.*\n)+", "", TREE[f"examples/{example}.cpp"])
    assert any(block.strip() == source.strip() for block in blocks), f"README.md does not show examples/{example}.cpp"


def test_links_in_the_documents_lead_somewhere():
    broken = []
    for path, text in TREE.items():
        if path.endswith(".md"):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" not in target and not (ROOT / path).parent.joinpath(target).exists():
                    broken.append(f"{path}: {target}")
    assert not broken, broken


def test_every_error_code_stands_in_the_protocol_document():
    header = TREE["include/lightq/base/error.hpp"]
    words = re.findall(r'"([a-z_]+)"', header[header.index("words = {"):header.index("return words")])
    assert len(words) >= 25
    document = TREE["docs/protocol.md"]
    missing = [word for word in words if f"`{word}`" not in document]
    assert not missing, missing


# --- Limits: the header and the document must agree. ---

UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
CONSTANT = re.compile(r"inline constexpr [\w:]+ (\w+)\s*=\s*([^;]+);")


def amount(text):
    """Converts `4 GiB - 64 KiB`, `4 * GiB - 64 * KiB`, `100'000` or `100,000` to a number."""
    plain = re.sub(r"(?<=\d)[',](?=\d)", "", text)
    plain = re.sub(r"(\d+) *\*? *([KMGT]iB)", lambda found: str(int(found[1]) * UNITS[found[2]]), plain)
    assert re.fullmatch(r"[\d\s*-]+", plain), f"not an amount: {text!r}"
    return eval(plain)  # noqa: S307 - digits, minus and times only


def limits_in(header):
    return {name: amount(value) for name, value in CONSTANT.findall(header) if name not in UNITS}


def limit_rows(document):
    """Yields (name, value) of every name in the table under Limits."""
    table = document[document.index("\n## Limits\n"):]
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.M):
        names = re.findall(r"`(\w+)`", row[0])
        values = row[1].split(", ")  # the comma of thousands has no space after it
        assert len(names) == len(values), f"{len(names)} limits, {len(values)} values: {row}"
        yield from ((name, amount(value)) for name, value in zip(names, values))


def test_every_limit_stands_in_the_protocol_document_once_and_with_its_value():
    limits, rows = limits_in(TREE["include/lightq/base/limits.hpp"]), list(limit_rows(TREE["docs/protocol.md"]))
    assert len(limits) > 25
    assert sorted(name for name, _ in rows) == sorted(limits), "missing, unknown, or there twice"
    assert dict(rows) == limits


def test_a_wrong_limit_in_the_document_would_be_found():
    header = "inline constexpr std::uint64_t a = 4 * GiB - 64 * KiB;\ninline constexpr int b =\n    1'000;  ///< why\n"
    assert limits_in(header) == {"a": 4 * 1024**3 - 64 * 1024, "b": 1000}
    assert list(limit_rows("\n## Limits\n| `a`, `b` | 4 GiB - 64 KiB, 1,001 | what |\n")) == [("a", 4294901760), ("b", 1001)]


# --- Settings: the broker's table and docs/configuration.md must agree. ---

def settings_in(source):
    """Returns (name, type, name of the value in the help text) of every row of the table in config.cpp."""
    table = source[source.index("constexpr Setting table[] = {"):]
    return re.findall(r'^\s*\{"(\w+)", (\w+), "([^"]*)",', table[:table.index("\n};")], re.M)


def test_every_setting_stands_in_the_configuration_document():
    rows = settings_in(TREE["src/broker/config.cpp"])
    assert len(rows) >= 17
    told = re.findall(r"^\*\*`(\w+)`\*\* · `(\w+)` · `(--[\w-]+(?: [^`]+)?)`<br>\n(\w+),", TREE["docs/configuration.md"], re.M)
    expected = [(name, "LIGHTQ_" + name.upper(), f"--{name.replace('_', '-')} {value}".strip(), kind) for name, kind, value in rows]
    assert told == expected


def test_the_configuration_document_lists_the_settings_that_a_reload_changes():
    rows = re.findall(r'row<&Config::\w+>\("(\w+)",\s+(\w+)\)', TREE["src/broker/reload_table.cpp"])
    assert [name for name, _ in rows] == [name for name, _, _ in settings_in(TREE["src/broker/config.cpp"])]
    page = TREE["docs/configuration.md"]
    told = page[page.index("These settings take effect at once:"):page.index("All other settings need a restart")]
    listed = {name for name in re.findall(r"`(\w+)`", told) if name != "encrypt"}
    assert listed == {name for name, effect in rows if effect != "restart"}


def test_the_sample_configuration_names_settings_only():
    names = {name for name, _, _ in settings_in(TREE["src/broker/config.cpp"])}
    samples = code_blocks(TREE["docs/configuration.md"], "toml")
    keys = re.findall(r"^(\w+) *=", "".join(samples), re.M)
    assert keys and set(keys) <= names


def test_a_decision_that_the_design_does_not_list_is_found():
    tree = {"docs/adr/0007-use-less.md": "# 7. Use less", "docs/design.md": "| 7 | [Use less](adr/0007-use-less.md) |"}
    assert list(rules.unlisted_decisions(tree)) == []
    tree["docs/adr/0008-use-more.md"] = "# 8. Use more"
    assert list(rules.unlisted_decisions(tree)) == ["docs/adr/0008-use-more.md: docs/design.md does not list it"]
