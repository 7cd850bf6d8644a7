"""Tests that the kept files of newer versions match the document."""
import newer_bytes
import pytest


@pytest.mark.parametrize("name", newer_bytes.FILES)
def test_the_file_that_is_kept_is_what_the_document_says(name):
    assert (newer_bytes.GOLDEN / name).read_bytes() == newer_bytes.FILES[name]


def test_no_other_file_is_kept():
    assert {path.name for path in newer_bytes.GOLDEN.iterdir()} == set(newer_bytes.FILES)
