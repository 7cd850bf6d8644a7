"""Searches for secrets in the memory of a running process."""
import array
import itertools
import os
import re

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Length of the parts of a secret for which the search looks, as an outgrown buffer may keep them.
PIECE_BYTES = 10


def places_in_memory(process, secret):
    """Returns how often the secret is in memory that the process may write to."""
    return sum(whole.count(secret if isinstance(secret, bytes) else secret.encode()) for whole in writable_memory(process))


def pieces_in_memory(process, secrets):
    """Returns the secrets that are in memory which the process may write to: the whole secret, its beginning or
    its end."""
    found = set()
    for whole in writable_memory(process):
        for secret in secrets:
            data = secret.encode()
            if data[:PIECE_BYTES] in whole or data[-PIECE_BYTES:] in whole:
                found.add(secret)
    return found


def writable_memory(process):
    """Yields the content of the writable mappings in contiguous pieces. Skips pages of its own that the
    process has never touched."""
    with (open(f"/proc/{process.pid}/maps", encoding="ascii") as maps, open(f"/proc/{process.pid}/mem", "rb") as memory,
          open(f"/proc/{process.pid}/pagemap", "rb") as pages):
        for line in maps:
            first, last, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not rights.startswith("rw"):
                continue
            first, last = int(first, 16), int(last, 16)
            try:
                for begin, end in [(first, last)] if rights.endswith("s") else touched(pages, first, last):
                    memory.seek(begin)
                    yield memory.read(end - begin)
            except (OSError, OverflowError):  # the mapping is gone by now
                continue


def touched(pages, first, last):
    """Yields the ranges between these addresses that have their pages in memory or swapped out."""
    pages.seek(first // PAGE_BYTES * 8)
    entries = array.array("Q", pages.read((last - first) // PAGE_BYTES * 8))
    at = first
    # The upper bits: present, swapped.
    for there, run in itertools.groupby(entries, lambda entry: entry >> 62 != 0):
        end = at + PAGE_BYTES * sum(1 for _ in run)
        if there:
            yield at, end
        at = end
