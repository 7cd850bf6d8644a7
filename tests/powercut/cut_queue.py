"""Runs lives of a queue on a disk that loses power, and checks the queue after each."""
import os
import random
import select
import shutil
import subprocess
import tempfile
import time

import cut_support

# Read before the helpers of the end-to-end tests remove it from the environment.
SEED = os.environ.get("LIGHTQ_SEED", "1")

KEPT_MESSAGES = 1000  # retention "newest", as in cut_writer.cpp


class Promises:
    """The promises that the lives of one queue have reported. A later check must find them kept."""

    def __init__(self):
        self.lives = []  # (number, first offset written)
        self.durable = self.has = self.will = 0
        self.flushed = {}
        self.commits = {}
        self.closed = False
        self.power_was_cut = False
        self.clean = 0  # how often the queue was opened after a clean close
        self.gaps = set()  # offsets that were not durable and cannot be read

    def hear(self, life, line):
        """Records one line of the writer (cut_writer.cpp)."""
        word, *rest = line.split()
        assert word != "wrong", line
        if word == "open":
            self.opened(life, *map(int, rest[:3]), rest[3])
        elif word in ("will", "has"):
            setattr(self, word, int(rest[0]))
        elif word == "durable":
            self.durable = max(self.durable, int(rest[0]))
        elif word == "closed":
            self.durable = self.has = int(rest[0])
            self.closed = True
        elif word in ("flushed", "commits"):
            offsets = getattr(self, word)
            offsets[rest[0]] = max(offsets.get(rest[0], 0), int(rest[1]))
        elif word == "gap":
            self.misses(*map(int, rest))
        else:
            assert word == "error", line

    def misses(self, begin, end):
        """Checks that only unsynced messages are missing. A power cut may lose some of them in the middle."""
        lost = set(range(begin, end)) - self.gaps
        assert not lost or (min(lost) >= self.durable and self.power_was_cut), (
            f"{min(lost)} to {max(lost)} cannot be read; durable up to {self.durable}")
        self.gaps |= lost

    def opened(self, life, following, durable, first, clean):
        self.holds(first, following, clean)
        self.lives.append((life, following))
        self.durable = max(self.durable, durable)
        self.has = self.will = following
        self.closed = False
        self.power_was_cut = False

    def holds(self, first, following, clean):
        kept = self.durable if self.power_was_cut else self.has
        assert following >= kept, f"{kept - following} messages lost: ends at {following}"
        assert following <= max(self.will, self.durable), f"ends at {following}: nobody wrote beyond {self.will}"
        assert first <= following, f"{first} to {following}"
        if self.closed:
            assert following == self.has, f"{clean}: ends at {following}"
        self.clean += clean == "clean"

    def dropped_rightly(self, first, retention):
        if retention == "newest":
            allowed = max(0, self.will - KEPT_MESSAGES)
        else:
            allowed = min(self.commits.get(name, 0) for name in ("fast", "slow")) if retention == "committed" else 0
        while allowed in self.gaps:  # the messages before `allowed` may be gone, and gaps extend that range
            allowed += 1
        assert first <= allowed, f"begins at {first}, but only what is before {allowed} may go"

    def cursors_stand(self, found, following, retention):
        # No cursor stands before the oldest kept message.
        passed = self.will - KEPT_MESSAGES if retention == "newest" else 0
        for name, offset in self.flushed.items():
            assert name in found, f"the cursor {name} is lost"
            assert found[name] >= offset, f"the cursor {name} is at {found[name]}; {offset} was flushed"
        for name, offset in found.items():
            latest = min(max(self.commits.get(name, 0), passed), following)
            assert offset <= latest, f"the cursor {name} is at {offset}, not before {latest}"


class Queue:
    """A queue and its machine."""

    def __init__(self, machine, seed, policies):
        self.machine, self.random, self.policies = machine, random.Random(seed), policies
        self.directory = machine.path / "data" / "queue"
        self.segment_bytes = self.random.choice([8192, 16384, 65536])
        self.retention = self.random.choice(["all", "newest", "committed"])
        self.promises = Promises()
        self.life = 0
        self.copy = None
        self.last = ""
        self.tally = {"lives": 0, "checks": 0, "confirmed": 0, "killed only": 0, "cut while recovering": 0}

    def run(self, *words):
        return subprocess.Popen([cut_support.WRITER, *map(str, words)], stdout=subprocess.PIPE, text=True)

    def live(self):
        """Runs a life of the writer. It ends at a random moment by SIGKILL or a power cut, or by itself.
        Returns True if the power was cut."""
        self.life += 1
        self.tally["lives"] += 1
        policy = self.random.choice(self.policies)
        messages = self.random.choice([30, 300, 3000])
        writer = self.run("write", self.directory, self.life, self.random.getrandbits(32), policy, self.retention,
                          self.segment_bytes, messages)
        lines = self.listen(writer, self.random.choice([0, 10, 100, 1000, 10000]), self.random.random() * 0.02)
        kill_only = self.random.random() < 0.2
        power_first = not kill_only and self.random.random() < 0.5
        if power_first:
            self.cut()
        writer.kill()
        lines += writer.stdout.read().splitlines()
        writer.stdout.close()
        code = writer.wait(cut_support.DEADLINE)
        self.last = (f"{policy}, {messages} messages, {'killed only' if kill_only else 'power first' if power_first else 'kill first'}, "
                     f"code {code}, {lines[-6:]}")
        assert code in (0, -9, 3, -7) if power_first else code in (0, -9), f"the writer ended with {code}: {lines[-1:]}"
        if not lines:
            self.promises.closed = False  # the queue may have been opened already
        for line in lines:
            if power_first and line.startswith("error"):
                break
            assert not line.startswith("error"), line
            self.promises.hear(self.life, line)
        if not kill_only and not power_first:
            self.cut()
        self.promises.power_was_cut = not kill_only
        self.tally["killed only"] += kill_only
        return not kill_only

    def listen(self, process, lines_max, seconds):
        """Returns the process's lines: up to a random number of at most `lines_max`, and then those of the
        next `seconds`."""
        lines = []
        while len(lines) < self.random.randint(0, lines_max):
            line = process.stdout.readline()
            if not line:
                return lines
            lines.append(line.rstrip("\n"))
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and select.select([process.stdout], [], [], left)[0]:
            line = process.stdout.readline()
            if not line:
                break
            lines.append(line.rstrip("\n"))
        return lines

    def cut(self):
        self.machine.cut("all" if self.random.random() < 0.3 else self.random.getrandbits(32))

    def check(self):
        """Checks the queue that a power cut has left. Now and then the power fails again during the check."""
        self.machine.restart()
        words = ["check", self.directory, self.retention, self.segment_bytes,
                 *(f"{life}:{begin}" for life, begin in self.promises.lives)]
        while self.random.random() < 0.2:
            recovering = self.run(*words)
            self.listen(recovering, 0, self.random.random() * 0.01)
            self.cut()
            recovering.kill()
            recovering.stdout.close()
            recovering.wait(cut_support.DEADLINE)
            self.machine.restart()
            self.promises.closed = False
            self.tally["cut while recovering"] += 1
        checker = self.run(*words)
        answer = checker.communicate(timeout=cut_support.DEADLINE)[0].strip()
        assert checker.returncode == 0, f"the check ended with {checker.returncode}: {answer}"
        *gaps, found = answer.splitlines()
        for gap in gaps:
            self.promises.hear(None, gap)
        _, first, following, clean, *cursors = found.split()
        first, following = int(first), int(following)
        promises = self.promises
        promises.holds(first, following, clean)
        promises.dropped_rightly(first, self.retention)
        promises.cursors_stand({name: int(at) for name, at in (cursor.split("=") for cursor in cursors)}, following,
                               self.retention)
        self.tally["checks"] += 1
        # The check has recovered everything it found, and closed the queue.
        promises.durable = promises.has = promises.will = following
        promises.closed = True

    def keep_disk(self):
        """Copies the content of the disk, so that a person can examine it after a failure."""
        if self.copy is not None:
            shutil.rmtree(self.copy)
        self.copy = tempfile.mkdtemp(prefix="lq-cut-failed-")
        shutil.copytree(self.machine.disk, self.copy, dirs_exist_ok=True)

    def run_until(self, cuts, keep_failed=True):
        """Runs lives and power cuts, until the power was cut so often. Keeps a copy of a disk that breaks a
        promise if `keep_failed`."""
        end = self.machine.cuts + cuts
        try:
            while self.machine.cuts < end:
                if self.live():
                    self.keep_disk()
                    self.check()
        except AssertionError as failure:
            if not keep_failed:
                shutil.rmtree(self.copy, ignore_errors=True)
            raise AssertionError(f"{failure}\n{self.retention}, {self.segment_bytes} bytes, lives "
                                 f"{self.promises.lives}; the last: {self.last}; the disk after the power cut: {self.copy}") from failure
        self.tally["confirmed"] = self.promises.durable
        self.tally["opened clean"] = self.promises.clean
        self.tally["unconfirmed lost in gaps"] = len(self.promises.gaps)
        shutil.rmtree(self.copy, ignore_errors=True)


def seed_of_run():
    """Returns the seed from LIGHTQ_SEED, which is a number or `random`. The moments of the cuts depend on the
    scheduler in any case."""
    return int.from_bytes(os.urandom(4), "little") if SEED == "random" else int(SEED)
