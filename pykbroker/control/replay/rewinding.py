"""Log directories of a later moment, cut back to a point of the journal.

Each log loses what is behind its end there, as a follower takes back what its leader does not have: so its indexes,
epochs and producers are as they were, too. Nothing can be put back: where records were deleted or compacted since, or
where a log has lost its end, the point cannot be had, and the error says of which log.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pykbroker.control.journal.points import METADATA, LogEnd
from pykbroker.control.savepoints.node_copy import Rewind
from pykbroker.metadata.image import InconsistentMetadata, MetadataImage
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.quorum.metadata_snapshots import MetadataSnapshots
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY, parse_partition_directory
from pykbroker.storage.directories.partition_metadata import read_topic_id
from pykbroker.storage.directories.shutdown_marks import ShutdownMarks
from pykbroker.storage.files.checkpoints import (
    CLEANED_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    RECOVERY_POINT,
    OffsetCheckpoint,
)
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.batch_scan import scan_headers
from pykbroker.storage.segments.log_config import LogConfig
from pykbroker.storage.segments.segment import LOG_SUFFIX

from .errors import PointLost
from .points import Point

_SEGMENT: Final = re.compile(r"([0-9]{20})" + re.escape(LOG_SUFFIX))
_OF_STATES: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics whose latest record by key is all that counts."""
_CONFIG: Final = LogConfig(retention_ms=-1)
_DELETERS: Final = "by retention or by DeleteRecords"


def rewind_copy(point: Point, node_id: int, now_ms: int) -> Rewind:
    """Return what rewinds a copy that goes with its process."""
    disk = UnsyncedDisk()
    return lambda directories: rewind(disk, directories, point, node_id=node_id, now_ms=now_ms)


def rewind(disk: Disk, directories: Sequence[Path], point: Point, *, node_id: int, now_ms: int) -> None:
    """Cut back log directories that were left by a clean shutdown, the metadata log's first. In a thread.

    Raises PointLost, StorageError; then they are of no use.
    """
    metadata = posixpath.join(str(directories[0]), METADATA_LOG_DIRECTORY)
    image = _rewind_metadata(disk, metadata, point, now_ms)
    there = {
        TopicPartition(name, index): uuid_to_text(topic.topic_id)
        for name, topic in image.topics.items()
        for index in topic.partitions
    }
    wanted = {at: end for at, end in point.logs.items() if there.get(at) == end.topic_id}
    broker = image.brokers.get(node_id)
    for path in map(str, directories):
        _Directory(disk, path, point, now_ms).rewind(wanted)
        ShutdownMarks(disk, path).mark_clean_shutdown(-1 if broker is None else broker.epoch)
    for at in wanted:
        raise PointLost(f"topic {at.topic} was deleted after #{point.number}, and its records with it")


def _rewind_metadata(disk: Disk, directory: str, point: Point, now_ms: int) -> MetadataImage:
    """Cut the metadata log back, and return what it says then."""
    end_offset = point.logs[METADATA].end_offset
    snapshots = MetadataSnapshots(disk, directory)
    older = [each for each in snapshots.ids if each.end_offset <= end_offset]
    log = Log.open(
        disk, directory, _CONFIG, now_ms=now_ms, recovery_point=None, high_watermark=None, clean_shutdown=True
    )
    try:
        _check_end(log.log_end_offset, METADATA, end_offset, point)
        if log.log_start_offset and not any(each.end_offset >= log.log_start_offset for each in older):
            raise PointLost(f"the metadata as of #{point.number} is gone: a later snapshot has taken its place")
        for each in snapshots.ids:
            if each.end_offset > end_offset:
                disk.remove(snapshots.path(each))
        log.truncate_to(end_offset)
    finally:
        log.close()
    opened = MetadataLog.open(disk, directory, _CONFIG, clean_shutdown=True, now_ms=now_ms)
    image = MetadataImage()
    try:
        for record in opened.read():
            image.replay(record.message, record.offset)
    except InconsistentMetadata as error:
        raise PointLost(f"the metadata as of #{point.number} makes no sense: {error}") from None
    finally:
        opened.close()
    return image


class _Directory:
    """A log directory with partitions."""

    def __init__(self, disk: Disk, path: str, point: Point, now_ms: int) -> None:
        self._disk = disk
        self._path = path
        self._point = point
        self._now_ms = now_ms
        self._starts = self._checkpoint(LOG_START_OFFSET).read()
        self._cleaned = self._checkpoint(CLEANED_OFFSET).read()
        self._ends = self._checkpoint(RECOVERY_POINT).read()
        self._marks = self._checkpoint(HIGH_WATERMARK).read()

    def rewind(self, wanted: dict[TopicPartition, LogEnd]) -> None:
        """Cut back the logs, and take what is done out of `wanted`. Raises PointLost, StorageError."""
        for name in self._disk.list_directory(self._path):
            at = parse_partition_directory(name)
            if at is None:
                continue
            path = posixpath.join(self._path, name)
            topic_id = read_topic_id(self._disk, path)
            end = wanted.get(at)
            if end is not None and topic_id is not None and uuid_to_text(topic_id) == end.topic_id:
                self._rewind(at, path, end)
                del wanted[at]
            else:
                self._disk.remove_directory(path)
                self._forget(at)
        for kind, offsets in (
            (RECOVERY_POINT, self._ends),
            (HIGH_WATERMARK, self._marks),
            (LOG_START_OFFSET, self._starts),
            (CLEANED_OFFSET, self._cleaned),
        ):
            if offsets or self._disk.exists(self._checkpoint(kind).path):
                self._checkpoint(kind).write(offsets)

    def _rewind(self, at: TopicPartition, path: str, end: LogEnd) -> None:
        number = self._point.number
        cleaned = max(self._cleaned.get(at, 0), self._point.compacted.get(at, 0))
        is_compacted = cleaned > end.cleaned_offset or at in self._point.compacted
        if is_compacted and (at.topic not in _OF_STATES or cleaned > end.end_offset):
            raise PointLost(f"{at} was compacted after #{number}: records that it had then are gone")
        start_offset = self._start_of(at, path)
        if start_offset > end.start_offset and end.end_offset > end.start_offset:
            last = min(start_offset, end.end_offset) - 1
            raise PointLost(f"{at} has lost the records {end.start_offset} to {last} after #{number}, {_DELETERS}")
        if start_offset > end.end_offset:
            raise PointLost(f"{at} began at {end.start_offset} at #{number}, and begins at {start_offset} now")
        if self._ends.get(at, 0) != end.end_offset or at in self._point.lowest_ends:  # which are cut off, or refused
            self._cut(at, path, start_offset, end.end_offset)
        self._ends[at] = end.end_offset
        self._marks[at] = min(self._marks.get(at, end.end_offset), end.end_offset)

    def _cut(self, at: TopicPartition, path: str, start_offset: int, end_offset: int) -> None:
        log = Log.open(
            self._disk,
            path,
            _CONFIG,
            now_ms=self._now_ms,
            log_start_offset=start_offset,
            recovery_point=self._ends.get(at),
            high_watermark=self._marks.get(at, 0),
            clean_shutdown=True,
            has_been_compacted=at in self._cleaned,
        )
        try:
            _check_end(log.log_end_offset, at, end_offset, self._point)
            log.truncate_to(end_offset)
            if at in self._point.lowest_ends:
                _check_last(log, at, self._point)
        finally:
            log.close()

    def _start_of(self, at: TopicPartition, path: str) -> int:
        names = filter(None, map(_SEGMENT.fullmatch, self._disk.list_directory(path)))
        return max(self._starts.get(at, 0), min((int(match[1]) for match in names), default=0))

    def _forget(self, at: TopicPartition) -> None:
        for offsets in (self._starts, self._cleaned, self._ends, self._marks):
            offsets.pop(at, None)

    def _checkpoint(self, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self._disk, posixpath.join(self._path, name))


def _check_last(log: Log, at: TopicPartition, point: Point) -> None:
    """Raises PointLost where a log that a crash has cut off lacks its last records: a log that may have holes has
    segments left behind one that was not flushed.
    """
    found = log.log_start_offset
    last = next((each for each in reversed(log.segments) if each.size), None)
    if last is not None:
        for _, header in scan_headers(last.file, 0, last.size):
            found = header.next_offset
    if found < log.log_end_offset:
        raise PointLost(
            f"{at} ended at {log.log_end_offset} at #{point.number}, and its last record is at {found - 1} now: what "
            "was not flushed was lost"
        )


def _check_end(end_now: int, at: TopicPartition, end_offset: int, point: Point) -> None:
    lowest = min(end_now, point.lowest_ends.get(at, end_now))
    if lowest < end_offset:
        raise PointLost(
            f"{at} ended at {end_offset} at #{point.number}, and at {lowest} later: what was not flushed was lost, or "
            "this state is an older one"
        )
