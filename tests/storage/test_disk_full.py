"""A disk without room refuses, and that is all: no half state, nothing lost, and it goes on when there is room."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.directories.shutdown_marks import CLEAN_SHUTDOWN_FILE
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import DiskFailed, NoRoom, file_error
from pykbroker.storage.files.faulty_disk import Fault, FaultyDisk

from .batches import NOW_MS, batch, config, idempotent, open_log
from .workload import DIRECTORY, SETTINGS, Workload, new_workload

TOPIC_ID = bytes(range(16))


def disk_with_room(free_bytes: int | None = None) -> tuple[SimulatedDisk, FaultyDisk]:
    inner = SimulatedDisk(Random(1), free_bytes=free_bytes)
    inner.make_directory("/data")
    inner.sync_directory("/")
    return inner, FaultyDisk(inner, Random(1))


def live_through(workload: Workload, make_room: Callable[[], None] = lambda: None) -> int:
    """Every action until it succeeds; returns how often there was no room. make_room: what to do then."""
    refusals = 0
    for action in workload.actions():
        for _ in range(10):
            before = (workload.log.log_end_offset, workload.log.size_bytes, workload.log.recovery_point)
            try:
                getattr(workload, action)()
                break
            except NoRoom:
                refusals += 1
                assert (workload.log.log_end_offset, workload.log.size_bytes, workload.log.recovery_point) == before
                workload.check()
                make_room()
        else:
            pytest.fail("there was room, and still it was refused")
    return refusals


def operations_of_a_life() -> int:
    _, disk = disk_with_room()
    workload = new_workload(disk)
    live_through(workload)
    return disk.operations


def test_whichever_write_finds_no_room_it_is_refused_and_done_later() -> None:
    refusals = 0
    for number in range(operations_of_a_life()):
        inner, disk = disk_with_room()
        workload = new_workload(disk)
        disk.faults = [Fault(errno.ENOSPC, skip=number)]
        refusals += live_through(workload)
        workload.check()
        start = workload.log.log_start_offset
        again = Workload(disk, open_log(inner, DIRECTORY, SETTINGS, log_start_offset=start), workload.sequence)
        again.check()
    assert refusals > 60, "appends, rolls with three files and a snapshot, indexes, epochs, renames"


def test_a_disk_that_fills_up_loses_nothing_whatever_room_it_had() -> None:
    for free_bytes in range(0, 9000, 97):
        inner, disk = disk_with_room()
        workload = new_workload(disk)
        inner.free_bytes = free_bytes
        live_through(workload, partial(inner.take_space, "", -100))
        workload.check()
        inner.free_bytes = None
        workload.flush()
        inner.crash()
        start, recovery_point = workload.log.log_start_offset, workload.log.recovery_point
        log = open_log(disk, DIRECTORY, SETTINGS, log_start_offset=start, recovery_point=recovery_point)
        Workload(disk, log, workload.sequence).check()


def test_a_roll_that_failed_leaves_no_segment_that_hides_what_follows() -> None:
    """A small batch still fits into the old segment when a large one asked for a new one in vain."""
    inner, disk = disk_with_room()
    settings = config(segment_bytes=1000)
    log = open_log(disk, DIRECTORY, settings)
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    for skip in range(4):
        disk.faults = [Fault(errno.ENOSPC, frozenset(("create", "replace_file")), skip=skip)]
        with pytest.raises(NoRoom):
            log.append_as_leader(batch(1, value=bytes(600)), 0, NOW_MS)
    for sequence in range(5, 8):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    assert len(log.segments) == 1
    log.flush()
    for again in (
        open_log(inner, DIRECTORY, settings, recovery_point=log.recovery_point),
        open_log(inner, DIRECTORY, settings, clean_shutdown=True, recovery_point=log.recovery_point),
    ):
        assert again.log_end_offset == 8


def test_what_room_is_wanted_for_and_what_is_a_failure() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE):
        assert isinstance(file_error("write", "/f", OSError(number, "")), NoRoom)
    assert isinstance(file_error("write", "/f", OSError(errno.EIO, "")), DiskFailed)


def test_a_failed_sync_is_never_a_mere_lack_of_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = OsDisk().open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr("os.fdatasync", full)
    monkeypatch.setattr("os.fsync", full)
    for sync in (file.sync, lambda: OsDisk().sync_directory(str(tmp_path))):
        with pytest.raises(DiskFailed):
            sync()


def test_a_replaced_file_that_found_no_room_keeps_its_bytes_and_leaves_nothing(tmp_path: Path) -> None:
    disk = OsDisk()
    disk.replace_file(f"{tmp_path}/f", b"old")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(NoRoom):
            disk.replace_file(f"{tmp_path}/f", b"new")
    assert disk.read_file(f"{tmp_path}/f") == b"old"
    assert disk.list_directory(str(tmp_path)) == ["f"]


def test_retention_that_wants_all_segments_begins_with_those_that_need_no_new_one() -> None:
    _, disk = disk_with_room()
    settings = config(segment_bytes=300, retention_ms=1000)
    log = open_log(disk, DIRECTORY, settings)
    for sequence in range(10):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    segments = len(log.segments)
    disk.faults = [Fault(errno.ENOSPC, frozenset(("append", "create", "replace_file")), times=None)]
    paths = log.delete_old_segments(10, NOW_MS + 10_000)
    assert len(paths) >= 3 * (segments - 1)
    assert len(log.segments) == 1
    assert log.log_end_offset == 10
    with pytest.raises(NoRoom):
        log.delete_old_segments(10, NOW_MS + 10_000)
    disk.faults = []
    log.delete_old_segments(10, NOW_MS + 10_000)
    assert log.log_start_offset == log.log_end_offset == 10


def test_a_clean_shutdown_without_room_syncs_the_records_and_is_not_marked() -> None:
    inner, disk = disk_with_room()
    format_directory(disk, "/data", cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(disk, "/data", rng=Random(1))
    logs = [directory.open_log("t", index, TOPIC_ID, config(), now_ms=NOW_MS) for index in range(3)]
    directory.checkpoint_offsets()
    for log in logs:
        log.append_as_leader(idempotent(0, 4), 0, NOW_MS)
    disk.faults = [Fault(errno.ENOSPC, frozenset(("append", "create", "replace_file")), times=None)]
    directory.close()
    disk.faults = []
    inner.crash()
    assert not disk.exists(f"/data/{CLEAN_SHUTDOWN_FILE}")
    again = LogDirectory.open(disk, "/data", rng=Random(1))
    for index in range(3):
        log = again.open_log("t", index, TOPIC_ID, config(), now_ms=NOW_MS)
        assert log.log_end_offset == 4
        assert log.producers.producers[7].last_sequence == 3
