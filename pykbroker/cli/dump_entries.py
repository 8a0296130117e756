"""The entries of a file that `pykbroker dump` shows, with their fields, and findings in between, as they come.

Nothing is printed here, and nothing is held that is as large as the file.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pykbroker.protocol.descriptions.internal_topics import METADATA_TOPIC
from pykbroker.protocol.records.batch import RecordBatchHeader
from pykbroker.raft.election_state import ElectionState, InvalidQuorumState
from pykbroker.storage.checks import index_files, text_files
from pykbroker.storage.checks.batch_walk import BatchWalk, Found, FoundBatch, FoundLegacyMessage, Unreadable
from pykbroker.storage.checks.file_kinds import FileKind, FileName, parse_file_name
from pykbroker.storage.checks.findings import Finding, FindingKind
from pykbroker.storage.checks.index_files import AbortedEntry, EntryOrder, OffsetEntry, TimeEntry
from pykbroker.storage.checks.producer_files import read_producer_snapshot
from pykbroker.storage.checks.segment_check import ChainState, Checked, SegmentCheck
from pykbroker.storage.checks.snapshot_check import SnapshotFrame
from pykbroker.storage.files.disk import Disk, DiskFile
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.segments.batch_scan import scan_headers
from pykbroker.storage.segments.segment import INDEX_SUFFIX, LOG_SUFFIX, offset_file_name

from .dump_records import is_described, legacy_record_entries, record_entries

MAX_OFFSET = 2**63 - 1
LARGEST_TEXT_BYTES = 256 * 1024 * 1024


class Entry(NamedTuple):
    """`kind` says which fields there are; bytes are left as bytes."""

    kind: str
    fields: dict[str, Any]


Dumped: TypeAlias = Entry | Finding


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of a dump.

    offset, limit: from where on, and how many batches or entries. topic: the one whose records these are, if the
    directory's name does not tell. deep: look at every record, shown or not.
    """

    with_records: bool = False
    deep: bool = False
    offset: int | None = None
    limit: int | None = None
    max_bytes: int | None = None
    topic: str | None = None


def dump_file(disk: Disk, path: str, options: DumpOptions) -> Iterator[Dumped]:
    """Damage comes as findings; so does what the operating system refuses."""
    name = parse_file_name(posixpath.basename(path))
    try:
        if name is None:
            raise UnknownFile(path)
        yield from _dump(disk, path, name, options)
    except FileError as error:
        yield Finding(path, FindingKind.UNREADABLE, f"cannot {error.operation} it: {error.error.strerror}")


class UnknownFile(Exception):
    """The name is none that a broker gives to a file of a log directory."""


def _dump(disk: Disk, path: str, name: FileName, options: DumpOptions) -> Iterator[Dumped]:
    match name.kind:
        case FileKind.LOG | FileKind.METADATA_SNAPSHOT:
            yield from _dump_batches(disk, path, name, options)
        case FileKind.OFFSET_INDEX | FileKind.TIME_INDEX | FileKind.TRANSACTION_INDEX:
            yield from _dump_index(disk, path, name, options)
        case FileKind.PRODUCER_SNAPSHOT:
            rows, findings = read_producer_snapshot(path, _contents(disk, path))
            yield from islice((Entry("producer", row._asdict()) for row in rows), options.limit)
            yield from findings
        case FileKind.QUORUM_STATE:
            yield from _dump_quorum_state(path, _contents(disk, path))
        case _:
            found = _TEXT_READERS[name.kind](path, _contents(disk, path))
            yield from islice((Entry("line", dict(row.fields)) for row in found.rows), options.limit)
            yield from found.findings


_TEXT_READERS = {
    FileKind.OFFSET_CHECKPOINT: text_files.read_offset_checkpoint,
    FileKind.LEADER_EPOCHS: text_files.read_leader_epochs,
    FileKind.PARTITION_METADATA: text_files.read_partition_metadata,
    FileKind.META_PROPERTIES: text_files.read_meta_properties_file,
    FileKind.CLEAN_SHUTDOWN: text_files.read_clean_shutdown,
}


def _contents(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read_at(0, min(file.size(), LARGEST_TEXT_BYTES))
    finally:
        file.close()


def _dump_quorum_state(path: str, data: bytes) -> Iterator[Dumped]:
    try:
        ElectionState.from_json(data)
    except (InvalidQuorumState, RecursionError) as error:
        yield Finding(path, FindingKind.METADATA, str(error))
        return
    yield Entry("line", json.loads(data))


# Batches


def _dump_batches(disk: Disk, path: str, name: FileName, options: DumpOptions) -> Iterator[Dumped]:
    topic = options.topic or (METADATA_TOPIC if name.kind is FileKind.METADATA_SNAPSHOT else _topic(path))
    file = disk.open(path)
    try:
        base_offset = _base_offset(file, name)
        size = file.size()
        position = 0
        if options.offset is not None and name.kind is FileKind.LOG:
            position = _position_of(disk, file, path, base_offset, options.offset)
        if options.max_bytes is not None:
            size = min(size, position + options.max_bytes)
        check = SegmentCheck(
            file,
            base_offset,
            ChainState(),
            end_offset=_next_base_offset(disk, path, base_offset) if name.is_in_use else None,
            position=position,
            size=size,
            deep=options.deep or options.with_records or name.kind is FileKind.METADATA_SNAPSHOT or is_described(topic),
        )
        frame = SnapshotFrame(path) if name.kind is FileKind.METADATA_SNAPSHOT else None
        yield from _checked_entries(check, topic, options, frame)
    finally:
        file.close()


def _checked_entries(
    check: Iterable[Checked], topic: str | None, options: DumpOptions, frame: SnapshotFrame | None
) -> Iterator[Dumped]:
    shown = 0
    for found, findings, hole in check:
        if options.offset is not None and _last_offset(found) < options.offset:
            continue
        if options.limit is not None and shown >= options.limit:
            return
        shown += 1
        if hole is not None:
            yield Entry("hole", {"first_offset": hole.start, "last_offset": hole.stop - 1})
        if isinstance(found, FoundBatch):
            yield Entry("batch", _batch_fields(found))
            yield from findings
            yield from (Entry(*each) for each in record_entries(found, topic, with_plain=options.with_records))
            yield from frame.note(found) if frame is not None else ()
        elif isinstance(found, FoundLegacyMessage):
            fields = {name: value for name, value in found._asdict().items() if name != "data"}
            yield Entry("legacy_message", fields)
            yield from findings
            if options.with_records or is_described(topic):
                yield from (Entry(*each) for each in legacy_record_entries(found, topic))
        else:
            yield from findings
    if frame is not None and options.offset is None:
        yield from frame.finish()


def _last_offset(found: Found) -> int:
    """Return the last offset of what was found; the greatest one for what is no batch: it is shown in any case."""
    match found:
        case FoundBatch():
            return found.header.last_offset
        case FoundLegacyMessage():
            return found.offset
        case Unreadable():
            return MAX_OFFSET


def _batch_fields(batch: FoundBatch) -> dict[str, Any]:
    header = batch.header
    return {
        "position": batch.position,
        "size": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records_count": header.records_count,
        "compression": _COMPRESSION.get(header.attributes & 7, f"unknown ({header.attributes & 7})"),
        "magic": header.magic,
        "crc": header.crc,
        "is_crc_valid": batch.is_crc_valid,
        "leader_epoch": header.partition_leader_epoch,
        "timestamp_type": header.timestamp_type.name,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon": header.base_timestamp if header.has_delete_horizon else None,
    }


_COMPRESSION = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def _topic(path: str) -> str | None:
    """A partition's directory is `<topic>-<partition>`, with more behind it when it is on its way out."""
    directory = posixpath.basename(posixpath.dirname(posixpath.abspath(path)))
    match = re.fullmatch(r"(.+)-\d+(\.[0-9a-f]{32}-(delete|stray|future))?", directory)
    return match[1] if match else None


def _base_offset(file: DiskFile, name: FileName) -> int:
    """Return the base offset by the file's name or else by its first batch."""
    if name.base_offset is not None and name.kind is FileKind.LOG:
        return name.base_offset
    first = next(scan_headers(file, 0, file.size()), None)
    return max(first[1].base_offset, 0) if first is not None else 0


def _next_base_offset(disk: Disk, path: str, base_offset: int) -> int | None:
    names = disk.list_directory(posixpath.dirname(path) or ".")
    stems = (name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    return min((int(stem) for stem in stems if stem.isdecimal() and int(stem) > base_offset), default=None)


def _position_of(disk: Disk, file: DiskFile, path: str, base_offset: int, offset: int) -> int:
    """Return the position to begin at for `offset`: that of the index, if a sound batch stands there."""
    index_path = path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
    if not path.endswith(LOG_SUFFIX) or not disk.exists(index_path):
        return 0
    index = disk.open(index_path)
    try:
        count = index_files.used_size(index) // index_files.OFFSET_ENTRY.size
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if _entry_at(index, base_offset, middle).offset <= offset:
                low = middle + 1
            else:
                high = middle
        position = _entry_at(index, base_offset, low - 1).log_position if low else 0
    finally:
        index.close()
    if not 0 <= position < file.size():
        return 0
    first = next(iter(BatchWalk(file, position, file.size(), base_offset=base_offset)))
    is_sound = isinstance(first, FoundBatch) and first.is_crc_valid and first.header.base_offset <= offset
    return position if is_sound else 0


def _entry_at(index: DiskFile, base_offset: int, number: int) -> OffsetEntry:
    size = index_files.OFFSET_ENTRY.size
    relative, log_position = index_files.OFFSET_ENTRY.unpack(index.read_at(number * size, size))
    return OffsetEntry(number * size, base_offset + relative, log_position)


# Indexes


def _dump_index(disk: Disk, path: str, name: FileName, options: DumpOptions) -> Iterator[Dumped]:
    if name.base_offset is None:
        what = "an index is named after its segment's base offset, as 00000000000000000000.index"
        yield Finding(path, FindingKind.INDEX, what)
        return
    file = disk.open(path)
    try:
        order = EntryOrder(path, name.base_offset)
        shown = 0
        entries: Iterable[OffsetEntry | TimeEntry | AbortedEntry] = _INDEX_READERS[name.kind](file, name.base_offset)
        for entry in entries:
            if options.limit is not None and shown >= options.limit:
                break
            finding = order.check(entry)
            if options.offset is None or _offset_of(entry) >= options.offset:
                shown += 1
                yield Entry(_INDEX_ENTRIES[name.kind], entry._asdict())
            if finding is not None:
                yield finding
        size_finding = index_files.check_size(file, _INDEX_SIZES[name.kind])
        if size_finding is not None:
            yield size_finding
        if name.is_in_use and name.kind is not FileKind.TRANSACTION_INDEX:
            yield from _compare_with_log(disk, file, path, name)
    finally:
        file.close()


_INDEX_READERS: dict[FileKind, Any] = {
    FileKind.OFFSET_INDEX: index_files.offset_entries,
    FileKind.TIME_INDEX: index_files.time_entries,
    FileKind.TRANSACTION_INDEX: lambda file, _base_offset: index_files.aborted_entries(file),
}
_INDEX_ENTRIES = {
    FileKind.OFFSET_INDEX: "offset_entry",
    FileKind.TIME_INDEX: "time_entry",
    FileKind.TRANSACTION_INDEX: "aborted_transaction",
}
_INDEX_SIZES = {
    FileKind.OFFSET_INDEX: index_files.OFFSET_ENTRY.size,
    FileKind.TIME_INDEX: index_files.TIME_ENTRY.size,
    FileKind.TRANSACTION_INDEX: index_files.ABORTED_ENTRY.size,
}


def _offset_of(entry: OffsetEntry | TimeEntry | AbortedEntry) -> int:
    return entry.last_offset if isinstance(entry, AbortedEntry) else entry.offset


def _compare_with_log(disk: Disk, index: DiskFile, path: str, name: FileName) -> Iterator[Finding]:
    assert name.base_offset is not None
    log_path = posixpath.join(posixpath.dirname(path), offset_file_name(name.base_offset, LOG_SUFFIX))
    if not disk.exists(log_path):
        return
    log = disk.open(log_path)
    try:
        headers = scan_headers(log, 0, log.size())
        if name.kind is FileKind.OFFSET_INDEX:
            yield from _compare_offsets(index_files.OffsetIndexComparison(index, name.base_offset), headers)
        else:
            is_active = _next_base_offset(disk, path, name.base_offset) is None
            times = index_files.TimeIndexComparison(index, name.base_offset)
            for position, header in headers:
                yield from times.note(position, header)
            yield from times.finish(is_active=is_active)
    finally:
        log.close()


def _compare_offsets(
    comparison: index_files.OffsetIndexComparison, headers: Iterable[tuple[int, RecordBatchHeader]]
) -> Iterator[Finding]:
    for position, header in headers:
        yield from comparison.note(position, header)
    yield from comparison.finish()
