"""ACLs in the image, in its views, snapshots and differences, and the controller's rules for them."""

from __future__ import annotations

import random

import pytest

from pykbroker.config import BrokerConfig
from pykbroker.long_work import whole
from pykbroker.metadata import access_control
from pykbroker.metadata.controller_state import ControllerState
from pykbroker.metadata.image import ImageChanges, InconsistentMetadata, MetadataImage
from pykbroker.metadata.image_difference import difference
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from pykbroker.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from pykbroker.security.acls.entry import AccessControlEntry

A, B = b"a" * 16, b"b" * 16
TOPIC, GROUP, CLUSTER, LITERAL, PREFIXED, ANY, MATCH, READ, ALLOW = 2, 3, 4, 3, 4, 1, 2, 3, 3


def record(acl_id: bytes, name: str = "orders") -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=LITERAL,
        principal="User:bob",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )


ORDERS = AccessControlEntry(TOPIC, "orders", LITERAL, "User:bob", "*", READ, ALLOW)


def test_an_entry_is_there_until_it_is_removed() -> None:
    image = MetadataImage()
    changes = image.replay(record(A), 0)
    assert changes.acls == {A: None}
    before = image.view()
    changes.merge(image.replay(RemoveAccessControlEntryRecord(id=A), 1))
    assert changes.acls == {A: None}, "it was not there before the first of the changes"
    assert image.replay(record(B), 2)
    assert image.replay(record(B, "payments"), 3).acls == {B: ORDERS._replace(resource_name="orders")}
    assert before.acls == {A: ORDERS}
    assert list(image.acls) == [B]


def test_a_snapshot_has_the_entries_and_replaces_them() -> None:
    image, copy = MetadataImage(), MetadataImage()
    image.replay(record(A), 0)
    image.replay(record(B, "payments"), 1)
    for each in image.records():
        copy.replay(each, 1)
    assert copy == image
    assert list(copy.acls) == [A, B]
    copy.replay(RemoveAccessControlEntryRecord(id=A), 2)
    copy.replay(record(B), 3)
    changes = difference(image, copy)
    assert changes.acls == {A: ORDERS, B: ORDERS._replace(resource_name="payments")}
    assert difference(copy, image).acls == {A: None, B: ORDERS}


def test_the_removal_of_what_is_not_there_is_no_log_of_a_controller() -> None:
    with pytest.raises(InconsistentMetadata, match="no ACL with the id 6161"):
        MetadataImage().replay(RemoveAccessControlEntryRecord(id=A), 0)


def test_many_entries_come_in_portions() -> None:
    changes = ImageChanges(acls={bytes([each]) * 16: None for each in range(5)}, others=True)
    portions = list(changes.portions(2))
    assert [len(each.acls) for each in portions] == [2, 2, 1]
    assert [each.others for each in portions] == [False, False, True]
    assert [key for each in portions for key in each.acls] == list(changes.acls)


class World:
    """A controller's state; what a request records is replayed at once."""

    def __init__(self) -> None:
        config = BrokerConfig({"node.id": "1"})
        self.state = ControllerState(config, 1, "cluster", random.Random(1))

    def create(self, *creations: AclCreation) -> list[tuple[int, str | None]]:
        records, response = whole(access_control.create_acls(self.state, CreateAclsRequest(creations=list(creations))))
        assert isinstance(response, CreateAclsResponse)
        self._replay(records)
        return [(row.error_code, row.error_message) for row in response.results]

    def delete(self, *filters: DeleteAclsFilter) -> list[tuple[int, str | None, list[str]]]:
        records, response = whole(access_control.delete_acls(self.state, DeleteAclsRequest(filters=list(filters))))
        assert isinstance(response, DeleteAclsResponse)
        self._replay(records)
        return [
            (row.error_code, row.error_message, [each.resource_name for each in row.matching_acls])
            for row in response.filter_results
        ]

    def _replay(self, records: list) -> None:
        for each in records:
            whole(self.state.replay(each, self.state.next_offset))

    @property
    def names(self) -> list[str]:
        return [each.resource_name for each in self.state.image.acls.values()]


def creation(name: str = "orders", **fields: int | str) -> AclCreation:
    defaults = {"resource_type": TOPIC, "resource_pattern_type": LITERAL, "principal": "User:bob", "host": "*"}
    return AclCreation(resource_name=name, **{**defaults, "operation": READ, "permission_type": ALLOW, **fields})


def wanted(name: str | None = None, pattern: int = ANY, **fields: int | str) -> DeleteAclsFilter:
    defaults: dict[str, int | str | None] = {
        "resource_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DeleteAclsFilter(resource_name_filter=name, pattern_type_filter=pattern, **{**defaults, **fields})


def test_what_is_there_already_is_not_created_again() -> None:
    world = World()
    assert world.create(creation(), creation(), creation("payments")) == [(0, "")] * 3
    assert world.create(creation()) == [(0, "")]
    assert world.names == ["orders", "payments"]
    assert world.delete(wanted("orders")) == [(0, None, ["orders"])]
    assert world.create(creation()) == [(0, "")]
    assert world.names == ["payments", "orders"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (creation(""), "Invalid empty resource name"),
        (creation("x", resource_type=CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (creation(resource_type=99), "Invalid resourceType UNKNOWN"),
        (creation(resource_pattern_type=5), "Invalid patternType UNKNOWN"),
        (creation(operation=16), "Invalid operation UNKNOWN"),
        (creation(permission_type=9), "Invalid permissionType UNKNOWN"),
        (
            creation(principal="bob"),
            "Could not parse principal from `bob` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_a_bad_entry_is_refused_and_the_good_ones_beside_it_are_created(bad: AclCreation, reason: str) -> None:
    world = World()
    assert world.create(creation(), bad) == [(0, ""), (ErrorCode.INVALID_REQUEST, reason)]
    assert world.names == ["orders"]


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_what_only_a_filter_may_have_spoils_the_whole_request(field: str) -> None:
    world = World()
    assert world.create(creation(), creation(**{field: ANY})) == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert not world.names


def test_each_filter_finds_what_was_there_before() -> None:
    world = World()
    world.create(creation(), creation("ord", resource_pattern_type=PREFIXED), creation("*"), creation("payments"))
    assert world.delete(wanted("orders", MATCH), wanted("ord", PREFIXED), wanted("nothing")) == [
        (0, None, ["orders", "*", "ord"]),
        (0, None, ["ord"]),
        (0, None, []),
    ]
    assert world.names == ["payments"]
    assert world.delete(wanted(pattern=9), wanted(operation=99), wanted(principal_filter="User:bob")) == [
        (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.", []),
        (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.", []),
        (0, None, ["payments"]),
    ]


def test_one_request_changes_ten_thousand_entries_at_most() -> None:
    world = World()
    many = [creation(f"t{each}") for each in range(10_001)]
    assert set(world.create(*many)) == {
        (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    }
    assert set(world.create(*many[1:], many[1])) == {(0, "")}
    world.create(many[0])
    refused = (ErrorCode.INVALID_REQUEST, "Cannot remove more than 10000 acls in a single delete operation.", [])
    assert world.delete(wanted("t5"), wanted()) == [refused] * 2
    assert len(world.names) == 10_001
    (found,) = world.delete(wanted("t1"))
    assert found[2] == ["t1"]
    ((code, _, deleted),) = world.delete(wanted())
    assert (code, len(deleted), world.names) == (0, 10_000, [])


def test_filters_that_find_the_same_entries_again_and_again_fill_no_memory() -> None:
    world = World()
    world.create(*[creation(f"t{each}") for each in range(5_000)])
    refused = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.", [])
    assert world.delete(*[wanted()] * 30) == [refused] * 30
    assert len(world.names) == 5_000


TOO_OLD = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."


def test_ranges_of_addresses_are_taken_from_4_4_iv1_on() -> None:
    controller = World()
    assert controller.create(creation(host="10.0.0.0/8"), creation(host="no/range"), creation(host="")) == [
        (ErrorCode.UNSUPPORTED_VERSION, TOO_OLD),
        (ErrorCode.UNSUPPORTED_VERSION, TOO_OLD),
        (0, ""),
    ]
    whole(controller.state.replay(FeatureLevelRecord(name="metadata.version", feature_level=32), 1))
    assert controller.create(
        creation("one", host="10.0.0.0/8"),
        creation("two", host="10.1.1.1/8"),
        creation("three", host="10.0.0.0/33"),
        creation("four", host=""),
        creation("five", host="x/8", principal="nobody"),
        creation("six", host="10.0.0.1"),
    ) == [
        (0, ""),
        (0, ""),
        (ErrorCode.INVALID_REQUEST, "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
        (ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty"),
        (
            ErrorCode.INVALID_REQUEST,
            "Could not parse principal from `nobody` "
            "(no colon is present separating the principal type from the principal name)",
        ),
        (0, ""),
    ]
    assert controller.names == ["orders", "one", "two", "six"]
    assert controller.delete(wanted(host_filter="10.0.0.0/8")) == [(0, None, ["one"])], "a filter is a text"
