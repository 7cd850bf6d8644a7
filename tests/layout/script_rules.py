"""The house rules for the clients that are written in Ruby and Lua, as functions over a tree of files (see rules.py)."""
import re

FUNCTION_LINES_MAX = 70
# A function begins and ends with the same indentation. A method of Ruby with `=` behind its parameters has no `end`. A
# suite of busted (`describe`) counts as a class, not as a function.
BEGIN = {".rb": re.compile(r"( *)(?:[a-z_]+ )*def (?![\w.?!]+(?:\(.*\))? = ).*|( *)[^#]*\b(?:define_method|lambda|proc)\b.*\bdo\b.*"),
         ".lua": re.compile(r"( *)(?!--|describe\()[^\s].*\bfunction\b *[\w.:]*\(.*|( *)function\b *[\w.:]*\(.*")}
END = re.compile(r"( *)end\b")
# Libraries of the language that the clients may load beside their own files.
MAY_LOAD = {
    "clients/ruby/lib/": (re.compile(r'^\s*require "([^"]+)"', re.M), {"fiddle", "json", "io/wait"}),
    "clients/lua/lightq/": (re.compile(r'\brequire\s*\(?\s*"(?!lightq\.)([^"]+)"'), {"ffi"}),
}


def script_client_loads(tree):
    """Libraries that the clients load and that are not of the language itself."""
    for path, text in tree.items():
        for folder, (pattern, allowed) in MAY_LOAD.items():
            if not path.startswith(folder):
                continue
            for name in pattern.findall(text):
                if name not in allowed:
                    yield f"{path}: loads {name}: the client has no dependency"


def long_script_functions(tree):
    for path, text in tree.items():
        begins = next((pattern for suffix, pattern in BEGIN.items() if path.endswith(suffix)), None)
        if begins is None:
            continue
        begun = []  # (line, indentation) of the functions that have not ended
        for number, line in enumerate(text.split("\n"), 1):
            found, ended = begins.fullmatch(line), END.match(line)
            if found and not re.search(r"\bend\b", line):
                begun.append((number, found[1] or found[2] or ""))
            elif ended:
                while begun and len(begun[-1][1]) > len(ended[1]):
                    begun.pop()  # was the beginning of no function
            if not (ended and begun and begun[-1][1] == ended[1]):
                continue
            start, _ = begun.pop()
            if number - start + 1 > FUNCTION_LINES_MAX:
                yield f"{path}:{start}: a function of {number - start + 1} lines, {FUNCTION_LINES_MAX} allowed"


RULES = [script_client_loads, long_script_functions]
