"""Tests every kind of ticket over TLS. test_ticket_matrix.py tests the other ways."""
import itertools

import pytest

from test_ticket_matrix import TICKETS, exists, over_session, topic_of, world_of

WAYS = ["session_produce", "session_pull", "session_sub"]
CELLS = [cell for cell in itertools.product(WAYS, ["socket_tcp"], TICKETS) if exists(*cell)]


def test_every_combination_is_counted():
    assert len(CELLS) == 26 and len([cell for cell in CELLS if cell[2] == "valid"]) == 3


@pytest.fixture(scope="module")
def world():
    with world_of(CELLS, "--encrypt") as made:
        yield made


@pytest.mark.parametrize("cell", CELLS, ids=topic_of)
def test_only_a_valid_ticket_is_accepted_over_tls(world, cell):
    assert over_session(world, cell) is not None, "there was no TLS"
