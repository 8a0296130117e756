"""The findings of a check: where each is, what is wrong, and which repair it takes."""

from enum import StrEnum
from typing import NamedTuple


class FindingKind(StrEnum):
    """The first ones are damage; the last two are worth knowing, and nothing is wrong."""

    BATCH = "batch"
    """Bytes of a log that are no sound batch, or one that does not follow the batch before."""
    HOLE = "hole"
    """Offsets that are missing where no compaction was."""
    LOST = "lost"
    """The log ends before an offset that is known to have been given out."""
    TAIL = "tail"
    """Bytes behind the last batch of a log, above what was flushed."""
    INDEX = "index"
    """An index that contradicts its log: it can be made anew from it."""
    PRODUCERS = "producers"
    """A producer snapshot: the log tells the same."""
    EPOCHS = "epochs"
    """A leader epoch checkpoint that contradicts its log."""
    OFFSETS = "offsets"
    """A checkpoint of offsets that cannot be read or contradicts the logs."""
    IDENTITY = "identity"
    """Whose directory it is: `meta.properties`, `partition.metadata`."""
    METADATA = "metadata"
    """The cluster's own files: snapshots of the metadata log, `quorum-state`."""
    MISSING = "missing"
    """The directory of a partition that must be there."""
    UNREADABLE = "unreadable"
    """The operating system refuses to read it."""
    LEFTOVER = "leftover"
    """A file or directory that was on its way out, or that nobody knows."""
    NOTE = "note"
    """Something that the next start of the broker sees to."""

    @property
    def is_damage(self) -> bool:
        return self not in (FindingKind.LEFTOVER, FindingKind.NOTE)


class Finding(NamedTuple):
    """One finding.

    position: of the first byte concerned. offset: of the first record concerned. end: behind the last byte.
    """

    path: str
    kind: FindingKind
    what: str
    position: int | None = None
    offset: int | None = None
    end: int | None = None

    @property
    def is_damage(self) -> bool:
        return self.kind.is_damage

    def __str__(self) -> str:
        """Return the finding as text, without the path."""
        place = "" if self.position is None else f"at byte {self.position}"
        if self.offset is not None:
            place += f" (offset {self.offset})" if place else f"at offset {self.offset}"
        return f"{place}: {self.what}" if place else self.what
