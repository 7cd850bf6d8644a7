"""Runs the examples of the documents unchanged, with a real broker."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys

import pytest

from support import ADMIN_PASSWORD, BINARY, DEADLINE, Secrets, secret_file, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["docs/protocol.md"]  # class Reader tests the pages below
PAGES = ["README.md", "docs/clients.md", "docs/command_line.md"]  # read one after the other, as one document


def blocks(document):
    """Yields (first line, code) of every fenced python block."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M):
        yield text.count("\n", 0, match.start()) + 2, match.group(1)


def test_the_documents_have_examples():
    for document in DOCUMENTS:
        assert list(blocks(document)), f"{document} has no python block"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_examples_of_a_document_run_in_order_as_one_program(broker, document):
    """A reader types the examples one after the other. Only the control URI differs."""
    lines = []
    for first, code in blocks(document):
        assert "tcp://127.0.0.1:5000" in code or lines, f"{document}:{first} does not connect to the default control URI"
        # Keeps the line numbers of the document.
        lines += [""] * (first - 1 - len(lines)) + code.rstrip("\n").split("\n")
    program = "\n".join(lines).replace("tcp://127.0.0.1:5000", broker.control_uri)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE,
                          env={**broker.environment, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD})
    assert done.returncode == 0, f"{document}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


class Reader:
    """A reader who follows the README and the pages after it on a new machine, block by block. Only the port,
    which the broker reports, and the place of its data differ."""

    def __init__(self, home):
        self.home, self.data = home, home / "data"
        (home / "build/release").mkdir(parents=True)
        (home / "build/release/lightq").symlink_to(BINARY)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
        self.environment |= {"HOME": str(home), "LIGHTQ_DATA_DIR": str(self.data), "LIGHTQ_CONTROL": "tcp://127.0.0.1:0",
                             "LIGHTQ_HTTP": "tcp://127.0.0.1:0"}

    def run(self, *command):
        """Runs a command that must succeed. Returns its standard output."""
        # The output goes into files, because a broker started by a script keeps the output open.
        with (self.home / "out").open("wb") as out, (self.home / "err").open("wb") as err:
            done = subprocess.run(command, stdout=out, stderr=err, timeout=3 * DEADLINE, env=self.environment, cwd=self.home)
        printed, told = (self.home / "out").read_text(), (self.home / "err").read_text()
        assert done.returncode == 0, (command, printed[-2000:], told[-4000:])
        return printed

    def paste(self, script):
        return self.run("bash", "-e", "-c", script)

    def start(self, script):
        """Pastes a script that begins with a broker. The shell then knows the directory of the programs."""
        printed = self.paste(script)
        self.environment["PATH"] = f"{self.home}/build/release:{self.environment['PATH']}"
        return printed

    def interrupt_after(self, command, words):
        """Runs a command that only Ctrl-C ends, and interrupts it once it has printed the words. Sends the
        words to its topic now and then."""
        with subprocess.Popen(["bash", "-c", "exec " + command], stdout=subprocess.PIPE, env=self.environment, cwd=self.home) as process:
            seen = b""
            while words.encode() not in seen:
                if select.select([process.stdout], [], [], 0.2)[0]:
                    seen += os.read(process.stdout.fileno(), 65536) or pytest.fail(f"{command} ended: {seen[-2000:]}")
                else:
                    self.paste(f"lightq produce orders <<< '{words}'")
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(DEADLINE) == 0, command

    @property
    def control_uri(self):
        return json.loads((self.data / "broker.json").read_text())["control_uri"]

    def stop(self):
        Secrets.of_data_directory(self.data)
        address = self.data / "broker.json"
        if address.exists():
            os.kill(json.loads(address.read_text())["pid"], signal.SIGTERM)
            until(lambda: not address.exists(), "the broker's end")


@pytest.fixture
def reader(tmp_path):
    made = Reader(tmp_path)
    yield made
    made.stop()


def fenced(document):
    """Returns (language, code) of every fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("attempt", range(3))
def test_the_quick_start_runs_as_it_is_printed(reader, attempt):
    """Runs it as one script: only the commands themselves wait for the broker."""
    _, start = [code for language, code in fenced("README.md") if language == "sh"][:2]
    printed = reader.start(start)
    assert printed.startswith("apples\npears\n") and "file" in printed, printed


def example_of(block):
    """Returns the example program that the block shows, wholly or in part."""
    sources = {path: path.read_text() for path in sorted((ROOT / "examples").glob("*.cpp"))}
    whole = [path for path, text in sources.items() if block.strip() == re.sub(r"\A(///.*\n)+", "", text).strip()]
    shown = whole or [path for path, text in sources.items() if path.stem == "readme_parts" and block.rstrip() in text]
    assert len(shown) == 1, f"no example has this block of the pages:\n{block}"
    return shown[0].stem


def check_build(block):
    """Checks only the names in the block. tests/package builds and installs."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    options = (ROOT / "CMakeLists.txt").read_text()
    setup, configure, build, install = [line.split("  #")[0].split() for line in block.strip().splitlines()]
    assert os.access(ROOT / setup[0], os.X_OK)
    preset = configure[configure.index("--preset") + 1]
    assert preset in [each["name"] for each in presets["configurePresets"]]
    assert all(f"({name}" in options for name in re.findall(r"-D (\w+)=", block))
    assert build == ["cmake", "--build", "--preset", preset]
    assert preset in [each["name"] for each in presets["buildPresets"]]
    assert install[:3] == ["cmake", "--install", f"build/{preset}"]


def run_python_client(reader, code):
    """Runs a program with the Python client. A loop without an end is terminated at its last message."""
    last = "order 999\n" if "asyncio" in code else "to be archived\n"
    environment = {**reader.environment, "PYTHONPATH": str(ROOT / "clients/python"), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment, cwd=reader.home) as program:
        assert any(line.endswith(last) for line in program.stdout), f"{last!r} was not printed by:\n{code}"
        if "asyncio" in code:
            program.terminate()
            program.wait(DEADLINE)
        else:
            assert program.wait(DEADLINE) == 0, code


def test_the_python_programs_of_the_pages_run_as_printed(reader):
    """The same as in the test below, without the C++ programs, which may not be built."""
    (_, build), (_, quick_start), *rest = [block for page in PAGES for block in fenced(page)]
    reader.start(quick_start)
    programs = [code for language, code in rest if language == "python" and "import lightq" in code]
    assert len(programs) == 2
    for code in programs:
        run_python_client(reader, code)


def test_every_block_of_the_readme_runs_as_it_is_printed_in_order(reader):
    programs = pathlib.Path(BINARY).resolve().parent / "examples"
    if not (programs / "readme_parts").exists():
        pytest.skip("the examples are not built beside the binary")
    (language, build), (_, quick_start), *rest = [block for page in PAGES for block in fenced(page)]
    assert language == "sh"
    check_build(build)
    reader.start(quick_start)
    ran = []
    for language, code in rest:
        if language == "cpp":
            name = example_of(code)
            if name not in ran:
                ran.append(name)
                printed = reader.run(str(programs / name))
                assert {"consumer": "order 999", "readme_parts": "billed {\"tea\": 2}", "embedded_queue": "first\nsecond\n"}.get(
                    name, "") in printed, (name, printed)
        elif language == "python" and "import lightq" in code:
            run_python_client(reader, code)
            ran.append("python")
        elif language == "python":
            printed = reader.run(sys.executable, "-c", code.replace("tcp://127.0.0.1:5000", reader.control_uri))
            assert "parcel 2" in printed, printed
        elif "curl" in code:
            http_uri = json.loads((reader.data / "broker.json").read_text())["http_uri"]
            printed = reader.paste(code.replace("http://127.0.0.1:5001", http_uri))
            assert '"flushed":true' in printed and '"messages":1,"in_flight":0' in printed, printed
            assert '"payload":"a letter"' in (reader.home / "taken").read_text()
        elif "lightq bench" in code:
            assert "in order" in reader.paste(code)
            ran.append("bench")
        elif "lightq backup" in code:
            copies, restored = reader.home / "copies", reader.home / "restored"
            copies.mkdir()
            reader.paste(code.replace("/var/lib/lightq", str(restored)).replace("/backup", str(copies)))
            assert (copies / "monday/backup.json").exists() and (restored / "topics").is_dir()
        elif "lightq log" in code:
            printed = reader.paste(code)
            assert "order 998" in printed, printed[-2000:]
            assert (reader.home / "saved").is_dir() and (reader.home / "backup/orders").is_dir()
        else:
            billing, dashboard, everything = [line.split("  #")[0].strip() for line in code.strip().splitlines()]
            reader.interrupt_after(billing, "to be billed")
            reader.interrupt_after(dashboard, "for the dashboard")
            assert "order 999" in reader.paste(everything)
            ran.append("groups")
    assert ran == ["producer", "consumer", "python", "readme_parts", "python", "embedded_queue", "groups", "bench"], ran


def test_the_five_commands_of_a_broker_on_a_network(tmp_path):
    """Replaces the addresses by the loopback address, the control port by a free port, and a password prompt
    by the environment. The client has another directory, so it finds no file of the broker."""
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
