"""Entries of access control lists: `/api/acls`, listed by filters, added and removed one by one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from pykbroker.client.acls import ask_acls, create_acls, delete_acls, entries_of
from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType

from .pages import Page, PageAsked, page_of

NumberedT = TypeVar("NumberedT", bound=IntEnum)

_ANY: Final = "ANY"
_LONGEST: Final = 32_767
_NOT_IN_ENTRIES: Final = ("UNKNOWN", _ANY, "MATCH")


@dataclass(frozen=True, slots=True)
class AclRow:
    """An entry, with Kafka's names of its numbers."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


async def acls(asking: Asking, given: Arguments) -> Page[AclRow]:
    """Return a page of what the filters find. A name finds all patterns that it falls under. Raises KafkaError."""
    asked = PageAsked.of(given)
    name, principal = given.text("name", "", longest=_LONGEST), given.text("principal", "", longest=_LONGEST)
    wanted = EntryFilter(
        resource_type=_filter(given, "resource_type", ResourceType),
        resource_name=name or None,
        pattern_type=PatternType.MATCH if name else PatternType.ANY,
        principal=principal or None,
        operation=_filter(given, "operation", Operation),
        permission=_filter(given, "permission", Permission),
    )
    found = await ask_acls(asking.cluster, wanted)

    def page() -> Page[AclRow]:
        page = page_of(entries_of(found), asked)
        return page.mapped(_row)

    return await asking.threads.run(page)


async def add(asking: Asking, given: Arguments) -> None:
    """Add an entry. Raises BadInput, KafkaError, ClientError."""
    await create_acls(asking.cluster, [_entry(given)])


async def remove(asking: Asking, given: Arguments) -> None:
    """Remove an entry. Raises BadInput, KafkaError, ClientError."""
    entry = _entry(given)
    if given.text("confirm", "", longest=_LONGEST) != entry.principal:
        raise BadInput("'confirm' is the entry's principal once more")
    if not await delete_acls(asking.cluster, [EntryFilter(*entry)]):
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "There is no such entry any more")


def _entry(given: Arguments) -> AccessControlEntry:
    """Raises BadInput."""
    principal = given.text("principal", longest=_LONGEST).strip()
    kind, colon, name = principal.partition(":")
    if not kind or not colon or not name:
        raise BadInput("'principal' is a type and a name, such as User:alice")
    return AccessControlEntry(
        resource_type=_number(given, "resource_type", ResourceType),
        resource_name=given.text("resource_name", longest=_LONGEST),
        pattern_type=_number(given, "pattern_type", PatternType),
        principal=principal,
        host=given.text("host", "*", longest=255).strip(),
        operation=_number(given, "operation", Operation),
        permission=_number(given, "permission", Permission),
    )


def _number(given: Arguments, argument: str, kind: type[NumberedT]) -> NumberedT:
    return kind[given.one_of(argument, [each.name for each in kind if each.name not in _NOT_IN_ENTRIES])]


def _filter(given: Arguments, argument: str, kind: type[NumberedT]) -> NumberedT:
    return kind[given.one_of(argument, [each.name for each in kind if each.name not in ("UNKNOWN", "MATCH")], _ANY)]


def _row(entry: AccessControlEntry) -> AclRow:
    return AclRow(
        resource_type=ResourceType(entry.resource_type).name,
        resource_name=entry.resource_name,
        pattern_type=PatternType(entry.pattern_type).name,
        principal=entry.principal,
        host=entry.host,
        operation=Operation(entry.operation).name,
        permission=Permission(entry.permission).name,
    )
