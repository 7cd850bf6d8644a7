"""Tests an embedded queue on a disk that loses power, LIGHTQ_CUTS times (12)."""
import os

import pytest

import cut_queue
import cut_support

CUTS = int(os.environ.get("LIGHTQ_CUTS", "12"))
CUTS_OF_A_DISK = 6
POLICIES = ["append", "messages", "bytes", "interval", "background", "none"]


def cut_power(seed, policies, cuts, keep_failed=True):
    """Cuts the power of one new disk so often. Returns the counts of lives, cuts and messages."""
    machine = cut_support.Machine(short_every=seed % 3).start()
    try:
        queue = cut_queue.Queue(machine, seed, policies)
        queue.run_until(cuts, keep_failed)
        return queue.tally | {name: getattr(machine, name)
                              for name in ("cuts", "sectors", "sectors_kept", "names", "names_kept")}
    finally:
        machine.close()


def test_a_power_cut_loses_nothing_confirmed_and_invents_nothing(powered):
    base = cut_queue.seed_of_run()
    total = {}
    for disk in range(-(-CUTS // CUTS_OF_A_DISK)):
        seed = base * 1_000_003 + disk
        print(f"disk {disk}: seed {seed}")
        for name, number in cut_power(seed, POLICIES, CUTS_OF_A_DISK).items():
            total[name] = total.get(name, 0) + number
    print(total)
    assert total["cuts"] >= CUTS and total["confirmed"] > 0 and total["opened clean"] > 0
    assert 0 < total["sectors_kept"] < total["sectors"], "the cuts found nothing to lose"


@pytest.mark.parametrize("directory", ["queue", "a/b/c/queue", "a/queue/"])
def test_a_closed_queue_is_complete_in_any_directory(machine, directory):
    queue = cut_queue.Queue(machine, 1, POLICIES)
    queue.directory = f"{machine.path}/{directory}"
    queue.retention = "all"
    writer = queue.run("write", queue.directory, 1, 1, "append", "all", queue.segment_bytes, 100)
    for line in writer.communicate()[0].splitlines():
        queue.promises.hear(1, line)
    machine.cut()
    queue.check()
    assert queue.promises.has == queue.promises.durable >= 100


def test_a_queue_that_confirms_before_the_sync_is_detected(powered):
    with pytest.raises(AssertionError, match="messages lost|cannot be read"):
        for disk in range(10):
            cut_power(disk, ["lies"], CUTS_OF_A_DISK, keep_failed=False)
