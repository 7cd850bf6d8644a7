"""Fixtures of the end-to-end tests."""
import contextlib
import pathlib
import shutil
import signal
import tempfile

import pytest

import secret_book
import session_client
import support


def pytest_configure(config):
    # Programs inherit ignored signals, and `nohup` and background jobs ignore some. The tests send these
    # signals.
    for number, default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, default)
    config.addinivalue_line("markers", "stream: of sessions whose frames follow each other, with no messages around them")
    config.addinivalue_line("markers", "legible: of tests that look for messages in files, which must not be encrypted")
    config.addinivalue_line("markers", "one_broker: of files whose tests share a broker, which must live through all of them")
    config.addinivalue_line("markers", "own_broker: of tests in such a file that measure one, or read its log")
    config.addinivalue_line("markers", "clear: of sessions that are not encrypted, or brokers that are not")


def pytest_collection_modifyitems(config, items):
    out = {"zmq": ["stream"], "tls": ["clear"]}.get(session_client.WANTED, [])
    out = out + ["legible"] if support.AT_REST else out
    unfit = [item for item in items if any(item.get_closest_marker(name) for name in out)]
    config.hook.pytest_deselected(items=unfit)
    items[:] = [item for item in items if item not in unfit]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.passed:
        secret_book.search_printed(report)


@pytest.fixture(autouse=True, scope="module")
def own_secrets():
    with support.Secrets.of_one_file():
        yield


@contextlib.contextmanager
def brokers():
    """A context that yields a function which makes brokers (started). At its end the brokers are stopped and
    checked."""
    made = []

    def make(*flags, start=True, **options):
        # Short: the path of a socket has at most 107 bytes.
        directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
        if session_client.WANTED == "tls" and "--encrypt" not in flags:
            flags += ("--encrypt",)
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
def make_broker():
    """A function that makes brokers (started). They are stopped and checked at the end of the test."""
    with brokers() as make:
        yield make


@pytest.fixture(scope="module")
def broker_of_the_file():
    with brokers() as make:
        yield make()


@pytest.fixture
def kept_broker(broker_of_the_file):
    """One broker for all tests of a file. It must survive each test. It has no topic and no user when a test
    begins."""
    broker = broker_of_the_file
    yield broker
    if broker.process is None:
        broker.start()  # the test has stopped the broker
    assert broker.process.poll() is None, f"the broker crashed; its log:\n{broker.log()[-6000:]}"
    broker.close_clients()
    broker.forget_all()


@pytest.fixture
def broker(request):
    kept = request.node.get_closest_marker("one_broker") and not request.node.get_closest_marker("own_broker")
    return request.getfixturevalue("kept_broker") if kept else request.getfixturevalue("make_broker")()


@pytest.fixture
def control(broker):
    return broker.control()


@pytest.fixture
def session(control):
    """A function that makes sessions, which are closed at the end of the test. Its argument is a ticket, or a
    topic that it joins."""
    made = []

    def make(where, **changed):
        ticket = where if isinstance(where, session_client.Ticket) else session_client.join(control, where)
        made.append(session_client.Session(ticket, **changed))
        return made[-1]

    yield make
    for each in made:
        each.close()
