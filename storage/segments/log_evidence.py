"""The evidence about a log from outside of its segments, and what recovery may take away in the light of it.

A log that was not shut down ends in whatever was being written. What a crash may have torn is cut off; what was there
for certain is not, however little sense the bytes make by now: `CorruptLog` then leaves every file as it is.

A process that dies leaves everything it wrote in the system's page cache: the file may end within the last batch, and
that is all. A machine that dies forgets what was not flushed, pages in any order, earlier ones and not later ones too.
So the recovery point proves that something was durable, whatever happened. The high watermark proves only that it was
there: acknowledged records below it may be gone with the machine, since an acknowledgement does not wait for a flush.
Pages that are missing are zeros, though, and no flipped bits.
"""

from typing import NamedTuple

from ..files.errors import CorruptLog


class LogEvidence(NamedTuple):
    """The evidence about one log.

    flushed_offset: everything below was durable (the recovery point); None where no checkpoint tells.
    high_watermark: everything below was there and acknowledged, but perhaps never flushed; None as above.
    machine_stayed_up: since the log was written to last. clean_shutdown: it was closed in order.
    """

    flushed_offset: int | None = 0
    high_watermark: int | None = 0
    machine_stayed_up: bool = False
    clean_shutdown: bool = False

    @property
    def recovery_point(self) -> int:
        return self.flushed_offset or 0

    @property
    def is_nothing_unflushed(self) -> bool:
        """Tell whether the files are what the process left."""
        return self.machine_stayed_up or self.clean_shutdown

    @property
    def must_reach(self) -> int:
        """A log that ends before is damaged."""
        if self.is_nothing_unflushed:
            return max(self.recovery_point, self.high_watermark or 0)
        return self.recovery_point

    def seen(self, offset: int) -> "LogEvidence":
        """The log had come to this offset, as a file of it tells."""
        known = self.high_watermark
        return self if known is not None and offset <= known else self._replace(high_watermark=offset)


class Tail(NamedTuple):
    """The bytes behind the last batch that recovery could follow.

    problem: why it is not the next one. is_torn: whether a write that was cut short leaves the like. lacks_bytes:
    whether pages do that never came to the disk. sound_batches: how many with a right checksum come later.
    """

    path: str
    position: int
    next_offset: int
    problem: str
    is_torn: bool
    lacks_bytes: bool
    sound_batches: int


def check_tail(tail: Tail, evidence: LogEvidence) -> None:
    """Raises `CorruptLog` where it must not be cut off."""
    at = tail.next_offset
    is_whole = evidence.clean_shutdown and at == evidence.flushed_offset
    reasons = []
    if at < evidence.recovery_point:
        reasons.append(f"everything below offset {evidence.recovery_point} was flushed")
    elif at < evidence.must_reach:
        reasons.append(f"the log had come to offset {evidence.must_reach}")
    if evidence.is_nothing_unflushed:
        if tail.sound_batches:
            reasons.append(f"{tail.sound_batches} sound batches follow")
        elif not reasons and not tail.is_torn and not is_whole:
            reasons.append("no crash of a process leaves that")
    elif (
        tail.sound_batches
        and not (tail.is_torn or tail.lacks_bytes)
        and (evidence.high_watermark is None or at < evidence.high_watermark)
    ):
        reasons.append(f"{tail.sound_batches} sound batches follow")
    if reasons:
        raise CorruptLog(
            f"{tail.path} is damaged at position {tail.position}, where offset {at} belongs: {tail.problem}; "
            + ", ".join(reasons)
        )


def check_end(directory: str, next_offset: int, evidence: LogEvidence) -> None:
    """Raises `CorruptLog` where the log ends too early."""
    if next_offset < evidence.recovery_point:
        what = f"everything below offset {evidence.recovery_point} was flushed"
    elif next_offset < evidence.must_reach:
        what = f"it had come to offset {evidence.must_reach}"
    else:
        return
    raise CorruptLog(f"{directory} ends at offset {next_offset}, but {what}: files are missing or cut off")
