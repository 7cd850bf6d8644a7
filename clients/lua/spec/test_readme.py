"""Builds the rocks as a newcomer does, and runs the programs of README.md with them. The environment names the library
(LIGHTQ_C_LIBRARY)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import variable  # noqa: E402
from support import ADMIN_PASSWORD, DEADLINE, running_with_topic  # noqa: E402

LIBRARY = pathlib.Path(variable("LIGHTQ_C_LIBRARY"))
README = (HERE / "README.md").read_text(encoding="utf-8")
TEN_LINES, EXPLICIT, CONNECTING = re.findall(r"^```lua\n(.*?)^```$", README, re.S | re.M)
VERSION = "0.1.0-1"


@pytest.fixture(scope="module")
def broker():
    with running_with_topic() as made:
        yield made


def run(program, where, text):
    done = subprocess.run([program, "-"], input=text, env=where, capture_output=True, text=True, timeout=3 * DEADLINE)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("program, version, rock", [("lua5.3", "5.3", "lightq"), ("lua5.4", "5.4", "lightq"), ("luajit", "5.1", "lightq-luajit")])
def test_the_programs_run_with_the_installed_rock(tmp_path, broker, program, version, rock):
    if not shutil.which("luarocks") or not shutil.which(program):
        pytest.skip(f"luarocks or {program} is not installed (scripts/setup clients)")
    shutil.copytree(HERE, tmp_path / "source")  # LuaRocks leaves its files beside the sources
    made = subprocess.run(["luarocks", "--lua-version", version, "--tree", str(tmp_path / "tree"), "make", f"{rock}-{VERSION}.rockspec",
                           f"LIGHTQ_INCDIR={ROOT / 'include'}", f"LIGHTQ_LIBDIR={LIBRARY.parent}"],
                          cwd=tmp_path / "source", env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, text=True,
                          timeout=3 * DEADLINE)
    assert made.returncode == 0, made.stdout + made.stderr
    share, compiled = tmp_path / f"tree/share/lua/{version}", tmp_path / f"tree/lib/lua/{version}"
    where = {"PATH": os.environ["PATH"], "LUA_PATH": f"{share}/?.lua;{share}/?/init.lua", "LUA_CPATH": f"{compiled}/?.so",
             "LD_LIBRARY_PATH": str(LIBRARY.parent), "LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD,
             "LIGHTQ_DATA_DIR": str(broker.data_dir)}
    broker.control().create("orders", "file")
    assert run(program, where, TEN_LINES) == (0, [f"billed order {n}" for n in range(1000)], "")
    code, lines, errors = run(program, where, EXPLICIT)
    assert (code, errors) == (0, "") and re.fullmatch(r"\d+\ttext/plain\torder 1000", lines[-1]), lines
    code, _, errors = run(program, where, CONNECTING.replace("broker.example:5000", "127.0.0.1:1"))
    assert code == 1 and re.search("lightq: (invalid_argument|io_error)", errors), errors
    broker.control().delete("orders")


def test_the_rocks_have_every_module():
    for name, others in (f"lightq-{VERSION}.rockspec", {"cdef", "native_ffi"}), (f"lightq-luajit-{VERSION}.rockspec", {"native_c"}):
        text = (HERE / name).read_text()
        listed = set(re.findall(r'"lightq/(\w+)\.lua"', text))
        assert listed == {file.stem for file in (HERE / "lightq").glob("*.lua")} - others, name
        assert f'version = "{VERSION}"' in text
    version = re.search(r'version_text = "([0-9.]+)"', (ROOT / "include/lightq/version.hpp").read_text())[1]
    assert VERSION == f"{version}-1" and f'version = "{version}"' in (HERE / "lightq/init.lua").read_text()
    sources = set(re.findall(r'"(src/\w+\.c)"', (HERE / f"lightq-{VERSION}.rockspec").read_text()))
    assert sources == {f"src/{file.name}" for file in (HERE / "src").glob("*.c")}


def test_luacheck_finds_nothing():
    if not shutil.which("luacheck"):
        pytest.skip("luacheck is not installed (scripts/setup clients)")
    done = subprocess.run(["luacheck", "-q", "--no-color", "--std", "max+busted", "--max-line-length", "150", "lightq", "spec", "conformance"],
                          cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
