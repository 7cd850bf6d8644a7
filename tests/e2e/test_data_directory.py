"""Tests the data directory: its permissions and content, and a directory that is full, has foreign files or
belongs to another user."""
import json
import os
import pathlib
import re
import shutil
import socket as plain
import stat
import subprocess
import tempfile

import pytest
import zmq

from support import (ADMIN, ADMIN_PASSWORD, BINARY, DEADLINE, PASSWORD, USER, bytes_of, files_below, number_of, numbered,
                     receive, secret_file, until)

ROOT = os.geteuid() == 0


def loopback_has_ipv6():
    try:
        with plain.socket(plain.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


IPV6 = loopback_has_ipv6()


def run_broker(broker, *flags, data_dir=None, control="tcp://127.0.0.1:0", **options):
    return subprocess.run([BINARY, "broker", "--data-dir", str(data_dir or broker.data_dir), "--control", control, *flags],
                          capture_output=True, text=True, timeout=DEADLINE, env=broker.environment, **options)


def test_broker_json_contains_the_process_and_the_addresses(broker):
    found = json.loads((broker.data_dir / "broker.json").read_text())
    assert found["pid"] == broker.process.pid
    assert found["control_uri"] == broker.control_uri and not broker.control_uri.endswith(":0")
    assert found["version"].count(".") == 2
    assert found["control_socket"] == "control.sock"
    assert stat.S_IMODE((broker.data_dir / "control.sock").stat().st_mode) == 0o600
    broker.logged(f"is ready: control {broker.control_uri},")
    logfmt = re.compile(r'time=[\d-]{10}T[\d:]{8}\.\d{3}Z level=(debug|info|warning|error) msg="([^"\\]|\\.)*"( left_out=\d+)?')
    for line in broker.log().splitlines():
        assert logfmt.fullmatch(line), line


def test_a_second_broker_on_the_same_directory_refuses(broker, control):
    second = run_broker(broker)
    assert second.returncode == 1 and second.stdout == ""
    assert "another" in second.stderr or "in use" in second.stderr or "already" in second.stderr, second.stderr
    assert str(broker.data_dir) in second.stderr
    control.ok("ping")
    assert json.loads((broker.data_dir / "broker.json").read_text())["pid"] == broker.process.pid


def test_a_control_port_that_is_taken_is_a_clear_error(broker, control, tmp_path):
    with plain.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        uri = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        second = run_broker(broker, data_dir=tmp_path / "other", control=uri)
    assert second.returncode == 1
    assert uri in second.stderr and "in use" in second.stderr, second.stderr
    assert not (tmp_path / "other" / "broker.json").exists()


def test_a_remembered_data_port_in_use_is_replaced(broker, control):
    control.create("t", "queue")
    old = control.join("t", "push")
    broker.stop()
    with plain.socket() as taken:
        taken.setsockopt(plain.SOL_SOCKET, plain.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", int(old.rsplit(":", 1)[1])))
        taken.listen()
        broker.start()
        new = control.join("t", "push")
        assert new != old
        consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
        broker.socket(zmq.PUSH, new).send(b"1")
        assert receive(consumer, 1) == [b"1"]


def test_the_ports_come_from_the_range_and_its_end_is_a_clear_error(make_broker):
    with plain.socket() as probe:  # four ports in a row, very likely free
        probe.bind(("127.0.0.1", 0))
        first = max(probe.getsockname()[1] - 100, 1024)
    broker = make_broker("--ports", f"{first}-{first + 3}")
    control = broker.control()
    control.create("t", "queue")
    ports = set()
    for _ in range(5):
        reply = control("join", connection_type="zmq", type="pull", topic="t", user_id=USER, password=PASSWORD)
        if reply["status"] == "ok":
            ports.add(int(reply["bind_uri"].rsplit(":", 1)[1]))
    assert reply["code"] in ("limit_reached", "address_in_use"), reply
    assert ports and ports <= set(range(first, first + 4))
    control.ok("ping")


def test_advertise_names_the_host_that_clients_receive(make_broker):
    broker = make_broker("--advertise", "localhost")
    control = broker.control()
    control.create("t", "queue")
    uri = control.join("t", "push")
    assert uri.startswith("tcp://localhost:")
    control.leave("t", uri)


def test_binding_every_address_requires_an_advertised_one(make_broker):
    broker = make_broker(start=False)
    for host in ("0.0.0.0", "::", "*"):
        refused = run_broker(broker, "--bind", host)
        assert refused.returncode == 2 and "--advertise" in refused.stderr, refused.stderr
    assert not broker.data_dir.exists()
    broker.flags = ["--bind", "0.0.0.0", "--advertise", "127.0.0.1", "--insecure"]
    broker.start()
    control = broker.control()
    control.create("t", "queue")
    uri = control.join("t", "push")
    assert uri.startswith("tcp://127.0.0.1:")
    broker.socket(zmq.PUSH, uri).send(b"1")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 1) == [b"1"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_a_bind_host_that_is_not_this_machine_is_refused_at_the_start(make_broker, host):
    broker = make_broker(start=False)
    refused = run_broker(broker, "--bind", host)
    assert refused.returncode == 1 and host in refused.stderr, refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.skipif(not IPV6, reason="no IPv6 on this machine")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_is_sent_in_brackets(make_broker, host):
    broker = make_broker("--bind", host)
    control = broker.control()
    control.create("t", "queue")
    uris = [control.join("t", kind) for kind in ("push", "pull")]
    assert all(uri.startswith("tcp://[::1]:") for uri in uris), uris
    producer, consumer = (broker.socket(kind, uri, ipv6=1) for kind, uri in zip((zmq.PUSH, zmq.PULL), uris))
    producer.send(b"1")
    assert receive(consumer, 1) == [b"1"]
    control.leave("t", uris[1])
    credentials = broker.directory / "password"
    secret_file(credentials, PASSWORD)
    access = ["--broker", broker.control_uri, "--user", USER, "--password-file", str(credentials)]
    sent = subprocess.run([BINARY, "produce", "t", *access], input=b"2\n", capture_output=True, timeout=DEADLINE,
                          env=broker.environment)
    assert sent.returncode == 0, sent.stderr
    read = subprocess.run([BINARY, "consume", "t", "-n", "1", *access], capture_output=True, timeout=DEADLINE,
                          env=broker.environment)
    assert read.stdout == b"2\n", read.stderr


@pytest.mark.skipif(not IPV6, reason="no IPv6 on this machine")
def test_clients_need_no_brackets_around_an_ipv6_address(make_broker):
    broker = make_broker(control="tcp://[::1]:0")
    port = broker.control_uri.rsplit(":", 1)[1]
    assert broker.control_uri == f"tcp://[::1]:{port}"
    for uri in (broker.control_uri, f"tcp://::1:{port}", f"tcp://0:0:0:0:0:0:0:1:{port}"):
        asked = subprocess.run([BINARY, "topic", "list", "--broker", uri], capture_output=True, timeout=DEADLINE,
                               env={**broker.environment, "LIGHTQ_ADMIN_PASSWORD": ADMIN_PASSWORD})
        assert asked.returncode == 0, asked.stderr


def test_an_ipc_path_that_is_too_long_is_a_clear_error_of_the_join(make_broker):
    broker = make_broker(start=False)
    broker.data_dir = broker.directory / ("d" * 100) / "data"
    broker.start()
    control = broker.control()
    control.create("t", "queue")
    for kind in ("push", "pull", "sub"):
        reply = control("join", connection_type="zmq", type=kind, topic="t", user_id=USER, password=PASSWORD,
                        transport="ipc")
        assert reply["status"] == "error", reply
        assert "too long" in reply["description"] and "107" in reply["description"], reply
    broker.socket(zmq.PUSH, control.join("t", "push")).send(b"1")
    assert receive(broker.socket(zmq.PULL, control.join("t", "pull")), 1) == [b"1"]


def test_files_are_readable_by_their_owner_only(make_broker):
    broker = make_broker(admin=False)
    for path in broker.data_dir.rglob("*"):
        mode = path.stat().st_mode
        assert stat.S_ISSOCK(mode) or mode & 0o022 == 0, (path, oct(mode))
    assert stat.S_IMODE((broker.data_dir / "admin.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("room,mode", [(".", 0o777), (".", 0o775), (".", 0o1777), ("catalogue", 0o755), ("topics", 0o750),
                                       ("pool", 0o777), ("ipc", 0o777)])
def test_directories_that_others_may_use_are_refused(broker, control, room, mode):
    control.create("t", "file")
    broker.stop()
    directory = broker.data_dir / room
    before = stat.S_IMODE(directory.stat().st_mode)
    directory.chmod(mode)
    refused = run_broker(broker)
    assert refused.returncode == 1, refused.stderr
    assert str(directory.resolve()) in refused.stderr and f"0{mode:o}" in refused.stderr and "chmod" in refused.stderr
    assert stat.S_IMODE(directory.stat().st_mode) == mode, "the broker changed it"
    directory.chmod(before)
    broker.start()
    assert control.stats("t")["topic"] == "t"


@pytest.mark.skipif(not ROOT, reason="gives files away")
def test_a_volume_of_root_may_be_given_to_the_brokers_group(broker):
    volume = pathlib.Path(tempfile.mkdtemp(prefix="lq-"))
    try:
        os.chown(volume, 0, 4242)
        volume.chmod(0o2775)
        for groups, starts in (([4242], True), ([4243], False)):
            options = {"user": 65534, "group": 65534, "extra_groups": groups}
            if subprocess.run(["test", "-x", BINARY], check=False, **options).returncode != 0:
                pytest.skip("the binary is closed to other users")
            with open(volume.parent / (volume.name + ".log"), "wb+") as log:
                process = subprocess.Popen([BINARY, "broker", "--data-dir", str(volume), "--control", "tcp://127.0.0.1:0"],
                                           stderr=log, env=broker.environment, **options)
                if starts:
                    until((volume / "broker.json").exists, "its start")
                    process.terminate()
                assert process.wait(DEADLINE) == (0 if starts else 1)
                log.seek(0)
                assert starts or b"can be written by other users" in log.read()
    finally:
        shutil.rmtree(volume)
        (volume.parent / (volume.name + ".log")).unlink(missing_ok=True)


@pytest.mark.skipif(not ROOT, reason="gives files away")
@pytest.mark.parametrize("room", [".", "catalogue"])
def test_directories_of_another_user_are_refused(broker, control, room):
    broker.stop()
    os.chown(broker.data_dir / room, 65534, 65534)
    refused = run_broker(broker)
    assert refused.returncode == 1 and "65534" in refused.stderr and "belongs to another user" in refused.stderr, refused.stderr
    os.chown(broker.data_dir / room, 0, 0)
    broker.start()
    control.ok("ping")


def test_the_first_start_makes_an_admin_with_a_random_password(make_broker):
    broker = make_broker(admin=False)
    text = (broker.data_dir / "admin.json").read_text()
    admin = json.loads(text)
    user, password = next(v for k, v in admin.items() if "user" in k), next(v for k, v in admin.items() if "password" in k)
    assert user == ADMIN and len(password) >= 16
    control = broker.control()
    control.ok("list_topics", admin_user_id=user, admin_password=password)
    control.fails("unauthorized_access", "list_topics", admin_user_id=user, admin_password=password + "x")
    broker.restart()
    assert (broker.data_dir / "admin.json").read_text() == text, "the password changed at a restart"
    control.ok("list_topics", admin_user_id=user, admin_password=password)
    assert password not in broker.log()


def test_an_admin_password_can_come_from_a_file(make_broker, tmp_path):
    secret_file(tmp_path / "secret", "from-a-file-77")
    broker = make_broker("--admin-password-file", str(tmp_path / "secret"), admin=False)
    broker.control().ok("list_topics", admin_user_id=ADMIN, admin_password="from-a-file-77")
    assert "from-a-file-77" not in broker.log()


def test_no_password_is_stored_in_clear(broker, control):
    control.create("t", "file")
    control.join("t", "pull")
    control.fails("unauthorized_access", "join", connection_type="zmq", type="pull", topic="t", user_id=USER,
                  password="wrong-but-secret-3")
    broker.restart()
    for path in files_below(broker.data_dir):
        if path.name != "admin.json":
            text = bytes_of(path)
            for secret in (PASSWORD, ADMIN_PASSWORD, "wrong-but-secret-3"):
                assert secret.encode() not in text, path
    assert "wrong-but-secret-3" not in broker.log()
    command = open(f"/proc/{broker.process.pid}/cmdline", "rb").read()
    assert ADMIN_PASSWORD.encode() not in command


def test_a_directory_that_cannot_be_made_is_a_clear_error(broker, tmp_path):
    (tmp_path / "file").write_text("")
    refused = run_broker(broker, data_dir=tmp_path / "file" / "data")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert str(tmp_path / "file") in refused.stderr, refused.stderr


def test_a_directory_without_the_right_to_write_is_a_clear_error(broker, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    options = {}
    if ROOT:  # root may write anywhere, so become user nobody, who must be able to reach this directory
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
                if not str(folder).startswith("/tmp/"):
                    pytest.skip(f"{folder} is closed to other users")
                folder.chmod(folder.stat().st_mode | 0o011)
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        if subprocess.run(["test", "-x", BINARY], check=False, **options).returncode != 0:
            pytest.skip("the binary lies where other users cannot reach it")
    refused = run_broker(broker, data_dir=locked / "data", **options)
    assert refused.returncode == 1, refused.stderr
    assert "ermission" in refused.stderr, refused.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 4 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if not ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "lightq-test", str(place)], check=False,
                                  capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_holds_producers_and_loses_nothing(small_disk, make_broker):
    broker = make_broker(start=False, environment={"LIGHTQ_MIN_FREE_BYTES": "0"})
    broker.data_dir = small_disk / "data"
    broker.start()
    control = broker.control()
    control.create("t", "file", segment_bytes=256 * 1024)
    control.create("memory", "queue")
    producer = broker.socket(zmq.PUSH, control.join("t", "push"), sndhwm=10)
    sent = 0
    for message in numbered(0, 20_000, 10_000):
        if not producer.poll(1000, zmq.POLLOUT):
            break
        producer.send(message)
        sent += 1
    assert sent < 20_000, "4 MB took 200 MB"
    assert control.stats("t")["blocked_by"] == "disk"
    other = broker.socket(zmq.PUSH, control.join("memory", "push"))
    other.send(b"flows")
    assert receive(broker.socket(zmq.PULL, control.join("memory", "pull")), 1) == [b"flows"]
    kept = control.stats("t")["next_offset"]
    assert kept > 100
    reply = control("create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="more", broker_type="file",
                    user_id=USER, password=PASSWORD)
    assert reply["status"] == "ok" or reply["code"] in ("no_space", "io_error"), reply
    producer.close()
    consumer = broker.socket(zmq.PULL, control.join("t", "pull"))
    assert [number_of(message) for message in receive(consumer, kept)] == list(range(kept))
    broker.kill()
    broker.start()
    assert control.stats("t")["next_offset"] >= kept


def test_a_disk_with_no_room_at_all_is_a_clear_error(small_disk, broker):
    with open(small_disk / "filler", "wb") as filler:
        try:
            while True:
                filler.write(b"x" * 65536)
                filler.flush()
        except OSError:
            pass
    refused = run_broker(broker, data_dir=small_disk / "data")
    assert refused.returncode == 1, refused.stderr
    assert "space" in refused.stderr, refused.stderr


def test_a_foreign_catalogue_is_refused_not_overwritten(broker, control):
    control.create("t", "file")
    broker.stop()
    catalogue = [path for path in broker.data_dir.rglob("*") if path.is_file() and b"test_user" in path.read_bytes()]
    assert catalogue, "no file knows the topic's user"
    for path in catalogue:
        path.write_bytes(b"something else entirely " * 100)
    refused = run_broker(broker)
    assert refused.returncode == 1, refused.stderr
    for path in catalogue:
        assert path.read_bytes() == b"something else entirely " * 100


def test_a_removed_lock_file_admits_no_second_broker(broker, control):
    (broker.data_dir / "lock").unlink()
    second = run_broker(broker)
    assert second.returncode == 1 and "is in use by another process" in second.stderr, second
    assert not (broker.data_dir / "lock").exists()
    control.ok("ping")
    assert json.loads((broker.data_dir / "broker.json").read_text())["pid"] == broker.process.pid
    repair = subprocess.run([BINARY, "log", "repair", "--force", str(broker.data_dir / "catalogue" / "00000001")],
                            capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert repair.returncode == 1 and "is in use by another process" in repair.stderr, repair


def test_an_unknown_flag_is_a_usage_error(broker):
    refused = run_broker(broker, "--no-such-flag")
    assert refused.returncode == 2 and "--no-such-flag" in refused.stderr


@pytest.mark.parametrize("flags", [["--ports", "9-5"], ["--ports", "x"], ["--log-level", "loudest"],
                                   ["--config", "/nonexistent/lightq.toml"]])
def test_a_bad_flag_value_is_a_clear_error(broker, tmp_path, flags):
    refused = run_broker(broker, *flags, data_dir=tmp_path / "other")
    assert refused.returncode in (1, 2), refused.stderr
    assert flags[1] in refused.stderr, refused.stderr


def test_a_config_file_is_read_and_flags_win(make_broker, tmp_path):
    config = tmp_path / "lightq.toml"
    config.write_text('advertise = "localhost"\nmessage_bytes_max = 1000\n')
    broker = make_broker("--config", str(config))
    control = broker.control()
    control.create("t", "queue")
    assert control.join("t", "push").startswith("tcp://localhost:")
    until(lambda: control.ok("ping"), "an answer")
    broken = tmp_path / "broken.toml"
    broken.write_text('advertise = "localhost"\nports = [\n')
    refused = run_broker(broker, "--config", str(broken), data_dir=tmp_path / "other")
    assert refused.returncode in (1, 2) and "broken.toml" in refused.stderr


@pytest.mark.parametrize("left", ["nothing", "an empty directory"])
@pytest.mark.parametrize("broker_type", ["file", "queue_file"])
def test_nothing_is_confirmed_while_the_directory_is_away(broker, left, broker_type):
    control = broker.control()
    control.create("t", broker_type, **({"ring_bytes": 1 << 20} if broker_type == "queue_file" else {}))
    environment = {**broker.environment, "LIGHTQ_PASSWORD": PASSWORD}
    produce = [BINARY, "produce", "t", "--broker", broker.control_uri, "--user", USER, "--size", "1000"]

    def run(count, code, *flags):
        done = subprocess.run([*produce, "-n", str(count), *flags], env=environment, capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        assert done.returncode == code, done
        return done.stderr

    run(3, 0)
    moved = broker.directory / "moved"
    os.rename(broker.data_dir, moved)
    if left != "nothing":
        broker.data_dir.mkdir()
    told = run(3000, 1, "--timeout", "1s")
    stats = control.stats("t")
    if broker_type == "file":
        assert "blocked by disk" in told and stats["blocked_by"] == "disk" and stats["messages_received"] == 3
        broker.logged("back at its path")
    assert stats["durable_offset"] == 3
    control.fails("no_space", "create_topic", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="other",
                  broker_type="file", user_id=USER, password=PASSWORD)
    if left == "nothing":
        assert not broker.data_dir.exists()
    else:
        assert os.listdir(broker.data_dir) == []
        broker.data_dir.rmdir()
    os.rename(moved, broker.data_dir)
    run(3000, 0)
    control.create("other", "file")
    until(lambda: control.stats("t")["blocked_by"] == "", "the topic goes on")
    stored = control.stats("t")["messages_received"]
    assert 3003 <= stored <= 6003, "nothing confirmed is missing, nothing is stored twice"
    broker.restart()
    assert control.stats("t")["next_offset"] == stored
