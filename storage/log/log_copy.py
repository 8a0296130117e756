"""A log on its way to another log directory, while it is appended to, truncated and cleaned (KIP-113).

Kafka copies with a fetcher that treats the copy as a follower (`ReplicaAlterLogDirsThread`); so does this, batch by
batch. Who copies when, and what happens before the copy takes the log's place, is decided elsewhere.
"""

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.records.batch import LegacyMessage, iter_batches
from pykbroker.protocol.records.errors import InvalidRecords

from ..files.errors import CorruptLog
from .log import Log
from .log_reads import LogSlice


class LogCopy:
    """`log` becomes what `source` is. `next_slice`, `finish` belong where appends to the source are."""

    def __init__(self, source: Log, log: Log) -> None:
        self.source = source
        self.log = log
        self._truncations: int | None = None
        """Of the source, when both were compared last: what an earlier run has copied a power cut may have taken there.
        """

    @property
    def offset_lag(self) -> int:
        """Return how many offsets are still to be copied."""
        return max(self.source.log_end_offset - self.log.log_end_offset, 0)

    def next_slice(self, max_bytes: int, *, now_ms: int) -> LogSlice | None:
        """Return the slice of the source that is appended next, one batch at least; None where nothing is missing.

        Raises `FileError`, `CorruptLog`.
        """
        source, log = self.source, self.log
        if source.truncations != self._truncations:
            self._truncations = source.truncations
            self._truncate()
        is_empty_there = log.log_start_offset == log.log_end_offset == source.log_start_offset
        if log.log_end_offset < source.log_start_offset or is_empty_there:
            start = self._start_of_batch(source.log_start_offset)
            if start != log.log_end_offset:
                log.truncate_fully_and_start_at(start, now_ms=now_ms)
        if log.log_end_offset >= source.log_end_offset:
            return None
        found = source.read(max(log.log_end_offset, source.log_start_offset), max_bytes, min_one_batch=True)
        if not found.size:
            # What is left was compacted away.
            log.skip_to(source.log_end_offset, now_ms=now_ms)
            return None
        return found

    def append(self, data: LogSlice) -> None:
        """Append a slice.

        May run in a thread. Raises `FileError`, and `CorruptLog` where the source is not what it should be.

        Nothing is appended where the source was truncated since `next_slice`: other batches may lie at the place.
        """
        before = self.log.log_end_offset
        records = data.read()
        if self.source.truncations != self._truncations:
            return
        try:
            self.log.append_as_follower(records)
        except ApiError as rejected:
            raise CorruptLog(f"{data.file.path}, at position {data.position}: {rejected}") from rejected
        if self.log.log_end_offset == before:
            raise CorruptLog(f"{data.file.path} has no batch at position {data.position}")

    def _truncate(self) -> None:
        """Back to where both certainly agree, as a follower does with its leader (KIP-101): epoch by epoch."""
        log = self.log
        while (end := self._end_of_latest_epoch()) < log.log_end_offset:
            log.truncate_to(end)

    def _end_of_latest_epoch(self) -> int:
        """Return where the copy's latest epoch, or the source's latest before it, ends in both."""
        log = self.log
        end = min(log.log_end_offset, self.source.log_end_offset)
        epoch = log.latest_epoch
        if epoch is None:
            return end
        theirs, end_there = self.source.end_offset_for_epoch(epoch)
        _, end_here = log.end_offset_for_epoch(theirs) if theirs >= 0 else (-1, 0)
        return min(end, max(end_there, 0), max(end_here, 0))

    def _start_of_batch(self, offset: int) -> int:
        """A log may start within a batch, which is copied whole. Nothing is read where no batch is in front of it."""
        if offset == self.source.segments[0].base_offset:
            return offset
        data = self.source.read(offset, 1, min_one_batch=True)
        try:
            batch = next(iter_batches(data.read(), allow_partial=True), None)
            if isinstance(batch, LegacyMessage):
                batch = batch.located()
        except InvalidRecords as error:
            raise CorruptLog(f"{data.file.path}, at position {data.position}: {error.message}") from error
        return offset if batch is None else min(batch.header.base_offset, offset)

    def finish(self) -> None:
        """The copy is complete: it takes over what does not stand in batches."""
        assert not self.offset_lag, "the copy is behind its source"
        self.log.take_over_state(self.source)
