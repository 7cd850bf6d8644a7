#!/usr/bin/env python3
"""Runs a command with a broker of its own: the tests of clients that cannot start one easily.

    LIGHTQ_BINARY=build/release/lightq python3 clients/conformance/with_broker.py ruby clients/ruby/test/all.rb

The broker has the topics `t` and `orders`, and the tests' user, who may use both. The command finds it in its environment:
LIGHTQ_BROKER, LIGHTQ_USER, LIGHTQ_PASSWORD, LIGHTQ_ADMIN_PASSWORD and LIGHTQ_DATA_DIR; BROKER_PID is its process. The exit
code is that of the command."""
import os
import subprocess
import sys

import kit_paths  # noqa: F401 - makes the modules of the tests importable
from support import ADMIN_PASSWORD, PASSWORD, USER, running_with_topic


def main(command):
    with running_with_topic() as broker:
        broker.control().create("orders", "file")
        where = {"LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD,
                 "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD, "LIGHTQ_DATA_DIR": str(broker.data_dir), "BROKER_PID": str(broker.process.pid),
                 "HOME": str(broker.directory)}
        return subprocess.run(command, env={**os.environ, **where}, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
