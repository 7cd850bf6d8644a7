"""Runs a command as a shell's job on a terminal of its own, so that tests can stop, continue and end it by
signals. As a program, this file is the shell."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios

if __name__ != "__main__":
    from support import DEADLINE, Secrets, until


class TerminalSession:
    """The terminal, and the text that the command showed on it."""

    def __init__(self, arguments, environment):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCPKT, struct.pack("i", 1))  # reads also report flow control
        self.shown = b""
        self.states = b""
        self.flow = 0
        reading, writing = os.pipe()
        self.reports = reading
        self.shell = subprocess.Popen([sys.executable, "-B", __file__, str(writing), *arguments], stdin=self.slave,
                                      stdout=self.slave, stderr=self.slave, env=environment, start_new_session=True,
                                      pass_fds=[writing])
        os.close(writing)

    def __enter__(self):
        self.wait_state(b"began ")
        self.pid = int(self.states.split()[1])
        return self

    def __exit__(self, *_):
        for process in (getattr(self, "pid", None), self.shell.pid):
            try:
                if process:
                    os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.shell.wait(DEADLINE)
        for descriptor in (self.master, self.slave, self.reports):
            os.close(descriptor)
        Secrets.absent_from(self.shown, "what the terminal showed")

    @property
    def echo(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def _read(self):
        for descriptor in select.select([self.master, self.reports], [], [], 0.01)[0]:
            piece = os.read(descriptor, 4096)
            if descriptor == self.master and piece[0] != termios.TIOCPKT_DATA:
                self.flow |= piece[0]
            elif descriptor == self.master:
                self.shown += piece[1:]
            else:
                self.states += piece

    def wait_state(self, state):
        """Waits until the shell has reported this state of its job: `began PID`, `stopped`, `ended STATUS`."""
        until(lambda: self._read() or (state in self.states and self.states.endswith(b"\n")), lambda: f"{state} in {self.states}")

    def wait_prompt(self, prompt, times=1):
        until(lambda: self._read() or self.shown.count(prompt) >= times, lambda: f"{times} {prompt} in {self.shown}")

    def type(self, text):
        os.write(self.master, text)

    def type_ahead(self, text):
        """Types text without the end of a line. Returns when the terminal has taken it. The kernel takes it
        some time after the write, with or without echo as set at that time. Ctrl-S and Ctrl-Q follow the
        text, and the kernel reports when it takes them."""
        self.flow = 0
        self.type(text + b"\x13\x11")
        until(lambda: self._read() or self.flow & termios.TIOCPKT_START, lambda: f"Ctrl-Q, not {self.flow}")

    def signal(self, number):
        os.kill(self.pid, number)

    def go_on(self):
        """Continues the job, as the shell's `fg` does."""
        os.kill(self.pid, signal.SIGCONT)


def main(writing, command):
    """Runs the command as a shell does: in a process group of its own, which owns the terminal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.set_inheritable(writing, False)
        os.execve(command[0], command, os.environ)
    os.write(writing, b"began %d\n" % child)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os.write(writing, b"ended %d\n" % os.waitstatus_to_exitcode(status))
            return
        os.write(writing, b"stopped\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
