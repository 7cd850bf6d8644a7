"""The house rules for the clients that are written in Python, as functions over a tree of files (see rules.py)."""
import ast
import sys

FUNCTION_LINES_MAX = 70
PYTHON_CLIENT = "clients/python/lightq/"
# The modules of the client that each folder of it may import. `core` is without input and output, both clients use it.
PYTHON_LAYERS = {"core/": {"core", "errors", "message"}, "aio/": {"aio", "core", "errors", "message", "options", "version"}}
# The modules of the standard library that only these files of `core` may import.
PYTHON_IMPURE = {"socket", "select", "selectors", "asyncio", "threading", "subprocess", "time"}
PYTHON_IMPURE_HOMES = {"core/discovery.py"}


def python_modules(path, text):
    """Yields (line, first part of the module's name, True if it is a module of the client)."""
    folder = path.removeprefix(PYTHON_CLIENT).rpartition("/")[0].split("/") if "/" in path.removeprefix(PYTHON_CLIENT) else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name.split(".")[0], False) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module.split(".")[0], False
        elif isinstance(node, ast.ImportFrom):
            place = folder[:len(folder) - node.level + 1] + (node.module or "").split(".")
            named = [name.name for name in node.names] if not node.module and node.level > len(folder) else [""]
            yield from ((node.lineno, place[0] or name, True) for name in named)


def python_client_imports(tree):
    """Imports of the Python client that are not of the standard library, or not of a lower layer of its own."""
    for path, text in tree.items():
        inner = path.removeprefix(PYTHON_CLIENT)
        if not path.startswith(PYTHON_CLIENT) or not path.endswith(".py"):
            continue
        allowed = next((modules for folder, modules in PYTHON_LAYERS.items() if inner.startswith(folder)), None)
        for line, module, is_own in python_modules(path, text):
            if not is_own and module not in sys.stdlib_module_names:
                yield f"{path}:{line}: imports {module}: the client has no dependency"
            if not is_own and inner.startswith("core/") and module in PYTHON_IMPURE and inner not in PYTHON_IMPURE_HOMES:
                yield f"{path}:{line}: imports {module} in core, which is without input and output"
            if is_own and allowed is not None and module not in allowed:
                yield f"{path}:{line}: imports the client's module {module}, which is of a higher layer"


def long_python_functions(tree):
    for path, text in tree.items():
        if not path.startswith("clients/") or not path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = node.end_lineno - node.lineno + 1
                if count > FUNCTION_LINES_MAX:
                    yield f"{path}:{node.lineno}: a function of {count} lines, {FUNCTION_LINES_MAX} allowed"


RULES = [python_client_imports, long_python_functions]
