"""Tests that the file system of these tests loses unsynced data, and nothing else."""
import contextlib
import errno
import fcntl
import mmap
import os

import pytest

import cut_support

PAGE = mmap.PAGESIZE


def write_file(path, data, sync=True):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    assert os.pwrite(descriptor, data, 0) == len(data)
    if sync:
        os.fdatasync(descriptor)
    os.close(descriptor)


def sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def kept(machine, name):
    """Makes a file that is on disk, and opens it."""
    write_file(machine.path / name, b"o" * 4 * PAGE)
    sync_directory(machine.path)
    return os.open(machine.path / name, os.O_RDWR)


def after_cut(machine, descriptor, name, how="all"):
    os.close(descriptor)
    machine.cut_and_restart(how)
    return (machine.path / name).read_bytes()


def test_synced_data_survives(machine):
    write_file(machine.path / "a", b"synced")
    sync_directory(machine.path)
    machine.cut_and_restart()
    assert (machine.path / "a").read_bytes() == b"synced"


def test_a_name_without_a_sync_of_its_directory_is_lost(machine):
    write_file(machine.path / "a", b"synced")
    machine.cut_and_restart()
    assert os.listdir(machine.path) == []


def test_bytes_without_a_sync_are_lost_though_the_name_is_there(machine):
    write_file(machine.path / "a", b"not synced", sync=False)
    sync_directory(machine.path)
    machine.cut_and_restart()
    assert (machine.path / "a").read_bytes() == b""


def test_a_write_that_asks_for_it_is_on_disk_when_it_returns(machine):
    descriptor = kept(machine, "a")
    os.pwritev(descriptor, [b"new"], 0, os.RWF_DSYNC)
    os.pwritev(descriptor, [b"NOT"], PAGE)  # after the write to be synced, so the sync does not cover it
    found = after_cut(machine, descriptor, "a")
    assert found[:3] == b"new" and found[PAGE:PAGE + 3] == b"ooo"


def test_stores_to_a_shared_mapping_are_lost_without_a_sync_and_kept_with_one(machine):
    descriptor = kept(machine, "a")
    with mmap.mmap(descriptor, 4 * PAGE) as memory:
        memory[0:3] = b"new"
        os.fdatasync(descriptor)
        memory[PAGE:PAGE + 3] = b"NOT"
        assert os.pread(descriptor, 3, PAGE) == b"NOT"  # every other view sees it immediately
        machine.cut()
    with contextlib.suppress(OSError):  # the disk is gone
        os.close(descriptor)
    machine.restart()
    found = (machine.path / "a").read_bytes()
    assert found[:3] == b"new" and found[PAGE:PAGE + 3] == b"ooo"


def test_a_read_only_mapping_shows_later_writes(machine):
    descriptor = kept(machine, "a")
    with mmap.mmap(descriptor, 4 * PAGE, prot=mmap.PROT_READ) as memory:
        assert memory[10:13] == b"ooo"
        os.pwrite(descriptor, b"new", 10)
        assert memory[10:13] == b"new"
        other = os.open(machine.path / "a", os.O_RDWR)
        os.pwrite(other, b"two", PAGE)
        assert memory[PAGE:PAGE + 3] == b"two"
        os.close(other)
    os.close(descriptor)


def test_a_rename_and_an_unlink_count_once_their_directory_was_synced(machine):
    (machine.path / "d").mkdir()
    for name in ("a", "b", "c"):
        write_file(machine.path / name, name.encode())
    sync_directory(machine.path)
    os.rename(machine.path / "a", machine.path / "d" / "a")
    os.unlink(machine.path / "b")
    sync_directory(machine.path / "d")
    machine.cut_and_restart()
    assert sorted(os.listdir(machine.path)) == ["b", "c", "d"]  # b was removed later, and was not in d
    assert (machine.path / "d" / "a").read_bytes() == b"a"


def test_an_unsynced_rename_is_undone(machine):
    write_file(machine.path / "a", b"a")
    sync_directory(machine.path)
    os.rename(machine.path / "a", machine.path / "b")
    machine.cut_and_restart()
    assert os.listdir(machine.path) == ["a"]


def test_reserved_room_is_zeros_and_its_size_is_lost_without_a_sync(machine):
    descriptor = kept(machine, "a")
    os.posix_fallocate(descriptor, 0, 8 * PAGE)
    os.fdatasync(descriptor)
    os.posix_fallocate(descriptor, 0, 16 * PAGE)
    assert after_cut(machine, descriptor, "a") == b"o" * 4 * PAGE + b"\0" * 4 * PAGE


def test_links_and_locks_work(machine):
    descriptor = kept(machine, "a")
    os.link(machine.path / "a", machine.path / "b")
    assert os.stat(machine.path / "a").st_nlink == 2
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    other = os.open(machine.path / "b", os.O_RDWR)
    with pytest.raises(OSError) as refused:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert refused.value.errno == errno.EWOULDBLOCK
    os.close(other)
    os.unlink(machine.path / "a")
    assert os.fstat(descriptor).st_nlink == 1
    os.close(descriptor)


def test_a_seed_decides_which_unsynced_sectors_survive(machine):
    outcomes = set()
    for seed in range(8):
        descriptor = kept(machine, "a")
        for sector in range(32):
            os.pwrite(descriptor, b"n" * 512, sector * 512)
        found = after_cut(machine, descriptor, "a", seed)
        sectors = [found[at:at + 512] for at in range(0, len(found), 512)]
        assert set(sectors) <= {b"n" * 512, b"o" * 512}
        outcomes.add(sum(sector[:1] == b"n" for sector in sectors))
    assert len(outcomes) > 3, outcomes


def test_writes_are_short_on_request(powered):
    machine = cut_support.Machine(short_every=2).start()
    try:
        descriptor = os.open(machine.path / "a", os.O_RDWR | os.O_CREAT, 0o644)
        assert [os.pwrite(descriptor, b"n" * 2048, 0) for _ in range(4)] == [2048, 1024, 2048, 1024]
        os.close(descriptor)
    finally:
        machine.close()


def test_calls_after_the_cut_fail(machine):
    descriptor = kept(machine, "a")
    machine.cut()
    with pytest.raises(OSError):
        os.fsync(descriptor)
    with contextlib.suppress(OSError):
        os.close(descriptor)
