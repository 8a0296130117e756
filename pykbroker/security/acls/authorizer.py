"""The decision who may do what, by Kafka's rules (`StandardAuthorizer`, KIP-801).

1. A super user may do everything.
2. Of the entries whose pattern the resource falls under, and which are for the principal (or everybody), its host (or
   a range of addresses that has it, or every host) and the operation, a denial wins over all others.
3. Without a denial, one that allows it is enough.
4. Where the resource falls under no pattern at all, `allow.everyone.if.no.acl.found` decides.
5. Everything else is denied.

An entry that allows READ, WRITE, DELETE or ALTER allows DESCRIBE as well, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. A
denial denies its own operation alone.

Not here: which operation a request needs (`server.node.needs`, `api.authorization`), and the lines in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from pykbroker.long_work import LongWork

from .acl_index import AclIndex
from .entry import AccessControlEntry
from .resources import ResourceType

_MOST_VERDICTS: Final = 20_000
"""Remembered at a time; they take about 5 MB, and are all forgotten when there are more."""

LONGEST_REMEMBERED_NAME: Final = 300
"""Longer than every name of a topic: nobody fills the memory with group ids of a megabyte."""

_ANY_NAME: Final = "hardcode"
"""Kafka asks whether a resource of this name is allowed before it looks for a pattern that is."""


class Verdict(NamedTuple):
    """The decision, and the words for what it rests on."""

    is_allowed: bool
    reason: str


SUPER_USER: Final = Verdict(True, "a super user may do everything")
DENIED_BY_ENTRY: Final = Verdict(False, "an ACL denies it")
ALLOWED_BY_ENTRY: Final = Verdict(True, "an ACL allows it")
NOT_ALLOWED: Final = Verdict(False, "no ACL allows it")
NO_ENTRIES_ALLOWED: Final = Verdict(True, "the resource has no ACLs, and allow.everyone.if.no.acl.found is set")

_Question: TypeAlias = tuple[str, str, int, int, str]


class StandardAuthorizer:
    """The authorizer of a node.

    super_users: principals such as "User:admin". allows_without_entries: `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, super_users: Iterable[str] = (), *, allows_without_entries: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._without_entries = NO_ENTRIES_ALLOWED if allows_without_entries else NOT_ALLOWED
        self._index = AclIndex()
        self._verdicts: dict[_Question, Verdict] = {}
        self._on_any: dict[tuple[str, str, int, int], bool] = {}
        self._changes = 0

    def is_super_user(self, principal: str) -> bool:
        return principal in self._super_users

    def add(self, entry: AccessControlEntry) -> None:
        self._index.add(entry)
        self._forget()

    def remove(self, entry: AccessControlEntry) -> None:
        """Remove an entry that was added before."""
        self._index.remove(entry)
        self._forget()

    def _forget(self) -> None:
        self._changes += 1
        if self._verdicts:
            self._verdicts = {}
        if self._on_any:
            self._on_any = {}

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """Return whether the principal, connected from the host, may do that with the resource."""
        question = principal, host, operation, resource_type, name
        verdict = self._verdicts.get(question)
        if verdict is None:
            verdict = self._decide(principal, host, operation, resource_type, name)
            if len(name) <= LONGEST_REMEMBERED_NAME:
                if len(self._verdicts) >= _MOST_VERDICTS:
                    self._verdicts = {}
                self._verdicts[question] = verdict
        return verdict

    def _decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        if principal in self._super_users:
            return SUPER_USER
        bit = 1 << operation
        has_entries = is_allowed = False
        for entries in self._index.of(resource_type, name):
            has_entries = True
            allowed, denied = entries.masks(principal, host)
            if denied & bit:
                return DENIED_BY_ENTRY
            is_allowed = is_allowed or bool(allowed & bit)
        if is_allowed:
            return ALLOWED_BY_ENTRY
        return NOT_ALLOWED if has_entries else self._without_entries

    def allowed_operations(
        self, principal: str, host: str, operations: int, resource_type: ResourceType, name: str
    ) -> int:
        """Return those of the operations, a bit field, that the principal may do with the resource."""
        if principal in self._super_users:
            return operations
        has_entries = False
        all_allowed = all_denied = 0
        for entries in self._index.of(resource_type, name):
            has_entries = True
            allowed, denied = entries.masks(principal, host)
            all_allowed |= allowed
            all_denied |= denied
        if not has_entries:
            return operations if self._without_entries.is_allowed else 0
        return operations & all_allowed & ~all_denied

    def decide_on_any(self, principal: str, host: str, operation: int, resource_type: int) -> LongWork[bool]:
        """Tell whether the principal may do that with some resource of the type (`authorizeByResourceType`)."""
        question = principal, host, operation, resource_type
        known = self._on_any.get(question)
        if known is not None:
            return known
        changes = self._changes
        verdict = self.decide(principal, host, operation, resource_type, _ANY_NAME).is_allowed
        if not verdict:
            verdict = yield from self._index.allows_on_any(principal, host, operation, resource_type)
        if changes == self._changes:
            if len(self._on_any) >= _MOST_VERDICTS:
                self._on_any = {}
            self._on_any[question] = verdict
        return verdict
