"""Tests a data directory with files of a newer version: the errors of broker and tools, and that nothing is
changed (docs/log_format.md, "Newer versions")."""
import pathlib

import pytest

from log_support import LogFiles
from support import PASSWORD, USER, files_below
from test_data_directory import run_broker
from test_operations import directory_of, fill

NEWER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "newer"
SAID = "a newer version of LightQ wrote it"
USERS = {"user_id": USER, "password": PASSWORD}


def tree(directory):
    return {path: path.read_bytes() for path in files_below(directory)}


@pytest.mark.parametrize("golden, name", [
    ("segment-version", None), ("segment-flags", None), ("segment-batch-flags", None), ("cursors", "cursors.0"),
    ("producers", "producers.1")])
def test_a_topic_of_a_newer_version_stays_closed_and_unchanged(broker, control, tmp_path, golden, name):
    directory = directory_of(broker, control, "t")
    control.create("other", "file")
    broker.kill()  # so that a start would have something to change
    name = name or max(directory.glob("*.seg")).name
    (directory / name).write_bytes((NEWER / golden).read_bytes())
    before = tree(directory)
    broker.start()
    sentence = control.fails("foreign_format", "stats", topic="t", **USERS)["description"]
    assert name in sentence and SAID in sentence
    broker.logged(SAID)
    fill(broker, control, "other")
    broker.stop()
    assert tree(directory) == before
    log = LogFiles(directory)
    report = log.verify(code=1)
    assert any(SAID in finding["text"] and name.split(".")[0] in finding["text"] for finding in report["findings"]), report
    done = log("repair", "--force", code=1)
    assert SAID in done.stderr.decode(), done
    assert SAID in log("repair", "--output", tmp_path / "saved", code=1).stderr.decode()
    assert not (tmp_path / "saved").exists()
    assert tree(directory) == before


@pytest.mark.parametrize("golden, says", [("catalogue-format", "it is of version 2, not 1"), ("catalogue-op", '"quota"'),
                                          ("segment-flags", "0x0008")])
def test_a_catalogue_of_a_newer_version_prevents_the_start(broker, control, golden, says):
    control.create("t", "file")
    broker.kill()
    catalogue = broker.data_dir / "catalogue"
    newest = max(catalogue.iterdir())
    (newest.with_name(f"{int(newest.name) + 1:08}")).mkdir()
    (newest.with_name(f"{int(newest.name) + 1:08}") / "00000000000000000000.seg").write_bytes((NEWER / golden).read_bytes())
    before = tree(catalogue)
    refused = run_broker(broker)
    assert refused.returncode == 1, refused.stderr
    assert SAID in refused.stderr and says.replace('"', "") in refused.stderr.replace('"', "").replace("\\", ""), refused.stderr
    assert tree(catalogue) == before
