"""Fixtures of the end-to-end tests."""
import pathlib
import shutil
import tempfile

import pytest

import support


@pytest.fixture
def make_broker():
    """Makes brokers (started) that are ended and checked at the end of the test."""
    made = []

    def make(*flags, start=True, **options):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))  # short: a socket's path has at most 107 bytes
        broker = support.Broker(directory, *flags, **options)
        made.append(broker)
        return broker.start() if start else broker

    yield make
    failures = []
    for broker in reversed(made):
        try:
            broker.close()
        except AssertionError as failure:
            failures.append(failure)
        shutil.rmtree(broker.directory, ignore_errors=True)
    if failures:
        raise failures[0]


@pytest.fixture
def broker(make_broker):
    return make_broker()


@pytest.fixture
def control(broker):
    return broker.control()
