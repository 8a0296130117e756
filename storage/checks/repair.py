"""Mending log directories that a check found damaged, while their locks are held.

Without `salvage` no record is touched: what the log itself tells is made anew from it, what cannot be told goes. Every
step is told in a line of text.
"""

import posixpath
from collections.abc import Iterator, Sequence

from pykbroker.protocol.topic_partition import TopicPartition

from ..checks.directory_check import DirectoryReport
from ..checks.findings import Finding, FindingKind
from ..checks.partition_check import PartitionFacts, PartitionReport
from ..checks.text_files import read_leader_epochs
from ..directories.partition_metadata import FILE_NAME as PARTITION_METADATA
from ..directories.partition_metadata import read_topic_id, write_topic_id
from ..files.checkpoints import (
    CLEANED_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    RECOVERY_POINT,
    OffsetCheckpoint,
    encode_checkpoint,
)
from ..files.disk import Disk
from ..producers.producer_replay import replay_producers, update_producers
from ..producers.producer_state import ProducerStateManager
from ..segments import leader_epochs
from ..segments.batch_scan import scan_batches
from ..segments.log_config import LogConfig
from ..segments.rebuilt_transaction_index import RebuiltTransactionIndex
from ..segments.segment import LOG_SUFFIX, LogSegment
from .segment_salvage import SalvagePlan, SegmentSalvage, replace_segment

_FOREVER_MS = 2**62
_OF_THE_LOG = (FindingKind.BATCH, FindingKind.HOLE, FindingKind.LOST)


def reached_offset(report: DirectoryReport, at: TopicPartition) -> int:
    """Return the offset up to which offsets were given out, as the checkpoints tell."""
    names = (RECOVERY_POINT, HIGH_WATERMARK, LOG_START_OFFSET)
    return max(report.offsets.get(name, {}).get(at, 0) for name in names)


class PartitionRepair:
    """One partition. findings: of a check of it that was made under the same lock.

    reached_offset: the log must not end before. salvage: damaged batches may be taken out.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        facts: PartitionFacts,
        findings: Sequence[Finding],
        *,
        reached_offset: int,
        salvage: bool,
        deep: bool,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._facts = facts
        self._findings = findings
        self._kinds = {finding.kind for finding in findings}
        self._reached_offset = reached_offset
        self._salvage = salvage
        self._deep = deep
        self._now_ms = now_ms
        self._to_index: set[int] = set()

    def run(self) -> Iterator[str]:
        """Raises `FileError`."""
        yield from self._cut_tails()
        if self._kinds & set(_OF_THE_LOG):
            yield from self._salvage_segments()
        yield from self._remove_snapshots()
        yield from self._rebuild_indexes()
        if FindingKind.IDENTITY in self._kinds:
            yield from self._write_topic_id()

    def write_epochs(self, report: PartitionReport) -> Iterator[str]:
        """Write the epochs of a log whose batches are sound, or as sound as they get."""
        start_offset = max(self._facts.log_start_offset or 0, report.first_offset)
        entries = [(epoch, max(start, start_offset)) for epoch, start in report.epochs]
        entries = [entry for at, entry in enumerate(entries) if at + 1 == len(entries) or entries[at + 1][1] > entry[1]]
        path = posixpath.join(self._directory, leader_epochs.FILE_NAME)
        self._disk.replace_file(path, encode_checkpoint(entries))
        yield f"{path}: written anew from the log"

    def _segment(self, base_offset: int) -> LogSegment:
        segment = LogSegment(self._disk, self._directory, base_offset, LogConfig(), self._now_ms)
        segment.size = segment.file.size()
        return segment

    def _base_offsets(self) -> list[int]:
        stems = (name.removesuffix(LOG_SUFFIX) for name in self._disk.list_directory(self._directory))
        return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) == 20)

    def _cut_tails(self) -> Iterator[str]:
        for finding in self._findings:
            if finding.kind is FindingKind.TAIL and finding.position is not None:
                file = self._disk.open(finding.path)
                try:
                    size = file.size()
                    file.truncate(finding.position)
                    file.sync()
                finally:
                    file.close()
                yield f"{finding.path}: cut off {size - finding.position} bytes at {finding.position}"

    def _salvage_segments(self) -> Iterator[str]:
        bases = self._base_offsets()
        epochs = self._known_epochs()
        epoch = -1
        for number, base_offset in enumerate(bases):
            file = self._disk.open(posixpath.join(self._directory, f"{base_offset:020d}{LOG_SUFFIX}"))
            plan = SalvagePlan(
                base_offset,
                bases[number + 1] if number + 1 < len(bases) else None,
                self._reached_offset,
                epochs,
                takes_out=self._salvage,
                may_have_holes=self._facts.is_compacted is not False,
                deep=self._deep,
            )
            try:
                salvage = SegmentSalvage(file, plan, epoch)
            finally:
                file.close()
            epoch = salvage.epoch
            if salvage.is_changed:
                yield from replace_segment(self._disk, self._directory, base_offset, salvage.pieces)
                self._to_index.add(base_offset)

    def _known_epochs(self) -> list[tuple[int, int]]:
        path = posixpath.join(self._directory, leader_epochs.FILE_NAME)
        if FindingKind.EPOCHS in self._kinds or not self._disk.exists(path):
            return []
        rows = read_leader_epochs(path, self._disk.read_file(path)).rows
        return [(int(str(row.fields["epoch"])), int(str(row.fields["start_offset"]))) for row in rows]

    def _remove_snapshots(self) -> Iterator[str]:
        for path in sorted({finding.path for finding in self._findings if finding.kind is FindingKind.PRODUCERS}):
            self._disk.remove(path)
            yield f"{path}: removed; the log tells the same"

    def _rebuild_indexes(self) -> Iterator[str]:
        for finding in self._findings:
            if finding.kind is FindingKind.INDEX:
                self._to_index.add(int(posixpath.basename(finding.path).partition(".")[0]))
        bases = self._base_offsets()
        to_index = sorted(self._to_index.intersection(bases))
        for base_offset in to_index:
            before = [self._segment(each) for each in bases if each < base_offset]
            self._rebuild_of(self._segment(base_offset), before)
            for segment in before:
                segment.close()
            yield f"{posixpath.join(self._directory, f'{base_offset:020d}')}.*index: made anew from the log"
        if to_index:
            self._disk.sync_directory(self._directory)

    def _rebuild_of(self, segment: LogSegment, before: Sequence[LogSegment]) -> None:
        segment.rebuild_indexes()
        producers = ProducerStateManager(self._disk, self._directory, expiration_ms=_FOREVER_MS)
        start_offset = self._facts.log_start_offset or 0
        producers.load_latest_snapshot(start_offset, segment.base_offset, self._now_ms, remove_others=False)
        replay_producers(producers, before, segment.base_offset)
        transactions = RebuiltTransactionIndex(self._disk, segment.transaction_index)
        for _, batch in scan_batches(segment.file, 0, segment.size):
            aborted = update_producers(producers, batch) if batch.is_crc_valid else None
            if aborted is not None:
                transactions.append(aborted)
        transactions.finish()
        segment.replace_indexes()
        segment.close()

    def _write_topic_id(self) -> Iterator[str]:
        """Write the topic id where the file says nothing; another id may be right, and the directory a stray one."""
        if self._facts.topic_id is not None and read_topic_id(self._disk, self._directory) is None:
            write_topic_id(self._disk, self._directory, self._facts.topic_id, sync=True)
            yield f"{posixpath.join(self._directory, PARTITION_METADATA)}: written with the topic id of the metadata"


def repair_checkpoints(disk: Disk, report: DirectoryReport, findings: Sequence[Finding]) -> Iterator[str]:
    """Checkpoints of offsets, with what can be read of them. Raises `FileError`."""
    for path in sorted({finding.path for finding in findings if finding.kind is FindingKind.OFFSETS}):
        name = posixpath.basename(path)
        offsets = dict(report.offsets.get(name, {}))
        for at, offset in offsets.items():
            log = report.partitions.get(at)
            if name == CLEANED_OFFSET and log is not None:
                offsets[at] = min(offset, log.log_end_offset)
        OffsetCheckpoint(disk, path).write(offsets)
        yield f"{path}: written anew with {len(offsets)} entries"
