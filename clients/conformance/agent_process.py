"""A client's agent as a process. The driver sends it commands and reads its lines (README.md)."""
import json
import os
import queue
import signal
import subprocess
import threading
import time

REPLY_SECONDS = 60  # after this time an agent counts as stuck


class AgentFailed(AssertionError):
    """The agent ended, sent a malformed line, or did not reply in time."""


class AgentProcess:
    """Owns the process. `messages` has the descriptions of all received messages, in the order of the agent's
    lines."""

    def __init__(self, command, directory):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
        environment["HOME"] = str(directory)
        self.directory, self.messages, self.last_id, self.replies = directory, [], 0, {}
        self.errors = directory / f"agent-{id(self)}.err"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            cwd=directory, env=environment)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.introduction = self._next_line(REPLY_SECONDS)

    @property
    def features(self):
        return set(self.introduction["features"])

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _next_line(self, seconds):
        try:
            line = self.lines.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            raise AgentFailed(f"the agent sent no line within {seconds} s{self._said()}") from None
        if line is None:
            raise AgentFailed(f"the agent ended with {self.process.wait()}{self._said()}")
        return json.loads(line)

    def _said(self):
        text = self.errors.read_text(errors="replace")[-3000:]
        return f"; it wrote:\n{text}" if text else ""

    def _take(self, line):
        self.messages += line.get("messages", [])
        if "id" in line:
            self.replies[line["id"]] = line

    def start(self, do, **members):
        """Sends a command. Returns its number, for `finish`."""
        self.last_id += 1
        self.process.stdin.write(json.dumps({"id": self.last_id, "do": do, **members}).encode() + b"\n")
        self.process.stdin.flush()
        return self.last_id

    def finish(self, number, seconds=REPLY_SECONDS):
        """Waits for the reply to a command."""
        deadline = time.monotonic() + seconds
        while number not in self.replies:
            self._take(self._next_line(deadline - time.monotonic()))
        return self.replies.pop(number)

    def call(self, do, **members):
        return self.finish(self.start(do, **members))

    def ok(self, do, **members):
        reply = self.call(do, **members)
        assert reply["ok"], (do, reply)
        return reply

    def fails(self, codes, do, **members):
        """Requires that the command fails with one of these codes."""
        reply = self.call(do, **members)
        assert not reply["ok"] and reply["error"] in codes, (do, reply)
        return reply

    def until_messages(self, count):
        """Reads lines until the agent has reported so many messages in all."""
        deadline = time.monotonic() + REPLY_SECONDS
        while len(self.messages) < count:
            self._take(self._next_line(deadline - time.monotonic()))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Stops the process as SIGSTOP does, until `resume`."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        """Ends the agent. Without a kill before, it must end by itself with code 0."""
        if self.process.poll() is None:
            self.resume()
            try:
                self.start("exit")
                self.process.stdin.close()
                code = self.process.wait(REPLY_SECONDS)
                assert code == 0, f"the agent ended with {code}{self._said()}"
            except (BrokenPipeError, subprocess.TimeoutExpired) as failure:
                raise AgentFailed(f"the agent does not end: {failure}{self._said()}") from failure
            finally:
                self.kill()
        self.process.stdout.close()
