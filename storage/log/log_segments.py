"""The segments of one log in the order of their offsets (`LogSegments`), and where its latest batches are.

It knows which of them there are, not why one comes or goes: that is decided by the log and what stands around it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from ..segments.segment import LogSegment

_RECENT_BATCHES = 256


class LogSegments:
    """There is always one; the last one is `active`. `all` is to be read only, and changes with the log."""

    def __init__(self, segments: list[LogSegment]) -> None:
        self.all = segments
        self.active = segments[-1]
        self.recent: dict[int, tuple[LogSegment, int]] = {}
        """Where the latest batches are, by base offset: consumers at the end of the log ask for nothing else."""
        self._rolled: list[LogSegment] = []

    @property
    def first(self) -> LogSegment:
        return self.all[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    @property
    def rolled(self) -> Sequence[LogSegment]:
        """Those whose indexes are not durable yet, as they are now."""
        return list(self._rolled)

    def number_of(self, offset: int) -> int:
        """The number of the last segment that begins at or before `offset`."""
        if offset >= self.active.base_offset:
            return len(self.all) - 1
        return _number_of(offset, self.all)

    def since(self, offset: int) -> Sequence[LogSegment]:
        """The segment of the offset and those behind it, as they are now. May be called in a thread."""
        segments = list(self.all)
        return segments[_number_of(offset, segments) :]

    def has(self, segments: Sequence[LogSegment]) -> bool:
        """Tell whether these are neighbours in the log, and none of them active."""
        if segments[0] not in self.all:
            return False
        first = self.all.index(segments[0])
        return self.all[first:-1][: len(segments)] == list(segments)

    def note_batch(self, base_offset: int, position: int) -> None:
        """Note a batch that was appended to the active segment."""
        recent = self.recent
        if len(recent) >= _RECENT_BATCHES:
            # Many at once: to find a dictionary's first key is to pass all that were deleted in front of it.
            for offset in list(islice(recent, _RECENT_BATCHES // 2)):
                del recent[offset]
        recent[base_offset] = (self.active, position)

    # The end

    def roll_to(self, segment: LogSegment) -> None:
        """Another one is active from now on."""
        self._rolled.append(self.active)
        self.all.append(segment)
        self.active = segment

    def note_rolled(self) -> None:
        """The active one is not appended to any more, and none follows."""
        self._rolled.append(self.active)

    def note_synced(self, rolled: Sequence[LogSegment]) -> None:
        """Note segments whose indexes are durable."""
        for segment in rolled:
            if segment in self._rolled:
                self._rolled.remove(segment)

    def replace_active(self, segment: LogSegment) -> None:
        """Replace the active segment by an empty one that begins elsewhere."""
        self.all[-1] = self.active = segment

    def last_behind(self, offset: int) -> LogSegment | None:
        """The last one, where it begins there and is not the only one."""
        last = self.all[-1]
        return last if len(self.all) > 1 and last.base_offset > offset else None

    def drop_last(self) -> None:
        """Drop the last segment, whose files are out of use; the one before it is active."""
        self._forget([self.all.pop()])
        self.active = self.all[-1]
        self._rolled = [segment for segment in self._rolled if segment is not self.active]

    def begin_with(self, segment: LogSegment) -> None:
        self.recent.clear()
        self.all = [segment]
        self.active = segment
        self._rolled = []

    # In front of the active one

    def drop_first(self, count: int) -> None:
        gone = self.all[:count]
        del self.all[:count]
        self._forget(gone)

    def replace(self, old: Sequence[LogSegment], new: LogSegment) -> None:
        """Neighbours by one that holds what is left of them."""
        first = self.all.index(old[0])
        self.all[first : first + len(old)] = [new]
        self._forget(old)

    def _forget(self, gone: Sequence[LogSegment]) -> None:
        self._rolled = [segment for segment in self._rolled if segment not in gone]
        self.recent = {offset: found for offset, found in self.recent.items() if found[0] not in gone}

    # All of them

    def move_to(self, directory: str) -> None:
        for segment in self.all:
            segment.move_to(directory)

    def abandon(self) -> None:
        self.recent.clear()
        for segment in self.all:
            segment.abandon()


def _number_of(offset: int, segments: Sequence[LogSegment]) -> int:
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
