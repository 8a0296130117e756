"""All files of one partition, against each other and against what the rest of the directory says of it.

What the next start of the broker sees to by itself (a torn tail after a crash, indexes that did not get to the disk) is
told as a note: after a crash only what lies below the recovery point must be whole.
"""

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pykbroker.protocol.records.batch import RecordBatchHeader
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from ..directories import partition_metadata
from ..files.disk import Disk, DiskFile
from ..files.errors import CorruptLog, FileError
from ..segments import leader_epochs
from ..segments.batch_scan import is_torn, lacks_bytes
from ..segments.log_evidence import LogEvidence, Tail, check_tail
from ..segments.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file_name,
)
from ..segments.transaction_markers import find_marker
from . import index_files
from .batch_walk import FoundBatch, FoundLegacyMessage
from .file_kinds import FileKind, FileName, parse_file_name
from .findings import Finding, FindingKind
from .index_files import EntryOrder, OffsetIndexComparison, TimeIndexComparison
from .producer_files import read_producer_snapshot
from .segment_check import ChainState, Checked, SegmentCheck
from .snapshot_check import SnapshotFrame
from .text_files import read_leader_epochs, read_partition_metadata

_ENOUGH_FINDINGS = 10

Progress = Callable[[int], None]
"""Told of the bytes of segments that were looked at."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The facts about a partition from outside of its files; None: nothing is known.

    was_clean_shutdown: then all of it must be whole, otherwise what is below the recovery point.
    machine_stayed_up: since it was written.
    """

    topic_id: bytes | None = None
    is_compacted: bool | None = None
    was_clean_shutdown: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    machine_stayed_up: bool = False

    @property
    def evidence(self) -> LogEvidence:
        return LogEvidence(
            flushed_offset=self.recovery_point,
            high_watermark=self.high_watermark or 0,
            machine_stayed_up=self.machine_stayed_up,
            clean_shutdown=self.was_clean_shutdown,
        )


@dataclass(slots=True)
class PartitionReport:
    """The contents of a log. epochs: as its batches tell them."""

    path: str
    segments: int = 0
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    first_offset: int = 0
    log_end_offset: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)


class PartitionCheck:
    """The check of one partition. `run` yields the findings as they come; `report` is complete behind them.

    facts: what is known from outside of the partition's files. deep: decompress and look at every record. progress: is
    told of the bytes that were looked at.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        facts: PartitionFacts,
        *,
        deep: bool = False,
        progress: Progress = lambda size: None,
    ) -> None:
        self.report = PartitionReport(directory)
        self._disk = disk
        self._directory = directory
        self._facts = facts
        self._deep = deep
        self._progress = progress
        self._epochs: list[tuple[int, int]] | None = None
        """As the checkpoint has them, if it can be read."""
        self._contradicted_epochs: set[int] = set()
        self._chain = ChainState()
        self._open_transactions: set[int] = set()

    def run(self) -> Iterator[Finding]:
        """Run the check. A refusal of the operating system is a finding as well."""
        try:
            names = self._disk.list_directory(self._directory)
            yield from self._check_identity(names)
            yield from self._load_epochs(names)
            bases = sorted(_base_offsets(names))
            yield from self._check_names(names, set(bases))
            yield from self._check_start(bases[0]) if bases else ()
            for number, base_offset in enumerate(bases):
                following = bases[number + 1] if number + 1 < len(bases) else None
                yield from self._check_segment(base_offset, following, set(names))
            self.report.first_offset = bases[0] if bases else 0
            self.report.log_end_offset = self._chain.next_offset or 0
            yield from self._check_epoch_entries()
            yield from self._check_snapshots(names)
        except FileError as error:
            yield Finding(error.path, FindingKind.UNREADABLE, f"cannot {error.operation} it: {error.error.strerror}")

    def _join(self, name: str) -> str:
        return posixpath.join(self._directory, name)

    # What stands beside the log

    def _check_identity(self, names: Sequence[str]) -> Iterator[Finding]:
        path, expected = self._join(partition_metadata.FILE_NAME), self._facts.topic_id
        if partition_metadata.FILE_NAME not in names:
            kind = FindingKind.IDENTITY if self._facts.was_clean_shutdown and expected else FindingKind.NOTE
            yield Finding(path, kind, "it is missing, so nothing says which topic this is")
            return
        found = read_partition_metadata(path, self._disk.read_file(path))
        yield from found.findings
        for row in found.rows:
            topic_id = str(row.fields["topic_id"])
            if expected is not None and uuid_from_text(topic_id) != expected:
                what = f"the topic id is {topic_id}, in the metadata it is {uuid_to_text(expected)}"
                yield Finding(path, FindingKind.IDENTITY, what)

    def _check_names(self, names: Sequence[str], bases: set[int]) -> Iterator[Finding]:
        for name in names:
            known = parse_file_name(name)
            if known is None:
                yield Finding(self._join(name), FindingKind.LEFTOVER, "nothing is known of it")
            elif not known.is_in_use:
                yield Finding(self._join(name), FindingKind.LEFTOVER, f"a {known.kind} that is not in use")
            elif known.kind is FileKind.LOG and name != offset_file_name(known.base_offset or 0, LOG_SUFFIX):
                yield Finding(self._join(name), FindingKind.LEFTOVER, "a segment is named by its offset in 20 digits")
            elif _is_index(known) and known.base_offset not in bases:
                yield self._orphaned_index(name, known.base_offset or 0, names, bases)
            elif known.kind is FileKind.METADATA_SNAPSHOT:
                yield from check_metadata_snapshot(self._disk, self._join(name))

    def _orphaned_index(self, name: str, base_offset: int, names: Sequence[str], bases: set[int]) -> Finding:
        """Tell whether an index belongs to a segment that is being removed, whose data have another name already."""
        log_name = offset_file_name(base_offset, LOG_SUFFIX)
        if base_offset < max(bases, default=0) and log_name + DELETED_SUFFIX not in names:
            return Finding(self._join(log_name), FindingKind.HOLE, f"it is missing, and {name} is still there")
        return Finding(self._join(name), FindingKind.LEFTOVER, "an index without its segment")

    def _check_start(self, first_offset: int) -> Iterator[Finding]:
        """A log that was closed begins with its first leader epoch."""
        if self._facts.was_clean_shutdown and self._epochs and self._epochs[0][1] < first_offset:
            what = f"the log begins with it, and held offset {self._epochs[0][1]} when it was closed"
            path = self._join(offset_file_name(first_offset, LOG_SUFFIX))
            yield Finding(path, FindingKind.HOLE, what, offset=self._epochs[0][1])

    def _load_epochs(self, names: Sequence[str]) -> Iterator[Finding]:
        if leader_epochs.FILE_NAME not in names:
            self._epochs = []
            return
        path = self._join(leader_epochs.FILE_NAME)
        found = read_leader_epochs(path, self._disk.read_file(path))
        yield from found.findings
        if not found.findings:
            rows = ((row.fields["epoch"], row.fields["start_offset"]) for row in found.rows)
            self._epochs = [(int(str(epoch)), int(str(start))) for epoch, start in rows]

    def _check_snapshots(self, names: Sequence[str]) -> Iterator[Finding]:
        end_offset = self.report.log_end_offset
        for name in names:
            known = parse_file_name(name)
            if known is None or known.kind is not FileKind.PRODUCER_SNAPSHOT or not known.is_in_use:
                continue
            path = self._join(name)
            _, findings = read_producer_snapshot(path, self._disk.read_file(path))
            if known.base_offset is None or known.base_offset > end_offset:
                what = f"a snapshot behind the end of the log, which is {end_offset}"
                findings.append(Finding(path, FindingKind.PRODUCERS, what, offset=known.base_offset))
            yield from (self._as_note_after_crash(finding) for finding in findings)

    def _as_note_after_crash(self, finding: Finding) -> Finding:
        if self._facts.was_clean_shutdown:
            return finding
        return finding._replace(kind=FindingKind.NOTE, what=f"{finding.what} (the next start makes it anew)")

    # Segments

    def _check_segment(self, base_offset: int, following: int | None, names: set[str]) -> Iterator[Finding]:
        yield from self._check_beginning(base_offset)
        file = self._disk.open(self._join(offset_file_name(base_offset, LOG_SUFFIX)))
        try:
            self.report.segments += 1
            self.report.size_bytes += file.size()
            indexes = SegmentIndexes(self._disk, self._directory, base_offset, names, self._open_transactions)
            try:
                check = SegmentCheck(file, base_offset, self._chain, end_offset=following, deep=self._deep)
                yield from self._check_batches(check, file, indexes, is_last=following is None)
                must_be_whole = self._facts.was_clean_shutdown or self._is_flushed(following)
                # Compaction takes markers, and may leave what told of them.
                for finding in indexes.finish(
                    is_active=following is None, compare_transactions=self._facts.is_compacted is False
                ):
                    yield finding if must_be_whole else self._as_note_after_crash(finding)
            finally:
                indexes.close()
        finally:
            file.close()

    def _is_flushed(self, end_offset: int | None) -> bool:
        """Tell whether a start after a crash trusts a segment that ends there."""
        recovery_point = self._facts.recovery_point
        return end_offset is not None and recovery_point is not None and end_offset <= recovery_point

    def _check_beginning(self, base_offset: int) -> Iterator[Finding]:
        expected = self._chain.next_offset
        if expected is not None and expected < base_offset and self._chain.is_exact:
            yield from self._hole(self._join(offset_file_name(base_offset, LOG_SUFFIX)), range(expected, base_offset))

    def _hole(self, path: str, hole: range, position: int = 0) -> Iterator[Finding]:
        if self._facts.is_compacted is False:
            what = f"the offsets {hole.start}-{hole.stop - 1} are not there, and the topic is not compacted"
            yield Finding(path, FindingKind.HOLE, what, position, hole.start)

    def _check_batches(
        self, check: SegmentCheck, file: DiskFile, indexes: "SegmentIndexes", *, is_last: bool
    ) -> Iterator[Finding]:
        tail: list[Finding] = []
        end = 0
        for checked in check:
            found = checked.found
            self._progress(found.end - end)
            end = found.end
            if not checked.findings:
                yield from tail
                tail.clear()
            tail += checked.findings
            yield from self._note(checked, file, indexes)
        if tail and is_last:
            yield self._tail(tail, file, end)
        else:
            yield from tail

    def _note(self, checked: Checked, file: DiskFile, indexes: "SegmentIndexes") -> Iterator[Finding]:
        found = checked.found
        if checked.hole is not None:
            yield from self._hole(file.path, checked.hole, found.position)
        if checked.findings or isinstance(found, FoundLegacyMessage):
            indexes.stop_comparing()
        if isinstance(found, FoundLegacyMessage):
            self.report.batches += 1
            self.report.records += 1
        elif isinstance(found, FoundBatch):
            self.report.batches += 1
            self.report.records += max(found.header.records_count, 0)
            if not checked.findings:
                indexes.note(found)
                yield from self._note_epoch(found.header, file.path, found.position)

    def _tail(self, findings: Sequence[Finding], file: DiskFile, end: int) -> Finding:
        """Return what stands behind the last sound batch of the log, as one finding. The rule is that of recovery."""
        first, next_offset = findings[0], self._chain.next_offset or 0
        position = first.position or 0
        tail = Tail(
            file.path,
            position,
            next_offset,
            first.what,
            is_torn(file, position, end),
            lacks_bytes=lacks_bytes(file, position, end),
            sound_batches=0,
        )
        try:
            check_tail(tail, self._facts.evidence)
        except CorruptLog:
            return first._replace(end=end)
        if self._facts.was_clean_shutdown:
            kind, comment = FindingKind.TAIL, "behind the end of the log"
        else:
            kind, comment = FindingKind.NOTE, "not flushed before a crash; the next start cuts it off"
        return Finding(first.path, kind, f"{first.what}, {comment}", position, next_offset, end)

    # Epochs

    def _note_epoch(self, header: RecordBatchHeader, path: str, position: int) -> Iterator[Finding]:
        epoch = header.partition_leader_epoch
        if epoch < 0:
            return
        epochs = self.report.epochs
        if not epochs or epochs[-1][0] < epoch:
            epochs.append((epoch, header.base_offset))
        start = max(header.base_offset, self._facts.log_start_offset or 0)
        if self._epochs is None or start > header.last_offset or not self._must_be_written(header):
            return
        if not self._epochs:
            told = None
        else:
            at = bisect_right(self._epochs, start, key=lambda entry: entry[1]) - 1
            told = self._epochs[at][0] if at >= 0 else None
        if told is None and self._epochs and not self._facts.was_clean_shutdown:
            # Records in front of the first epoch were deleted, and the checkpoint of log starts was not written yet.
            return
        if told != epoch and epoch not in self._contradicted_epochs:
            self._contradicted_epochs.add(epoch)
            known = "no epoch" if told is None else f"epoch {told}"
            what = f"{known} at offset {start}, the batch at byte {position} of {posixpath.basename(path)} has {epoch}"
            yield Finding(self._join(leader_epochs.FILE_NAME), FindingKind.EPOCHS, what, offset=start)

    def _must_be_written(self, header: RecordBatchHeader) -> bool:
        """Epochs are written when the log is flushed."""
        recovery_point = self._facts.recovery_point
        return self._facts.was_clean_shutdown or (recovery_point is not None and header.last_offset < recovery_point)

    def _check_epoch_entries(self) -> Iterator[Finding]:
        end_offset = self.report.log_end_offset
        for epoch, start_offset in self._epochs or []:
            if start_offset > end_offset:
                what = f"epoch {epoch} begins at {start_offset}, the log ends at {end_offset}"
                finding = Finding(self._join(leader_epochs.FILE_NAME), FindingKind.EPOCHS, what, offset=start_offset)
                yield self._as_note_after_crash(finding)


class SegmentIndexes:
    """The three indexes of a segment, compared while its batches go by. Of each a few findings are enough."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, names: set[str], open_transactions: set[int]
    ) -> None:
        """Begin with a segment. open_transactions: of the producers; they go on to the next segment."""
        self._directory = directory
        self._base_offset = base_offset
        self._open_transactions = open_transactions
        self._markers: dict[int, int] = {}
        """Of aborted transactions: offset of the marker, and whose it is."""
        self._expected: set[int] = set()
        """The markers of those that have records in the log."""
        self._is_comparable = True
        self._files: dict[str, DiskFile] = {}
        for suffix in index_files.READERS:
            if offset_file_name(base_offset, suffix) in names:
                self._files[suffix] = disk.open(self._path(suffix))
        self._own = {suffix: list(self._own_findings(suffix, file)) for suffix, file in self._files.items()}
        offsets, times = self._sound_file(INDEX_SUFFIX), self._sound_file(TIME_INDEX_SUFFIX)
        self._offsets = OffsetIndexComparison(offsets, base_offset) if offsets is not None else None
        self._times = TimeIndexComparison(times, base_offset) if times is not None else None
        self._of_offsets: list[Finding] = []
        self._of_times: list[Finding] = []

    def _path(self, suffix: str) -> str:
        return posixpath.join(self._directory, offset_file_name(self._base_offset, suffix))

    def _own_findings(self, suffix: str, file: DiskFile) -> Iterator[Finding]:
        """Return what is wrong with the file whatever the log says."""
        finding = index_files.check_size(file, index_files.ENTRY_SIZES[suffix])
        if finding is not None:
            yield finding
        order = EntryOrder(file.path, self._base_offset)
        found = (order.check(entry) for entry in index_files.READERS[suffix](file, self._base_offset))
        yield from islice((each for each in found if each is not None), _ENOUGH_FINDINGS)

    def _sound_file(self, suffix: str) -> DiskFile | None:
        return None if self._own.get(suffix) else self._files.get(suffix)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def stop_comparing(self) -> None:
        """Stop comparing indexes: behind damage the log cannot tell any more whether they are right."""
        self._is_comparable = False

    def note(self, batch: FoundBatch) -> None:
        if not self._is_comparable:
            return
        if self._offsets is not None and len(self._of_offsets) < _ENOUGH_FINDINGS:
            self._of_offsets += self._offsets.note(batch.position, batch.header)
        if self._times is not None and len(self._of_times) < _ENOUGH_FINDINGS:
            self._of_times += self._times.note(batch.position, batch.header)
        if batch.header.is_transactional:
            self._note_transaction(batch)

    def _note_transaction(self, batch: FoundBatch) -> None:
        header = batch.header
        if not header.is_control:
            self._open_transactions.add(header.producer_id)
            return
        try:
            marker = None if batch.data is None else find_marker(batch.data)
        except InvalidRecords:
            return
        if marker is None:
            return
        if marker.control_type is ControlRecordType.ABORT:
            self._markers[header.last_offset] = header.producer_id
            if header.producer_id in self._open_transactions:
                self._expected.add(header.last_offset)
        self._open_transactions.discard(header.producer_id)

    def finish(self, *, is_active: bool, compare_transactions: bool) -> Iterator[Finding]:
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if suffix not in self._files:
                yield Finding(self._path(suffix), FindingKind.INDEX, "it is missing")
        for findings in self._own.values():
            yield from findings
        yield from self._of_offsets
        yield from self._of_times
        if not self._is_comparable:
            return
        if self._offsets is not None and not self._of_offsets:
            yield from islice(self._offsets.finish(), _ENOUGH_FINDINGS)
        if self._times is not None and not self._of_times:
            yield from islice(self._times.finish(is_active=is_active), _ENOUGH_FINDINGS)
        if compare_transactions and not self._own.get(TRANSACTION_INDEX_SUFFIX):
            yield from islice(self._compare_transactions(), _ENOUGH_FINDINGS)

    def _compare_transactions(self) -> Iterator[Finding]:
        path, file = self._path(TRANSACTION_INDEX_SUFFIX), self._files.get(TRANSACTION_INDEX_SUFFIX)
        missing = set(self._expected)
        for entry in index_files.aborted_entries(file) if file is not None else ():
            missing.discard(entry.last_offset)
            if self._markers.get(entry.last_offset) != entry.producer_id:
                what = f"no transaction of producer {entry.producer_id} was aborted at offset {entry.last_offset}"
                yield Finding(path, FindingKind.INDEX, what, entry.position, entry.last_offset)
        for offset in sorted(missing):
            what = f"it lacks the transaction of producer {self._markers[offset]} that was aborted there"
            yield Finding(path, FindingKind.INDEX, what, offset=offset)


def check_metadata_snapshot(disk: Disk, path: str) -> Iterator[Finding]:
    """A `.checkpoint` file: batches from offset 0 on, in their frame."""
    file = disk.open(path)
    try:
        frame = SnapshotFrame(path)
        for found, findings, hole in SegmentCheck(file, 0, ChainState(), deep=True):
            yield from (finding._replace(kind=FindingKind.METADATA) for finding in findings)
            if hole is not None:
                what = f"the offsets {hole.start}-{hole.stop - 1} are not there"
                yield Finding(path, FindingKind.METADATA, what, found.position)
            if isinstance(found, FoundBatch):
                yield from frame.note(found)
        yield from frame.finish()
    finally:
        file.close()


def _base_offsets(names: Sequence[str]) -> Iterator[int]:
    for name in names:
        stem = name.removesuffix(LOG_SUFFIX)
        if stem != name and stem.isdecimal() and len(stem) == 20:
            yield int(stem)


def _is_index(name: FileName) -> bool:
    return name.kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
