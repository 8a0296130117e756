"""The moving state of a log: where it begins and ends, how much is durable, and what was taken back.

A truncation and a search by timestamp work beside appends and reads, and need this much of a `Log`.
"""

from __future__ import annotations

from collections.abc import Callable


class LogState:
    """The offsets of one log. recovery_point: everything below it is durable.

    is_being_truncated: a `Truncation` has begun and not ended; nobody appends meanwhile.
    """

    def __init__(self, *, log_start_offset: int, log_end_offset: int, recovery_point: int) -> None:
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.is_being_truncated = False
        self.truncations = 0
        """How often records were taken back: whoever worked with them in a thread sees that they may be gone."""
        self.cleaned_end_offset = 0
        """The end of the records for whose sake compaction has removed others, since a start or a truncation."""
        self.before_truncation: Callable[[int], None] | None = None
        """`before_truncation(offset)` is called before records are taken back to `offset`, so that the checkpoints
        promise no more first: after a crash the missing records would count as damage.
        """
        self.before_beginning_anew: Callable[[int], None] | None = None
        """`before_beginning_anew(offset)` is called then, before all records are taken back: a start that finds some of
        them, or none, completes it.
        """
        self.is_closed = False
