"""Tests the process of a command: its standard streams, its signals and its limits."""
import fcntl
import os
import pathlib
import resource
import signal
import subprocess
import sys

import pytest

from cli_support import CommandLine, lightq, numbers
from support import BINARY, DEADLINE, SANITIZED, Secrets, until

HANGUP_IGNORED = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")


def closing(streams):
    """Returns a prefix that starts a command without some of its standard streams."""
    return ("sh", "-c", f'exec "$@" {streams}', "sh")


def set_nonblocking(descriptor):
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_NONBLOCK)


@pytest.fixture
def beside(make_broker):
    """Makes a command line beside a broker of the test's own."""
    made = []

    def make(*flags, **options):
        broker = make_broker(*flags, admin=False, **options)
        Secrets.of_data_directory(broker.data_dir)
        made.append(CommandLine(broker))
        return made[-1]

    yield make
    for command_line in made:
        command_line.close()


# --- Standard streams that are closed at the start ---
@pytest.mark.parametrize("streams", ["2>&-", "0<&- 1>&- 2>&-"])
def test_a_broker_without_standard_streams_keeps_their_numbers(beside, streams):
    lightq = beside("--log-level", "debug", prefix=closing(streams))
    opened = pathlib.Path(f"/proc/{lightq.broker.process.pid}/fd")
    for descriptor in range(3):
        if streams.startswith("0") or descriptor == 2:
            assert os.readlink(opened / str(descriptor)) == "/dev/null"
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "1000", "--size", "100")
    assert numbers(lightq("consume", "t", "--group", "g", "-n", "1000").stdout) == list(range(1000))
    for descriptor in range(3):  # no file that was opened later has one of these numbers
        assert os.readlink(opened / str(descriptor)).startswith(("/dev/null", str(lightq.broker.directory)))


@pytest.mark.parametrize("streams", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_command_without_standard_streams_works_as_with_dev_null(lightq, streams):
    lightq("topic", "create", "t")

    def run(*arguments):
        command = [*closing(streams), BINARY, *arguments]
        assert subprocess.run(command, env=lightq.environment, timeout=DEADLINE, check=False).returncode == 0, arguments

    run("produce", "t", "-n", "100", "--size", "100")
    run("consume", "t", "--group", "g", "-n", "100")
    assert lightq.stats("t")["messages_received"] == 100
    run("stats")
    run("--help")


# --- Streams that do not block ---
def test_produce_waits_for_standard_input_that_does_not_block(lightq):
    lightq("topic", "create", "t")
    read, write = os.pipe()
    set_nonblocking(read)
    process = lightq.begin("produce", "t", stdin=read)
    os.close(read)
    os.write(write, b"first\nsec")
    until(lambda: lightq.stats("t")["messages_received"] == 1, "the first line")
    assert process.poll() is None
    os.write(write, b"ond\n")
    until(lambda: lightq.stats("t")["messages_received"] == 2, "the second line")
    os.close(write)
    assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert lightq("consume", "t", "-n", "2").stdout == b"first\nsecond\n"


@pytest.mark.parametrize("mode", ["--plain", "--zmq"])
def test_other_ways_to_produce_wait_too(lightq, mode):
    lightq("topic", "create", "t")
    read, write = os.pipe()
    set_nonblocking(read)
    process = lightq.begin("produce", "t", mode, stdin=read)
    os.close(read)
    until(lambda: lightq.stats("t")["publishers_count"] == 1, "the producer's connection")
    os.write(write, b"x\n")
    os.close(write)
    assert process.wait(DEADLINE) == 0, process.stderr.read()
    until(lambda: lightq.stats("t")["messages_received"] == 1, "its message")


def test_a_signal_ends_a_producer_that_waits_for_half_a_line(lightq):
    lightq("topic", "create", "t")
    read, write = os.pipe()
    set_nonblocking(read)
    process = lightq.begin("produce", "t", stdin=read)
    os.close(read)
    os.write(write, b"whole\nhalf")
    until(lambda: lightq.stats("t")["messages_received"] == 1, "the first line")
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == 0, process.stderr.read()
    os.close(write)
    assert lightq.stats("t")["messages_received"] == 1


def test_a_password_comes_over_standard_input_that_does_not_block(lightq):
    password = Secrets.plant("planted-late-secret-2718")
    read, write = os.pipe()
    set_nonblocking(read)
    process = lightq.begin("user", "add", "ann", stdin=read)
    os.close(read)
    until(lambda: polls(process.pid), "the command waits for its input")
    os.write(write, password.encode() + b"\n")
    os.close(write)
    assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert "ann" in [user["user_id"] for user in lightq.json("user", "list")["users"]]


def polls(pid):
    """Returns True if the process's main thread waits in `poll`."""
    wait = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return wait in ("7", "271", "73")  # poll, ppoll; ppoll on arm64


def test_output_waits_for_a_reader_where_it_does_not_block(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "3000", "--size", "1000")
    read, write = os.pipe()
    set_nonblocking(write)
    process = lightq.begin("consume", "t", "--group", "g", "-n", "3000", stdout=write)
    os.close(write)
    until(lambda: lightq.stats("t")["messages_sent"] >= 100, "messages on their way")
    with open(read, "rb") as output:
        assert numbers(output.read()) == list(range(3000))
    assert process.wait(DEADLINE) == 0


# --- SIGHUP ---
def test_the_end_of_its_terminal_stops_the_broker_cleanly(beside):
    master, slave = os.openpty()
    # The terminal that the leader of a session opens controls the session.
    on_terminal = [sys.executable, "-B", "-c", "import os, sys; os.open(sys.argv[1], os.O_RDWR); os.execv(sys.argv[2], sys.argv[2:])",
                   os.ttyname(slave)]
    lightq = beside("--flush-interval-ms", "60000", prefix=on_terminal)
    os.close(slave)
    broker = lightq.broker
    lightq("topic", "create", "t", "--type", "queue_file")
    lightq("produce", "t", "-n", "10", "--size", "100")
    os.close(master)
    assert broker.process.wait(DEADLINE) == 0
    broker.process = None
    assert "stopping: the terminal is gone (SIGHUP)" in broker.log()
    broker.prefix = []
    broker.start()
    lightq.environment["LIGHTQ_BROKER"] = broker.control_uri
    assert numbers(lightq("consume", "t", "--group", "g", "-n", "10").stdout) == list(range(10))


def test_an_ignored_hangup_does_not_stop_the_broker(beside):
    lightq = beside(prefix=HANGUP_IGNORED)
    lightq.broker.process.send_signal(signal.SIGHUP)
    lightq("ping")
    lightq.broker.stop(by=signal.SIGTERM)
    assert "SIGHUP" not in lightq.broker.log()


def test_a_hangup_ends_producer_and_consumer_cleanly(lightq):
    lightq("topic", "create", "t")
    producer = lightq.begin("produce", "t", stdin=subprocess.PIPE)
    producer.stdin.write(b"x\n")
    producer.stdin.flush()
    consumer = lightq.begin("consume", "t", "--group", "g")
    assert consumer.stdout.readline() == b"x\n"
    for process in (producer, consumer):
        process.send_signal(signal.SIGHUP)
        assert process.wait(DEADLINE) == 0, process.stderr.read()
    until(lambda: lightq.stats("t")["groups"][0]["lag"] == 0, "what was printed is acknowledged")


def test_a_command_continues_if_hangups_are_ignored(lightq):
    lightq("topic", "create", "t")
    producer = subprocess.Popen([*HANGUP_IGNORED, BINARY, "produce", "t"], env=lightq.environment,
                                stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for number in range(1, 3):
        producer.stdin.write(b"x\n")
        producer.stdin.flush()
        until(lambda: lightq.stats("t")["messages_received"] == number, "its message")
        producer.send_signal(signal.SIGHUP)
    producer.stdin.close()
    assert producer.wait(DEADLINE) == 0


# --- The largest size of a file ---
def test_a_file_that_may_not_grow_is_a_full_disk(lightq):
    broker = lightq.broker
    lightq("topic", "create", "t", "--type", "file")
    lightq("topic", "create", "memory")
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (2 * 1024 * 1024, resource.RLIM_INFINITY))
    produced = lightq("produce", "t", "-n", "40000", "--size", "1000", "--timeout", "1s", code=1)
    assert b"blocked by disk" in produced.stderr
    stats = lightq.stats("t")
    assert stats["blocked_by"] == "disk" and stats["messages_received"] < 40000
    lightq("produce", "memory", "-n", "1000", "--size", "1000")  # everything else continues
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    lightq("produce", "t", "-n", "1000", "--size", "1000")
    assert lightq.stats("t")["blocked_by"] == ""
    held = lightq.stats("t")["messages_received"]
    broker.restart()
    assert lightq.json("stats", "t", "--broker", broker.control_uri)["next_offset"] == held


def test_a_broker_may_be_started_with_such_a_limit(beside):
    lightq = beside(prefix=("sh", "-c", 'ulimit -f 4096; exec "$@"', "sh"))
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", "-n", "40000", "--size", "1000", "--timeout", "1s", code=1)
    assert lightq.stats("t")["blocked_by"] == "disk"


def test_a_command_reports_a_file_that_cannot_grow(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "1000", "--size", "1000")
    target = lightq.broker.directory / "output"
    limit = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
    with open(target, "wb") as output:
        done = subprocess.run([*limit, BINARY, "consume", "t", "--group", "g", "-n", "1000"], env=lightq.environment,
                              stdout=output, stderr=subprocess.PIPE, timeout=DEADLINE, check=False)
    assert done.returncode == 1 and b"File too large" in done.stderr


# --- A stop when nothing has changed ---
@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory would be measured")
def test_a_broker_that_is_ready_has_unmapped_the_code_of_its_start(broker):
    def code():
        """Returns the KiB of code of the program and its libraries, and how many of them are mapped."""
        size, resident, is_code = 0, 0, False
        for words in map(str.split, pathlib.Path(f"/proc/{broker.process.pid}/smaps").read_text().splitlines()):
            if not words[0].endswith(":"):
                is_code = words[1] == "r-xp" and words[-1].startswith("/")
            elif is_code and words[0] in ("Size:", "Rss:"):
                size, resident = (size + int(words[1]), resident) if words[0] == "Size:" else (size, resident + int(words[1]))
        return size, resident

    until(lambda: 0 < code()[1] < code()[0] / 4, lambda: f"most of the code to be unmapped: {code()}")


def test_a_stop_without_changes_writes_nothing(lightq):
    broker = lightq.broker
    lightq("topic", "create", "t", "--type", "file")
    lightq("topic", "create", "behind", "--type", "queue_file")
    lightq("topic", "create", "empty", "--type", "file")
    for topic in ("t", "behind"):
        lightq("produce", topic, "-n", "10", "--size", "100")
        lightq("consume", topic, "--group", "g", "-n", "5")
    broker.stop()

    def files():
        below = [path for path in broker.data_dir.rglob("*") if path.is_file() and path.name != "lock"]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in below}

    before = files()
    for _ in range(2):
        broker.start()
        broker.stop()
    assert files() == before
    broker.start()
    lightq.environment["LIGHTQ_BROKER"] = broker.control_uri
    for topic in ("t", "behind"):
        assert numbers(lightq("consume", topic, "--group", "g", "-n", "5").stdout) == list(range(5, 10))


@pytest.mark.parametrize("descriptors", range(4, 20))
def test_a_command_with_too_few_descriptors_reports_it(broker, descriptors):
    limited = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
    ping = subprocess.run([*limited, BINARY, "ping", "--broker", broker.control_uri, "--request-timeout", "1s"],
                          capture_output=True, text=True, timeout=DEADLINE, env=broker.environment)
    assert ping.returncode in (0, 1), ping  # it was not ended by a signal
