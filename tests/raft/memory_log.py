"""A metadata log in memory, in real batches, that knows how much of it a crash would leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.schema import Message
from pykbroker.raft.control_records import decode_control_batch, encode_control_batch
from pykbroker.raft.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class Batch:
    """values: of its records, "" for those of raft itself, which are in `control`."""

    base_offset: int
    epoch: int
    values: tuple[str, ...]
    data: bytes = b""
    control: tuple[Message, ...] = ()

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


def batch_of(values: Sequence[str], base_offset: int, epoch: int) -> Batch:
    records = [Record(None, value.encode()) for value in values]
    data = encode_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)
    return Batch(base_offset, epoch, tuple(values), data)


def control_batch_of(messages: Sequence[Message], base_offset: int, epoch: int) -> Batch:
    data = encode_control_batch(messages, base_offset=base_offset, leader_epoch=epoch, timestamp=0)
    return Batch(base_offset, epoch, ("",) * len(messages), data, tuple(messages))


def batches_in(data: bytes) -> list[Batch]:
    batches = []
    for batch in iter_batches(data):
        header = batch.header
        if header.is_control:
            control = tuple(message for _, message in decode_control_batch(batch))
            values: tuple[str, ...] = ("",) * header.records_count
        else:
            control = ()
            values = tuple((record.value or b"").decode() for record in iter_records(batch))
        batches.append(Batch(header.base_offset, header.partition_leader_epoch, values, bytes(batch.data), control))
    return batches


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """entries: (epoch, value) of every record that it covers, so that it can be compared. data: as it is sent."""

    entries: tuple[tuple[int, str], ...]
    control: tuple[Message, ...]
    data: bytes


class MemoryLog:
    """Passes for a `RaftLog`. durable_end_offset: what is behind it is lost in a crash."""

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self.batches = list(batches)
        self.start_offset = 0
        self.durable_end_offset = self.end_offset
        self.snapshots: dict[SnapshotId, MemorySnapshot] = {}
        self._entries = [(batch.epoch, value) for batch in self.batches for value in batch.values]
        self._lowest_end = self.end_offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        if self.batches:
            return self.batches[-1].epoch
        covered = self.latest_snapshot_id
        return covered.epoch if covered else 0

    def snapshot_id_at(self, end_offset: int) -> SnapshotId | None:
        return max((each for each in self.snapshots if each.end_offset == end_offset), default=None)

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        earlier = [batch for batch in self.batches if batch.epoch <= epoch]
        return (earlier[-1].epoch, earlier[-1].next_offset) if earlier else (-1, -1)

    def snapshot_size_bytes(self, snapshot_id: SnapshotId) -> int | None:
        snapshot = self.snapshots.get(snapshot_id)
        return None if snapshot is None else len(snapshot.data)

    def control_records(self) -> Iterable[tuple[int, Message]]:
        covered = self.latest_snapshot_id
        if covered is not None:
            for message in self.snapshots[covered].control:
                yield covered.end_offset - 1, message
        for batch in self.batches:
            for i, message in enumerate(batch.control):
                if covered is None or batch.base_offset + i >= covered.end_offset:
                    yield batch.base_offset + i, message

    # What a driver does to it

    def append(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.end_offset
            self.batches.append(batch)
            self._entries += [(batch.epoch, value) for value in batch.values]

    def flush(self, end_offset: int) -> None:
        self.durable_end_offset = max(self.durable_end_offset, min(end_offset, self.end_offset))

    def truncate(self, offset: int) -> None:
        """Durable at once, as on the real disk."""
        while self.batches and self.batches[-1].base_offset >= offset:
            self._drop_last()
        assert self.end_offset == offset, "truncated within a batch"
        self.durable_end_offset = min(self.durable_end_offset, offset)

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        """Nothing is left but what the snapshot covers."""
        self.batches.clear()
        self._entries.clear()
        self.start_offset = self.durable_end_offset = snapshot_id.end_offset

    def let_go(self, snapshot_id: SnapshotId) -> None:
        """Of what the snapshot covers."""
        self.batches = [batch for batch in self.batches if batch.base_offset >= snapshot_id.end_offset]
        del self._entries[: snapshot_id.end_offset - self.start_offset]
        self.start_offset = snapshot_id.end_offset

    def crash(self, keep_end_offset: int) -> None:
        """keep_end_offset: where the operating system had got to by itself."""
        while self.batches and self.batches[-1].next_offset > max(self.durable_end_offset, keep_end_offset):
            self._drop_last()
        self.durable_end_offset = self.end_offset

    def _drop_last(self) -> None:
        batch = self.batches.pop()
        del self._entries[batch.base_offset - self.start_offset :]
        self._lowest_end = min(self._lowest_end, batch.base_offset)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches, one at least; nothing where the log does not go so far."""
        data, size = [], 0
        for batch in self.batches:
            if batch.next_offset > offset and batch.base_offset >= offset:
                if data and size + len(batch.data) > max_bytes:
                    break
                data.append(batch.data)
                size += len(batch.data)
        return b"".join(data)

    def entries(self, start: int, end: int) -> list[tuple[int, str]]:
        """Epoch and value of every record from start to end, as far as it is here and in no snapshot."""
        return self._entries[max(start - self.start_offset, 0) : max(end - self.start_offset, 0)]

    def take_lowest_end(self) -> int:
        """Where it ended when it was shortest since this was asked before: what is behind it may be other records."""
        lowest, self._lowest_end = min(self._lowest_end, self.end_offset), self.end_offset
        return lowest
