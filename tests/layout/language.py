"""The language rules that a regular expression can hold, as functions over a tree of files (see rules.py).

Each rule yields (path, complaint). Texts that still break a rule are counted in language_exceptions.txt, by rule and
path; a count there may only become smaller.
"""
import re

PERSONS = (r"(?:users?|clients?|producers?|consumers?|peers?|programs?|process(?:es)?|people|persons?|somebody|someone|"
           r"anybody|anyone|everybody|everyone|nobody|operators?|administrators?|attackers?|members?|subscribers?|"
           r"readers?|writers?|holders?|owners?|callers?|those|ones?|threads?|engineers?|developers?|newcomers?)")
CLAUSE_HEAD = re.compile(r"(?<![\w-])(who|whose|whoever|whom|what|whatever)\b", re.I)
PERSON_BEFORE = re.compile(PERSONS + r",?\s+$", re.I)
HEADLESS_SENTENCE = re.compile(r"(?:^[ \t]*|(?<=[.:!?] ))(?:Who|Whoever|Whose|Whom|What|Likewise|Of)\b(?! course)(?![^.]*\?)", re.M)
# The words that docs/glossary.md replaces.
BANNED = re.compile(r"\b(strangers?|likewise|as ever|hand(?:s|ed|ing)? out|com(?:e|es|ing) back|came back|passed over|"
                    r"displaced?)\b", re.I)
# Beyond those, words that no error, log line or help text may contain.
BANNED_IN_TEXTS = re.compile(BANNED.pattern + r"|\b(doors?|proofs?|prov(?:e|es|ing)|inlets?|outlets?|rest(?:s|ing)?|held|"
                             r"let(?:s|ting)? in|turned away|to be had|makes no sense|"
                             r"whoever|whatever|of old|meanwhile|who is no|goes on|go on)\b", re.I)
NOTHING_BUT_ITS_LAYER = re.compile(r"\A/// Layer: [\w ]+\.\n(?!///)")
WORDS_OF_A_SENTENCE_MAX = 30
HEADLESS_PER_1000_WORDS_MAX = 1.0
HEADLESS_PER_1000_WORDS_OF_A_PAGE_MAX = 3.0
WORD = re.compile(r"[A-Za-z][\w'-]*")

# The last two groups are comments: of a line and of a block. Strings come first, so that no comment begins in one.
_CPP_PARTS = re.compile(r'R"([^()\\ ]{0,16})\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'|'
                        r"//+[!<]?([^\n]*)|/\*((?:.|\n)*?)\*/")
_RUBY_PARTS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?<![^\s])#(?!!)([^\n]*)|^=begin\n((?:.|\n)*?)^=end', re.M)
_LUA_PARTS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|--\[\[((?:.|\n)*?)\]\]|\[\[(?:.|\n)*?\]\]|--+([^\n]*)')
_PYTHON_PARTS = re.compile(r'"""((?:.|\n)*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#([^\n]*)')


def is_page(path):
    return path.endswith(".md")


def prose(path, text):
    """The comments of a source file, or the text of a page without its code; empty for any other file."""
    if is_page(path):
        text = re.sub(r"```.*?```", " ", text, flags=re.S)
        text = re.sub(r"^    .*$", " ", text, flags=re.M)
        text = re.sub(r"\]\([^)]*\)", "]", text)
        return re.sub(r"`[^`]*`", "X", text)
    parts = {".hpp": _CPP_PARTS, ".cpp": _CPP_PARTS, ".h": _CPP_PARTS, ".c": _CPP_PARTS, ".go": _CPP_PARTS, ".py": _PYTHON_PARTS,
             ".rb": _RUBY_PARTS, ".lua": _LUA_PARTS}.get(path[path.rfind("."):])
    if parts is None:
        return ""
    return "\n".join(comment for match in parts.finditer(text) for comment in match.groups()[-2:] if comment)


def texts(path, text):
    """The string literals of a program's source that contain a space: errors, log lines, help. Neighbours are joined."""
    if not path.startswith(("src/", "include/", "apps/")) or not path.endswith((".hpp", ".cpp")):
        return
    joined, end = "", None
    for match in _CPP_PARTS.finditer(text):
        if not match.group().endswith('"'):
            continue
        if end is not None and text[end:match.start()].strip():
            yield joined
            joined = ""
        if match.group().startswith('"'):
            joined += re.sub(r"\\[nt]", " ", match.group()[1:-1])
        end = match.end()
    yield joined


def words(text):
    return len(WORD.findall(text))


def headless_clauses(text):
    """The clauses that a who, what or whose heads without a noun before it."""
    for match in CLAUSE_HEAD.finditer(text):
        is_relative = match.group(1).lower() in ("who", "whose", "whom")
        if not (is_relative and PERSON_BEFORE.search(text[max(0, match.start() - 30):match.start()])):
            yield text[max(0, match.start() - 30):match.end() + 30].replace("\n", " ")


def is_checked(path):
    return path != "docs/glossary.md" and not path.startswith("tests/layout/")


def headless_sentences(tree):
    for path, text in tree.items():
        for match in HEADLESS_SENTENCE.finditer(prose(path, text)) if is_checked(path) else ():
            yield path, f"a sentence that begins with '{match.group().strip()}': name the subject"


def banned_words(tree):
    for path, text in tree.items():
        for match in BANNED.finditer(prose(path, text)) if is_checked(path) else ():
            yield path, f"'{match.group()}': docs/glossary.md has the field's term"


def banned_words_in_texts(tree):
    for path, text in tree.items():
        for literal in texts(path, text):
            for match in BANNED_IN_TEXTS.finditer(literal) if " " in literal else ():
                yield path, f"'{match.group()}' in \"{literal.strip()[:60]}\": docs/glossary.md has the field's term"


def headless_texts(tree):
    for path, text in tree.items():
        for literal in texts(path, text):
            for clause in headless_clauses(literal) if " " in literal else ():
                yield path, f"a clause headed by who, what or whose in a text: …{clause}…"


def headless_pages(tree):
    for path, text in tree.items():
        if not is_page(path) or not is_checked(path):
            continue
        found = list(headless_clauses(prose(path, text)))
        allowed = max(1, int(HEADLESS_PER_1000_WORDS_OF_A_PAGE_MAX * words(prose(path, text)) / 1000))
        for clause in found[allowed:]:
            yield path, f"{len(found)} clauses headed by who, what or whose, {allowed} allowed: …{clause}…"


def headless_folders(tree):
    folders = {}
    for path, text in tree.items():
        if not is_page(path) and is_checked(path):
            folders.setdefault(path.rpartition("/")[0], []).append(prose(path, text))
    for folder, texts in folders.items():
        found = [clause for text in texts for clause in headless_clauses(text)]
        allowed = max(1, int(HEADLESS_PER_1000_WORDS_MAX * sum(map(words, texts)) / 1000))
        for clause in found[allowed:]:
            yield folder, f"{len(found)} clauses headed by who, what or whose, {allowed} allowed: …{clause}…"


def long_sentences(tree):
    for path, text in tree.items():
        if not (path.startswith("docs/") or path == "README.md") or not is_page(path):
            continue
        text = re.sub(r"^\|.*$", "\n\n", prose(path, text), flags=re.M)  # cells of tables are no sentences
        for block in re.split(r"\n\s*\n|^\s*(?:[-*#>]|\d+\.)\s", text, flags=re.M):
            for sentence in re.split(r"(?<=[.:;!?])\s+", block):
                if words(sentence) > WORDS_OF_A_SENTENCE_MAX:
                    yield path, f"{words(sentence)} words in a sentence: {' '.join(sentence.split())[:90]}…"


def heads_that_say_only_the_layer(tree):
    for path, text in tree.items():
        if path.endswith((".hpp", ".cpp")) and NOTHING_BUT_ITS_LAYER.match(text):
            yield path, "begins with nothing but its layer: say what the file is"


RULES = [headless_sentences, banned_words, banned_words_in_texts, headless_texts, headless_pages, headless_folders,
         long_sentences, heads_that_say_only_the_layer]


def exceptions(text):
    """{(rule, path): count} from lines of the form "RULE PATH COUNT"."""
    return {(rule, path): int(count) for rule, path, count in
            (line.split() for line in text.splitlines() if line and not line.startswith("#"))}


def beyond_the_exceptions(rule, tree, allowed):
    """Complaints of each path that breaks the rule more often than it is allowed to, or less often."""
    found = {}
    for path, complaint in rule(tree):
        found.setdefault(path, []).append(complaint)
    name = rule.__name__
    for path, complaints in found.items():
        count = allowed.get((name, path), 0)
        if len(complaints) > count:
            yield from (f"{path}: {complaint}" for complaint in complaints)
    for (rule_name, path), count in allowed.items():
        fewer = len(found.get(path, []))
        if rule_name == name and fewer < count:
            yield f"{path}: {name} occurs {fewer} times now: set its count in language_exceptions.txt to that, or drop it"
