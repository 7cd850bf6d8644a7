"""Runs a command in a network namespace of its own, where TCP port 5001 of loopback is taken:
http_namespace.py COMMAND ARGUMENT... Exits with 77 if the system permits no such namespace."""
import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

if ctypes.CDLL(None).unshare(CLONE_NEWNET | (0 if os.geteuid() == 0 else CLONE_NEWUSER)) != 0:
    sys.exit(77)
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
taken = socket.socket()
taken.bind(("127.0.0.1", 5001))
taken.listen()
taken.set_inheritable(True)
os.execv(sys.argv[1], sys.argv[1:])
