"""The partition's log as this simulation looks at it: what it holds, and how far it was ever cut off."""

from __future__ import annotations

from typing import NamedTuple

from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import NO_EPOCH, FetchIsolation, FetchPartitionData
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.log_reads import LogSlice
from pykbroker.storage.log.truncation import Truncation
from pykbroker.storage.segments.verification import NotVerified


class Entry(NamedTuple):
    """One record: the leader epoch it was written in, and its value, which no other record has."""

    epoch: int
    value: int


def entries_of(data: bytes) -> list[tuple[int, Entry]]:
    found = []
    for batch in iter_batches(data):
        epoch = batch.header.partition_leader_epoch
        found += [(each.offset, Entry(epoch, int(bytes(each.value or b"")))) for each in iter_records(batch)]
    return found


class WatchedLog(Log):
    """changes: how often it was cut off."""

    changes = 0
    _lowest_end = 1 << 62

    def begin_truncation(self, offset: int) -> Truncation | None:
        truncation = super().begin_truncation(offset)
        return None if truncation is None else self._watched(truncation)

    def begin_anew(self, offset: int, *, now_ms: int) -> Truncation:
        return self._watched(super().begin_anew(offset, now_ms=now_ms))

    def _watched(self, truncation: Truncation) -> Truncation:
        finish = truncation.finish

        def finish_and_note() -> None:
            finish()
            self._note_end()

        setattr(truncation, "finish", finish_and_note)  # noqa: B010
        return truncation

    def _note_end(self) -> None:
        self.changes += 1
        self._lowest_end = min(self._lowest_end, self.log_end_offset)

    def take_lowest_end(self) -> int:
        """Since it was asked last."""
        lowest, self._lowest_end = self._lowest_end, 1 << 62
        return lowest

    def entries_from(self, offset: int) -> list[Entry]:
        entries: list[Entry] = []
        while offset < self.log_end_offset:
            found = entries_of(self.read(offset, 1 << 20, min_one_batch=True).read())
            entries += [entry for at, entry in found if at >= offset]
            offset = found[-1][0] + 1
        return entries


def read_verified(
    partition: Partition, offset: int, *, leader_epoch: int = NO_EPOCH, leader_only: bool = True
) -> FetchPartitionData:
    """As a consumer."""
    while True:
        try:
            return partition.read(
                offset, 1 << 20, FetchIsolation.HIGH_WATERMARK, leader_epoch, True, leader_only=leader_only
            )
        except NotVerified as unverified:
            unverified.check.run()
            unverified.check.accept()


def bytes_of(records: object) -> bytes:
    if isinstance(records, LogSlice):
        return records.read()
    assert isinstance(records, bytes | bytearray | memoryview)
    return bytes(records)
