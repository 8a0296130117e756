"""Filters of entries: what DescribeAcls and DeleteAcls find."""

import pytest

from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType

LITERAL, PREFIXED, ANY, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH


def entry(name: str, pattern: PatternType) -> AccessControlEntry:
    return AccessControlEntry(ResourceType.TOPIC, name, pattern, "User:bob", "*", Operation.READ, Permission.ALLOW)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (LITERAL, ["literal orders"]),
        (PREFIXED, []),
        (ANY, ["literal orders"]),
        (MATCH, ["literal orders", "literal *", "prefixed ord"]),
    ],
)
def test_a_name_finds_what_its_type_of_pattern_says(pattern: PatternType, found: list[str]) -> None:
    entries = {
        "literal orders": entry("orders", LITERAL),
        "literal *": entry("*", LITERAL),
        "prefixed ord": entry("ord", PREFIXED),
        "literal ord": entry("ord", LITERAL),
        "prefixed x": entry("x", PREFIXED),
    }
    wanted = EntryFilter(ResourceType.TOPIC, "orders", pattern)
    assert [name for name, each in entries.items() if wanted.matches(each)] == found


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (EntryFilter(), True),
        (EntryFilter(ResourceType.GROUP), False),
        (EntryFilter(principal="User:bob"), True),
        (EntryFilter(principal="User:*"), False),
        (EntryFilter(host="*"), True),
        (EntryFilter(host="10.0.0.1"), False),
        (EntryFilter(operation=Operation.READ), True),
        (EntryFilter(operation=Operation.DESCRIBE), False),
        (EntryFilter(operation=Operation.ALL), False),
        (EntryFilter(permission=Permission.ALLOW), True),
        (EntryFilter(permission=Permission.DENY), False),
        (EntryFilter(pattern_type=PREFIXED), False),
    ],
)
def test_every_part_of_a_filter_counts(wanted: EntryFilter, is_found: bool) -> None:
    assert wanted.matches(entry("orders", LITERAL)) is is_found
