"""The reads of a log for a share partition: which record batches are there, and which part of the file is to be sent.

Of each batch the header alone is read, from the page cache; a page that is on the disk only is read in a thread. The
records stay in their file: the transport sends them (`storage.log.log_reads.LogSlice`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from pykbroker.protocol.records.batch import CONTROL_MASK, MAGIC_VALUE_V2, RecordBatchHeader
from pykbroker.sharing.partition.values import Acquired, FetchedBatch
from pykbroker.storage.files.cached_reads import Readable
from pykbroker.storage.log.log_reads import LogSlice
from pykbroker.storage.segments.batch_scan import scan_headers
from pykbroker.storage.segments.transaction_index import AbortedTransaction

MOST_BATCHES: Final = 1000
"""The headers that one read looks at: about a millisecond."""

_base_offset = attrgetter("base_offset")


class SharedRead(NamedTuple):
    """The batches that were read. ends: where each batch ends in the file."""

    batches: list[FetchedBatch]
    ends: list[int]


class AbortedOffsets:
    """The offsets of aborted transactions, by producer."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[tuple[int, int]]] = {}
        for each in transactions:
            self._by_producer.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
        for spans in self._by_producer.values():
            spans.sort()

    def have(self, header: RecordBatchHeader) -> bool:
        """Tell whether the batch has records of one of them; a marker has none."""
        spans = self._by_producer.get(header.producer_id)
        if not spans or not header.is_transactional or header.attributes & CONTROL_MASK:
            return False
        number = bisect_right(spans, (header.base_offset, 1 << 63)) - 1
        return number >= 0 and header.base_offset <= spans[number][1]


def read_headers(
    file: Readable, region: LogSlice, fetch_offset: int, last_offset: int, aborted: AbortedOffsets
) -> SharedRead:
    """Read the headers of the region's whole batches, up to the one that holds `last_offset`, and of 1,000 at most.

    Raises `WouldWait`, `FileError`.
    """
    batches: list[FetchedBatch] = []
    ends: list[int] = []
    expected = fetch_offset
    for position, header in scan_headers(file, region.position, region.position + region.size):
        # A compressed message of the old formats has the offset of its last record.
        base = header.base_offset if header.magic == MAGIC_VALUE_V2 else min(expected, header.last_offset)
        batches.append(FetchedBatch(base, header.last_offset, aborted.have(header)))
        ends.append(position + header.size_bytes)
        expected = header.last_offset + 1
        if expected > last_offset or len(batches) == MOST_BATCHES:
            break
    return SharedRead(batches, ends)


def slice_of(region: LogSlice, read: SharedRead, acquired: Sequence[Acquired]) -> LogSlice:
    """Return the part of the region with the batches that hold what was acquired."""
    begin = max(bisect_right(read.batches, acquired[0].first_offset, key=_base_offset) - 1, 0)
    end = max(bisect_right(read.batches, acquired[-1].last_offset, key=_base_offset) - 1, begin)
    position = region.position if begin == 0 else read.ends[begin - 1]
    return replace(region, position=position, size=read.ends[end] - position)
