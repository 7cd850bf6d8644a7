"""Tests of `lightq doctor` with findings that are made, beside a running broker and without one."""
import json
import resource
import subprocess

import pytest

from cli_support import lightq
from support import BINARY, DEADLINE, until


def examine(lightq, *more, **process):
    done = subprocess.run([BINARY, "doctor", "--json", *more], capture_output=True, timeout=DEADLINE, env=lightq.environment,
                          **process)
    assert done.stderr == b"", done
    findings = json.loads(done.stdout)["findings"]
    assert all(finding["mend"] for finding in findings if finding["severity"] != "ok"), "each finding has its mend"
    severities = [finding["severity"] for finding in findings]
    assert severities == sorted(severities, key=["fault", "warning", "ok"].index), "the worst comes first"
    assert done.returncode == (1 if "fault" in severities else 0)
    return {finding["check"]: finding for finding in reversed(findings)}


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))


def test_a_running_broker_is_asked(lightq):
    found = examine(lightq)
    assert found["broker"]["severity"] == "ok" and lightq.environment["LIGHTQ_BROKER"] in found["broker"]["text"]
    assert found["versions"]["severity"] == "ok" and found["modes"]["severity"] == "ok"
    assert {"limits", "disk", "clock"} <= set(found) and "ports" not in found
    assert found["limits"]["text"].startswith("the broker may open"), "the broker's own limit"
    assert b"ok       broker: the broker at" in lightq("doctor", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                     code=0 if all(f["severity"] != "fault" for f in found.values()) else 1).stdout


def test_topics_whose_producers_wait_are_found(lightq):
    lightq("topic", "create", "full", "--ring-bytes", "64KiB", "--overflow", "block")
    lightq("consume", "full", "--no-follow")
    lightq("produce", "full", "-n", "200", "--size", "1KiB", "--timeout", "500ms", code=1)
    until(lambda: lightq.stats("full")["blocked_by"] != "", "the full topic")
    found = examine(lightq)["topics"]
    assert found["severity"] == "warning" and "'full'" in found["text"] and "lightq stats full" in found["mend"]


def test_without_a_broker_the_machine_is_examined(lightq):
    lightq.broker.stop()
    found = examine(lightq, preexec_fn=few_descriptors)
    assert found["broker"]["severity"] == "warning" and "lightq broker" in found["broker"]["mend"]
    assert found["limits"]["severity"] == "warning" and "ulimit -n" in found["limits"]["mend"] and "512" in found["limits"]["text"]
    assert "ports" in found and "versions" not in found
    lightq.broker.start()


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("name", ["ticket.key", "curve_former.key"])
def test_files_that_others_may_read_are_found(lightq, running, name):
    if not running:
        lightq.broker.stop()
    file = lightq.broker.data_dir / name
    existed = file.exists()
    file.touch(0o600)
    mode = file.stat().st_mode
    file.chmod(0o644)
    found = examine(lightq)["modes"]
    assert found["severity"] == "fault" and found["mend"] == f"chmod 600 {file}" and "644" in found["text"]
    subprocess.run(found["mend"].split(), check=True)
    assert examine(lightq)["modes"]["severity"] == "ok"
    file.chmod(mode)
    if not existed:
        file.unlink()
    if not running:
        lightq.broker.start()


def test_a_data_directory_that_others_may_change_is_found(lightq):
    mode = lightq.broker.data_dir.stat().st_mode
    lightq.broker.data_dir.chmod(0o777)
    assert examine(lightq)["modes"]["mend"] == f"chmod 700 {lightq.broker.data_dir}"
    lightq.broker.data_dir.chmod(mode)


def test_wrong_settings_of_the_connection_are_a_fault(lightq):
    found = examine(lightq, "--user", "ann")["broker"]
    assert found["severity"] == "fault" and "password" in found["text"]


def test_a_former_key_that_is_still_accepted_is_told(lightq):
    assert "keys" not in examine(lightq)
    former = lightq.broker.data_dir / "curve_former.key"
    former.write_bytes(bytes(32))
    former.chmod(0o600)
    found = examine(lightq)["keys"]
    assert found["severity"] == "warning" and f"rm {former} && lightq reload" in found["mend"]
    former.unlink()
