"""The house rules as data, and the functions that check a tree of files against them.

A tree is a dict from path (relative to the root, with slashes) to text, so that tests can plant violations.
"""
import re

import go_rules
import python_rules
import script_rules

# --- Layers: the includes that each layer may have. The first pattern that matches a path names its layer. -----------
LAYERS = [
    ("base", r"include/lightq/(impl/)?base/|include/lightq/version\.hpp$|src/base/"),
    ("protocol", r"include/lightq/(impl/)?protocol/"),
    ("queue", r"include/lightq/(impl/)?queue[a-z_]*\.hpp$|src/queue/"),
    ("client", r"include/lightq/"),
    ("tools", r"src/log/tools/"),
    ("log", r"src/log/"),
    ("recurring", r"src/recurring/"),
    ("metrics", r"src/metrics/"), ("admission", r"src/admission/"),
    ("net", r"src/net/"), ("crypto", r"src/crypto/"),
    ("access", r"src/access/"), ("zmtp", r"src/zmtp/"), ("store", r"src/store/"),
    ("delivery", r"src/delivery/"),
    ("delayed", r"src/delayed/"),
    ("topic", r"src/topic/"),
    ("plain", r"src/plain/"), ("session", r"src/session/"), ("requests", r"src/requests/"),
    ("control", r"src/control/"), ("http", r"src/http/"),
    ("logging", r"src/broker/log"), ("broker", r"src/broker/"),
    ("cli", r"src/client/"), ("capi", r"src/capi/"),
    ("apps", r"apps/"), ("agents", r"clients/"),
]

MAY_INCLUDE = {
    "base": {"base"},
    "protocol": {"base", "protocol"},
    "client": {"base", "protocol", "client"},
    "log": {"base", "log"},
    "tools": {"base", "log", "tools"},
    "queue": {"base", "log", "queue"},
    "recurring": {"base", "protocol", "recurring"},
    "metrics": {"base", "protocol", "metrics"}, "admission": {"base", "protocol", "admission"},
    "net": {"base", "protocol", "log", "admission", "net"},
    "crypto": {"base", "protocol", "log", "net", "crypto"},
    "access": {"base", "protocol", "admission", "net", "crypto", "access"},
    "zmtp": {"base", "protocol", "net", "crypto", "access", "zmtp"},
    "store": {"base", "log", "net", "store"},
    "delivery": {"base", "protocol", "log", "recurring", "metrics", "admission", "delivery"},
    "delayed": {"base", "log", "delayed"},
    "topic": {"base", "protocol", "log", "recurring", "metrics", "admission", "net", "access", "store", "delivery", "delayed", "topic"},
    "plain": {"base", "protocol", "log", "admission", "net", "crypto", "access", "zmtp", "delivery", "topic", "plain"},
    "requests": {"base", "protocol", "admission", "net", "access", "delivery", "topic", "requests"}, "session": {"base", "protocol", "log", "admission", "net", "crypto", "access", "zmtp", "delivery", "delayed", "topic", "session"},
    "logging": {"base", "logging"},
    "control": {"base", "protocol", "log", "recurring", "admission", "net", "crypto", "access", "zmtp", "delivery", "delayed", "topic", "plain", "tools", "logging", "control"},
    "http": {"base", "protocol", "metrics", "admission", "net", "crypto", "access", "topic", "requests", "control", "http"},
    "broker": {"base", "protocol", "log", "recurring", "metrics", "admission", "net", "crypto", "access", "zmtp", "delivery", "delayed", "topic", "plain", "session", "logging", "control", "http", "broker"},
    "cli": {"base", "protocol", "client", "log", "tools", "queue", "crypto", "cli"}, "apps": {"base", "protocol", "client", "cli", "broker"}, "agents": {"base", "protocol", "client", "agents"},
    "capi": {"base", "protocol", "client", "capi"},
}

# The includes that still point upward. This list may only shrink.
UPWARD_STILL: set[tuple[str, str]] = set()

# How many source files a folder may have; the folders that still have more, and may only shrink.
FOLDER_FILES_MAX = 40
FOLDER_FILES_STILL: dict[str, int] = {}

# --- Third-party headers: the only files that may include each, and how many files these may be. ---------------------
HOMES = [
    ("zmq", r"zmq(_addon)?\.hp?p?$",
     r"include/lightq/((impl|detail)/)?[a-z_]+\.hpp$", None),
    # The frames of the session protocol: `session` translates them into the types of delivery.
    ("session frames", r"lightq/protocol/session_(?!memory)", r"include/lightq/|src/(session|client)/|src/broker/config\.cpp$", None),
    ("nlohmann", r"nlohmann/", r"include/lightq/(impl/)?protocol/json[a-z_]*\.hpp$|clients/conformance/cpp/", None),
    ("spdlog", r"spdlog/", r"src/broker/logging", None),
    ("sys/mman.h", r"sys/mman\.h$", r"src/log/storage/mapp[a-z_]*\.[ch]pp$|include/lightq/(impl/)?base/shared_memory\.hpp$", None),
    # The embedded queue may use system calls only here, so that a port to another system changes only these
    # files. Other folders may use them anywhere.
    ("system calls", r"(sys|linux)/|unistd\.h$|fcntl\.h$",
     r"(?!src/(log|queue)/)|src/log/storage/(posix_storage|mapped_memory|directory_lock)\.cpp$|src/queue/(waiters|coarse_clock)\.[ch]pp$",
     None),
    ("Boost", r"boost/", r"src/http/(http_connection\.[ch]pp|http_server\.cpp|request_parser\.cpp)$", 4),
    ("date", r"date/", r"src/recurring/time_zone\.cpp$", 1),
    ("CLI11", r"CLI/|CLI11", r"src/client/|apps/", 1),
    ("toml++", r"toml", r"src/", 1),
    ("libsodium", r"sodium",
     r"src/access/password_hash\.cpp$|src/(access/ticket_key|crypto/curve_box)\.cpp$|src/crypto/", 5),
    ("OpenSSL", r"openssl/", r"include/lightq/((impl|detail)/)?session_tls_socket\.hpp$|src/crypto/tls_(cipher|context)\.cpp$", 3),
    ("lz4 and zstd", r"(lz4|zstd)\w*\.h", r"include/lightq/(impl/)?base/", 1),
]
# Folders to which the rule of homes does not apply, because they exercise or measure the libraries
# themselves.
FREE_ROOMS = ("tests/", "bench/", "examples/")

# --- The log and delivery layers must not use sockets or read a clock. -----------------------------------------------
PURE_LAYERS = {"log", "tools", "delivery", "delayed"}
IMPURE = re.compile(r"sys/socket\.h|sys/epoll\.h|\bsystem_clock::now\b|\bsteady_clock::now\b|\bclock_gettime\b|"
                    r"\bgettimeofday\b|\bstd::j?thread\b")

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
CPP = (".hpp", ".cpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# Spelled in halves so that this file does not break its own rule.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "Use" + "rs"]) + r")/\w")
LEFTOVERS = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
SLEEPS = re.compile(r"\bsleep_for\b|\bsleep_until\b|\busleep\(|\bnanosleep\(|[^_\w.]sleep\(")


def layer_of(path):
    return next((name for name, pattern in LAYERS if re.match(pattern, path)), None)


def layer_of_include(name, quoted):
    if name.startswith("lightq/"):
        return layer_of("include/" + name)
    if quoted:
        return layer_of(name if name.startswith("clients/") else "src/" + name)
    return None


def sources(tree):
    return {path: text for path, text in tree.items() if path.endswith(CPP)}


def upward_includes(tree):
    for path, text in sources(tree).items():
        layer = layer_of(path)
        if layer is None:
            continue
        for bracket, name in INCLUDE.findall(text):
            target = layer_of_include(name, bracket == '"')
            if bracket == '"' and target is None:
                yield f"{path}: includes \"{name}\", which no layer owns (paths start at src/)"
            elif target is not None and target not in MAY_INCLUDE[layer] and (path, name) not in UPWARD_STILL:
                yield f"{path}: layer '{layer}' includes {name} of layer '{target}'"


def foreign_includes(tree):
    for library, header, home, files_max in HOMES:
        users = []
        for path, text in sources(tree).items():
            if path.startswith(FREE_ROOMS):
                continue
            if not any(bracket == "<" and re.match(header, name) for bracket, name in INCLUDE.findall(text)):
                continue
            users.append(path)
            if not re.match(home, path):
                yield f"{path}: includes {library} outside its home ({home})"
        if files_max is not None and len(users) > files_max:
            yield f"{library} is included by {len(users)} files, {files_max} allowed: {', '.join(sorted(users))}"


def unneeded_exceptions(tree, exceptions=None):
    """Exceptions that nothing needs any more, where the tree has their files."""
    for path, name in UPWARD_STILL if exceptions is None else exceptions:
        if path in tree and name not in {included for _, included in INCLUDE.findall(tree[path])}:
            yield f"{path}: no longer includes {name}: drop it from UPWARD_STILL"


def full_folders(tree):
    counts = {}
    for path in sources(tree):
        if path.startswith(("src/", "include/", "apps/", "bench/")):
            folder = path.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
    for folder, count in counts.items():
        allowed = FOLDER_FILES_STILL.get(folder, FOLDER_FILES_MAX)
        if count > allowed:
            yield f"{folder}: {count} source files, {allowed} allowed"


def folder_cycles(tree):
    """Folders of src/ whose files include each other, directly or through other folders."""
    included = {}
    for path, text in sources(tree).items():
        if path.startswith("src/"):
            names = ["src/" + name for bracket, name in INCLUDE.findall(text) if bracket == '"']
            folders = {name.rpartition("/")[0] for name in names if name in tree}
            included.setdefault(path.rpartition("/")[0], set()).update(folders)

    def reached(folder):
        found, left = set(), list(included.get(folder, ()) - {folder})
        while left:
            at = left.pop()
            if at not in found:
                found.add(at)
                left += included.get(at, ())
        return found

    for folder in sorted(included):
        if folder in reached(folder):
            yield f"{folder}: includes a folder that includes it again"


LAYOUT_DIRECTIVE = re.compile(r"\busing namespace [\w:]*_layout;")


def merged_layouts(tree):
    """Directives that merge the names of a format with those around them. In a unity build a constant of another file
    with the same name would be used silently."""
    for path, text in sources(tree).items():
        if path.startswith("src/") and path.endswith(".cpp") and LAYOUT_DIRECTIVE.search(text):
            yield f"{path}: '{LAYOUT_DIRECTIVE.search(text).group()}': use a namespace alias"


def impure_layers(tree):
    for path, text in sources(tree).items():
        if layer_of(path) in PURE_LAYERS:
            for match in IMPURE.finditer(without_comments(text)):
                yield f"{path}: '{match.group()}' in layer '{layer_of(path)}', which knows no sockets, clock or threads"


def long_files(tree):
    for path, text in tree.items():
        lines = text.count("\n")
        if path.endswith(CPP + (".py", ".go", ".rb", ".lua", ".c", ".h")) and lines > FILE_LINES_MAX:
            yield f"{path}: {lines} lines, {FILE_LINES_MAX} allowed"


def headless_files(tree):
    for path, text in sources(tree).items():
        head = "\n".join(text.split("\n")[:4])
        if not head.startswith("/// "):
            yield f"{path}: does not begin with a /// comment that says what it is"
        elif layer_of(path) and not re.search(r"\bLayer:", " ".join(re.findall(r"^///.*", text, re.M)[:8])):
            yield f"{path}: its first comment does not say its layer"


def wrong_layers(tree):
    for path, text in sources(tree).items():
        named = re.search(r"\bLayer:(?:\s|///)*([a-z]+)\.", text[:1200])
        if layer_of(path) and named and named.group(1) != layer_of(path):
            yield f"{path}: names the layer '{named.group(1)}' and is of layer '{layer_of(path)}'"


def machine_paths(tree):
    for path, text in tree.items():
        for number, line in enumerate(text.split("\n"), 1):
            if MACHINE_PATHS.search(line):
                yield f"{path}:{number}: a path of somebody's machine: {line.strip()[:100]}"


def leftovers(tree):
    for path, text in tree.items():
        for number, line in enumerate(text.split("\n"), 1):
            if LEFTOVERS.search(line):
                yield f"{path}:{number}: left for later: {line.strip()[:100]}"


def sleeping_tests(tree):
    for path, text in sources(tree).items():
        if path.startswith("tests/"):
            for match in SLEEPS.finditer(without_comments(text)):
                yield f"{path}: sleeps ('{match.group().strip()}') instead of waiting for a condition"


# --- Functions -------------------------------------------------------------------------------------------------------

_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


def without_comments(text):
    """Returns the text with comments and literals blanked. Newlines stay, so that line numbers do not change."""
    return _TOKENS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _without_preprocessor(text):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.M)


def _is_function(header):
    while True:
        bare = re.sub(r"\btemplate\s*<[^<>]*>|<[^<>]*>", " ", header)
        if bare == header:
            break
        header = bare
    if re.search(r"\b(namespace|class|struct|union|enum)\b", header) or header.rstrip().endswith("="):
        return False
    return "(" in header


def functions(text):
    """Returns (first line, number of lines) of every outermost function body, from its header to its closing
    brace."""
    text = _without_preprocessor(without_comments(text))
    kinds, begun, start = [], None, 0
    for at, char in enumerate(text):
        if char == "{":
            inside = "function" in kinds
            kind = "function" if not inside and _is_function(text[start:at]) else "other"
            if kind == "function":
                lead = text[start:at]
                begun = text.count("\n", 0, start + len(lead) - len(lead.lstrip())) + 1
            kinds.append(kind)
            start = at + 1
        elif char == "}" and kinds:
            if kinds.pop() == "function":
                yield begun, text.count("\n", 0, at) + 2 - begun
            start = at + 1
        elif char == ";":
            start = at + 1


def long_functions(tree):
    for path, text in sources(tree).items():
        for line, count in functions(text):
            if count > FUNCTION_LINES_MAX:
                yield f"{path}:{line}: a function of {count} lines, {FUNCTION_LINES_MAX} allowed"


# --- Classes ---------------------------------------------------------------------------------------------------------
# The most methods that a class may declare, and the most data members. Each overload is a method; deleted and defaulted
# functions, static data and types are not counted. Structs without methods are records, which may have any number of
# fields.
CLASS_METHODS_MAX = 40
CLASS_MEMBERS_MAX = 25
# The classes that are still larger: (file, class): (methods, members). These numbers may only shrink.
CLASS_SIZES_STILL = {
}

_CLASS_HEAD = re.compile(r"^(?:class|struct|union)\b(?:\s*\[\[.*?\]\])?(?:\s*alignas\s*\(.*?\))?\s*([\w:]*)[^();=]*$", re.S)
_NO_MEMBER = re.compile(r"^(?:using|typedef|friend|static_assert|enum|class|struct|union|concept|namespace)\b")


def _bare(declaration):
    """Returns a declaration without access specifiers, attributes, template arguments and initializers."""
    bare = re.sub(r"\b(?:public|protected|private)\s*:", " ", declaration)
    bare = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)", " ", bare, flags=re.S)
    # Operators that are made of these characters would unbalance the angle brackets.
    bare = re.sub(r"\boperator\s*(?:<=>|<<=?|>>=?|<=?|>=?|->\*?|\(\s*\))", " operator_ ", bare).replace("->", " ")
    while True:
        shorter = re.sub(r"\btemplate\s*<[^<>]*>|<[^<>]*>", " ", bare)
        if shorter == bare:
            return re.sub(r"\brequires\s*\([^()]*\)", " ", bare).strip()
        bare = shorter


def _without_initializer(declaration):
    """Returns a declaration without the initializer of a member. Default arguments stay."""
    depth = 0
    for at, letter in enumerate(declaration):
        depth += (letter == "(") - (letter == ")")
        if letter == "=" and depth == 0:
            return declaration[:at]
    return declaration


def _is_whole_function(header):
    """Returns true if a body follows this text, and not an initializer of a member or of an argument."""
    bare = _without_initializer(_bare(header))
    return "(" in bare and bare.count("(") == bare.count(")")


def _kind_of_member(declaration):
    """Returns 'method', 'member' or None for a declaration in a class, without its body."""
    if re.search(r"=\s*(?:default|delete)\s*$", declaration):
        return None
    bare = _bare(declaration)
    if not bare or bare.startswith((",", ":")) or _NO_MEMBER.match(bare):
        return None
    if re.search(r"\boperator", bare):
        return "method"
    bare = _without_initializer(bare)
    if "(" in bare:
        return "method"
    return None if re.match(r"(?:inline\s+)?(?:static|constexpr)\b", bare) else "member"


class _Scope:
    def __init__(self, kind, name=""):
        self.kind, self.name, self.text, self.methods, self.members = kind, name, "", 0, 0

    def declare(self):
        """Counts the declaration that ends here."""
        kind = _kind_of_member(self.text) if self.kind == "class" else None
        self.methods += kind == "method"
        self.members += kind == "member"
        self.text = ""


def classes(text):
    """Returns (name, methods, data members) of every class that is defined outside of functions."""
    text = _without_preprocessor(without_comments(text))
    scopes = [_Scope("other")]
    for part in re.split(r"([{};])", text):
        scope = scopes[-1]
        if part == "{":
            bare = _bare(scope.text)
            named = _CLASS_HEAD.match(bare)
            if scope.kind == "body":
                scopes.append(_Scope("body"))
            elif named:
                scopes.append(_Scope("class", named.group(1)))
            elif re.match(r"(?:inline\s+)?namespace\b|extern\b", bare):
                scopes.append(_Scope("other"))
            else:
                scopes.append(_Scope("body"))
        elif part == "}" and len(scopes) > 1:
            ended, scope = scopes.pop(), scopes[-1]
            if ended.kind == "class":
                yield ended.name, ended.methods, ended.members
                scope.text = ""
            elif ended.kind == "other":
                scope.text = ""
            elif scope.kind != "body" and _is_whole_function(scope.text):
                scope.declare()  # the body of a function, or an initializer of a constructor
        elif part == ";":
            scope.declare()
        else:
            scope.text += part


def large_classes(tree, exceptions=None):
    still = dict(CLASS_SIZES_STILL if exceptions is None else exceptions)
    for path, text in sources(tree).items():
        if not path.startswith(("src/", "include/", "apps/", "clients/")):
            continue
        for name, methods, members in classes(text):
            allowed = still.pop((path, name), (CLASS_METHODS_MAX, CLASS_MEMBERS_MAX))
            most = max(allowed[0], CLASS_METHODS_MAX), max(allowed[1], CLASS_MEMBERS_MAX)
            if methods > most[0]:
                yield f"{path}: {name} has {methods} methods, {most[0]} allowed"
            if methods and members > most[1]:
                yield f"{path}: {name} has {members} data members, {most[1]} allowed"
            if allowed != (CLASS_METHODS_MAX, CLASS_MEMBERS_MAX) and (methods, members) != allowed and \
                    methods <= most[0] and members <= most[1]:
                yield f"{path}: {name} has {methods} methods and {members} data members now: " \
                      "correct CLASS_SIZES_STILL"
    for path, name in still:
        if path in tree:
            yield f"{path}: no class {name}: drop it from CLASS_SIZES_STILL"


# --- Operations: they check no passwords, and know neither requests nor replies. --------------------------------------
OPERATIONS = re.compile(r"src/control/commands/\w*(?:operations|quota|ready_topics|recorder)\.[ch]pp$")
OPERATIONS_COMPOSED = "src/control/commands/operations."  # connects them with the authenticator
ASKER_CHECKS = re.compile(r"src/control/rights/(?:permissions|asker_rights)\.[ch]pp$")
REQUESTS_AND_REPLIES = (
    r"control/answer\.hpp|\bAnswer\b|\bprotocol::(?:Request|Reply|OkReply|ErrorReply|JoinReply|ListReply|"
    r"UserListReply|CreateTopic|DeleteTopic|ListTopics|Join|Leave|Stats|StatsAll|StatsAllReply|DeleteGroup|Pause|Resume|Purge|CreateUser|"
    r"DeleteUser|SetPassword|GrantRights|RevokeRights|ListUsers|SetGroup|SetTopic|ListDead|RetryDead|PurgeDead|SetSchedule|ListSchedules|PauseSchedule|ResumeSchedule|RemoveSchedule|Reload|ReloadReply)\b")
NO_ASKER_CHECK_KNOWS = re.compile(REQUESTS_AND_REPLIES)
NO_OPERATION_KNOWS = re.compile(
    REQUESTS_AND_REPLIES +
    r"|access/authenticator\.hpp|rights/permissions\.hpp|\bAuthenticator\b|\bPermissions\b")


def operations_that_know_requests(tree):
    for path, text in sources(tree).items():
        code = re.sub(r"//[^\n]*", "", text)
        if OPERATIONS.match(path) and not path.startswith(OPERATIONS_COMPOSED):
            for match in NO_OPERATION_KNOWS.finditer(code):
                yield f"{path}: '{match.group()}': an operation knows no requests, replies and askers' passwords"
        if ASKER_CHECKS.match(path):
            for match in NO_ASKER_CHECK_KNOWS.finditer(code):
                yield f"{path}: '{match.group()}': a check of an asker knows no commands and replies"


# --- Definitions: headers in impl/ define what the header of the same name declares. ---------------------------------
DEFINITIONS_GUARD = "#if defined(LIGHTQ_WITH_DEFINITIONS)\n"
SOURCE = "include/lightq/source.hpp"


def stray_definitions(tree):
    """Includes of definitions that a header makes without asking whether this file must have them. Exempt are other
    definitions, the header that includes them all, and tests of private code."""
    for path, text in sources(tree).items():
        if path == SOURCE or path.startswith(("include/lightq/impl/", "tests/")):
            continue
        for part in re.split(re.escape(DEFINITIONS_GUARD) + r"(?:#include [^\n]*\n)+#endif", text):
            for _, name in INCLUDE.findall(part):
                if name.startswith("lightq/impl/"):
                    yield f"{path}: includes {name} outside {DEFINITIONS_GUARD.strip()}"


def lost_definitions(tree):
    """Definitions that the one source file of a program does not compile."""
    if SOURCE not in tree:
        return
    reached, left = set(), [SOURCE]
    while left:
        path = left.pop()
        if path in tree and path not in reached:
            reached.add(path)
            left += ["include/" + name for _, name in INCLUDE.findall(tree[path]) if name.startswith("lightq/")]
    for path in sources(tree):
        if path.startswith("include/lightq/impl/") and path not in reached:
            yield f"{path}: lightq/source.hpp does not reach it"


def unlisted_decisions(tree):
    """Decision records that docs/design.md does not list."""
    listed = set(re.findall(r"^\| \d+ \| \[[^]]*\]\((adr/[^)]*)\)", tree.get("docs/design.md", ""), re.M))
    for path in tree:
        if re.fullmatch(r"docs/adr/\d{4}-[^/]+\.md", path) and path.removeprefix("docs/") not in listed:
            yield f"{path}: docs/design.md does not list it"


RULES = [*python_rules.RULES, *go_rules.RULES, *script_rules.RULES, unlisted_decisions, large_classes, operations_that_know_requests, stray_definitions, lost_definitions, upward_includes, unneeded_exceptions, full_folders, folder_cycles, merged_layouts, foreign_includes, impure_layers, long_files, long_functions, headless_files, wrong_layers,
         machine_paths, leftovers, sleeping_tests]
