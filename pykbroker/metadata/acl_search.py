"""Entries of access control lists that filters find, in turns: there may be a hundred thousand, and as many filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.resources import WILDCARD, PatternType

_STEPS_OF_NAME: Final = 2

Found = list[tuple[bytes, AccessControlEntry]]
"""Ids and entries."""


def matching(entries: Iterable[tuple[bytes, AccessControlEntry]], wanted: EntryFilter) -> LongWork[Found]:
    """Return those that the filter asks for, after a look at each."""
    found: Found = []
    for portion in portions(entries):
        found += [each for each in portion if wanted.matches(each[1])]
        yield len(portion)
    return found


class AclSearch:
    """The search for what many filters of one request find; the entries must not change meanwhile.

    scanned: how many entries were looked at for filters that name no resource.
    """

    def __init__(self, entries: Mapping[bytes, AccessControlEntry]) -> None:
        self._entries = entries
        self._by_name: dict[str, Found] | None = None
        self.scanned = 0

    def find(self, wanted: EntryFilter) -> LongWork[Found]:
        if wanted.resource_name is None:
            self.scanned += len(self._entries)
            return (yield from matching(self._entries.items(), wanted))
        if self._by_name is None:
            self._by_name = yield from self._named()
        found: Found = []
        for name in _names(wanted.resource_name, wanted.pattern_type):
            yield _STEPS_OF_NAME
            found += yield from matching(self._by_name.get(name, ()), wanted)
        return found

    def _named(self) -> LongWork[dict[str, Found]]:
        by_name: dict[str, Found] = {}
        for portion in portions(self._entries.items()):
            for acl_id, entry in portion:
                by_name.setdefault(entry.resource_name, []).append((acl_id, entry))
            yield len(portion)
        return by_name


def _names(name: str, pattern_type: int) -> Iterator[str]:
    """Return the names of the patterns that a resource of the name may fall under, each once."""
    yield name
    if pattern_type == PatternType.MATCH:
        if name != WILDCARD and not name.startswith(WILDCARD):
            yield WILDCARD
        for end in range(1, len(name)):
            yield name[:end]
