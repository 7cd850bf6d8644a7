"""The libraries of src/ as CMake builds them, and as the table "Libraries" in docs/design.md states them.

A tree is a dict from path to text, as for rules.py.
"""
import posixpath
import re

SOURCES_OF = re.compile(r"^(?:add_library\((\w+) STATIC|target_sources\((\w+) PRIVATE)\s+([^)]*)\)", re.M)
ROW = re.compile(r"^\| `(lightq_\w+)` \| ([^|]*) \|", re.M)
DOCUMENT = "docs/design.md"


def sources_of_libraries(tree):
    """Returns the set of source files of each static library that src/ defines."""
    libraries = {}
    for path, text in tree.items():
        if path.startswith("src/") and path.endswith("/CMakeLists.txt"):
            for library, extended, files in SOURCES_OF.findall(re.sub(r"#[^\n]*", "", text)):
                names = [posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in files.split()]
                libraries.setdefault(library or extended, []).extend(names)
    return libraries


def folders_of_libraries(tree):
    """Returns the set of folders that each library compiles sources of."""
    return {library: {posixpath.dirname(path) + "/" for path in paths}
            for library, paths in sources_of_libraries(tree).items()}


def folders_in_document(text):
    """Returns the folders that the document's table states for each library."""
    return {library: set(re.findall(r"`(src/[\w/]*)`", folders)) for library, folders in ROW.findall(text)}


def wrong_libraries(tree):
    built, stated = folders_of_libraries(tree), folders_in_document(tree.get(DOCUMENT, ""))
    for library in sorted(built.keys() | stated.keys()):
        missing = built.get(library, set()) - stated.get(library, set())
        extra = stated.get(library, set()) - built.get(library, set())
        for folder in sorted(missing):
            yield f"{DOCUMENT}: {library} compiles sources of {folder}, and the table does not say so"
        for folder in sorted(extra):
            yield f"{DOCUMENT}: {library} compiles no source of {folder}"


def lost_sources(tree):
    """Source files of src/ that no library compiles, or that are compiled twice; and names of files that do not
    exist."""
    compiled = [path for paths in sources_of_libraries(tree).values() for path in paths]
    exist = {path for path in tree if path.startswith("src/") and path.endswith(".cpp")}
    for path in sorted(exist | set(compiled)):
        if path not in exist:
            yield f"{path}: a library compiles it, and it does not exist"
        elif compiled.count(path) != 1:
            yield f"{path}: {compiled.count(path)} libraries compile it"


def unnamed_folders(tree):
    """Folders of src/ that the table "Folders" of the document does not name: by their path, or in the row of the
    folder around them."""
    table = tree.get(DOCUMENT, "").partition("\n### Folders\n")[2].partition("\n### ")[0]
    rows = table.split("\n")
    folders = {posixpath.dirname(path) for path in tree if path.startswith("src/") and path.endswith((".hpp", ".cpp"))}
    for folder in sorted(folders):
        around, _, name = folder.rpartition("/")
        by_path = f"`{folder}/`" in table
        in_row = any(f"`{around}/`" in row and f"`{name}/`" in row for row in rows)
        if not by_path and not in_row:
            yield f"{DOCUMENT}: the folders' table does not name {folder}/"


RULES = [wrong_libraries, lost_sources, unnamed_folders]
