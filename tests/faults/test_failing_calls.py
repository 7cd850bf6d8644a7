"""Lets the n-th system call of a queue fail, for each n. Checks the program's reports and the content of the
queue afterwards.

strace makes the calls fail. The test tries some of all possible failures. LIGHTQ_FAULTS=all tries all of
them, which takes minutes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "powercut"))
import cut_support  # noqa: E402

PROGRAM = os.environ.get("LIGHTQ_FAULT_PROGRAM", "fault_program")
ALL = os.environ.get("LIGHTQ_FAULTS") == "all"
SEGMENT_BYTES = 4096  # as in fault_program.cpp
ERRORS = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=SIGKILL"]
CALLS = {
    "pwrite64": [*ERRORS, "retval=0"], "pwritev2": [*ERRORS, "retval=0"], "fdatasync": ERRORS, "fsync": ERRORS,
    "fallocate": ERRORS, "rename": ERRORS, "openat": [*ERRORS, "error=EMFILE"], "unlink": ERRORS, "ftruncate": ERRORS,
    "mkdir": ERRORS, "pread64": ERRORS, "newfstatat": ERRORS, "getdents64": ERRORS, "flock": ERRORS,
    "mmap": ["error=ENOMEM", "signal=SIGKILL"],
}
READING = ["pread64", "newfstatat", "openat", "mmap"]  # data that cannot be read may be reported as damaged
POLICIES = ["append", "messages", "none"]


@pytest.fixture(scope="module")
def machine():
    missing = cut_support.own_name_space()
    if missing is None and shutil.which("strace") is None:
        missing = "there is no strace (./scripts/setup powercut)"
    if missing is None:
        works = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], check=False, capture_output=True)
        missing = None if works.returncode == 0 else "strace may not trace here"
    if missing is not None:
        pytest.skip(f"no failing system calls here: {missing}")
    machine = cut_support.Machine().start()
    yield machine
    machine.close()


class Run:
    """One run of the program, during which one call fails."""

    def __init__(self, machine, policy, call, fault, number):
        self.machine, self.call, self.fault = machine, call, fault
        self.what = f"{policy}: {call} number {number} with {fault}"
        self.directory = machine.path / "queue"
        self.trace = machine.directory / "trace"
        command = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", str(self.trace), "-e", f"trace={call}",
                   "-e", f"inject={call}:{fault}:when={number}", PROGRAM, str(self.directory), policy]
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=cut_support.DEADLINE, text=True, check=False)
        self.code, self.lines = done.returncode, done.stdout.splitlines()
        self.told = {}
        for line in self.lines:
            word, *rest = line.split()
            if word in ("will", "has", "durable", "commits", "committed", "flushed"):
                self.told[word] = max(self.told.get(word, 0), int(rest[-1]))

    def struck(self):
        text = self.trace.read_text(errors="replace")
        return "(INJECTED" in text or self.code == -9

    def fails_without_being_ours(self):
        """Returns true if the C library could not get memory. A C++ program may end then, whether or not a
        queue is involved."""
        return re.search(r"MAP_ANONYMOUS.*\(INJECTED", self.trace.read_text(errors="replace")) is not None

    def ended_well(self):
        if self.fault == "signal=SIGKILL":
            assert self.code == -9, self.report(f"ended with {self.code}")
            return
        assert self.code in (0, 3), self.report(f"ended with {self.code}")
        assert self.lines[-1] == "done", self.report("")
        if self.call not in READING:
            assert "damage" not in self.lines, self.report("")

    def check(self, power_cut):
        """Opens the queue in a new process. After a power cut only durable messages must be there."""
        if power_cut is not None:
            self.machine.cut_and_restart(power_cut)
        checker = subprocess.run([cut_support.WRITER, "check", str(self.directory), "committed", str(SEGMENT_BYTES),
                                  "1:0"], stdout=subprocess.PIPE, timeout=cut_support.DEADLINE, text=True, check=False)
        assert checker.returncode == 0, self.report(checker.stdout)
        *gaps, found = checker.stdout.splitlines()
        _, first, following, _, *cursors = found.split()
        told = self.told.get
        kept, committed = ("durable", "flushed") if power_cut is not None else ("has", "committed")
        assert told(kept, 0) <= int(following) <= told("will", 0), self.report(found)
        lost = set()
        for gap in gaps:
            begin, end = map(int, gap.split()[1:])
            assert power_cut is not None and begin >= told("durable", 0), self.report(gap)
            lost |= set(range(begin, end))
        allowed = told("commits", 0)  # messages before `allowed` may be gone; lost ones extend that range
        while allowed in lost:
            allowed += 1
        assert int(first) <= allowed, self.report(found)
        place = dict(cursor.split("=") for cursor in cursors).get("c", 0)
        assert told(committed, 0) <= int(place) <= told("commits", 0), self.report(found)

    def report(self, found):
        return f"{self.what}: {found}\n" + "\n".join(self.lines[-12:])

    def clean_up(self):
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("mmap", "flock")])
@pytest.mark.parametrize("policy", POLICIES if ALL else POLICIES[:1])
def test_a_call_that_keeps_failing_is_reported_each_time(machine, policy, call):
    for number in [1, 2, 3, 5, 8, 13, 21, 34] if ALL else [1, 8]:
        for fault in CALLS[call]:
            if fault not in ("error=EINTR", "signal=SIGKILL"):
                fail_and_check(machine, policy, call, fault, f"{number}+", None)


def fail_and_check(machine, policy, call, fault, number, power_cut):
    """Returns true if the program made that many such calls."""
    run = Run(machine, policy, call, fault, number)
    if run.struck():
        if not run.fails_without_being_ours():
            run.ended_well()
        run.check(power_cut)
    run.clean_up()
    return run.struck()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("policy", POLICIES if ALL else POLICIES[::2])
def test_a_failing_call_breaks_no_promise(machine, policy, call):
    number, runs = 1, 0
    while True:
        afterwards = (None, "all", number)
        if not ALL:
            afterwards = afterwards[number % 3:][:1]
        struck = [fail_and_check(machine, policy, call, fault, number, power_cut)
                  for fault in CALLS[call] for power_cut in afterwards]
        if not any(struck):
            break
        runs += sum(struck)
        number += 1 if ALL or number < 3 else 1 + number // 2
    print(f"{policy}, {call}: {runs} failures, before number {number}")
    assert runs > 0
