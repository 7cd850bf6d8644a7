#!/usr/bin/env python3
"""Runs a command with a broker of its own: the tests of clients that cannot start one easily.

    LIGHTQ_BINARY=$PWD/build/release/lightq python3 clients/conformance/with_broker.py ruby clients/ruby/test/test_misuse.rb

The broker has the topics `t` and `orders`. The command finds the broker and its administrator's password in its environment:
LIGHTQ_BROKER, LIGHTQ_ADMIN_PASSWORD and LIGHTQ_DATA_DIR. The exit code is that of the command."""
import os
import subprocess
import sys

import kit_paths  # noqa: F401 - makes the modules of the tests importable
from support import ADMIN_PASSWORD, running_with_topic


def main(command):
    with running_with_topic() as broker:
        broker.control().create("orders", "file")
        where = {"LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD, "LIGHTQ_DATA_DIR": str(broker.data_dir),
                 "HOME": str(broker.directory)}
        return subprocess.run(command, env={**os.environ, **where}, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
