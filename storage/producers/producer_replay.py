"""Producers' state from the batches of a log: one that is appended, and those behind a snapshot."""

from collections.abc import Iterator, Sequence

from pykbroker.protocol.records.batch import RecordBatch

from ..segments.batch_scan import scan_headers
from ..segments.segment import LogSegment
from ..segments.transaction_index import AbortedTransaction
from ..segments.transaction_markers import find_marker
from .producer_state import ProducerStateManager


def update_producers(producers: ProducerStateManager, batch: RecordBatch) -> AbortedTransaction | None:
    """A batch of the log, data or control, that needs no check any more. Returns the transaction that it aborted."""
    header = batch.header
    if not header.has_producer_id:
        return None
    if not header.is_control:
        producers.update(header, header.base_offset, header.max_timestamp)
        return None
    marker = find_marker(batch.data)
    return None if marker is None else producers.update_marker(header, marker)


def replay_producers(producers: ProducerStateManager, segments: Sequence[LogSegment], end_offset: int) -> None:
    """Bring the state from its `end_offset` to that of the log."""
    if producers.end_offset >= end_offset:
        return
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= producers.end_offset:
            continue
        for batch in batches_with_producers(segment, producers.end_offset):
            if batch.header.base_offset >= end_offset:
                break
            update_producers(producers, batch)
    producers.end_offset = end_offset


def batches_with_producers(segment: LogSegment, start_offset: int) -> Iterator[RecordBatch]:
    # From the start on without a look at the index: one that is missing stays so until it is made anew.
    start = segment.position_near(start_offset) if start_offset > segment.base_offset else 0
    for position, header in scan_headers(segment.file, start, segment.size):
        # The log may start in the middle of a batch.
        if header.last_offset >= start_offset and header.has_producer_id:
            size = header.size_bytes if header.is_control else 0
            yield RecordBatch(header, memoryview(segment.file.read_at(position, size) if size else b""))
