"""One entry of an access control list, and filters that find entries (`AclBinding`, `AclBindingFilter`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .operations import Operation, Permission
from .resources import WILDCARD, PatternType, ResourceType


class AccessControlEntry(NamedTuple):
    """An entry allows or denies a principal an operation on the resources of a pattern.

    principal: "User:name". host: an address or a range of them as text, or `*`. The numbers are those of the
    enumerations; what a log holds may be a number that this software does not know, which matches nothing.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        kind, pattern = ResourceType(self.resource_type).name, PatternType(self.pattern_type).name
        can = f"{Permission(self.permission).name} {Operation(self.operation).name}"
        return f"{can} to {self.principal} from {self.host} on {kind} {pattern} {self.resource_name}"


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of entries; None and ANY match everything."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Tell whether the entry is one of those that the filter asks for."""
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: AccessControlEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        name = self.resource_name
        if name is None or name == entry.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if entry.pattern_type == PatternType.LITERAL:
            return entry.resource_name == WILDCARD
        return entry.pattern_type == PatternType.PREFIXED and name.startswith(entry.resource_name)
