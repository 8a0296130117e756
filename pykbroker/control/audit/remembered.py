"""A dictionary that remembers so many entries; whichever was least recently looked up or set gives way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Remembered(Generic[KeyT, ValueT]):
    """A dictionary of `most` entries."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.has_forgotten = False
        """Entries have given way."""
        self._entries: OrderedDict[KeyT, ValueT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: KeyT) -> ValueT | None:
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def get_or(self, key: KeyT, new: Callable[[], ValueT]) -> ValueT:
        """Return the entry, which is made where there is none."""
        if key not in self._entries:
            self.put(key, new())
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: KeyT, value: ValueT) -> ValueT | None:
        """Return the entry that gives way for it; None where none does."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) <= self._most:
            return None
        self.has_forgotten = True
        return self._entries.popitem(last=False)[1]

    def forget(self, key: KeyT) -> ValueT | None:
        """Take an entry out, and return it; None where there is none."""
        return self._entries.pop(key, None)

    def forget_where(self, condition: Callable[[KeyT], bool]) -> None:
        for key in [key for key in self._entries if condition(key)]:
            del self._entries[key]
