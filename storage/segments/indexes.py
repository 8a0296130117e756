"""The sparse indexes beside a segment, in Kafka's files (`OffsetIndex`, `TimeIndex`, `AbstractIndex`).

`.index`: (offset relative to the base offset, position), 8 bytes. `.timeindex`: (timestamp, relative offset), 12 bytes;
no record up to that offset is younger than that timestamp. Kafka maps the files and preallocates them; here they
grow, entries of the active segment wait in memory until there are enough for a write, and a file that ends in zeros
(a Kafka that was killed) counts up to its last entry. An index holds nothing that the log could not tell again.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import starmap

from pykbroker.protocol.records.record import NO_TIMESTAMP

from ..files.cached_reads import CachedFile, Readable
from ..files.disk import Disk, DiskFile

_WRITE_BYTES = 4096

_ASIDE_SUFFIX = ".tmp"
"""A start removes what has it."""

MAX_TIMESTAMP = 2**63 - 1
MAX_RELATIVE_OFFSET = 2**31 - 1
"""Entries are signed 32 bits in Kafka: a segment's offsets span no more than this."""

_UINT32 = next(code for code in "IL" if array(code).itemsize == 4)


class SparseIndex:
    """Pairs that ascend in both parts. Loaded: two arrays in memory. Not loaded: a binary search in the file.

    The file is open only while it is used, since a broker has two of them per segment.
    """

    _entry: struct.Struct
    _key_code: str

    def __init__(self, disk: Disk, path: str, *, max_bytes: int) -> None:
        self.path = path
        self._disk = disk
        self._max_entries = max_bytes // self._entry.size
        self._keys: array[int] | None = None
        self._values: array[int] | None = None
        self._unwritten = bytearray()
        self._is_to_be_created = False
        self._is_aside = False

    # The active segment's index

    def create(self, *, aside: bool = False) -> None:
        """Start anew, whatever the file holds. aside: in another file, until `replace`."""
        self._is_aside = aside
        with self._opened() as file:
            file.truncate(0)
        self._keys, self._values = array(self._key_code), array(_UINT32)
        self._is_to_be_created = False
        self._unwritten.clear()

    def load(self) -> None:
        """Load the index into memory, for lookups without reads and for appends; cut off what is not an entry."""
        if self._keys is not None:
            return
        with self._opened() as file:
            size = file.size()
            data = file.read_at(0, size)
            entries = self._valid_entries(data)
            if entries * self._entry.size != size:
                file.truncate(entries * self._entry.size)
        self._keys, self._values = self._split(data[: entries * self._entry.size])

    def replace(self) -> None:
        """Put what was made aside in the place of what is there, once it is durable. The segment is not active."""
        self.sync()
        self._disk.rename(self._file_path, self.path)
        self._is_aside = False

    def begin_empty(self) -> None:
        """The segment holds no batch, so there are no entries; what the file holds goes when there is one to write."""
        self._keys, self._values = array(self._key_code), array(_UINT32)
        self._is_to_be_created = True

    def unload(self, *, is_segment_empty: bool = False) -> None:
        """Write what is pending and forget the arrays: the segment is not active any more."""
        if not is_segment_empty:
            self._create_late()
        self.write_pending()
        self._keys = self._values = None

    def _create_late(self) -> None:
        if self._is_to_be_created:
            with self._opened() as file:
                file.truncate(0)
            self._is_to_be_created = False

    def _append(self, key: int, value: int) -> None:
        assert self._keys is not None
        assert self._values is not None
        self._keys.append(key)
        self._values.append(value)
        self._unwritten += self._entry.pack(key, value)

    def write_pages(self) -> None:
        """Write pending entries, where they are worth a write. An entry is never refused, since its batch is there."""
        if len(self._unwritten) >= _WRITE_BYTES:
            self.write_pending()

    def write_pending(self) -> None:
        """Raises `FileError`; then it is all still pending."""
        if self._unwritten:
            self._create_late()
            with self._opened() as file:
                file.append([self._unwritten])
            self._unwritten = bytearray()

    @property
    def is_full(self) -> bool:
        return self._keys is not None and len(self._keys) >= self._max_entries

    def _truncate_entries(self, count: int) -> None:
        assert self._keys is not None
        assert self._values is not None
        if count < len(self._keys):
            written = len(self._keys) - len(self._unwritten) // self._entry.size
            if count < written:
                with self._opened() as file:
                    file.truncate(count * self._entry.size)
            del self._unwritten[max(count - written, 0) * self._entry.size :]
            del self._keys[count:]
            del self._values[count:]

    # Reading

    def last_entry(self) -> tuple[int, int] | None:
        if self._keys is not None and self._values is not None:
            return (self._keys[-1], self._values[-1]) if self._keys else None
        with self._opened() as file:
            count = file.size() // self._entry.size
            return self._read_entry(file, count - 1) if count else None

    def is_end_sound(self) -> bool:
        """Tell whether the file ends with a whole entry, and with one that ascends."""
        with self._opened() as file:
            count, rest = divmod(file.size(), self._entry.size)
            if rest or count < 2:
                return not rest
            return self._read_entry(file, count - 2)[0] < self._read_entry(file, count - 1)[0]

    def is_sound(self) -> bool:
        """Tell whether the file holds nothing but entries that ascend."""
        with self._opened() as file:
            data = file.read_at(0, file.size())
        return self._valid_entries(data) * self._entry.size == len(data)

    def _floor(self, key: int, *, cached_only: bool = False) -> tuple[int, int] | None:
        """The last entry whose key is not above `key`. Raises `WouldWait` with `cached_only`."""
        if self._keys is not None and self._values is not None:
            at = bisect_right(self._keys, key) - 1
            return (self._keys[at], self._values[at]) if at >= 0 else None
        with self._opened() as file:
            reads = CachedFile(file, partial(self._disk.read_file, self._file_path)) if cached_only else file
            low, high = 0, file.size() // self._entry.size
            while low < high:
                middle = (low + high) // 2
                if self._read_entry(reads, middle)[0] <= key:
                    low = middle + 1
                else:
                    high = middle
            return self._read_entry(reads, low - 1) if low else None

    def _ceiling_of_value(self, value: int) -> tuple[int, int] | None:
        """The first entry whose value is not below `value`."""
        if self._keys is not None and self._values is not None:
            at = bisect_left(self._values, value)
            return (self._keys[at], self._values[at]) if at < len(self._keys) else None
        with self._opened() as file:
            count = file.size() // self._entry.size
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                if self._read_entry(file, middle)[1] < value:
                    low = middle + 1
                else:
                    high = middle
            return self._read_entry(file, low) if low < count else None

    def _read_entry(self, file: Readable, number: int) -> tuple[int, int]:
        key, value = self._entry.unpack(file.read_at(number * self._entry.size, self._entry.size))
        return key, value

    def _entries_below(self, key: int, value: int) -> bytes:
        """Return the file that has the entries below both. For a thread beside appends and rolls."""
        keys, values = self._keys, self._values
        if keys is None or values is None:
            keys, values = self._split(self._disk.read_file(self.path))
        values = values[:]  # first: of an entry that comes meanwhile the key is there
        return b"".join(
            self._entry.pack(*pair) for pair in zip(keys[:], values, strict=False) if pair[0] < key and pair[1] < value
        )

    # Files

    @property
    def _file_path(self) -> str:
        return self.path + _ASIDE_SUFFIX if self._is_aside else self.path

    def sync(self) -> None:
        """Sync the file. May run in a thread beside lookups, and must not make a file anew that was just deleted."""
        file = self._disk.open(self._file_path)
        try:
            file.sync()
        finally:
            file.close()

    @contextmanager
    def _opened(self) -> Iterator[DiskFile]:
        file = self._disk.open(self._file_path, create=True)
        try:
            yield file
        finally:
            file.close()

    def _valid_entries(self, data: bytes) -> int:
        """Return how many entries from the start on ascend; behind them are zeros, or damage."""
        count = 0
        previous_key = previous_value = 0
        for key, value in self._entry.iter_unpack(data[: len(data) // self._entry.size * self._entry.size]):
            if (key <= previous_key and count) or value < previous_value or (key, value) == (0, 0):
                break
            previous_key, previous_value = key, value
            count += 1
        return count

    def _split(self, data: bytes) -> "tuple[array[int], array[int]]":
        pairs = list(self._entry.iter_unpack(data))
        return array(self._key_code, [key for key, _ in pairs]), array(_UINT32, [value for _, value in pairs])


class OffsetIndex(SparseIndex):
    """The index from offsets to positions in the segment."""

    _entry = struct.Struct(">II")
    _key_code = _UINT32

    def __init__(self, disk: Disk, path: str, base_offset: int, *, max_bytes: int) -> None:
        super().__init__(disk, path, max_bytes=max_bytes)
        self._base_offset = base_offset

    def append(self, offset: int, position: int) -> None:
        """The batch that ends at `offset` starts at `position`."""
        self._append(offset - self._base_offset, position)

    def entry_for(self, offset: int, *, cached_only: bool = False) -> tuple[int, int] | None:
        """The last entry whose batch ends at `offset` or before, as (offset, position). Raises `WouldWait` with
        `cached_only`.
        """
        if offset < self._base_offset:
            return None
        found = self._floor(offset - self._base_offset, cached_only=cached_only)
        return None if found is None else (self._base_offset + found[0], found[1])

    def lookup(self, offset: int) -> int:
        """A position at or before the batch with `offset`; 0 where the index does not know better."""
        found = self._floor(offset - self._base_offset) if offset >= self._base_offset else None
        return 0 if found is None else found[1]

    def replace_in_front(self, entries: Sequence[tuple[int, int]], position: int) -> None:
        """Other entries, (offset, position), for everything in front of the position."""
        pairs = [(offset - self._base_offset, at) for offset, at in entries]
        if self._keys is not None and self._values is not None:
            pairs += [pair for pair in zip(self._keys, self._values, strict=True) if pair[1] >= position]
            self._keys = array(self._key_code, [key for key, _ in pairs])
            self._values = array(_UINT32, [value for _, value in pairs])
        self._unwritten = bytearray(b"".join(starmap(self._entry.pack, pairs)))
        with self._opened() as file:
            file.truncate(0)
        self.write_pending()

    def encode_before(self, offset: int, position: int) -> bytes:
        """Return the file of the segment as it was when it ended there. For a thread; the segment is or was active."""
        return self._entries_below(offset - self._base_offset, position)

    def offset_behind(self, position: int) -> int | None:
        """The last offset of the first indexed batch that does not begin before `position`."""
        found = self._ceiling_of_value(position)
        return None if found is None else self._base_offset + found[0]

    def last(self) -> tuple[int, int] | None:
        """The last entry as (offset, position)."""
        found = self.last_entry()
        return None if found is None else (self._base_offset + found[0], found[1])

    def truncate_to(self, offset: int) -> None:
        """Forget entries of `offset` and above."""
        assert self._keys is not None
        self._truncate_entries(
            bisect_right(self._keys, offset - self._base_offset - 1) if offset > self._base_offset else 0
        )


class TimeIndex(SparseIndex):
    """The index from timestamps to offsets."""

    _entry = struct.Struct(">qI")
    _key_code = "q"

    def __init__(self, disk: Disk, path: str, base_offset: int, *, max_bytes: int) -> None:
        super().__init__(disk, path, max_bytes=max_bytes)
        self._base_offset = base_offset

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """No record up to `offset` is younger than `timestamp`. Nothing new unless that is above the last one, and
        nothing at all where no record has a timestamp.
        """
        assert self._keys is not None
        if timestamp > (self._keys[-1] if self._keys else NO_TIMESTAMP):
            self._append(timestamp, offset - self._base_offset)

    def lookup(self, timestamp: int, *, cached_only: bool = False) -> int:
        """Every record before this offset is older than `timestamp`, or in the batch that ends there. Raises
        `WouldWait` with `cached_only`.
        """
        found = self._floor(timestamp, cached_only=cached_only)
        return self._base_offset if found is None else self._base_offset + found[1]

    def last(self) -> tuple[int, int] | None:
        """The last entry as (timestamp, offset)."""
        found = self.last_entry()
        return None if found is None else (found[0], self._base_offset + found[1])

    def last_before(self, offset: int) -> tuple[int, int] | None:
        """The last entry below the offset, as (timestamp, offset). The index must be loaded."""
        assert self._keys is not None
        assert self._values is not None
        count = self._count_before(offset)
        return (self._keys[count - 1], self._base_offset + self._values[count - 1]) if count else None

    def encode_before(self, offset: int) -> bytes:
        """Return the file of the segment as it was when it ended there. For a thread; the segment is or was active."""
        return self._entries_below(MAX_TIMESTAMP, offset - self._base_offset)

    def truncate_to(self, offset: int) -> None:
        """Forget entries of `offset` and above."""
        self._truncate_entries(self._count_before(offset))

    def _count_before(self, offset: int) -> int:
        assert self._values is not None
        relative = offset - self._base_offset - 1
        return bisect_right(self._values, relative) if relative >= 0 else 0
