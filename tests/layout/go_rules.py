"""The house rules for the client that is written in Go, as functions over a tree of files (see rules.py)."""
import re

FUNCTION_LINES_MAX = 70
GO_CLIENT = "clients/go/"
# The packages of the client that each of its packages may import. All may be imported by the others.
GO_LAYERS = {"internal/fault/": set(), "internal/nacl/": set(), "internal/wire/": {"fault"}, "internal/control/": {"fault", "nacl"}}
# Packages of the standard library that the codec, which is without input and output, must not import.
GO_IMPURE = {"net", "os", "time", "sync", "crypto/tls"}
IMPORTS = re.compile(r"^import \((.*?)^\)|^import ([^\n(]+)", re.M | re.S)
FUNCTION = re.compile(r"^func .*?^}", re.M | re.S)


def go_imports(text):
    """Yields (line, path) of each import."""
    for match in IMPORTS.finditer(text):
        for name in re.finditer(r'"([^"]+)"', match.group()):
            yield text.count("\n", 0, match.start() + name.start()) + 1, name.group(1)


def go_client_imports(tree):
    """Imports of the Go client that are not of the standard library, or not of a lower package of its own."""
    for path, text in tree.items():
        if not path.startswith(GO_CLIENT) or not path.endswith(".go"):
            continue
        layer = next((folder for folder in GO_LAYERS if path.startswith(GO_CLIENT + folder)), None)
        for line, name in go_imports(text):
            is_own = name == "lightq" or name.startswith("lightq/")
            if name == "C" or not is_own and "." in name.split("/")[0]:
                yield f"{path}:{line}: imports {name}: the client has no dependency"
            if layer == "internal/wire/" and name in GO_IMPURE and not path.endswith("_test.go"):
                yield f"{path}:{line}: imports {name} in wire, which is without input and output"
            if is_own and layer is not None and name.removeprefix("lightq/internal/") not in GO_LAYERS[layer]:
                yield f"{path}:{line}: imports {name}, which is of a higher layer"


def long_go_functions(tree):
    for path, text in tree.items():
        if not path.endswith(".go"):
            continue
        for match in FUNCTION.finditer(text):
            lines = match.group().count("\n") + 1
            if lines > FUNCTION_LINES_MAX and "\n" in match.group():
                yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a function of {lines} lines, {FUNCTION_LINES_MAX} allowed"


RULES = [go_client_imports, long_go_functions]
