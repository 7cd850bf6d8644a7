"""Runs parts of docs/guide.md as they are printed, for the tests of its pages."""
import os
import pathlib
import re
import subprocess

from support import BINARY, DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def page(heading):
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def transcript(block):
    """Returns the commands of a transcript, each with the lines that it prints."""
    commands = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(TIME.sub("TIME", line))
    return commands


def run(broker, command):
    """Runs a command. Returns the lines that it prints, with times replaced."""
    environment = {**broker.environment, "PATH": f"{pathlib.Path(BINARY).parent}:{os.environ['PATH']}",
                   "LIGHTQ_DATA_DIR": str(broker.data_dir), "LIGHTQ_BROKER": broker.control_uri}
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE,
                          env=environment)
    assert done.returncode == 0, (command, done.stdout)
    return [TIME.sub("TIME", line) for line in done.stdout.splitlines()]
