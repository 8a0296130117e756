"""A hundred thousand ACLs hold the loop for a moment only, whether they come, are described, looked up or deleted."""

from __future__ import annotations

import random
from collections.abc import Generator
from pathlib import Path
from time import thread_time
from typing import Any, TypeVar

import pytest

from pykbroker.api.describe_acls import describe_acls
from pykbroker.config import BrokerConfig
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.long_work import whole
from pykbroker.metadata import access_control
from pykbroker.metadata.controller_state import ControllerState
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.metadata.known_acls import KnownAcls
from pykbroker.protocol.messages.acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
)
from pykbroker.protocol.messages.metadata_records import AccessControlEntryRecord
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.quorum.metadata_publisher import PARTITIONS_AT_ONCE
from pykbroker.server.runtime.garbage_collection import no_full_collections
from tests.api.api_node import ApiNode, VirtualClock, in_virtual_time
from tests.api.turns_taken import LONGEST_TURN_S, handle

COUNT = 100_000

T = TypeVar("T")


@pytest.fixture(scope="module")
def replayed() -> tuple[MetadataImage, ImageChanges]:
    image, changes = MetadataImage(), ImageChanges()
    for number in range(COUNT):
        record = AccessControlEntryRecord(
            id=number.to_bytes(16, "big"),
            resource_type=ResourceType.TOPIC,
            resource_name=f"topic-{number % 40_000}",
            pattern_type=3 + number % 2,
            principal=f"User:{number % 1000}",
            host="*",
            operation=3 + number % 6,
            permission_type=3 - (number % 100 == 0),
        )
        changes.merge(image.replay(record, number))
    return image, changes


def longest_piece(work: Generator[int, None, T]) -> tuple[float, T]:
    """The longest time between two yields, and the result."""
    longest, start = 0.0, thread_time()
    with no_full_collections():
        while True:
            try:
                next(work)
            except StopIteration as done:
                return max(longest, thread_time() - start), done.value
            longest, start = max(longest, thread_time() - start), thread_time()


def filled(image: MetadataImage, changes: ImageChanges) -> NodeAuthorizer:
    made = NodeAuthorizer(AuthorizerConfig(frozenset(), False, frozenset()), VirtualClock())
    with no_full_collections():
        for portion in changes.portions(PARTITIONS_AT_ONCE):
            start = thread_time()
            made.apply(image, portion)
            assert thread_time() - start < LONGEST_TURN_S
    made.note_applied()
    return made


def test_all_of_them_are_described_in_turns(tmp_path: Path, replayed: tuple[MetadataImage, ImageChanges]) -> None:
    node = ApiNode(tmp_path)
    node.broker.authorizer = NodeAuthorizer(AuthorizerConfig(frozenset(), False, frozenset()), node.clock)
    node.image = replayed[0]
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    async def run() -> tuple[Any, Any]:
        return await handle(node.broker, describe_acls, request, 3)

    response, turns = in_virtual_time(run)
    assert sum(len(each.acls) for each in response.resources) == COUNT
    assert turns.longest_s < LONGEST_TURN_S


def test_a_decision_does_not_depend_on_how_many_there_are(replayed: tuple[MetadataImage, ImageChanges]) -> None:
    many = filled(*replayed)
    client = ConnectionState("PLAINTEXT", "127.0.0.1", "User:7")
    with no_full_collections():  # one of the hundred thousand entries takes as long as what is measured
        start = thread_time()
        for number in range(1000):
            many.allows(client, Operation.WRITE, ResourceType.TOPIC, f"another-{number}", is_logged=False)
        assert thread_time() - start < 0.5, "a look at every entry would take a hundred seconds"
    longest, is_allowed = longest_piece(many.allows_on_any(client, Operation.WRITE, ResourceType.TOPIC))
    assert longest < LONGEST_TURN_S
    assert is_allowed is many.allows(client, Operation.WRITE, ResourceType.TOPIC, "topic-7", is_logged=False)


def test_they_are_found_and_deleted_in_turns(replayed: tuple[MetadataImage, ImageChanges]) -> None:
    state = ControllerState(BrokerConfig({"node.id": "1"}), 1, "cluster", random.Random(1))
    state.adopt(replayed[0].fork())
    longest, known = longest_piece(KnownAcls.of(state.image))
    assert longest < LONGEST_TURN_S
    assert next(iter(state.image.acls.values())) in known
    whole(state.index())
    filters = [
        DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=name,
            pattern_type_filter=1,
            principal_filter=principal,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        for name, principal in ((None, "User:7"), *((f"topic-{number}", None) for number in range(2000)))
    ]
    longest, (records, response) = longest_piece(access_control.delete_acls(state, DeleteAclsRequest(filters=filters)))
    assert longest < LONGEST_TURN_S
    assert isinstance(response, DeleteAclsResponse)
    assert len(records) > 5000
