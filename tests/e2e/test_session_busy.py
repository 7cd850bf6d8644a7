"""Tests consumers that are silent because they work, and consumers that have lost their machine:
docs/session.md, "Busy consumers"."""
import ctypes
import socket
import struct

import pytest

from session_client import join
from session_support import fill, group_of, offsets
from support import numbered, until

MAY_BE_BUSY = 1 << 29
SO_ATTACH_FILTER = 26
BPF_RETURN = 0x06


@pytest.fixture
def broker(make_broker):
    return make_broker("--session-heartbeat-ms", "500")


def lose_the_machine_of(session):
    """Makes the session's system drop everything it receives from now on. It sends no answer and no end of
    the connection, as if its machine were gone."""
    drop_all = ctypes.create_string_buffer(struct.pack("=HBBI", BPF_RETURN, 0, 0, 0))
    session.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(drop_all)))


def test_a_silent_consumer_keeps_its_message_as_long_as_its_system_answers(control, session):
    control.create("t")
    fill(session, "t", numbered(0, 2))
    members = [session(join(control, "t", "pull"), codecs=MAY_BE_BUSY, heartbeat_ms=200) for _ in range(2)]
    working, lost = [each.consumer("t", credit=(1, 1 << 40), ack_timeout_ms=600_000) for each in members]
    kept, gone = working.receive(1), lost.receive(1)
    lose_the_machine_of(members[1])
    until(lambda: group_of(control, "t")["unacknowledged"] == 1, "the end of the one whose system does not answer")
    other = session(join(control, "t", "pull")).consumer("t")
    come = other.receive(1)
    assert (offsets(come), come[0].delivery) == (offsets(gone), 2)
    working.acknowledge_all(kept)
    until(lambda: group_of(control, "t")["unacknowledged"] == 1, "the acknowledgement of the one that worked")
