"""Starts a file system that loses unsynced data, and a process that uses it: see cut_mount.cpp and
cut_writer.cpp.

Everything is mounted in a namespace of this process and its children. The kernel removes the namespace
with the last of these processes. A file is mounted over the system's boot id too, so that the machine has
another boot id after a power cut.
"""
import atexit
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

MOUNT = os.environ.get("LIGHTQ_CUT_MOUNT", "cut_mount")
WRITER = os.environ.get("LIGHTQ_CUT_WRITER", "cut_writer")
DEADLINE = 60
BOOT_ID = "/proc/sys/kernel/random/boot_id"
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
boot_file = None


def own_name_space():
    """Moves this process into namespaces of its own, once per process. Returns the reason if that is not
    possible, or None."""
    global boot_file
    if boot_file is not None:
        return None
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened"
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER) != 0:
        return f"no name space for mounts: {os.strerror(ctypes.get_errno())}"
    if user != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    with tempfile.NamedTemporaryFile("w", suffix=".boot", delete=False) as file:
        atexit.register(os.unlink, file.name)
    for command in (["mount", "--make-rprivate", "/"], ["mount", "--bind", file.name, BOOT_ID]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{' '.join(command[:2])}: {done.stderr.strip()}"
    boot_file = file.name
    new_boot()
    return None


def new_boot():
    with open(boot_file, "w", encoding="ascii") as file:
        file.write(f"{uuid.uuid4()}\n")


class Machine:
    """A mounted disk with a power switch. After a cut it is mounted again with another boot id."""

    def __init__(self, short_every=0):
        """Makes every `short_every`-th of the larger writes a short one. 0 makes none short."""
        self.short_every = short_every
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="lq-cut-"))
        self.disk, self.path = self.directory / "disk", self.directory / "m"
        self.disk.mkdir()
        self.path.mkdir()
        self.server = None
        self.cuts = self.sectors = self.sectors_kept = self.names = self.names_kept = 0

    def start(self):
        self.server = subprocess.Popen([MOUNT, str(self.path), str(self.disk), str(self.short_every)], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == "ready\n", "the file system does not start"
        return self

    def cut(self, how="all"):
        """Cuts the power. The machine is then off."""
        self.server.stdin.write(f"cut {how}\n")
        self.server.stdin.flush()
        numbers = self.server.stdout.readline().split()
        assert len(numbers) == 4, "the file system died"
        for name, number in zip(("sectors", "sectors_kept", "names", "names_kept"), numbers):
            setattr(self, name, getattr(self, name) + int(number))
        self.cuts += 1
        self.wait()

    def wait(self):
        self.server.stdin.close()
        code = self.server.wait(DEADLINE)
        self.server.stdout.close()
        self.server = None
        assert code == 0, f"the file system ended with {code}"

    def restart(self):
        new_boot()
        return self.start()

    def cut_and_restart(self, how="all"):
        self.cut(how)
        return self.restart()

    def close(self):
        if self.server is not None:
            self.server.stdin.close()
            try:
                self.server.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.server.send_signal(signal.SIGKILL)
                self.server.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
