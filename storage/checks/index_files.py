"""The files of the three indexes: their entries, what is wrong with these alone, and whether the log agrees.

Kafka maps an index in its full size, so the file of an active segment ends in zeros; they are no entries. What an
index must not do is lead a reader past what it looks for.
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pykbroker.protocol.records.batch import RecordBatchHeader

from ..files.disk import DiskFile
from ..segments.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from .findings import Finding, FindingKind

_CHUNK_ENTRIES = 8192


class OffsetEntry(NamedTuple):
    """The batch that holds `offset` stands at `log_position` or behind it."""

    position: int
    offset: int
    log_position: int


class TimeEntry(NamedTuple):
    """No record up to `offset` is younger than `timestamp`."""

    position: int
    timestamp: int
    offset: int


class AbortedEntry(NamedTuple):
    position: int
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
ABORTED_ENTRY = struct.Struct(">hqqqq")

ENTRY_SIZES = {
    INDEX_SUFFIX: OFFSET_ENTRY.size,
    TIME_INDEX_SUFFIX: TIME_ENTRY.size,
    TRANSACTION_INDEX_SUFFIX: ABORTED_ENTRY.size,
}


def used_size(file: DiskFile) -> int:
    """Return the size up to the zeros at the end."""
    end = file.size()
    step = 65536
    while end:
        start = max(end - step, 0)
        used = len(file.read_at(start, end - start).rstrip(b"\0"))
        if used:
            return start + used
        end = start
    return 0


def _entries(file: DiskFile, entry: struct.Struct, start: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    end = -(-used_size(file) // entry.size) * entry.size
    whole = min(end, file.size() // entry.size * entry.size)
    for chunk_at in range(start, whole, _CHUNK_ENTRIES * entry.size):
        chunk = file.read_at(chunk_at, min(_CHUNK_ENTRIES * entry.size, whole - chunk_at))
        for number, values in enumerate(entry.iter_unpack(chunk[: len(chunk) // entry.size * entry.size])):
            yield chunk_at + number * entry.size, values


def offset_entries(file: DiskFile, base_offset: int, start: int = 0) -> Iterator[OffsetEntry]:
    for position, (relative, log_position) in _entries(file, OFFSET_ENTRY, start):
        yield OffsetEntry(position, base_offset + relative, log_position)


def time_entries(file: DiskFile, base_offset: int, start: int = 0) -> Iterator[TimeEntry]:
    for position, (timestamp, relative) in _entries(file, TIME_ENTRY, start):
        yield TimeEntry(position, timestamp, base_offset + relative)


def aborted_entries(file: DiskFile, start: int = 0) -> Iterator[AbortedEntry]:
    for position, values in _entries(file, ABORTED_ENTRY, start):
        yield AbortedEntry(position, *values)


READERS: dict[str, Callable[[DiskFile, int], Iterator[OffsetEntry | TimeEntry | AbortedEntry]]] = {
    INDEX_SUFFIX: offset_entries,
    TIME_INDEX_SUFFIX: time_entries,
    TRANSACTION_INDEX_SUFFIX: lambda file, _base_offset: aborted_entries(file),
}


def check_size(file: DiskFile, entry_size: int) -> Finding | None:
    """Tell whether the file holds whole entries, and perhaps zeros."""
    size, used = file.size(), used_size(file)
    rest = size % entry_size
    if not rest or used <= size - rest:
        return None
    what = f"{rest} bytes behind the last entry, an entry has {entry_size}"
    return Finding(file.path, FindingKind.INDEX, what, size - rest)


class EntryOrder:
    """The check that entries ascend as they must, one after the other."""

    def __init__(self, path: str, base_offset: int) -> None:
        self._path = path
        self._base_offset = base_offset
        self._previous: OffsetEntry | TimeEntry | AbortedEntry | None = None

    def check(self, entry: OffsetEntry | TimeEntry | AbortedEntry) -> Finding | None:
        what = self._complaint(entry)
        self._previous = entry
        return None if what is None else Finding(self._path, FindingKind.INDEX, what, entry.position)

    def _complaint(self, entry: OffsetEntry | TimeEntry | AbortedEntry) -> str | None:
        previous = self._previous
        match entry:
            case OffsetEntry():
                if entry.offset < self._base_offset or entry.log_position < 0:
                    return f"an entry for offset {entry.offset} at position {entry.log_position}"
                if isinstance(previous, OffsetEntry) and entry.offset <= previous.offset:
                    return f"the offset {entry.offset} follows {previous.offset}"
                if isinstance(previous, OffsetEntry) and entry.log_position <= previous.log_position:
                    return f"the position {entry.log_position} follows {previous.log_position}"
            case TimeEntry():
                if entry.offset < self._base_offset:
                    return f"an entry for offset {entry.offset}"
                if isinstance(previous, TimeEntry) and entry.timestamp <= previous.timestamp:
                    return f"the timestamp {entry.timestamp} follows {previous.timestamp}"
                if isinstance(previous, TimeEntry) and entry.offset < previous.offset:
                    return f"the offset {entry.offset} follows {previous.offset}"
            case AbortedEntry():
                if entry.version != 0:
                    return f"the entry has the unknown version {entry.version}"
                if not 0 <= entry.first_offset <= entry.last_offset or entry.last_offset < self._base_offset:
                    return f"a transaction from {entry.first_offset} to {entry.last_offset}"
                if isinstance(previous, AbortedEntry) and entry.last_offset <= previous.last_offset:
                    return f"the last offset {entry.last_offset} follows {previous.last_offset}"
        return None


class OffsetIndexComparison:
    """Told of every batch of the segment in order, it compares the index on the way.

    An entry is for the batch at its position; older Kafkas wrote one for several batches, with the last one's offset.
    """

    def __init__(self, file: DiskFile, base_offset: int) -> None:
        self._path = file.path
        self._entries = offset_entries(file, base_offset)
        self._at_position = next(self._entries, None)
        self._open: list[OffsetEntry] = []
        """Whose batch was found at their position, and whose offset is still to come."""

    def note(self, position: int, header: RecordBatchHeader) -> Iterator[Finding]:
        while self._at_position is not None and self._at_position.log_position <= position:
            entry = self._at_position
            self._at_position = next(self._entries, None)
            if entry.log_position < position:
                yield self._finding(entry, f"no batch begins at position {entry.log_position}")
            elif entry.offset < header.last_offset:
                yield self._finding(
                    entry, f"offset {entry.offset} is not the last one of the batch at position {position}"
                )
            else:
                self._open.append(entry)
        while self._open and self._open[0].offset <= header.last_offset:
            entry = self._open.pop(0)
            if entry.offset < header.last_offset:
                yield self._finding(entry, f"no batch ends with offset {entry.offset}")

    def finish(self) -> Iterator[Finding]:
        """No batch comes any more."""
        for entry in self._open:
            yield self._finding(entry, f"no batch ends with offset {entry.offset}")
        if self._at_position is not None:
            yield self._finding(self._at_position, f"no batch begins at position {self._at_position.log_position}")
        for entry in self._entries:
            yield self._finding(entry, f"no batch begins at position {entry.log_position}")

    def _finding(self, entry: OffsetEntry, what: str) -> Finding:
        return Finding(self._path, FindingKind.INDEX, what, entry.position, entry.offset)


class TimeIndexComparison:
    """The same for the time index. Whether a batch without records tells of a timestamp is answered in two ways:
    both are right.
    """

    def __init__(self, file: DiskFile, base_offset: int) -> None:
        self._path = file.path
        self._entries = time_entries(file, base_offset)
        self._entry = next(self._entries, None)
        self._largest = self._largest_of_all = -1
        self._last: TimeEntry | None = None

    def note(self, _position: int, header: RecordBatchHeader) -> Iterator[Finding]:
        self._largest_of_all = max(self._largest_of_all, header.max_timestamp)
        if header.records_count:
            self._largest = max(self._largest, header.max_timestamp)
        while self._entry is not None and self._entry.offset <= header.last_offset:
            entry = self._last = self._entry
            self._entry = next(self._entries, None)
            if entry.timestamp not in (self._largest, self._largest_of_all):
                what = f"the timestamp {entry.timestamp}, the youngest record up to there has {self._largest}"
                yield Finding(self._path, FindingKind.INDEX, what, entry.position, entry.offset)

    def finish(self, *, is_active: bool) -> Iterator[Finding]:
        """An active segment's youngest record need not be in its index yet."""
        while self._entry is not None:
            what = f"offset {self._entry.offset} is beyond the segment"
            yield Finding(self._path, FindingKind.INDEX, what, self._entry.position, self._entry.offset)
            self._last = self._entry
            self._entry = next(self._entries, None)
        last = -1 if self._last is None else self._last.timestamp
        if not is_active and last < self._largest:
            what = f"the last timestamp is {last}, the youngest record has {self._largest}"
            yield Finding(self._path, FindingKind.INDEX, what)
