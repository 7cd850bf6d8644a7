"""Tests the start of a broker with encryption at rest: the sources of its keys, a log with segments under
several keys, and a log in clear where an encrypted one should be, or the reverse."""
import contextlib
import os
import re
import shutil
import time

import zmq

from test_at_rest import KEYS, control, key_file, planted, sealed, send, topic_files  # noqa: F401 (two are fixtures)
from log_support import LogFiles, change
from support import ADMIN, ADMIN_PASSWORD, receive, until

WHO = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
AT_ONCE = 8  # seconds, for a busy machine; the broker waits ten for the command, and sixty for a pipe


def group_is_gone(leader):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, 0)
        return False
    return True


def test_a_stop_does_not_wait_for_the_command(make_broker):
    broker = make_broker(start=False)
    told = broker.directory / "leader"
    broker.flags += ["--storage-key-command", f"sleep 600 & echo $$ > {told}.new; mv {told}.new {told}; wait"]
    broker.start(wait=False)
    until(told.exists, "the command")
    began = time.monotonic()
    assert broker.terminate() == 0
    assert time.monotonic() - began < AT_ONCE
    leader = int(told.read_text())
    until(lambda: group_is_gone(leader), "the end of all that the command has started")
    broker.logged("stopping on SIGTERM")


def test_a_stop_does_not_wait_for_a_pipe_without_a_writer(make_broker):
    broker = make_broker(start=False)
    pipe = broker.directory / "keys"
    os.mkfifo(pipe, 0o600)
    broker.flags += ["--storage-key-file", str(pipe)]
    broker.start(wait=False)

    def is_read():
        with contextlib.suppress(OSError):  # ENXIO: no process has it open for reading
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            return True
        return False

    writer = None
    try:
        until(lambda: f"{pipe}" in descriptors_of(broker.process.pid), "the broker at the pipe")
        writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # a writer that sends nothing
        assert is_read()
        began = time.monotonic()
        assert broker.terminate() == 0
        assert time.monotonic() - began < AT_ONCE
    finally:
        if writer is not None:
            os.close(writer)


def descriptors_of(process):
    targets = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                targets.add(os.readlink(f"/proc/{process}/fd/{name}"))
    return targets


def test_the_command_gets_none_of_the_brokers_descriptors(make_broker):
    broker = make_broker(start=False)
    path, listed = key_file(broker, KEYS[0]), broker.directory / "descriptors"
    broker.flags += ["--log-file", str(broker.directory / "own.log"),
                     "--storage-key-command", f"ls -l /proc/$$/fd > {listed}; cat {path}"]
    broker.start()
    targets = set(re.findall(r" -> (.*)", listed.read_text()))
    # The pipe is the command's standard output. The shell keeps it under another number while `ls` runs.
    pipes = {target for target in targets if target.startswith("pipe:")}
    assert targets - pipes == {"/dev/null", str(listed)} and len(pipes) == 1, listed.read_text()
    assert str(broker.directory / "own.log") in descriptors_of(broker.process.pid), "there is one to be had"


def test_a_process_substitution_gives_the_key(make_broker):
    broker = make_broker(start=False)
    path = key_file(broker, KEYS[0])
    broker.prefix = ["bash", "-c", f'exec "$@" --storage-key-file <(cat {path})', "bash"]
    broker.start().control().create("t", "file", encrypt_at_rest=True)


def messages_of(files):
    """Returns every file's bytes, except those of the prepared next segment, which a start removes."""
    return {path: content for path, content in files.tree().items() if path.suffix != ".prepared"}


def closed(control, topic="t"):
    """Returns the code and description of the error that requests for the closed topic receive."""
    error = control("stats", topic=topic, **WHO)
    assert error["status"] == "error", error
    return error["code"], error["description"]


def test_a_missing_key_with_an_id_lost_by_a_repair_closes_the_topic(sealed, control):  # noqa: F811
    control.create("t", "file", encrypt_at_rest=True, segment_bytes=64 * 1024)
    send(sealed, control, planted(0, 1000))
    sealed.stop()
    key_file(sealed, KEYS[1], KEYS[0])
    sealed.start()
    send(sealed, control, planted(1000, 10))
    sealed.stop()
    files = topic_files(sealed)
    damaged = files.segments[1]
    change(damaged, 20, lambda byte: byte ^ 1)
    files("repair", "--force")
    # Moves away all files with the old key except the damaged one, which has lost its key id. Then no file
    # names the old key.
    aside = [segment for segment in files.segments[:-1] if segment != damaged]
    for segment in aside:
        shutil.move(segment, sealed.directory / segment.name)
    key_file(sealed, KEYS[1])
    before = messages_of(files)
    sealed.start()
    code, why = closed(control)
    assert code == "not_supported" and str(damaged) in why and "none of the given keys decrypts it" in why
    sealed.stop()
    assert messages_of(files) == before
    for segment in aside:
        shutil.move(sealed.directory / segment.name, segment)
    key_file(sealed, KEYS[1], KEYS[0])
    sealed.start()
    assert receive(sealed.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0), 1010) == planted(0, 1010)


def test_a_log_of_the_other_encryption_closes_the_topic(sealed, control):  # noqa: F811
    control.create("t", "file", encrypt_at_rest=True)
    control.create("clear", "file")
    send(sealed, control, planted(0, 10))
    send(sealed, control, planted(10, 10), "clear")
    sealed.stop()
    own, clear = (LogFiles(sealed.data_dir / "topics" / number) for number in ("1", "2"))
    aside = sealed.directory / "aside"
    shutil.move(own.directory, aside)
    clear("snapshot", own.directory)
    before = messages_of(own)
    sealed.start()
    code, why = closed(control)
    assert code == "corrupt" and f"{own.segments[0]} is not encrypted" in why
    sealed.logged("topic t cannot be used")
    send(sealed, control, [b"others go on"], "clear")
    sealed.stop()
    assert messages_of(own) == before
    shutil.rmtree(own.directory)
    shutil.move(aside, own.directory)
    shutil.move(clear.directory, aside)
    own("snapshot", clear.directory)
    sealed.start()
    code, why = closed(control, "clear")
    assert code == "not_supported" and f"{clear.segments[0]} is encrypted (key id " in why
    assert receive(sealed.socket(zmq.PULL, control.join("t", "pull"), rcvhwm=0), 10) == planted(0, 10)
