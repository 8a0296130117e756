"""All entries, by the pattern that they are for, so that a decision costs a few lookups however many there are.

A resource falls under the literal pattern of its name, under the wildcard, and under each prefix of its name. Prefixes
are looked for by their length: as many lookups as there are different lengths of prefixes, and never more than the name
has characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from pykbroker.long_work import PORTION, LongWork

from .entry import AccessControlEntry
from .operations import Permission
from .pattern_entries import EVERYBODY, PatternEntries
from .resources import WILDCARD, PatternType

_Pattern: TypeAlias = tuple[int, int, str]
"""Type of the resource, type of the pattern, and name."""

_STEPS_OF_PATTERN: Final = 3


class AclIndex:
    """The entries of a cluster."""

    def __init__(self) -> None:
        self._patterns: dict[_Pattern, PatternEntries] = {}
        self._lengths: dict[int, dict[int, int]] = {}
        """By type of resource: how many prefixes have which length, of which there is at least one."""
        self._patterns_of: dict[tuple[int, str], dict[tuple[int, str], int]] = {}
        """By type of resource and principal: the patterns with entries for it, and how many they have."""

    def add(self, entry: AccessControlEntry) -> None:
        pattern = entry.resource_type, entry.pattern_type, entry.resource_name
        entries = self._patterns.get(pattern)
        if entries is None:
            entries = self._patterns[pattern] = PatternEntries()
            self._count_length(pattern, 1)
        entries.add(entry)
        patterns = self._patterns_of.setdefault((entry.resource_type, entry.principal), {})
        patterns[pattern[1:]] = patterns.get(pattern[1:], 0) + 1

    def remove(self, entry: AccessControlEntry) -> None:
        """Remove an entry that was added before."""
        pattern = entry.resource_type, entry.pattern_type, entry.resource_name
        entries = self._patterns[pattern]
        entries.remove(entry)
        if not entries:
            del self._patterns[pattern]
            self._count_length(pattern, -1)
        patterns = self._patterns_of[entry.resource_type, entry.principal]
        patterns[pattern[1:]] -= 1
        if not patterns[pattern[1:]]:
            del patterns[pattern[1:]]
        if not patterns:
            del self._patterns_of[entry.resource_type, entry.principal]

    def _count_length(self, pattern: _Pattern, by: int) -> None:
        resource_type, pattern_type, name = pattern
        if pattern_type != PatternType.PREFIXED:
            return
        lengths = self._lengths.setdefault(resource_type, {})
        lengths[len(name)] = lengths.get(len(name), 0) + by
        if not lengths[len(name)]:
            del lengths[len(name)]

    def of(self, resource_type: int, name: str) -> Iterator[PatternEntries]:
        """Return the entries of each pattern that the resource falls under."""
        get = self._patterns.get
        for literal in (name, WILDCARD):
            entries = get((resource_type, PatternType.LITERAL, literal))
            if entries is not None:
                yield entries
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                entries = get((resource_type, PatternType.PREFIXED, name[:length]))
                if entries is not None:
                    yield entries

    def allows_on_any(self, principal: str, host: str, operation: int, resource_type: int) -> LongWork[bool]:
        """Tell whether an operation is allowed on some resource of a type (Kafka's `authorizeByResourceType`).

        A denial of the wildcard is a denial of all. An allowed pattern counts where no denial is for the same name or
        for a prefix of it. READ and the like do not imply DESCRIBE here.
        """
        question = principal, host, operation
        wildcard = self._patterns.get((resource_type, PatternType.LITERAL, WILDCARD))
        if wildcard is not None:
            if wildcard.names(*question, Permission.DENY):
                return False
            if wildcard.names(*question, Permission.ALLOW):
                return True
        for each in (principal, EVERYBODY):
            patterns = list(self._patterns_of.get((resource_type, each), ()))
            yield len(patterns) // PORTION
            for pattern in patterns:
                if self._is_allowed_undenied((resource_type, *pattern), question):
                    return True
                yield _STEPS_OF_PATTERN
        return False

    def _is_allowed_undenied(self, pattern: _Pattern, question: tuple[str, str, int]) -> bool:
        entries = self._patterns.get(pattern)
        if entries is None or not entries.names(*question, Permission.ALLOW):
            return False
        resource_type, pattern_type, name = pattern
        if pattern_type == PatternType.LITERAL and entries.names(*question, Permission.DENY):
            return False
        for length in self._lengths.get(resource_type, ()):
            above = self._patterns.get((resource_type, PatternType.PREFIXED, name[:length]))
            if length <= len(name) and above is not None and above.names(*question, Permission.DENY):
                return False
        return True
