"""Tests that the kept files of newer versions match the document."""
import newer_bytes
import pytest


@pytest.mark.parametrize("name", newer_bytes.FILES)
def test_the_golden_file_equals_the_bytes_from_the_document(name):
    assert (newer_bytes.GOLDEN / name).read_bytes() == newer_bytes.FILES[name]


def test_no_other_golden_file_exists():
    assert {path.name for path in newer_bytes.GOLDEN.iterdir()} == set(newer_bytes.FILES)
