"""Numbered messages in Python, as support/numbered_messages.hpp makes them, and the parts that all programs share."""
import sys
import time

PATIENCE = 30.0
PIECE = 512  # messages of one batch call


class Task:
    """The arguments of a program: role, mode, topic, bytes and count (clients/client_program.hpp)."""

    def __init__(self, arguments):
        self.role, self.mode, self.topic, size, count = arguments
        self.bytes, self.count = int(size), int(count)
        self.tail = bytes((i * 131 + (i >> 8)) & 255 for i in range(8, self.bytes))

    def message(self, number):
        return number.to_bytes(8, "little") + self.tail


class Check:
    """Compares messages with those that were expected, and takes the time."""

    def __init__(self, task):
        self.count, self._tail, self._from = task.count, task.tail, task.count // 10
        self.next, self._begun = 0, 0.0

    def is_unfinished(self):
        return self.next < self.count

    def take(self, body):
        if body != self.next.to_bytes(8, "little") + self._tail:
            sys.exit(f"message {self.next} came back altered")
        if self.next == self._from:
            self._begun = time.monotonic()
        self.next += 1

    def report(self):
        print(f"received {time.monotonic() - self._begun:.9f}", flush=True)
