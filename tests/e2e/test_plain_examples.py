"""Runs the examples of plain ZeroMQ sockets with a ticket."""
import os
import pathlib
import subprocess
import sys

from support import DEADLINE, PASSWORD, USER

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/plain"


def test_python(broker, control):
    control.create("parcels", "file")
    done = subprocess.run([sys.executable, str(EXAMPLES / "parcels.py")], capture_output=True, text=True, timeout=DEADLINE,
                          env={"PATH": os.environ["PATH"], "LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": PASSWORD})
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "[b'parcel 0', b'parcel 1', b'parcel 2']\n"
    refused = subprocess.run([sys.executable, str(EXAMPLES / "parcels.py")], capture_output=True, text=True, timeout=DEADLINE,
                             env={"PATH": os.environ["PATH"], "LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_USER": USER, "LIGHTQ_PASSWORD": "w"})
    assert refused.returncode == 1 and "unauthorized_access" in refused.stderr
