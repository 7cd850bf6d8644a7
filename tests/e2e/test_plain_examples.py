"""Runs the examples of plain ZeroMQ sockets with a ticket, in every language whose binding is here. Those of npm, crates,
Maven and the Go proxy are fetched only with LIGHTQ_REGISTRIES=1."""
import os
import pathlib
import shutil
import subprocess
import sys

import harness
import pytest
from support import DEADLINE, PASSWORD, USER

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/plain"
PARCELS = "parcel 0\nparcel 1\nparcel 2\n"
BUILD_SECONDS = 1500
JARS = ("org.zeromq:jeromq:0.5.4", "eu.neilalexander:jnacl:1.0.0")
CARGO = """[package]
name = "parcels"
version = "0.1.0"
edition = "2021"
[[bin]]
name = "parcels"
path = "parcels.rs"
[dependencies]
zmq = "0.10"
serde_json = "1"
"""


def needs(*programs):
    """Skips the test if a program is missing. Returns their paths."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return [shutil.which(name) for name in programs]


def needs_registry(*programs):
    if harness.variable("LIGHTQ_REGISTRIES") != "1":
        pytest.skip("fetches a binding from its registry: set LIGHTQ_REGISTRIES=1")
    return needs(*programs)


def done(place, *command, **environment):
    subprocess.run(command, cwd=place, check=True, timeout=BUILD_SECONDS, env={**os.environ, **environment})


def python(place):
    return [sys.executable, str(EXAMPLES / "parcels.py")]


def ruby(place):
    [program] = needs("ruby")
    if subprocess.run([program, "-e", 'require "ffi-rzmq"'], capture_output=True).returncode:
        pytest.skip("not installed: ffi-rzmq (Debian: ruby-ffi-rzmq)")
    return [program, str(EXAMPLES / "parcels.rb")]


def lua(place):
    return [*needs("luajit"), str(EXAMPLES / "parcels.lua")]


def node(place):
    program, npm = needs_registry("node", "npm")
    done(place, npm, "install", "--silent", "--prefix", str(place), "zeromq@6")
    return [program, str(EXAMPLES / "parcels.mjs")]


def java(place):
    program, maven = needs_registry("java", "mvn")
    for jar in JARS:
        done(place, maven, "-q", "-B", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={place}")
    return [program, "-cp", ":".join(map(str, place.glob("*.jar"))), str(EXAMPLES / "Parcels.java")]


def go(place):
    [program] = needs_registry("go")
    shutil.copy(EXAMPLES / "parcels.go", place)
    done(place, program, "mod", "init", "parcels")
    done(place, program, "get", "github.com/go-zeromq/zmq4@v0.16.0")
    done(place, program, "build", "-o", "parcels", "parcels.go")
    return [str(place / "parcels")]


def rust(place):
    [program] = needs_registry("cargo")
    shutil.copy(EXAMPLES / "parcels.rs", place)
    (place / "Cargo.toml").write_text(CARGO, encoding="utf-8")
    done(place, program, "build", "--quiet")
    return [str(place / "target/debug/parcels")]


@pytest.mark.parametrize("language", [python, ruby, lua, node, java, go, rust], ids=lambda language: language.__name__)
def test_the_example_sends_and_receives(broker, control, tmp_path, language):
    command = language(tmp_path)
    control.create("parcels", "file")

    def run(password):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LIGHTQ_BROKER": broker.control_uri, "LIGHTQ_USER": USER,
                       "LIGHTQ_PASSWORD": password}
        return subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE, cwd=tmp_path, env=environment)
    finished = run(PASSWORD)
    assert (finished.returncode, finished.stdout) == (0, PARCELS), finished.stderr[-2000:]
    refused = run("w")
    assert refused.returncode != 0 and "unauthorized_access" in refused.stderr
