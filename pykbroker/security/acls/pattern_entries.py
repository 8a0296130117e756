"""The entries of one resource pattern, added up for each principal and host, so that a decision looks at no list.

A host is an address, or a range of them: whoever asks falls under one range of each length that entries have, so that
ranges cost as many lookups as there are lengths, and never more than an address has bits.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from .address_ranges import AddressRange, address_of, range_of
from .entry import AccessControlEntry
from .operations import Operation, Permission, allowed_by, denied_by
from .resources import WILDCARD

EVERYBODY: Final = "User:*"

_NOTHING: Final = (0, 0)
_Key: TypeAlias = tuple[str, str | AddressRange]
"""Principal, and host or range of hosts."""


class PatternEntries:
    """The entries of one pattern.

    Entries that say the same count as often as they were added: each has an id of its own in the metadata.
    """

    __slots__ = ("_entries", "_lengths", "_masks")

    def __init__(self) -> None:
        self._entries: dict[_Key, dict[tuple[int, int], int]] = {}
        """How many there are, by principal and host, and then by operation and permission."""
        self._masks: dict[_Key, tuple[int, int]] = {}
        """The bits of what is allowed and of what is denied, by principal and host."""
        self._lengths: dict[tuple[int, int], int] | None = None
        """How many keys have a range of so many bits and such a length; None where none has."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, entry: AccessControlEntry) -> None:
        key = _key(entry)
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries[key] = {}
            self._count_length(key, 1)
        kind = entry.operation, entry.permission
        entries[kind] = entries.get(kind, 0) + 1
        self._masks[key] = _masks(entries)

    def remove(self, entry: AccessControlEntry) -> None:
        """Remove an entry that was added before."""
        key = _key(entry)
        entries = self._entries[key]
        kind = entry.operation, entry.permission
        entries[kind] -= 1
        if not entries[kind]:
            del entries[kind]
        if entries:
            self._masks[key] = _masks(entries)
        else:
            del self._entries[key], self._masks[key]
            self._count_length(key, -1)

    def _count_length(self, key: _Key, by: int) -> None:
        host = key[1]
        if isinstance(host, str):
            return
        lengths = self._lengths or {}
        lengths[host.bits, host.length] = lengths.get((host.bits, host.length), 0) + by
        if not lengths[host.bits, host.length]:
            del lengths[host.bits, host.length]
        self._lengths = lengths or None

    def _keys(self, principal: str, host: str) -> tuple[_Key, ...]:
        """Return the keys of all entries that may be for the principal at the host."""
        keys = (principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)
        address = None if self._lengths is None else address_of(host)
        return keys if address is None else (*keys, *self._keys_of_ranges(principal, *address))

    def _keys_of_ranges(self, principal: str, bits: int, address: int) -> list[_Key]:
        keys: list[_Key] = []
        for of, length in self._lengths or ():
            if of == bits:
                around = AddressRange(bits, length, address >> (bits - length) << (bits - length))
                keys += (principal, around), (EVERYBODY, around)
        return keys

    def masks(self, principal: str, host: str) -> tuple[int, int]:
        """Return the bits of the operations that are allowed to a principal at a host, and of those that are denied."""
        get = self._masks.get
        allowed = denied = 0
        for key in self._keys(principal, host):
            more = get(key, _NOTHING)
            allowed |= more[0]
            denied |= more[1]
        return allowed, denied

    def names(self, principal: str, host: str, operation: int, permission: int) -> bool:
        """Tell whether an entry has that very operation, or ALL, for the principal at the host."""
        for key in self._keys(principal, host):
            entries = self._entries.get(key)
            if entries and ((operation, permission) in entries or (Operation.ALL, permission) in entries):
                return True
        return False


def _key(entry: AccessControlEntry) -> _Key:
    return entry.principal, range_of(entry.host) or entry.host


def _masks(entries: dict[tuple[int, int], int]) -> tuple[int, int]:
    allowed = denied = 0
    for operation, permission in entries:
        if permission == Permission.ALLOW:
            allowed |= allowed_by(operation)
        elif permission == Permission.DENY:
            denied |= denied_by(operation)
    return allowed, denied
