"""Paths and a broker for the tests of the Python client."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
for folder in (HERE.parent, ROOT / "tests/e2e", ROOT / "tests/vectors"):
    sys.path.insert(0, str(folder))

import pytest  # noqa: E402
from support import PASSWORD, USER, running_with_topic  # noqa: E402


@pytest.fixture(scope="module")
def broker():
    with running_with_topic() as made:
        yield made


@pytest.fixture
def where(broker):
    """Arguments for `connect`."""
    return {"uri": broker.control_uri, "user": USER, "password": PASSWORD, "data_dir": str(broker.directory / "nothing")}
