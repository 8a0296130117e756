"""The authorizer's rules, one by one, and against a model that looks at every entry."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.long_work import whole
from pykbroker.security.acls.authorizer import (
    ALLOWED_BY_ENTRY,
    DENIED_BY_ENTRY,
    NO_ENTRIES_ALLOWED,
    NOT_ALLOWED,
    SUPER_USER,
    StandardAuthorizer,
    Verdict,
)
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.acls.operations import SUPPORTED_OPERATIONS, Operation, Permission, bits
from pykbroker.security.acls.resources import PatternType, ResourceType

BOB, HOST = "User:bob", "10.0.0.1"


def entry(
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
    *,
    principal: str = BOB,
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    name: str = "orders",
    kind: ResourceType = ResourceType.TOPIC,
) -> AccessControlEntry:
    return AccessControlEntry(kind, name, pattern, principal, host, operation, permission)


def authorizer(*entries: AccessControlEntry, super_user: str = "", allows: bool = False) -> StandardAuthorizer:
    made = StandardAuthorizer([super_user], allows_without_entries=allows)
    for each in entries:
        made.add(each)
    return made


def decide(
    made: StandardAuthorizer, operation: Operation = Operation.READ, name: str = "orders", principal: str = BOB
) -> Verdict:
    return made.decide(principal, HOST, operation, ResourceType.TOPIC, name)


def test_nobody_may_do_anything_without_entries() -> None:
    assert decide(authorizer()) is NOT_ALLOWED


def test_everybody_may_do_everything_with_what_has_no_entries_if_the_key_says_so() -> None:
    made = authorizer(entry(principal="User:eve"), allows=True)
    assert decide(made, name="other") is NO_ENTRIES_ALLOWED
    assert decide(made) is NOT_ALLOWED, "an entry for somebody else is an entry"


def test_a_super_user_may_do_what_is_denied() -> None:
    made = authorizer(entry(permission=Permission.DENY), super_user=BOB)
    assert decide(made) is SUPER_USER


def test_a_denial_wins_over_what_allows() -> None:
    made = authorizer(entry(), entry(permission=Permission.DENY, principal="User:*"))
    assert decide(made) is DENIED_BY_ENTRY
    made.remove(entry(permission=Permission.DENY, principal="User:*"))
    assert decide(made) is ALLOWED_BY_ENTRY


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_who_may_do_something_with_a_topic_may_describe_it(operation: Operation) -> None:
    assert decide(authorizer(entry(operation)), Operation.DESCRIBE) is ALLOWED_BY_ENTRY
    assert decide(authorizer(entry(operation)), Operation.DESCRIBE_CONFIGS) is NOT_ALLOWED
    denied = authorizer(entry(operation, Permission.DENY), entry(Operation.DESCRIBE))
    assert decide(denied, Operation.DESCRIBE) is ALLOWED_BY_ENTRY, "a denial implies no other"


def test_who_may_alter_configurations_may_describe_them() -> None:
    made = authorizer(entry(Operation.ALTER_CONFIGS))
    assert decide(made, Operation.DESCRIBE_CONFIGS) is ALLOWED_BY_ENTRY
    assert decide(made, Operation.DESCRIBE) is NOT_ALLOWED


def test_prefixes_wildcards_and_hosts_count() -> None:
    prefixed = entry(pattern=PatternType.PREFIXED, name="ord")
    assert decide(authorizer(prefixed)) is ALLOWED_BY_ENTRY
    assert decide(authorizer(prefixed), name="or") is NOT_ALLOWED
    assert decide(authorizer(entry(name="*"))) is ALLOWED_BY_ENTRY
    assert decide(authorizer(entry(host=HOST))) is ALLOWED_BY_ENTRY
    assert decide(authorizer(entry(host="10.0.0.2"))) is NOT_ALLOWED
    assert decide(authorizer(entry(principal="Group:bob"))) is NOT_ALLOWED


def test_an_entry_that_is_there_twice_stays_when_one_is_removed() -> None:
    made = authorizer(entry(), entry())
    made.remove(entry())
    assert decide(made) is ALLOWED_BY_ENTRY
    made.remove(entry())
    assert decide(made) is NOT_ALLOWED


@pytest.mark.parametrize(
    ("allowed", "denied"),
    [
        (("orders", PatternType.LITERAL), ("*", PatternType.LITERAL)),
        (("orders", PatternType.LITERAL), ("ord", PatternType.PREFIXED)),
        (("*", PatternType.LITERAL), ("ord", PatternType.PREFIXED)),
        (("o", PatternType.PREFIXED), ("ord", PatternType.PREFIXED)),
        (("ord", PatternType.PREFIXED), ("orders", PatternType.LITERAL)),
    ],
)
def test_a_denial_by_one_pattern_wins_over_what_another_allows(
    allowed: tuple[str, PatternType], denied: tuple[str, PatternType]
) -> None:
    allowing = entry(name=allowed[0], pattern=allowed[1])
    denying = entry(permission=Permission.DENY, name=denied[0], pattern=denied[1])
    assert decide(authorizer(allowing, denying)) is DENIED_BY_ENTRY
    assert decide(authorizer(denying, allowing)) is DENIED_BY_ENTRY


def test_a_prefix_may_be_the_whole_name() -> None:
    assert decide(authorizer(entry(pattern=PatternType.PREFIXED))) is ALLOWED_BY_ENTRY


def test_a_prefix_stays_when_another_of_its_length_is_removed() -> None:
    one, other = (entry(pattern=PatternType.PREFIXED, name=name) for name in ("ord", "pay"))
    made = authorizer(one, other)
    made.remove(other)
    assert decide(made) is ALLOWED_BY_ENTRY


TYPES = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
PRINCIPALS = st.sampled_from([BOB, "User:eve", "User:*"])
ENTRIES = st.builds(
    AccessControlEntry,
    TYPES,
    st.text("ab*", min_size=1, max_size=3),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    PRINCIPALS,
    st.sampled_from(["*", HOST, "10.0.0.2", "10.9.9.9/8", "10.0.0.0/31", "10.0.0.2/31", "::/0", "10.0.0.1/33"]),
    st.sampled_from([each for each in Operation if each > Operation.ANY]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


def is_for(each: AccessControlEntry, kind: ResourceType, principal: str) -> bool:
    return each.resource_type == kind and each.principal in (principal, "User:*") and is_at(each.host)


def is_at(host: str) -> bool:
    if host in ("*", HOST):
        return True
    try:
        return ip_address(HOST) in ip_network(host, strict=False)
    except ValueError:
        return False


def covers(each: AccessControlEntry, name: str) -> bool:
    if each.pattern_type == PatternType.PREFIXED:
        return name.startswith(each.resource_name)
    return each.resource_name in (name, "*")


IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def model(
    entries: Sequence[AccessControlEntry],
    allows: bool,
    principal: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
) -> bool:
    covering = [each for each in entries if each.resource_type == kind and covers(each, name)]
    mine = [each for each in covering if is_for(each, kind, principal)]
    if any(each.permission == Permission.DENY and each.operation in (operation, Operation.ALL) for each in mine):
        return False
    enough = {operation, Operation.ALL} | IMPLIED.get(operation, set())
    if any(each.permission == Permission.ALLOW and each.operation in enough for each in mine):
        return True
    return allows and not covering


def model_on_any(
    entries: Sequence[AccessControlEntry], allows: bool, principal: str, operation: Operation, kind: ResourceType
) -> bool:
    """The rules of Kafka's `Authorizer.authorizeByResourceType`."""
    if model(entries, allows, principal, operation, kind, "hardcode"):
        return True
    mine = [each for each in entries if is_for(each, kind, principal) and each.operation in (operation, Operation.ALL)]
    allowed, denied = (
        {(each.pattern_type, each.resource_name) for each in mine if each.permission == permission}
        for permission in (Permission.ALLOW, Permission.DENY)
    )
    if (PatternType.LITERAL, "*") in denied:
        return False
    if (PatternType.LITERAL, "*") in allowed:
        return True
    for pattern_type, name in allowed:
        above = {(PatternType.PREFIXED, name[: end + 1]) for end in range(len(name))}
        if pattern_type == PatternType.LITERAL:
            above.add((PatternType.LITERAL, name))
        if not above & denied:
            return True
    return False


@given(
    st.lists(ENTRIES, max_size=8),
    st.lists(ENTRIES, max_size=4),
    st.booleans(),
    st.sampled_from([BOB, "User:eve"]),
    st.sampled_from([each for each in Operation if each > Operation.ALL]),
    TYPES,
    st.sampled_from(["a", "ab", "abc", "b", "c"]),
)
def test_the_index_decides_as_a_look_at_every_entry_does(
    entries: list[AccessControlEntry],
    removed: list[AccessControlEntry],
    allows: bool,
    principal: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
) -> None:
    made = authorizer(*entries, *removed, allows=allows)
    for _ in range(2):  # the second time from memory
        made.decide(principal, HOST, operation, kind, name)
    for each in removed:
        made.remove(each)
    asked = entries, allows, principal, operation, kind
    for _ in range(2):
        assert made.decide(principal, HOST, operation, kind, name).is_allowed == model(*asked, name)
        assert whole(made.decide_on_any(principal, HOST, operation, kind)) == model_on_any(*asked)
    supported = SUPPORTED_OPERATIONS[kind]
    allowed = [
        each for each in Operation if each > Operation.ALL and model(entries, allows, principal, each, kind, name)
    ]
    assert made.allowed_operations(principal, HOST, supported, kind, name) == supported & bits(allowed)
