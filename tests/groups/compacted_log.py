"""The log of a coordinator as compaction leaves it, and as a load sees it that compaction overtakes."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[bytes, bytes | None]
"""The key and the value of a record, whose offset is its place in the log."""


def compacted(log: Sequence[Pair], *, keeps_tombstones: bool) -> list[tuple[int, Pair]]:
    """The latest record of each key, with its offset. Tombstones go after a time."""
    latest = {key: offset for offset, (key, _) in enumerate(log)}
    return [
        (offset, (key, value))
        for offset, (key, value) in enumerate(log)
        if latest[key] == offset and (keeps_tombstones or value is not None)
    ]


def overtaken(log: Sequence[Pair], at: int) -> list[Pair]:
    """The records that a load sees which has read up to the offset `at` when the log is compacted."""
    rest = compacted(log, keeps_tombstones=True)
    return [*log[:at], *(pair for offset, pair in rest if offset >= at)]
