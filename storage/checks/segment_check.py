"""The batches of one segment, each with what is wrong with it: checksum, offsets, epochs, and the records if asked.

Base offset and leader epoch of a batch stand outside of its checksum, so they are compared with the neighbours. Of two
that contradict each other the one is at fault without which the rest follows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pykbroker.protocol.records.batch import RecordBatchHeader, iter_records, records_payload
from pykbroker.protocol.records.checking import check_records
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.legacy import iter_legacy_records

from ..files.disk import DiskFile
from ..segments.indexes import MAX_RELATIVE_OFFSET
from .batch_walk import LARGEST_BATCH_BYTES, BatchWalk, Found, FoundBatch, FoundLegacyMessage, Unreadable
from .findings import Finding, FindingKind


class Checked(NamedTuple):
    """`hole`: the offsets that are missing before it, which is right where a log was compacted."""

    found: Found
    findings: Sequence[Finding]
    hole: range | None = None


class ChainState:
    """The state of a chain of batches: the least offset and the least epoch of the next one. None: not known yet.

    is_exact: no damage is before it, so a higher offset means a hole.
    """

    def __init__(self, next_offset: int | None = None, epoch: int = -1) -> None:
        self.next_offset = next_offset
        self.epoch = epoch
        self.is_exact = True


class SegmentCheck:
    """Iterates over all of the file once; `chain` goes on to the next segment."""

    def __init__(
        self,
        file: DiskFile,
        base_offset: int,
        chain: ChainState,
        *,
        end_offset: int | None = None,
        position: int = 0,
        size: int | None = None,
        deep: bool = False,
    ) -> None:
        """Check a segment.

        end_offset: where the next segment begins. deep: read every record, not only control records.
        """
        self._path = file.path
        self._base_offset = base_offset
        self._chain = chain
        self._end_offset = end_offset
        self._deep = deep
        end = file.size() if size is None else size
        self._walk = BatchWalk(file, position, end, base_offset=base_offset, end_offset=end_offset)
        if chain.next_offset is None or chain.next_offset < base_offset:
            # Where an offset range before it is missing, the segment's own name tells where it begins.
            chain.next_offset = base_offset if position == 0 else None

    def __iter__(self) -> Iterator[Checked]:
        for found, following in _with_following(self._walk):
            match found:
                case FoundBatch():
                    yield self._check_batch(found, following)
                case FoundLegacyMessage():
                    yield self._check_legacy(found)
                case Unreadable():
                    self._chain.is_exact = False
                    finding = self._finding(found.position, found.why, self._chain.next_offset, found.end)
                    yield Checked(found, [finding])

    def _finding(self, position: int, what: str, offset: int | None = None, end: int | None = None) -> Finding:
        return Finding(self._path, FindingKind.BATCH, what, position, offset, end)

    def _check_batch(self, batch: FoundBatch, following: Found | None) -> Checked:
        header = batch.header
        complaints = []
        if not batch.is_crc_valid:
            complaints.append(f"the checksum is {header.crc:08x}, that of the bytes {batch.computed_crc:08x}")
        complaints += self._shape_complaints(header)
        next_header = following.header if isinstance(following, FoundBatch) else None
        complaint, hole = self._follow_offsets(header, next_header, is_trusted=not complaints)
        complaints += [complaint] if complaint else []
        complaint = self._follow_epochs(header, next_header, is_trusted=not complaints)
        complaints += [complaint] if complaint else []
        if (self._deep or header.is_control) and not complaints:
            complaint = check_batch_records(batch)
            complaints += [complaint] if complaint else []
        findings = [self._finding(batch.position, what, header.base_offset, batch.end) for what in complaints]
        return Checked(batch, findings, hole)

    def _shape_complaints(self, header: RecordBatchHeader) -> list[str]:
        if header.last_offset_delta < 0 or header.records_count < 0:
            return [f"{header.records_count} records, the last one at {header.last_offset_delta} behind the first"]
        complaints = []
        if header.records_count > header.last_offset_delta + 1:
            complaints.append(f"{header.records_count} records in {header.last_offset_delta + 1} offsets")
        if not self._base_offset <= header.base_offset <= header.last_offset <= self._base_offset + MAX_RELATIVE_OFFSET:
            complaints.append(
                f"the offsets {header.base_offset}-{header.last_offset} cannot be in a segment of {self._base_offset}"
            )
        elif self._end_offset is not None and header.last_offset >= self._end_offset:
            complaints.append(f"the last offset is {header.last_offset}, the next segment begins at {self._end_offset}")
        return complaints

    def _follow_offsets(
        self, header: RecordBatchHeader, following: RecordBatchHeader | None, *, is_trusted: bool
    ) -> tuple[str | None, range | None]:
        chain, expected = self._chain, self._chain.next_offset
        if not is_trusted:
            chain.is_exact = False
            return None, None
        was_exact, chain.is_exact = chain.is_exact, True
        if expected is None or header.base_offset == expected:
            chain.next_offset = header.next_offset
            return None, None
        length = header.last_offset_delta + 1
        if header.base_offset < expected:
            chain.next_offset, chain.is_exact = expected, False
            return f"the base offset is {header.base_offset}, the batch before ends at {expected - 1}", None
        if was_exact and following is not None and expected + length <= following.base_offset < header.next_offset:
            chain.next_offset = expected + length
            return f"the base offset is {header.base_offset}, the neighbours leave {expected} for it", None
        chain.next_offset = header.next_offset
        return None, range(expected, header.base_offset) if was_exact else None

    def _follow_epochs(
        self, header: RecordBatchHeader, following: RecordBatchHeader | None, *, is_trusted: bool
    ) -> str | None:
        epoch, latest = header.partition_leader_epoch, self._chain.epoch
        if epoch < latest:
            return f"the leader epoch goes back from {latest} to {epoch}"
        if following is not None and latest <= following.partition_leader_epoch < epoch and latest >= 0:
            return f"the leader epoch is {epoch}, before it {latest} and behind it {following.partition_leader_epoch}"
        if is_trusted:
            self._chain.epoch = epoch
        return None

    def _check_legacy(self, message: FoundLegacyMessage) -> Checked:
        chain, expected = self._chain, self._chain.next_offset
        complaint = None if message.is_crc_valid else "the checksum is not that of the bytes"
        if complaint is None and self._deep:
            complaint = _check_legacy_records(message)
        if expected is not None and message.offset < expected:
            complaint = f"the offset is {message.offset}, the message before has {expected - 1}"
        if complaint is not None:
            chain.is_exact = False
            return Checked(message, [self._finding(message.position, complaint, message.offset, message.end)])
        # Where the first record of a wrapper is, and so whether there is a hole, only its inside tells.
        chain.next_offset, chain.is_exact = message.offset + 1, True
        return Checked(message, [])


def _with_following(walk: Iterable[Found]) -> Iterator[tuple[Found, Found | None]]:
    iterator = iter(walk)
    current = next(iterator, None)
    while current is not None:
        following = next(iterator, None)
        yield current, following
        current = following


def check_batch_records(batch: FoundBatch, limit_bytes: int = LARGEST_BATCH_BYTES) -> str | None:
    """Return what is wrong with the records of a batch whose header is sound; None where nothing is."""
    header = batch.header
    if batch.data is None:
        return f"a batch of {header.size_bytes} bytes is too large to be read"
    try:
        if header.records_count == header.last_offset_delta + 1:
            check_records(records_payload(header, batch.data, limit_bytes), header.records_count)
            return None
        # Compaction has taken records out.
        previous = header.base_offset - 1
        for record in iter_records(batch.data, limit_bytes=limit_bytes):
            if not previous < record.offset <= header.last_offset:
                return f"record {record.offset} follows record {previous}, the batch ends at {header.last_offset}"
            previous = record.offset
    except InvalidRecords as error:
        return f"the records cannot be read: {error.message}"
    return None


def _check_legacy_records(message: FoundLegacyMessage) -> str | None:
    try:
        for _ in iter_legacy_records(message.data, LARGEST_BATCH_BYTES):
            pass
    except InvalidRecords as error:
        return f"the records cannot be read: {error.message}"
    return None
