"""The chain of epochs says which epoch wrote which part of the log; two logs diverge where their chains do (KIP-595).

The chain is ahead of the disk: it has what `Ready` has handed out and nobody has carried out yet.
"""

from __future__ import annotations

from typing import NamedTuple

from .raft_log import RaftLog
from .snapshots import SnapshotId


class OffsetAndEpoch(NamedTuple):
    """A log that ends at `offset` with a record of `epoch`."""

    offset: int
    epoch: int


class EpochChain:
    """Epochs with the offsets where they begin. base: what is before the first of them, in a snapshot.

    Where no snapshot ends at the base its epoch is that of the record behind it: no earlier one is known.
    """

    def __init__(self, base: OffsetAndEpoch, starts: list[OffsetAndEpoch], end_offset: int) -> None:
        self._base = base
        self._starts = starts
        self.end_offset = end_offset

    @classmethod
    def of_log(cls, log: RaftLog) -> EpochChain:
        ends: list[OffsetAndEpoch] = []
        epoch = log.last_epoch
        while True:
            found, end_offset = log.end_offset_for_epoch(epoch)
            if found < 0 or end_offset <= log.start_offset:
                break
            ends.append(OffsetAndEpoch(end_offset, found))
            epoch = found - 1
        ends.reverse()
        covered = log.snapshot_id_at(log.start_offset)
        base = OffsetAndEpoch(log.start_offset, 0)
        if covered is not None:
            base = OffsetAndEpoch(log.start_offset, covered.epoch)
        elif log.start_offset:
            base = OffsetAndEpoch(log.start_offset, ends[0].epoch if ends else log.last_epoch)
        starts = [OffsetAndEpoch(start.offset, end.epoch) for start, end in zip([base, *ends], ends, strict=False)]
        return cls(base, starts, log.end_offset)

    @property
    def last_epoch(self) -> int:
        """Return the epoch of the last record; 0 where there is none."""
        return self._starts[-1].epoch if self._starts else self._base.epoch

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def append(self, epoch: int, end_offset: int) -> None:
        """Records of that epoch follow, up to there."""
        assert epoch >= self.last_epoch, "epochs never go back"
        assert end_offset > self.end_offset
        if not self._starts or epoch > self._starts[-1].epoch:
            self._starts.append(OffsetAndEpoch(self.end_offset, epoch))
        self.end_offset = end_offset

    def truncate(self, offset: int) -> None:
        assert self._base.offset <= offset <= self.end_offset
        self.end_offset = offset
        while self._starts and self._starts[-1].offset >= offset:
            self._starts.pop()

    def forget_before(self, start_offset: int) -> None:
        """Forget the epochs that end where the log starts now, or in front of it; the last one of them stays known."""
        if not self._base.offset < start_offset <= self.end_offset:
            return
        ends = [start.offset for start in self._starts[1:]] + [self.end_offset]
        self._base = OffsetAndEpoch(start_offset, self.epoch_before(start_offset))
        self._starts = [
            OffsetAndEpoch(max(start.offset, start_offset), start.epoch)
            for start, end_offset in zip(self._starts, ends, strict=False)
            if end_offset > start_offset
        ]

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        """Forget all epochs but that of the snapshot, which the log begins behind."""
        self._base = OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch)
        self._starts.clear()
        self.end_offset = snapshot_id.end_offset

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the record that ends at `offset`; 0 where none is known."""
        earlier = [start.epoch for start in self._starts if start.offset < offset]
        return earlier[-1] if earlier else self._base.epoch

    def end_of(self, epoch: int) -> OffsetAndEpoch:
        """The largest known epoch up to this one, and where it ends; the base where all are larger."""
        if not self._starts:
            return self._base
        ends = [start.offset for start in self._starts[1:]] + [self.end_offset]
        found = self._base
        for start, end_offset in zip(self._starts, ends, strict=True):
            if start.epoch > epoch:
                break
            found = OffsetAndEpoch(end_offset, start.epoch)
        return found
