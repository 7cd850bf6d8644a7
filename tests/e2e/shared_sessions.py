"""Sessions that share memory with the broker."""
import contextlib

from session_client import Session, join

KIB, MIB = 1 << 10, 1 << 20


@contextlib.contextmanager
def plain_session(control, kind="push", topic="t", carrier="socket", transport="ipc", **more):
    """A session that has not asked for shared memory."""
    with Session(join(control, topic, kind, carrier=carrier, transport=transport, **more)) as session:
        yield session


@contextlib.contextmanager
def shared_session(control, kind="push", sizes=(64 * KIB, 64 * KIB), wakes_by_socket=False, **more):
    with plain_session(control, kind, **more) as session:
        assert session.share(*sizes, wakes_by_socket=wakes_by_socket).op == "shared"
        yield session


def lives_on(control):
    with shared_session(control, wakes_by_socket=True) as session:
        producer = session.producer("t")
        producer.produce([b"more"])
        producer.wait_confirmed()
