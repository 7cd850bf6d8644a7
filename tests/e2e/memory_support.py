"""Where a secret stands in the memory of a process that runs."""
import re

PIECE_BYTES = 10  # of what a buffer that was outgrown keeps of a secret


def places_in_memory(process, secret):
    """How often it stands in memory that the process may write to."""
    return sum(whole.count(secret if isinstance(secret, bytes) else secret.encode()) for whole in writable_memory(process))


def pieces_in_memory(process, secrets):
    """Of these secrets, those of which the whole, the beginning or the end stands in memory that the process may write to."""
    found = set()
    for whole in writable_memory(process):
        for secret in secrets:
            data = secret.encode()
            if data[:PIECE_BYTES] in whole or data[-PIECE_BYTES:] in whole:
                found.add(secret)
    return found


def writable_memory(process):
    """What each mapping holds."""
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as maps, open(f"/proc/{process.pid}/mem", "rb") as memory:
        for line in maps:
            first, last, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not rights.startswith("rw"):
                continue
            try:
                memory.seek(int(first, 16))
                yield memory.read(int(last, 16) - int(first, 16))
            except (OSError, OverflowError):  # the mapping is gone by now
                continue
