"""The redundant part of the log of a partition of `__share_group_state`, which can be deleted: nothing is needed that
is below the oldest of all newest snapshots. Kafka's counterpart is `ShareCoordinatorOffsetsManager`.
"""

from __future__ import annotations

from ..persister import SharePartitionKey


class RedundantOffsets:
    """The offsets of the newest snapshots, which come in the order of the log."""

    def __init__(self) -> None:
        self._newest: dict[SharePartitionKey, int] = {}
        """The oldest first: what comes anew goes to the end."""
        self._last_deleted = 0

    def snapshot(self, key: SharePartitionKey, offset: int, *, is_tombstone: bool) -> None:
        self._newest.pop(key, None)
        if is_tombstone:
            self._last_deleted = offset
        else:
            self._newest[key] = offset

    def end_offset(self) -> int | None:
        """Return the first offset that is needed; None where nothing in front of it is known to be redundant."""
        offset = next(iter(self._newest.values()), self._last_deleted)
        return offset if offset > 0 else None
