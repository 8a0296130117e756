"""Entries that a step of a state machine is about to change, kept so that the step can be taken back.

The records of a step may not find their way into the log: too few replicas are in sync, or the disk is full. Then the
step did not happen, and its tables go back to what they were. Kafka's counterpart is `SnapshotRegistry`, which keeps
every step; here whoever expects a refusal says so before (`begin`), and nothing is kept otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class KeptEntries(Generic[KeyT, ValueT]):
    """The kept entries of one table. find: the entry as it is, or None. copy: one that no later change reaches."""

    def __init__(self, find: Callable[[KeyT], ValueT | None], copy: Callable[[ValueT], ValueT]) -> None:
        self._find = find
        self._copy = copy
        self._kept: dict[KeyT, ValueT | None] | None = None

    @property
    def is_keeping(self) -> bool:
        return self._kept is not None

    def begin(self) -> None:
        assert self._kept is None, "one step after the other"
        self._kept = {}

    def keep(self, key: KeyT) -> None:
        """Keep an entry before it changes, comes or goes; only the first call of a step does anything."""
        if self._kept is not None and key not in self._kept:
            entry = self._find(key)
            self._kept[key] = None if entry is None else self._copy(entry)

    def end(self) -> dict[KeyT, ValueT | None]:
        """The entries as they were at `begin`, None for those that were not there; nothing else has changed."""
        assert self._kept is not None
        kept, self._kept = self._kept, None
        return kept
