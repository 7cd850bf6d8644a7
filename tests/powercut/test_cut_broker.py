"""Tests a broker with its data directory on a disk that loses power, LIGHTQ_BROKER_CUTS times (4)."""
import pathlib
import random
import subprocess
import sys

import pytest
import zmq

import cut_queue

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import support  # noqa: E402

CUTS = int(support.variable("LIGHTQ_BROKER_CUTS", "4"))


def messages_in(directory, keys=()):
    """Returns a dict of offset and payload of every readable message. `keys` are flags that give the keys of
    an encrypted log."""
    if not directory.exists():
        return {}  # before the first append
    dump = subprocess.run([support.BINARY, "log", "dump", str(directory), "--format", "%o %p\\n", *keys], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=support.DEADLINE)
    assert dump.returncode in (0, 1), f"the dump ended with {dump.returncode}"
    pairs = (line.split(b" ", 1) for line in dump.stdout.splitlines())
    return {int(offset): payload for offset, payload in pairs}


def send_until_the_end(broker, control, choose, life):
    """Sends until a random moment. Returns the highest durable offset that the broker has reported."""
    producer = broker.socket(zmq.PUSH, control.join("t", "push"))
    durable = control.stats("t")["durable_offset"]
    sequence = 0
    for _ in range(choose.randint(1, 40)):
        for _ in range(choose.randint(1, 200)):
            producer.send(f"{life}|{sequence}|".encode().ljust(choose.randint(20, 400), b"."))
            sequence += 1
        durable = max(durable, control.stats("t")["durable_offset"])
    return durable


def agree(messages, following, durable, gaps):
    """Checks that no durable message before `following` is missing, and that the messages of each life are in
    order."""
    assert following >= durable, f"lost: {following} up to {durable}"
    missing = set(range(following)) - messages.keys() - gaps
    assert all(offset >= durable for offset in missing), f"lost: {sorted(missing)[:10]}; durable up to {durable}"
    gaps |= missing
    shifts, last_life = {}, 0
    for offset in sorted(messages):
        life, sequence = map(int, messages[offset].split(b"|")[:2])
        assert life >= last_life, f"offset {offset} is of life {life}, after one of life {last_life}"
        assert shifts.setdefault(life, offset - sequence) == offset - sequence, f"out of order at offset {offset}"
        last_life = life


def test_a_created_topic_survives_in_a_new_data_directory(machine):
    broker = support.Broker(machine.path / "a" / "b")
    broker.directory = machine.directory  # the broker runs there and writes its log there
    broker.log_path = machine.directory / "broker.log"
    try:
        broker.start().control().create("t", "file")
        broker.kill()
        machine.cut_and_restart()
        assert [topic["topic"] for topic in broker.start().control().list()] == ["t"]
    finally:
        broker.close()


@pytest.mark.parametrize("encrypted", [False, True], ids=["clear", "encrypted"])
def test_a_brokers_file_topic_keeps_confirmed_durable_messages(machine, encrypted):
    seed = cut_queue.seed_of_run()
    print(f"seed {seed}")
    choose = random.Random(seed)
    broker = support.Broker(machine.path, "--flush-interval-ms", "5")
    broker.log_path = machine.directory / "broker.log"
    keys = ()
    if encrypted:
        path = machine.directory / "storage.keys"  # on another disk, which loses nothing
        path.touch(mode=0o600)
        path.write_text("7e" * 32)
        broker.flags += ["--storage-key-file", str(path)]
        keys = ("--key-file", str(path))
    durable, gaps = 0, set()
    try:
        for life in range(CUTS):
            control = broker.start().control()
            if life == 0:
                control.create("t", "file", segment_bytes=65536, encrypt_at_rest=encrypted)
            following = control.stats("t")["next_offset"]
            agree(messages_in(broker.data_dir / "topics" / "1", keys), following, durable, gaps)
            durable = send_until_the_end(broker, control, choose, life)
            power_first = choose.random() < 0.5
            if power_first:
                machine.cut(choose.getrandbits(32))
            broker.kill()
            broker.close_clients()
            if not power_first:
                machine.cut("all")
            machine.restart()
        following = broker.start().control().stats("t")["next_offset"]
        agree(messages_in(broker.data_dir / "topics" / "1", keys), following, durable, gaps)
        print(f"{CUTS} power cuts, {following} kept, {len(gaps)} not durable and lost in the middle")
        assert durable > 0
    finally:
        broker.close()
