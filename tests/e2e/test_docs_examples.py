"""The Python examples of the documents run as they stand, against a real broker."""
import pathlib
import re
import subprocess
import sys

import pytest

from support import ADMIN_PASSWORD, DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/protocol.md"]


def blocks(document):
    """(first line, code) of every fenced python block."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M):
        yield text.count("\n", 0, match.start()) + 2, match.group(1)


def test_both_documents_have_examples():
    for document in DOCUMENTS:
        assert list(blocks(document)), f"{document} has no python block"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_examples_of_a_document_run_in_order_as_one_program(broker, document):
    """A reader types them one after the other; the control URI is the only thing that differs."""
    lines = []
    for first, code in blocks(document):
        assert "tcp://127.0.0.1:5000" in code or lines, f"{document}:{first} does not connect to the default control URI"
        lines += [""] * (first - 1 - len(lines)) + code.rstrip("\n").split("\n")  # line numbers are the document's
    program = "\n".join(lines).replace("tcp://127.0.0.1:5000", broker.control_uri)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE,
                          env={**broker.environment, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD})
    assert done.returncode == 0, f"{document}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
