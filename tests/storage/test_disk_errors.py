"""A device that reports errors: at whichever operation, what was flushed before is there afterwards, and no sync is
tried twice."""

from __future__ import annotations

import errno
import threading
from contextlib import suppress
from random import Random

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import DiskFailed, NoRoom
from pykbroker.storage.files.faulty_disk import CHANGES, Fault, FaultyDisk
from pykbroker.storage.log.log import Log

from .batches import NOW_MS, batch, config, idempotent, offsets, open_log, read_all
from .workload import DIRECTORY, SETTINGS, Workload, new_workload

EIO = errno.EIO


def new_disk(seed: int) -> tuple[SimulatedDisk, FaultyDisk]:
    inner = SimulatedDisk(Random(seed))
    inner.make_directory("/data")
    inner.sync_directory("/")
    return inner, FaultyDisk(inner, Random(seed))


def live_until_it_fails(workload: Workload) -> DiskFailed | None:
    for action in workload.actions():
        try:
            getattr(workload, action)()
        except DiskFailed as failure:
            return failure
    return None


def operations_of_a_life() -> int:
    _, disk = new_disk(1)
    live_until_it_fails(new_workload(disk))
    return disk.operations


@pytest.mark.parametrize("ends_with", ["the process", "the machine"])
def test_whichever_operation_fails_what_was_flushed_is_there_afterwards(ends_with: str) -> None:
    failures = set()
    for number in range(operations_of_a_life()):
        inner, disk = new_disk(number)
        workload = new_workload(disk)
        disk.faults = [Fault(EIO, skip=number)]
        failure = live_until_it_fails(workload)
        log = workload.log
        if failure is not None:
            failures.add(failure.operation)
            recovery_point = log.recovery_point
            assert recovery_point == workload.durable
            # Whoever owns the directory takes it offline; who comes too late syncs nothing.
            log.abandon()
            log.flush()
            assert log.recovery_point == recovery_point
        assert not disk.syncs_after_failure
        disk.restart()
        if ends_with == "the machine":
            inner.crash()
        again = open_log(disk, DIRECTORY, SETTINGS, recovery_point=log.recovery_point)
        found = read_all(again)
        end_offset = again.log_end_offset
        assert workload.durable <= end_offset <= workload.sequence + 1
        assert offsets(found) == list(range(again.log_start_offset, end_offset))
        again.append_as_leader(idempotent(end_offset), 9, NOW_MS)
        assert again.log_end_offset == end_offset + 1
    assert failures >= {"append", "sync", "sync_directory", "create", "replace_file", "rename"}


def test_after_a_failed_sync_nobody_syncs_once_more() -> None:
    _, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config())
    log.append_as_leader(batch(3), 0, NOW_MS)
    disk.faults = [Fault(EIO, frozenset(["sync"]))]
    for _ in range(3):
        with pytest.raises(DiskFailed, match="Input/output error"):
            log.flush()
    assert log.recovery_point == 0
    assert not disk.syncs_after_failure


@pytest.mark.parametrize("operation", ["sync", "sync_directory", "replace_file"])
def test_the_recovery_point_covers_only_what_is_durable(operation: str) -> None:
    """Data, names and epochs alike."""
    _, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config(segment_bytes=300))
    for _ in range(5):
        log.append_as_leader(batch(1), 0, NOW_MS)
    disk.faults = [Fault(EIO, frozenset([operation]))]
    with pytest.raises(DiskFailed):
        log.flush()
    assert log.recovery_point == 0


def test_the_first_flush_after_a_roll_makes_the_new_name_durable() -> None:
    inner, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config())
    log.append_as_leader(batch(2), 0, NOW_MS)
    log.flush()
    log.roll(NOW_MS)
    log.append_as_leader(batch(2), 0, NOW_MS)
    log.flush()
    assert log.recovery_point == 4
    inner.crash()
    assert open_log(disk, DIRECTORY, config(), recovery_point=4).log_end_offset == 4


class SlowSync:
    """Lets a test do something while a sync is under way in another thread."""

    def __init__(self, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.count = 0
        attempt = disk.attempt

        def slow(done: str, path: str) -> None:
            if done == operation:
                self.count += 1
                self.begun.set()
                assert self.may_end.wait(10)
            attempt(done, path)

        monkeypatch.setattr(disk, "attempt", slow)


def flush_in_thread(log: Log) -> threading.Thread:
    thread = threading.Thread(target=log.flush)
    thread.start()
    return thread


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
def test_a_second_flush_does_not_overtake_the_first(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told that something is durable while the sync of its name is still under way."""
    _, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config())
    log.append_as_leader(batch(2), 0, NOW_MS)
    slow = SlowSync(disk, monkeypatch, operation)
    first = flush_in_thread(log)
    assert slow.begun.wait(10)
    log.append_as_leader(batch(2), 0, NOW_MS)
    second = flush_in_thread(log)
    second.join(0.05)
    assert second.is_alive()
    assert log.recovery_point == 0
    slow.may_end.set()
    first.join(10)
    second.join(10)
    assert log.recovery_point == 4


def test_what_is_truncated_during_a_flush_is_not_called_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    _, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config())
    for _ in range(3):
        log.append_as_leader(batch(2), 0, NOW_MS)
    slow = SlowSync(disk, monkeypatch, "replace_file")
    thread = flush_in_thread(log)
    assert slow.begun.wait(10)
    truncation = log.begin_truncation(2)
    assert truncation is not None
    slow.may_end.set()
    thread.join(10)
    assert log.recovery_point <= 2
    truncation.run()
    log.append_as_leader(batch(6), 1, NOW_MS)
    assert log.recovery_point <= 2
    log.flush()
    assert log.recovery_point == 8


@pytest.mark.parametrize("offset", [0, 2])
def test_a_flush_that_begins_during_a_truncation_calls_nothing_of_it_durable(offset: int) -> None:
    """Or what is appended in its place would never be synced."""
    _, disk = new_disk(1)
    log = open_log(disk, DIRECTORY, config())
    for _ in range(3):
        log.append_as_leader(batch(2), 0, NOW_MS)
    truncation = log.begin_truncation(offset)
    assert truncation is not None
    for step in (truncation.prepare, truncation.cut, truncation.finish, truncation.end):
        log.flush()
        assert log.recovery_point == 0
        step()
    assert log.recovery_point == 0
    log.append_as_leader(batch(2), 1, NOW_MS)
    log.flush()
    assert log.recovery_point == offset + 2


def test_what_recovery_found_outlives_the_next_power_cut() -> None:
    """The process was killed, the machine was not: what consumers read after the restart must not vanish later."""
    for seed in range(30):
        inner, disk = new_disk(seed)
        settings = config(segment_bytes=400)
        log = open_log(disk, DIRECTORY, settings)
        for sequence in range(10):
            log.append_as_leader(idempotent(sequence), 0, NOW_MS)
        again = open_log(disk, DIRECTORY, settings)
        assert again.log_end_offset == 10
        inner.crash()
        assert open_log(disk, DIRECTORY, settings).log_end_offset == 10


def test_what_recovery_cut_off_does_not_come_back() -> None:
    for seed in range(30):
        inner, disk = new_disk(seed)
        log = open_log(disk, DIRECTORY, config())
        log.append_as_leader(idempotent(0, 3), 0, NOW_MS)
        log.flush()
        disk.open(log.segments[0].path(".log")).append([b"x" * 50])
        inner.open(log.segments[0].path(".log")).sync()
        log = open_log(disk, DIRECTORY, config(), recovery_point=3)
        log.roll(NOW_MS)
        log.append_as_leader(idempotent(3), 0, NOW_MS)
        log.flush()
        inner.crash()
        again = open_log(disk, DIRECTORY, config(), recovery_point=log.recovery_point)
        assert offsets(read_all(again)) == [0, 1, 2, 3]


def test_kinds_of_operations_are_all_met_by_the_workload() -> None:
    _, disk = new_disk(1)
    seen = set()
    attempt = disk.attempt

    def note(operation: str, path: str) -> None:
        seen.add(operation)
        attempt(operation, path)

    disk.attempt = note  # type: ignore[method-assign]
    live_until_it_fails(new_workload(disk))
    assert seen >= CHANGES - {"preallocate", "remove", "remove_directory", "sync_volume"}


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_an_opening_that_fails_at_whichever_operation_can_be_repeated(number: int) -> None:
    """What a killed process left is recovered by the next attempt, whatever the failed one did."""

    def killed() -> FaultyDisk:
        inner, disk = new_disk(1)
        workload = new_workload(disk)
        live_until_it_fails(workload)
        inner.open(workload.log.segments[-1].path(".log")).append([b"torn"])
        inner.remove(workload.log.segments[0].path(".index"))
        return disk

    disk = killed()
    before = disk.operations
    end_offset = open_log(disk, DIRECTORY, SETTINGS).log_end_offset
    operations = disk.operations - before
    assert operations > 20
    for skip in range(operations):
        disk = killed()
        disk.faults = [Fault(number, skip=skip)]
        with suppress(NoRoom if number == errno.ENOSPC else DiskFailed):
            open_log(disk, DIRECTORY, SETTINGS)
        disk.restart()
        again = open_log(disk, DIRECTORY, SETTINGS)
        assert again.log_end_offset == end_offset
        assert offsets(read_all(again)) == list(range(again.log_start_offset, end_offset))
