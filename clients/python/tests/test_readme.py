"""Runs the examples of README.md, and installs the client as a newcomer does."""
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
import wheel_backend
from conftest import ROOT
from support import ADMIN_PASSWORD, DEADLINE

HERE = pathlib.Path(__file__).resolve().parent.parent
README = (HERE / "README.md").read_text(encoding="utf-8")
ASYNCIO, BLOCKING, CONNECTING = re.findall(r"^```python\n(.*?)^```$", README, re.S | re.M)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A newcomer's empty directory: the wheel is built, and installed into a new environment without a network."""
    place = tmp_path_factory.mktemp("newcomer")
    subprocess.run([sys.executable, str(HERE / "wheel_backend.py"), str(place)], check=True, capture_output=True)
    [wheel] = place.glob("*.whl")
    assert wheel.name == "lightq-0.1.0-py3-none-any.whl"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True, timeout=DEADLINE)
    [packages] = (place / "venv").glob("lib/python3*/site-packages")
    pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
    if pip.returncode == 0:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(packages), str(wheel)],
                       check=True, timeout=3 * DEADLINE, capture_output=True)
    else:
        import zipfile
        zipfile.ZipFile(wheel).extractall(packages)
    return place


def run(installed, broker, program):
    environment = {"PATH": os.environ["PATH"], "HOME": str(installed), "LIGHTQ_BROKER": broker.control_uri,
                   "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD, "LIGHTQ_DATA_DIR": str(broker.data_dir), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([str(installed / "venv/bin/python"), "-W", "error", "-c", program], cwd=installed, env=environment,
                            stdout=subprocess.PIPE, text=True)


def test_the_ten_lines_run_as_printed(installed, broker):
    broker.control().create("orders", "file")
    program = run(installed, broker, ASYNCIO)
    billed = 0
    for line in program.stdout:
        assert line == f"billed order {billed}\n"
        billed += 1
        if billed == 1000:
            break
    program.terminate()  # its loop has no end
    program.wait(DEADLINE)
    program.stdout.close()
    assert billed == 1000
    blocking = run(installed, broker, BLOCKING)
    printed, _ = blocking.communicate(timeout=3 * DEADLINE)
    assert blocking.returncode == 0
    assert printed.splitlines()[-1] == "1000 b'17' order 1000" and len(printed.splitlines()) == 1001


def test_the_arguments_of_connect_are_those_of_the_readme():
    import lightq
    place = CONNECTING.replace("broker.example:5000", "127.0.0.1:1").replace("import lightq\n", "").strip()
    with pytest.raises(lightq.Error):
        exec(place, {"lightq": lightq})  # noqa: S102 - the line of the README


def test_the_metadata_is_the_same_everywhere():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = re.search(r'version_text = "([0-9.]+)"', (ROOT / "include/lightq/version.hpp").read_text())[1]
    import lightq
    assert {project["version"], wheel_backend.VERSION, lightq.__version__} == {version}
    for value in (project["description"], project["license"]["text"], project["requires-python"]):
        assert value in wheel_backend.METADATA


def test_the_types_are_complete():
    checked = subprocess.run(["mypy", "--version"], capture_output=True) if os.access("/usr/bin/mypy", os.X_OK) else None
    if checked is None:
        pytest.skip("mypy is not installed (Debian: mypy)")
    done = subprocess.run(["/usr/bin/mypy", "--strict", "--cache-dir", os.devnull, "lightq"], cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
