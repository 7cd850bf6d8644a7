"""The interface of the library: its symbols, the layout of its structs, and its header in other languages."""
import re
import subprocess

import pytest
from conftest import COMPILERS, LIBRARY, ROOT, STRICT, compiled

HEADER = (ROOT / "include/lightq/lightq.h").read_text()
ABI = ROOT / "clients/c/abi.txt"
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
STRUCTS = {name: re.findall(r"(\w+)(?:\[\d+\])?;", body)
           for name, body in re.findall(r"typedef struct (\w+) \{\n(.*?)\n\} \w+;", CODE, re.S)}


def symbols():
    lines = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(line.split()[2].partition("@")[0] for line in lines if line.split()[1] != "A")


def layouts(folder):
    """Returns `STRUCT SIZE` and `STRUCT.FIELD OFFSET` of every struct in the header."""
    source = folder / "layout.c"
    rows = []
    for name, fields in STRUCTS.items():
        rows.append(f'printf("{name} %d\\n", (int)sizeof({name}));')
        rows += [f'printf("{name}.{field} %d\\n", (int)offsetof({name}, {field}));' for field in fields]
    source.write_text("#include <stdio.h>\n#include <lightq/lightq.h>\nint main(void) {" + "\n".join(rows) + " return 0; }\n")
    program = compiled(source, folder / "layout", "-std=c89", "-Wno-overlength-strings")
    return subprocess.run([str(program)], check=True, capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": str(LIBRARY.parent)}).stdout.splitlines()


def test_the_interface_is_the_recorded_one(tmp_path):
    """A change of clients/c/abi.txt that is not only new lines breaks programs: it needs another SOVERSION."""
    found = symbols() + layouts(tmp_path)
    assert found == ABI.read_text().splitlines(), "\n".join(found)


def test_every_declared_function_is_exported():
    declared = set(re.findall(r"\b(lightq_\w+)\(", CODE))
    assert len(declared) > 50 and sorted(declared) == symbols()


def test_the_library_has_its_name_and_needs_no_other_of_lightq():
    told = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
    assert "[liblightq.so.0]" in told
    assert not re.search(r"NEEDED.*liblightq", told)
    assert re.search(r"FLAGS_1.*\bNODELETE\b", told), "a program could unload code that threads of libzmq still run"


INITIALIZED = "".join(f"{name} v{number} = {macro};\n" for number, (name, macro) in enumerate(
    (name, name.upper() + "_INIT") for name in STRUCTS if f"#define {name.upper()}_INIT" in HEADER))


@pytest.mark.parametrize("language,standard", [("c", "c89"), ("c", "c11"), ("c++", "c++98"), ("c++", "c++20")])
def test_the_header_is_accepted_with_all_warnings(tmp_path, language, standard):
    source = tmp_path / "header.c"
    source.write_text(f"#include <lightq/lightq.h>\n{INITIALIZED}int main(void) {{ return lightq_version() == 0; }}\n")
    done = subprocess.run([COMPILERS[language], *STRICT, "-Wconversion", f"-std={standard}", "-x", language, "-fsyntax-only", str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(STRUCTS) > 10 and INITIALIZED.count("\n") >= 10


def test_every_code_has_a_word_and_a_number_of_its_own(tmp_path):
    codes = re.findall(r"^  LIGHTQ_(\w+) = (\d+)", CODE[:CODE.index("typedef struct lightq_error")], re.M)
    numbers = [int(number) for _, number in codes]
    assert len(set(numbers)) == len(numbers) == 32
    import ctypes
    library = ctypes.CDLL(str(LIBRARY))
    library.lightq_strerror.restype = ctypes.c_char_p
    assert [library.lightq_strerror(number).decode() for number in numbers] == [word.lower() for word, _ in codes]
    assert library.lightq_strerror(77) == b"unknown" and library.lightq_strerror(-1) == b"unknown"
