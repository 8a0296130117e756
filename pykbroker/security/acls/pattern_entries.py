"""The entries of one resource pattern, added up for each principal and host, so that a decision looks at no list."""

from __future__ import annotations

from typing import Final

from .entry import AccessControlEntry
from .operations import Operation, Permission, allowed_by, denied_by
from .resources import WILDCARD

EVERYBODY: Final = "User:*"

_NOTHING: Final = (0, 0)


class PatternEntries:
    """The entries of one pattern.

    Entries that say the same count as often as they were added: each has an id of its own in the metadata.
    """

    __slots__ = ("_entries", "_masks")

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], dict[tuple[int, int], int]] = {}
        """How many there are, by principal and host, and then by operation and permission."""
        self._masks: dict[tuple[str, str], tuple[int, int]] = {}
        """The bits of what is allowed and of what is denied, by principal and host."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, entry: AccessControlEntry) -> None:
        key = entry.principal, entry.host
        entries = self._entries.setdefault(key, {})
        kind = entry.operation, entry.permission
        entries[kind] = entries.get(kind, 0) + 1
        self._masks[key] = _masks(entries)

    def remove(self, entry: AccessControlEntry) -> None:
        """Remove an entry that was added before."""
        key = entry.principal, entry.host
        entries = self._entries[key]
        kind = entry.operation, entry.permission
        entries[kind] -= 1
        if not entries[kind]:
            del entries[kind]
        if entries:
            self._masks[key] = _masks(entries)
        else:
            del self._entries[key], self._masks[key]

    def masks(self, principal: str, host: str) -> tuple[int, int]:
        """Return the bits of the operations that are allowed to a principal at a host, and of those that are denied."""
        get = self._masks.get
        allowed = denied = 0
        for key in ((principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)):
            more = get(key, _NOTHING)
            allowed |= more[0]
            denied |= more[1]
        return allowed, denied

    def names(self, principal: str, host: str, operation: int, permission: int) -> bool:
        """Tell whether an entry has that very operation, or ALL, for the principal at the host."""
        for key in ((principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)):
            entries = self._entries.get(key)
            if entries and ((operation, permission) in entries or (Operation.ALL, permission) in entries):
                return True
        return False


def _masks(entries: dict[tuple[int, int], int]) -> tuple[int, int]:
    allowed = denied = 0
    for operation, permission in entries:
        if permission == Permission.ALLOW:
            allowed |= allowed_by(operation)
        elif permission == Permission.DENY:
            denied |= denied_by(operation)
    return allowed, denied
