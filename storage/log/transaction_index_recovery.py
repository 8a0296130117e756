"""The check that transaction indexes tell what the log tells, and new ones where they do not.

Kafka looks at an index's offsets only. This check costs a few reads per aborted transaction: its marker
must be where the index says, and its first batch too, unless compaction took it. An index that is gone without a trace
is found only where the segment's other indexes are gone as well, or where the segment is recovered: as in Kafka.
"""

import logging
from collections.abc import Callable, Sequence

from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.protocol.records.errors import InvalidRecords

from ..files.errors import CorruptLog
from ..segments.segment import LOG_SUFFIX, LogSegment
from ..segments.transaction_index import AbortedTransaction
from ..segments.transaction_markers import find_marker

_log = logging.getLogger(__name__)

Rebuild = Callable[[LogSegment, Sequence[LogSegment]], None]
"""Makes the index of a segment anew; the second argument are the segments in front of it."""


def load_transaction_indexes(segments: Sequence[LogSegment], rebuild: Rebuild) -> None:
    """Take over the indexes of segments whose batches are trusted."""
    for number, segment in enumerate(segments):
        if not _is_sound(segments, number):
            _log.warning("rebuilding the transaction index of %s", segment.path(LOG_SUFFIX))
            rebuild(segment, segments[:number])


def _is_sound(segments: Sequence[LogSegment], number: int) -> bool:
    segment = segments[number]
    index = segment.transaction_index
    if not index.is_there():
        return True
    try:
        index.load()
        transactions = list(index.entries())
    except CorruptLog:
        return False
    if not transactions:
        return False  # a power cut takes the bytes of a file and leaves its name, where none was synced
    is_sound = _are_plausible(transactions, segment.base_offset) and all(
        _has_marker(segment, each) and _has_beginning(segments[: number + 1], each) for each in transactions
    )
    segment.close()
    return is_sound


def _are_plausible(transactions: Sequence[AbortedTransaction], base_offset: int) -> bool:
    """Tell whether the entries are plausible, from the last one on.

    A transaction that was open at a marker ends behind it, so the last stable offset is before that.
    """
    earliest_later = None
    later_offset = None
    for each in reversed(transactions):
        if not max(base_offset, each.first_offset + 1) <= each.last_offset:
            return False
        if later_offset is not None and each.last_offset >= later_offset:
            return False
        upper_bound = each.last_offset + 1 if earliest_later is None else min(each.last_offset + 1, earliest_later)
        if not 0 <= each.last_stable_offset <= upper_bound:
            return False
        earliest_later = each.first_offset if earliest_later is None else min(earliest_later, each.first_offset)
        later_offset = each.last_offset
    return True


def _has_marker(segment: LogSegment, transaction: AbortedTransaction) -> bool:
    found = segment.find_batch(transaction.last_offset)
    if found is None:
        return False
    position, header = found
    if header.last_offset != transaction.last_offset or header.producer_id != transaction.producer_id:
        return False
    if not header.is_control:
        return False
    try:
        marker = find_marker(segment.file.read_at(position, header.size_bytes))
    except InvalidRecords:
        return False
    return marker is not None and marker.control_type is ControlRecordType.ABORT


def _has_beginning(segments: Sequence[LogSegment], transaction: AbortedTransaction) -> bool:
    """Tell whether the first batch is right, or is not there any more to compare with."""
    first_offset = transaction.first_offset
    for segment in reversed(segments):
        if segment.base_offset <= first_offset:
            found = segment.find_batch(first_offset)
            if segment is not segments[-1]:
                segment.close()
            if found is None or found[1].base_offset > first_offset:
                return True
            header = found[1]
            return (
                header.base_offset == first_offset
                and header.producer_id == transaction.producer_id
                and header.is_transactional
                and not header.is_control
            )
    return True
