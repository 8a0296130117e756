"""The task of a cleaning, who may do it, and why it is given up.

A broker has this much in memory from its start. The rest of the package is imported when a log is cleaned first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..files.errors import StorageError
from ..segments.leader_epochs import EpochEntry
from ..segments.log_config import LogConfig
from ..segments.segment import LogSegment

if TYPE_CHECKING:
    from .record_filter import LastRecord


class CleaningAborted(StorageError):
    """The log is deleted, truncated or not ours any more, or the broker stops."""


class Uncleanable(StorageError):
    """The settings do not allow it."""


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """The cleaner's settings.

    memory_bytes: for the keys of one log, `log.cleaner.dedupe.buffer.size` by the number of threads.
    """

    memory_bytes: int
    load_factor: float


Progress = Callable[[int], None]
"""Told how many bytes were read or written since the last time. It may wait, and raise `CleaningAborted`."""


@dataclass(frozen=True, slots=True)
class CleaningTask:
    """The task of a cleaning: from `first_dirty_offset` on, up to `end_offset`, where a segment begins.

    segments: all of the log, since a marker far behind may end a transaction; what nobody has read since the start is
    checked first. epochs: those of the log. producers: the active ones.
    horizon_ms: up to when delete horizons are over. new_segment: in the place of a group, not created yet.
    """

    directory: str
    log_config: LogConfig
    segments: Sequence[LogSegment]
    epochs: Sequence[EpochEntry]
    first_dirty_offset: int
    end_offset: int
    producers: Mapping[int, LastRecord]
    now_ms: int
    horizon_ms: int
    config: CleanerConfig
    new_segment: Callable[[Sequence[LogSegment]], LogSegment]

    @property
    def cleanable_segments(self) -> Sequence[LogSegment]:
        return [each for each in self.segments if each.base_offset < self.end_offset]


class CleaningWork(Protocol):
    """A task under way, in this thread or elsewhere. Both raise `CleaningAborted`, `CorruptLog`, `FileError`."""

    def read_keys(self) -> int:
        """Return the offset up to which the keys are known; raises `Uncleanable` where that is no batch further."""
        ...

    def clean(self, group: Sequence[LogSegment]) -> LogSegment:
        """A new segment with what stays of the group: durable. Where it fails, no file of it is left."""
        ...
