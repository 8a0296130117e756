"""One partition as Kafka's rules have it: its batches, its producers, its open transactions.

The model keeps what was deleted as well, since the record of the greatest timestamp is found in it
(`LogSegment.readMaxTimestampAndOffsetSoFar`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

REMEMBERED_BATCHES = 5
"""Of each producer; a repetition of one of them is recognised (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`)."""
NO_PRODUCER = (-1, -1, -1)
ABORT_KEY, COMMIT_KEY = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


class StoredRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int


class Offset(NamedTuple):
    """The answer of ListOffsets for one partition."""

    error: str
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True)
class StoredBatch:
    base_offset: int
    records: tuple[StoredRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    leader_epoch: int = 0
    compression: int = 0
    is_transactional: bool = False
    is_control: bool = False

    @property
    def last_offset(self) -> int:
        return self.base_offset + len(self.records) - 1

    @property
    def last_sequence(self) -> int:
        return self.base_sequence + len(self.records) - 1


@dataclass
class ProducerModel:
    """What a log knows of one producer id. first_offset: of its open transaction."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))
    """First and last sequence, and base offset."""
    first_offset: int | None = None
    coordinator_epoch: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else -1


class PartitionModel:
    def __init__(self, kind: str = "apache-kafka") -> None:
        self.is_stable_from_start = kind == "pykbroker"
        """Where the log start is within an open transaction, Apache Kafka's last stable offset is the base offset of
        the batch there, below the log start; that of pykbroker is the log start (docs/not-yet.md).
        """
        self.leader_epoch = 0
        self.log_start = 0
        self.end = 0
        self.batches: list[StoredBatch] = []
        self.producers: dict[int, ProducerModel] = {}
        self.aborted: list[tuple[int, int, int]] = []
        """Producer id, first offset, and the offset of the marker."""
        self.epoch_starts: dict[int, int] = {0: 0}
        """Where each leader epoch begins, with or without records."""

    # Writing

    def sequence_error(self, producer_id: int, epoch: int, sequence: int, count: int) -> tuple[str, int]:
        """What becomes of a producer's batch, and where it is: the offset of what it repeats, or the log's end."""
        known = self.producers.get(producer_id)
        if producer_id == -1 or known is None:
            return "NONE", self.end
        if epoch == known.epoch:
            for first, last, offset in known.batches:
                if (first, last) == (sequence, sequence + count - 1):
                    return "NONE", offset
        if epoch < known.epoch:
            return "INVALID_PRODUCER_EPOCH", -1
        if epoch > known.epoch:
            return ("NONE", self.end) if sequence == 0 else ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
        if known.batches and sequence != known.last_sequence + 1:
            return "OUT_OF_ORDER_SEQUENCE_NUMBER", -1
        if not known.batches and sequence != 0:
            return "OUT_OF_ORDER_SEQUENCE_NUMBER", -1
        return "NONE", self.end

    def append(self, batch: StoredBatch) -> None:
        """A batch for which `sequence_error` says that it belongs to the log's end."""
        assert batch.base_offset == self.end
        self.batches.append(batch)
        if batch.producer_id != -1:
            known = self.producers.get(batch.producer_id)
            if known is None or known.epoch != batch.producer_epoch:
                first_offset = known.first_offset if known is not None else None
                known = self.producers[batch.producer_id] = ProducerModel(
                    batch.producer_epoch,
                    first_offset=first_offset,
                    coordinator_epoch=known.coordinator_epoch if known is not None else -1,
                )
            known.batches.append((batch.base_sequence, batch.last_sequence, batch.base_offset))
            if batch.is_transactional and known.first_offset is None:
                known.first_offset = batch.base_offset
        self.end = batch.last_offset + 1

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """The marker of the coordinator."""
        record = StoredRecord(COMMIT_KEY if commit else ABORT_KEY, b"", -1)
        marker = StoredBatch(
            self.end, (record,), producer_id, epoch, -1, self.leader_epoch, is_transactional=True, is_control=True
        )
        self.batches.append(marker)
        known = self.producers.setdefault(producer_id, ProducerModel(epoch))
        if known.first_offset is not None and not commit:
            self.aborted.append((producer_id, known.first_offset, self.end))
        if known.epoch != epoch:
            known.epoch = epoch
            known.batches.clear()
        known.first_offset = None
        known.coordinator_epoch = 0
        self.end += 1

    def delete_records(self, offset: int) -> tuple[str, int]:
        """The error's name, and the low watermark."""
        offset = self.end if offset == -1 else offset
        if not 0 <= offset <= self.end:
            return "OFFSET_OUT_OF_RANGE", -1
        self.log_start = max(self.log_start, offset)
        return "NONE", self.log_start

    def lead(self, epoch: int) -> None:
        """A new leader epoch, as after a restart."""
        self.leader_epoch = epoch
        if self.epoch_starts and self.epoch_starts[max(self.epoch_starts)] == self.end:
            del self.epoch_starts[max(self.epoch_starts)]
        self.epoch_starts[epoch] = self.end

    # Reading

    @property
    def last_stable(self) -> int:
        open_offsets = [each.first_offset for each in self.producers.values() if each.first_offset is not None]
        first = min([self.end, *open_offsets])
        if first >= self.log_start or self.is_stable_from_start:
            return max(first, self.log_start)
        return next((each.base_offset for each in self.batches if each.last_offset >= self.log_start), self.end)

    def limit(self, isolation: int) -> int:
        return self.last_stable if isolation else self.end

    def readable(self, offset: int, isolation: int = 0) -> list[StoredBatch]:
        """Whole batches from that which holds the offset."""
        limit = self.limit(isolation)
        if offset >= limit:
            return []
        return [each for each in self.batches if each.last_offset >= offset and each.base_offset < limit]

    def is_in_range(self, offset: int) -> bool:
        return self.log_start <= offset <= self.end

    def earliest(self) -> Offset:
        return Offset("NONE", self.log_start, -1, self.epoch_at(self.log_start))

    def latest(self, isolation: int) -> Offset:
        return Offset("NONE", self.limit(isolation), -1, self.leader_epoch)

    def at_or_after(self, timestamp: int, isolation: int) -> Offset:
        for batch in self.batches:
            for offset, record in enumerate(batch.records, batch.base_offset):
                if offset >= self.log_start and record.timestamp >= timestamp:
                    if offset >= self.limit(isolation):
                        return Offset("NONE")
                    return Offset("NONE", offset, record.timestamp, batch.leader_epoch)
        return Offset("NONE")

    def epoch_at(self, offset: int) -> int:
        found = [epoch for epoch, start in self.epoch_starts.items() if start <= offset]
        return max(found, default=-1)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and its end offset; -1 and -1 where this one is none, or later than all.

        An epoch in front of the first that is known ends where that one begins.
        """
        if epoch == self.leader_epoch:
            return epoch, self.end
        later = [each for each in self.epoch_starts if each > epoch]
        if epoch < 0 or not later:
            return -1, -1
        earlier = [each for each in self.epoch_starts if each <= epoch]
        return max(earlier, default=epoch), self.epoch_starts[min(later)]

    def max_timestamp(self, isolation: int) -> Offset:
        """The first record that has the greatest timestamp, deleted ones included."""
        found: Offset | None = None
        for batch in self.batches:
            for offset, record in enumerate(batch.records, batch.base_offset):
                if found is None or record.timestamp > found.timestamp:
                    found = Offset("NONE", offset, record.timestamp, batch.leader_epoch)
        return found if found is not None and found.offset < self.limit(isolation) else Offset("NONE")
