"""Tests how a session in shared memory ends when the broker ends it: as a connection does, not with an error."""
import contextlib

from shared_sessions import shared_session


# The broker reads wakes a few at a time. The system resets a socket that is closed with unread bytes.
def test_a_stop_closes_without_a_reset_after_any_number_of_wakes(broker, control):
    control.create("t", "file")
    with contextlib.ExitStack() as sessions:
        open_ones = []
        for wakes in range(1, 9):
            session = sessions.enter_context(shared_session(control, wakes_by_socket=True))
            open_ones.append(session)
            producer = session.producer("t")
            for _ in range(wakes):
                producer.produce([b"wakes the broker"])
                producer.wait_confirmed()
        broker.stop()
        assert [session.goodbye() for session in open_ones] == ["shutting_down"] * len(open_ones)
