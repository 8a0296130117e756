"""A segment without its damage: batches whose unprotected bytes can be told are mended, others are taken out.

The first 21 bytes of a batch stand outside of its checksum: where the rest is sound, its neighbours tell what they
must be. What is taken out leaves a batch without records over its offsets, as compaction does: the offsets around it
stay, consumers pass over it, and none is given out again. The bytes are kept in a file beside the segment.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    LOG_OVERHEAD_BYTES,
    RECORD_BATCH_OVERHEAD_BYTES,
    RecordBatchHeader,
    assemble_batch,
    decode_batch_header,
    encode_batch_prefix,
)

from ..checks.batch_walk import LARGEST_BATCH_BYTES, FoundBatch, FoundLegacyMessage, Unreadable
from ..checks.file_kinds import DAMAGED_SUFFIX
from ..checks.segment_check import ChainState, SegmentCheck, check_batch_records
from ..files.disk import Disk, DiskFile
from ..segments.indexes import MAX_RELATIVE_OFFSET
from ..segments.segment import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file_name,
)

_CHUNK_BYTES = 1 << 20


class Piece(NamedTuple):
    """A part of the new segment. start, end: the bytes of the old one, which are taken over if `data` is None.

    taken_out: they are kept in a file of their own. step: what is done, for people; None where nothing is.
    """

    start: int
    end: int
    data: bytes | None = None
    taken_out: bool = False
    step: str | None = None


@dataclass(frozen=True, slots=True)
class SalvagePlan:
    """The plan of a segment's salvage.

    end_offset: where the next segment begins. reached_offset: where the log had come to, at least.
    takes_out: damage that cannot be mended goes; otherwise it stays. may_have_holes: as compaction makes them.
    epochs: epoch and start offset, as the log's checkpoint has them.
    """

    base_offset: int
    end_offset: int | None
    reached_offset: int
    epochs: Sequence[tuple[int, int]]
    takes_out: bool
    may_have_holes: bool
    deep: bool

    def epoch_at(self, offset: int) -> int | None:
        return next((epoch for epoch, start in reversed(self.epochs) if start <= offset), None)

    def next_epoch_start(self, offset: int) -> int | None:
        return next((start for _, start in self.epochs if start > offset), None)


class SegmentSalvage:
    """`pieces` is what the segment is made of anew; it holds what is changed, not the file."""

    def __init__(self, file: DiskFile, plan: SalvagePlan, epoch: int) -> None:
        """Salvage a segment. epoch: of the last batch in front of it."""
        self.pieces: list[Piece] = []
        self.next_offset = plan.base_offset
        self.epoch = epoch
        self._file = file
        self._plan = plan
        self._run: list[tuple[int, int]] = []
        """The damaged parts since the last sound batch."""
        self._may_take_out = plan.takes_out
        chain = ChainState(epoch=epoch)
        size = file.size()
        check = SegmentCheck(file, plan.base_offset, chain, end_offset=plan.end_offset, size=size, deep=plan.deep)
        kinds = set()
        for found, findings, _ in check:
            kinds.add(type(found))
            # Messages of the old formats cannot be found again behind bytes that make no sense.
            self._may_take_out = plan.takes_out and not kinds >= {FoundLegacyMessage, Unreadable}
            if findings:
                self._run.append((found.position, found.end))
            elif isinstance(found, FoundLegacyMessage):
                self._keep(found.position, found.end, self.next_offset, found.offset + 1, -1)
            elif isinstance(found, FoundBatch):
                header = found.header
                epoch = header.partition_leader_epoch
                self._keep(found.position, found.end, header.base_offset, header.next_offset, epoch)
        self._finish(size)

    @property
    def is_changed(self) -> bool:
        return any(piece.step is not None for piece in self.pieces)

    def _keep(self, start: int, end: int, base_offset: int, next_offset: int, epoch: int) -> None:
        self._close_run(base_offset, epoch)
        if not self._plan.may_have_holes:
            self._fill(start, base_offset)
        if self.pieces and self.pieces[-1].end == start and self.pieces[-1].step is None:
            self.pieces[-1] = self.pieces[-1]._replace(end=end)
        else:
            self.pieces.append(Piece(start, end))
        self.next_offset = next_offset
        self.epoch = max(self.epoch, epoch)

    def _finish(self, size: int) -> None:
        plan = self._plan
        if plan.end_offset is None:
            end_offset = max(plan.reached_offset, self.next_offset)
            if self._run:
                end_offset = max(end_offset, *(self._claimed_end(start, end) for start, end in self._run))
            self._close_run(end_offset, None)
            self._fill(size, end_offset)
        else:
            self._close_run(plan.end_offset, None)
            if not plan.may_have_holes:
                self._fill(size, plan.end_offset)

    def _claimed_end(self, start: int, end: int) -> int:
        """Return where a damaged batch at the end of the log says that it ends, if that may be true."""
        if end - start < RECORD_BATCH_OVERHEAD_BYTES:
            return self.next_offset
        header = decode_batch_header(self._file.read_at(start, RECORD_BATCH_OVERHEAD_BYTES))
        is_plausible = header.base_offset == self.next_offset and header.records_count == header.last_offset_delta + 1
        return header.next_offset if is_plausible and header.records_count > 0 else self.next_offset

    def _close_run(self, end_offset: int, following_epoch: int | None) -> None:
        """The damage in front of a batch that begins at `end_offset`, or of the end there."""
        run, self._run = self._run, []
        if not run:
            return
        start, end = run[0][0], run[-1][1]
        mended = self._mend(run, end_offset, following_epoch)
        if mended is not None:
            self.pieces += mended
        elif self._may_take_out:
            what = f"took out {end - start} bytes at {start}"
            self.pieces.append(Piece(start, end, b"", taken_out=True, step=what))
            self._fill(end, end_offset)
        else:
            self.pieces.append(Piece(start, end))
        self.next_offset = max(self.next_offset, end_offset)

    def _fill(self, position: int, end_offset: int) -> None:
        """Batches without records for offsets whose records are gone, one per leader epoch."""
        if not self._may_take_out or end_offset - 1 - self._plan.base_offset > MAX_RELATIVE_OFFSET:
            return
        while self.next_offset < end_offset:
            base_offset = self.next_offset
            self.next_offset = min(self._plan.next_epoch_start(base_offset) or end_offset, end_offset)
            self.epoch = max(self.epoch, self._plan.epoch_at(base_offset) or 0)
            data = batch_of_nothing(base_offset, self.next_offset - base_offset, self.epoch)
            what = f"an empty batch stands for the offsets {base_offset}-{self.next_offset - 1}"
            self.pieces.append(Piece(position, position, data, step=what))

    # Mending what the checksum does not cover

    def _mend(self, run: Sequence[tuple[int, int]], end_offset: int, following_epoch: int | None) -> list[Piece] | None:
        """The batches of the run, if all of them are sound but for their first bytes and fit between the neighbours."""
        pieces, offset, epoch = [], self.next_offset, self.epoch
        for start, end in run:
            if not RECORD_BATCH_OVERHEAD_BYTES <= end - start <= LARGEST_BATCH_BYTES:
                return None
            data = self._file.read_at(start, end - start)
            header = decode_batch_header(data)
            if crc32c(data[ATTRIBUTES_OFFSET:]) != header.crc or header.last_offset_delta < 0:
                return None
            base_offset = self._base_offset_of(header, offset, end_offset, is_only=len(run) == 1)
            epoch = self._epoch_of(header, base_offset, epoch, following_epoch)
            prefix = encode_batch_prefix(base_offset, len(data) - LOG_OVERHEAD_BYTES, epoch, header.crc)
            mended = prefix + data[ATTRIBUTES_OFFSET:]
            if mended == data or not _has_sound_records(mended):
                return None
            what = f"mended the header of the batch at {start}: offset {base_offset}, leader epoch {epoch}"
            pieces.append(Piece(start, end, mended, step=what))
            offset = base_offset + header.last_offset_delta + 1
        fits = offset <= end_offset if self._plan.may_have_holes else offset == end_offset
        if not fits:
            return None
        self.epoch = epoch
        return pieces

    def _base_offset_of(self, header: RecordBatchHeader, offset: int, end_offset: int, *, is_only: bool) -> int:
        """Right behind the one before, unless there may be a hole and its own words fit."""
        fills = is_only and offset + header.last_offset_delta + 1 == end_offset
        own_words_fit = offset <= header.base_offset and header.next_offset <= end_offset
        return header.base_offset if self._plan.may_have_holes and own_words_fit and not fills else offset

    def _epoch_of(self, header: RecordBatchHeader, offset: int, before: int, following: int | None) -> int:
        told = self._plan.epoch_at(offset)
        if told is not None and before <= told and (following is None or told <= following):
            return told
        own = header.partition_leader_epoch
        return own if before <= own and (following is None or own <= following) else before


def batch_of_nothing(base_offset: int, count: int, epoch: int) -> bytes:
    return assemble_batch(
        b"",
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=-1,
        max_timestamp=-1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=0,
    )


def _has_sound_records(data: bytes) -> bool:
    header = decode_batch_header(data)
    return check_batch_records(FoundBatch(0, header, memoryview(data), header.crc)) is None


def replace_segment(disk: Disk, directory: str, base_offset: int, pieces: Sequence[Piece]) -> Iterator[str]:
    """Write the segment anew; the steps for people. A crash leaves the old file or the new one, and what was taken out
    is durable before. Its indexes go: they are to be made anew.
    """
    path = posixpath.join(directory, offset_file_name(base_offset, LOG_SUFFIX))
    old = disk.open(path)
    try:
        for piece in pieces:
            if piece.taken_out:
                kept = f"{path}.{piece.start}-{piece.end}{DAMAGED_SUFFIX}"
                _write(disk, kept, old, [Piece(piece.start, piece.end)])
                yield f"{path}: {piece.step}, which are kept in {posixpath.basename(kept)}"
            elif piece.step is not None:
                yield f"{path}: {piece.step}"
        _write(disk, path + CLEANED_SUFFIX, old, pieces)
    finally:
        old.close()
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
        disk.remove(posixpath.join(directory, offset_file_name(base_offset, suffix)))
    disk.sync_directory(directory)
    disk.rename(path + CLEANED_SUFFIX, path)
    disk.sync_directory(directory)


def _write(disk: Disk, path: str, source: DiskFile, pieces: Sequence[Piece]) -> None:
    target = disk.open(path, create=True)
    try:
        target.truncate(0)
        for piece in pieces:
            if piece.data is not None:
                if piece.data:
                    target.append([piece.data])
                continue
            for at in range(piece.start, piece.end, _CHUNK_BYTES):
                target.append([source.read_at(at, min(_CHUNK_BYTES, piece.end - at))])
        target.sync()
    finally:
        target.close()
