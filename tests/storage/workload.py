"""A short life of a log that meets every kind of write: full indexes, rolls, snapshots, epochs, flushes, deletion."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykbroker.storage.files.faulty_disk import FaultyDisk
from pykbroker.storage.log.log import Log

from .batches import NOW_MS, config, idempotent, offsets, open_log, read_all

DIRECTORY = "/data/t-0"
SETTINGS = config(segment_bytes=700, index_interval_bytes=0, retention_bytes=1500)

APPENDS = 48


@dataclass
class Workload:
    """What was answered to a producer that never gives up, and what was flushed."""

    disk: FaultyDisk
    log: Log
    sequence: int = 0
    durable: int = 0
    gone: list[str] = field(default_factory=list)

    def step(self) -> None:
        """The next append with what belongs to it. Raises `DiskFailed`."""
        number = self.sequence
        result = self.log.append_as_leader(idempotent(number), number // 10, NOW_MS)
        assert (result.first_offset, result.is_duplicate) == (number, False)
        self.sequence += 1

    def flush(self) -> None:
        end_offset = self.log.log_end_offset
        self.log.flush()
        self.durable = end_offset

    def delete(self) -> None:
        self.gone += self.log.delete_old_segments(self.log.log_end_offset, NOW_MS)

    def actions(self) -> list[str]:
        """In the order of a life: every append, now and then a flush and retention."""
        names = []
        for number in range(APPENDS):
            names.append("step")
            if number % 5 == 4:
                names.append("flush")
            if number % 16 == 15:
                names.append("delete")
        return names

    def check(self, *, upto: int | None = None) -> None:
        """Nothing missing, nothing twice, and producers know it."""
        found = offsets(read_all(self.log))
        end = self.sequence if upto is None else upto
        assert found == list(range(self.log.log_start_offset, end))
        assert self.log.log_end_offset == end
        assert self.log.producers.end_offset == end
        assert sum(segment.size for segment in self.log.segments) == sum(
            segment.file.size() for segment in self.log.segments
        )
        if end:
            assert self.log.producers.producers[7].last_sequence == end - 1


def new_workload(disk: FaultyDisk) -> Workload:
    return Workload(disk, open_log(disk, DIRECTORY, SETTINGS))
