"""Fixtures of the power cut tests."""
import os

import pytest

import cut_support


@pytest.fixture(scope="session")
def powered():
    missing = cut_support.own_name_space()
    if missing is not None:
        pytest.skip(f"no power cuts on a real file system here: {missing}")
    yield
    os.unlink(cut_support.boot_file)


@pytest.fixture
def machine(powered):
    machine = cut_support.Machine()
    yield machine.start()
    machine.close()
