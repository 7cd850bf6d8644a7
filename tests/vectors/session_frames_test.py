"""Tests that the vectors of docs/session.md match its tables, with a decoder that knows only that document."""
import pathlib
import re

import pytest
import session_frames

HERE = pathlib.Path(__file__).parent
VECTORS = session_frames.vectors()
KEPT = {"secret": "", "filter": "", "target": 0}  # empty fields that the vectors leave out


def test_the_file_equals_the_encoders_output():
    assert (HERE / "session_frames.json").read_text() == session_frames.text_of_vectors()


@pytest.mark.parametrize("vector", VECTORS["sound"], ids=lambda vector: vector["name"])
def test_a_sound_frame_decodes_to_its_fields(vector):
    op, flags, channel, request, values = session_frames.decode(bytes.fromhex(vector["frame"]))
    assert (op, flags, channel, request) == tuple(vector[key] for key in ("op", "flags", "channel", "request"))
    assert {name: value for name, value in values.items() if (name, value) not in KEPT.items()} == vector["body"]


def test_there_is_a_vector_of_each_op():
    assert {vector["op"] for vector in VECTORS["sound"]} == set(session_frames.OPS)


def test_the_document_s_table_of_ops_is_the_decoder_s():
    document = (HERE.parent.parent / "docs" / "session.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (?!u\d)(\w+) \| (?:client|broker|both) \|", document, re.M)
    assert {name: int(number) for number, name in rows} == {name: op[0] for name, op in session_frames.OPS.items()}
