"""Fixtures of the end-to-end tests."""
import pytest

import support


@pytest.fixture
def make_broker(tmp_path):
    """Makes brokers (started) that are ended and checked at the end of the test."""
    made = []

    def make(*flags, start=True, **options):
        directory = tmp_path / f"broker-{len(made)}"
        directory.mkdir()
        broker = support.Broker(options.pop("directory", directory), *flags, **options)
        made.append(broker)
        return broker.start() if start else broker

    yield make
    failures = []
    for broker in reversed(made):
        try:
            broker.close()
        except AssertionError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


@pytest.fixture
def broker(make_broker):
    return make_broker()


@pytest.fixture
def control(broker):
    return broker.control()
