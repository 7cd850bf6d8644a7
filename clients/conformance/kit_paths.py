"""Makes the modules of the end-to-end tests and of the test vectors importable: a broker as a process, and a
session client and frames that know only the documents."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in "tests/e2e", "tests/vectors":
    path = str(ROOT / folder)
    if path not in sys.path:
        sys.path.append(path)
