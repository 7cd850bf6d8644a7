"""The examples of the documents run as they stand, against a real broker."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from support import ADMIN_PASSWORD, BINARY, DEADLINE, Secrets, secret_file, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/protocol.md"]


def blocks(document):
    """(first line, code) of every fenced python block."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M):
        yield text.count("\n", 0, match.start()) + 2, match.group(1)


def test_both_documents_have_examples():
    for document in DOCUMENTS:
        assert list(blocks(document)), f"{document} has no python block"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_examples_of_a_document_run_in_order_as_one_program(broker, document):
    """A reader types them one after the other; the control URI is the only thing that differs."""
    lines = []
    for first, code in blocks(document):
        assert "tcp://127.0.0.1:5000" in code or lines, f"{document}:{first} does not connect to the default control URI"
        lines += [""] * (first - 1 - len(lines)) + code.rstrip("\n").split("\n")  # line numbers are the document's
    program = "\n".join(lines).replace("tcp://127.0.0.1:5000", broker.control_uri)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE,
                          env={**broker.environment, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD})
    assert done.returncode == 0, f"{document}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("attempt", range(3))
def test_the_quick_start_runs_as_it_is_printed(tmp_path, attempt):
    """As one script, right after the build: nothing waits for the broker but the commands themselves. Only the port is
    another one, which the broker tells them."""
    block = re.search(r"^## Quick start\n.*?^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)[1]
    (tmp_path / "build/release").mkdir(parents=True)
    (tmp_path / "build/release/lightq").symlink_to(BINARY)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
    environment |= {"HOME": str(tmp_path), "LIGHTQ_DATA_DIR": str(tmp_path / "data"), "LIGHTQ_CONTROL": "tcp://127.0.0.1:0"}
    try:
        with (tmp_path / "out").open("wb") as out, (tmp_path / "log").open("wb") as log:  # the broker keeps them open
            done = subprocess.run(["bash", "-e", "-c", block], stdout=out, stderr=log, timeout=DEADLINE,
                                  env=environment, cwd=tmp_path)
        printed, told = (tmp_path / "out").read_text(), (tmp_path / "log").read_text()
        assert done.returncode == 0, told
        assert printed.startswith("apples\npears\n") and "file" in printed, (printed, told)
    finally:
        address = tmp_path / "data/broker.json"
        Secrets.of_data_directory(tmp_path / "data")
        os.kill(json.loads(address.read_text())["pid"], signal.SIGTERM)
        until(lambda: not address.exists(), "the broker's end")


def test_the_five_commands_of_a_broker_on_a_network(tmp_path):
    """With the loopback address for the addresses, a free port for the control port, and a password from the environment
    where a person would be asked. The client has another directory: it finds nothing of the broker's."""
    section = (ROOT / "docs/security.md").read_text(encoding="utf-8").split("## On a network, in five commands\n")[1].split("\n## ")[0]
    blocks_of_commands = re.findall(r"^```sh\n(.*?)^```$", section, re.S | re.M)
    (serve, *manage), (produce,) = (block.strip().splitlines() for block in blocks_of_commands)
    assert len(manage) == 3 and serve.endswith(" &")
    password = Secrets.plant("planted-password-of-ann")
    at_broker = {**os.environ, "PATH": f"{pathlib.Path(BINARY).parent}:{os.environ['PATH']}", "LIGHTQ_DATA_DIR": str(tmp_path / "broker"),
                 "LIGHTQ_NEW_PASSWORD": password}
    elsewhere = {**at_broker, "LIGHTQ_DATA_DIR": str(tmp_path / "client")}

    def run(command, environment):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE, env=environment, cwd=tmp_path)
        assert done.returncode == 0, (command, done)
        Secrets.absent_from((done.stdout + done.stderr).encode(), f"the output of {command}")
        return done.stdout

    local = serve.removesuffix(" &").replace("0.0.0.0:5000", "127.0.0.1:0").replace("0.0.0.0", "127.0.0.1").replace("192.0.2.10", "127.0.0.1")
    broker = subprocess.Popen(["bash", "-c", "exec " + local], env=at_broker, stderr=(tmp_path / "log").open("wb"))
    try:
        address = tmp_path / "broker/broker.json"
        until(address.exists, "the broker's address")
        control = json.loads(address.read_text())["control_uri"]
        *_, key = [run(command, at_broker) for command in manage]
        secret_file(tmp_path / "ann.txt", password)
        command = produce.replace("tcp://192.0.2.10:5000", control).replace("SERVER_KEY", key.strip())
        run(command, elsewhere)
        consume = command.split("|")[1].replace("lightq produce orders", "lightq consume orders -n 1")
        assert run(consume, elsewhere) == "apples\n"
    finally:
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(DEADLINE) == 0
    Secrets.absent_from((tmp_path / "log").read_bytes(), "the broker's log")
