"""A broker and the process that cleans logs for it exchange these messages: pickles with their length in front.

Both ends belong to one version of the program, and nobody else has these pipes.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from pykbroker.storage.compaction.cleaning_task import CleanerConfig, CleaningAborted, CleaningTask, Uncleanable
from pykbroker.storage.compaction.record_filter import LastRecord
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import CorruptIndex, CorruptLog, DiskFailed, FileError, NoRoom, StorageError
from pykbroker.storage.segments.leader_epochs import EpochEntry
from pykbroker.storage.segments.log_config import LogConfig
from pykbroker.storage.segments.segment import CLEANED_SUFFIX, LogSegment
from pykbroker.storage.segments.verified_extents import VerifiedExtents

_LENGTH = struct.Struct(">I")
_READ_BYTES = 1 << 16


class SegmentDescription(NamedTuple):
    """The description of a segment lets the other process open the same files."""

    base_offset: int
    size: int
    has_aborted_transactions: bool
    unchecked: tuple[int, int | None] | None
    """Up to which position and offset something may not have been checked yet."""


class ReadKeys(NamedTuple):
    """The message begins a task, and is answered with the offset up to which the keys are known."""

    directory: str
    log_config: LogConfig
    segments: Sequence[SegmentDescription]
    epochs: Sequence[EpochEntry]
    first_dirty_offset: int
    end_offset: int
    producers: Mapping[int, LastRecord]
    now_ms: int
    horizon_ms: int
    config: CleanerConfig


class CleanGroup(NamedTuple):
    """The message asks for a group of the task that was begun last, and is answered with a `CleanedSegment`."""

    base_offsets: Sequence[int]


class CleanedSegment(NamedTuple):
    """The cleaned segment is there, in files with `.cleaned` behind their names."""

    size: int
    max_timestamp: int
    offset_of_max_timestamp: int


class Progressed(NamedTuple):
    """The message reports so many bytes since the last one, and is answered with `GoOn` or `Abort` before anything else
    is done.
    """

    size: int


class GoOn(NamedTuple):
    """The message lets the task go on."""


class Abort(NamedTuple):
    """The message ends the task."""

    reason: str


class Done(NamedTuple):
    """The message says that what was asked for is done, and what came of it."""

    result: object


class Failed(NamedTuple):
    """The failure is an expected exception: the name of its class, and what it is made of."""

    kind: str
    arguments: Sequence[str]
    errno: int = 0

    @classmethod
    def because_of(cls, error: StorageError) -> Failed:
        if isinstance(error, FileError):
            strerror = error.error.strerror or str(error.error)
            return cls(type(error).__name__, (error.operation, error.path, strerror), error.error.errno or 0)
        return cls(type(error).__name__, (str(error),))

    def raise_again(self) -> NoReturn:
        if self.kind in _FILE_ERRORS:
            operation, path, strerror = self.arguments
            raise _FILE_ERRORS[self.kind](operation, path, OSError(self.errno, strerror))
        raise _FAILURES[self.kind](*self.arguments)


_FILE_ERRORS = {kind.__name__: kind for kind in (DiskFailed, NoRoom)}
_FAILURES: dict[str, type[StorageError]] = {
    kind.__name__: kind for kind in (CleaningAborted, Uncleanable, CorruptLog, CorruptIndex)
}


# A task, told and understood


def describe(task: CleaningTask) -> ReadKeys:
    return ReadKeys(
        task.directory,
        task.log_config,
        [_describe_segment(each) for each in task.segments],
        task.epochs,
        task.first_dirty_offset,
        task.end_offset,
        task.producers,
        task.now_ms,
        task.horizon_ms,
        task.config,
    )


def _describe_segment(segment: LogSegment) -> SegmentDescription:
    extents = segment.extents
    unchecked = None if extents is None or extents.is_complete else (extents.end, extents.end_offset)
    return SegmentDescription(segment.base_offset, segment.size, not segment.transaction_index.is_empty, unchecked)


def understand(message: ReadKeys, disk: Disk) -> CleaningTask:
    """Open the log's segments a second time, for the same files. Raises `CorruptLog`, `FileError`."""

    def segment_at(base_offset: int, name_suffix: str = "") -> LogSegment:
        return LogSegment(
            disk, message.directory, base_offset, message.log_config, message.now_ms, name_suffix=name_suffix
        )

    segments: list[LogSegment] = []
    for each in message.segments:
        segment = segment_at(each.base_offset)
        segment.size = each.size
        if each.has_aborted_transactions:
            segment.transaction_index.load()
        if each.unchecked is not None:
            segment.extents = VerifiedExtents(*each.unchecked)
        segments.append(segment)
    return CleaningTask(
        message.directory,
        message.log_config,
        segments,
        message.epochs,
        message.first_dirty_offset,
        message.end_offset,
        message.producers,
        message.now_ms,
        message.horizon_ms,
        message.config,
        lambda group: segment_at(group[0].base_offset, CLEANED_SUFFIX),
    )


# The pipes


def write_message(descriptor: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class MessageReader:
    """The reader takes messages from a pipe. wait: called before each read that may block."""

    def __init__(self, descriptor: int, wait: Callable[[], None] = lambda: None) -> None:
        self._descriptor = descriptor
        self._wait = wait
        self._buffer = bytearray()

    def read(self) -> object:
        """Raises `EOFError` when the other end is gone."""
        (size,) = _LENGTH.unpack(self._take(_LENGTH.size))
        return pickle.loads(self._take(size))  # noqa: S301 - written by our own process

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._wait()
            data = os.read(self._descriptor, _READ_BYTES)
            if not data:
                raise EOFError
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken
