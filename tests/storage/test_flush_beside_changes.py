"""A flush promises what was there when it began: not what is appended meanwhile, nor what is about to be taken back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.disk import Buffer, DiskFile
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.segment import LOG_SUFFIX
from tests.storage.batches import NOW_MS, batch, open_log


class DiskWithSlowSyncs(SimulatedDisk):
    """meanwhile: what happens once, during the next sync of a file of records, as if it came from another thread."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.meanwhile: Callable[[], object] | None = None
        self.make_directory("/data")

    def open(self, path: str, *, create: bool = False) -> DiskFile:  # type: ignore[override]
        file = super().open(path, create=create)
        return _Watched(file, self) if path.endswith(LOG_SUFFIX) else file


class _Watched:
    def __init__(self, file: DiskFile, disk: DiskWithSlowSyncs) -> None:
        self._file = file
        self._disk = disk
        self.path = file.path

    def sync(self) -> None:
        meanwhile, self._disk.meanwhile = self._disk.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self._file.sync()

    def append(self, parts: list[Buffer]) -> None:
        self._file.append(parts)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def log_of(disk: DiskWithSlowSyncs, count: int) -> Log:
    log = open_log(disk, "/data/t-0")
    append(log, count)
    return log


def append(log: Log, count: int) -> None:
    for _ in range(count):
        log.append_as_leader(batch(), 0, NOW_MS)


def test_what_is_appended_during_a_flush_is_not_promised_by_it() -> None:
    """The sync may have passed the end of the file before the bytes came."""
    disk = DiskWithSlowSyncs()
    log = log_of(disk, 3)
    disk.meanwhile = lambda: append(log, 2)
    log.flush()
    assert (log.recovery_point, log.log_end_offset) == (3, 5)
    log.flush()
    assert log.recovery_point == 5


def test_a_flush_promises_nothing_of_a_log_that_is_being_cut_off() -> None:
    """Whoever writes the checkpoints before the cut is done would say that what goes was durable."""
    disk = DiskWithSlowSyncs()
    log = log_of(disk, 3)
    disk.meanwhile = lambda: log.begin_truncation(1)
    log.flush()
    assert log.is_being_truncated
    assert log.recovery_point == 0
