"""Tests the checksum of the Python tests: it has the published value, and lanes give the same result as
single bytes."""
import random

import pytest
from checksum import LANE, bytewise, crc32c


def test_the_check_value_is_the_published_one():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C


@pytest.mark.parametrize("length", [0, 1, 16 * LANE - 1, 16 * LANE, 16 * LANE + 1, 17 * LANE - 1, 17 * LANE, 100_003])
def test_lanes_give_the_same_as_single_bytes(length):
    chance = random.Random(length)
    for data in (chance.randbytes(length), bytes(length), b"\xff" * length):
        assert crc32c(data) == bytewise(0xFFFFFFFF, data) ^ 0xFFFFFFFF
