"""Computes CRC-32C in Python. Byte by byte, 6 MB take a second. So long data is split into lanes of equal
length. Each step advances all lanes by one byte at once, as the digits of one large number."""


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()
PLANES = [bytes(value >> shift & 255 for value in TABLE) for shift in (0, 8, 16, 24)]
LANE = 256  # bytes


def bytewise(state, data):
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    return state


def make_skips():
    """Returns, for each byte of a state and each of its values, the state after a lane of zeros."""
    bits = [bytewise(1 << bit, bytes(LANE)) for bit in range(32)]

    def skipped(value, first):
        total = 0
        for bit in range(8):
            if value >> bit & 1:
                total ^= bits[first + bit]
        return total

    return [[skipped(value, first) for value in range(256)] for first in (0, 8, 16, 24)]


SKIPS = make_skips()


def lanewise(state, data):
    """Computes the state after `data`, which must be a whole number of lanes. The first lane begins with
    `state`, all others with 0."""
    lanes = len(data) // LANE
    # One byte of each lane's state; the first lane's is the lowest.
    planes = [state >> shift & 255 for shift in (0, 8, 16, 24)]
    for step in range(LANE):
        index = (planes[0] ^ int.from_bytes(data[step::LANE], "little")).to_bytes(lanes, "little")
        taken = [int.from_bytes(index.translate(plane), "little") for plane in PLANES]
        planes = [planes[1] ^ taken[0], planes[2] ^ taken[1], planes[3] ^ taken[2], taken[3]]
    state = 0
    for a, b, c, d in zip(*(plane.to_bytes(lanes, "little") for plane in planes)):
        state = (SKIPS[0][state & 255] ^ SKIPS[1][state >> 8 & 255] ^ SKIPS[2][state >> 16 & 255] ^ SKIPS[3][state >> 24]
                 ^ (a | b << 8 | c << 16 | d << 24))
    return state


def crc32c(data):
    data, whole = bytes(data), len(data) // LANE * LANE
    if whole < 16 * LANE:
        return bytewise(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    return bytewise(lanewise(0xFFFFFFFF, data[:whole]), data[whole:]) ^ 0xFFFFFFFF
