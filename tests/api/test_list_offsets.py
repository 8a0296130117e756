"""ListOffsets and OffsetForLeaderEpoch: special values by version, duplicates, errors."""

from __future__ import annotations

import pytest

from pykbroker.api.list_offsets import list_offsets
from pykbroker.api.offset_for_leader_epoch import offset_for_leader_epoch
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.api.api_node import ApiNode, in_virtual_time

NEWEST = 11
NONE = ErrorCode.NONE
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION

Found = tuple[ErrorCode, int, int, int]
"""Error, timestamp, offset, leader epoch."""


def ask(
    node: ApiNode, *asked: tuple[str, int, int], version: int = NEWEST, replica_id: int = -1, epoch: int = -1
) -> list[Found]:
    message = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
                ],
            )
            for topic, index, timestamp in asked
        ],
    )

    async def run() -> ListOffsetsResponse:
        response: ListOffsetsResponse = await node.call(list_offsets, message, version)
        return response

    return [
        (ErrorCode(each.error_code), each.timestamp, each.offset, each.leader_epoch)
        for topic in in_virtual_time(run).topics
        for each in topic.partitions
    ]


@pytest.fixture
def filled(node: ApiNode) -> ApiNode:
    node.create_topic("apples", 2)
    node.append("apples", b"a", b"b", b"c", timestamp=1000)
    node.append("apples", b"d", timestamp=1000)
    return node


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (-1, 1, (NONE, -1, 4, 0)),
        (-2, 1, (NONE, -1, 0, 0)),
        (-3, 7, (NONE, 1002, 2, 0)),
        (-4, 8, (NONE, -1, 0, 0)),
        (-5, 9, (NONE, -1, -1, -1)),
        (-6, 11, (NONE, -1, -1, -1)),
        (-7, 99, (NONE, -1, -1, -1)),
        (1001, 1, (NONE, 1001, 1, 0)),
        (1003, 1, (NONE, -1, -1, -1)),
    ],
)
def test_special_timestamps_by_version(filled: ApiNode, version: int, timestamp: int, since: int, found: Found) -> None:
    expected = found if version >= since else (UNSUPPORTED, -1, -1, -1)
    if version < 4:
        expected = (*expected[:3], -1)
    assert ask(filled, ("apples", 0, timestamp), version=version) == [expected]


@pytest.mark.parametrize(
    ("topic", "index", "error"),
    [
        ("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("apples", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("led elsewhere", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_errors_of_list_offsets(filled: ApiNode, topic: str, index: int, error: ErrorCode) -> None:
    filled.create_topic("led elsewhere", leader=2, replicas=[2])
    assert ask(filled, (topic, index, -1), ("apples", 0, -1)) == [(error, -1, -1, -1), (NONE, -1, 4, 0)]


def test_a_partition_named_twice_is_an_invalid_request_once_as_in_kafka(filled: ApiNode) -> None:
    found = ask(filled, ("apples", 0, -1), ("apples", 1, -1), ("apples", 0, -2))
    assert [each[0] for each in found] == [ErrorCode.INVALID_REQUEST, NONE]


def test_topics_have_one_row_each_and_none_without_partitions(filled: ApiNode) -> None:
    def topic(*partitions: int) -> ListOffsetsTopic:
        return ListOffsetsTopic(
            name="apples", partitions=[ListOffsetsPartition(partition_index=each, timestamp=-1) for each in partitions]
        )

    async def run(topics: list[ListOffsetsTopic]) -> ListOffsetsResponse:
        response: ListOffsetsResponse = await filled.call(list_offsets, ListOffsetsRequest(topics=topics), NEWEST)
        return response

    [row] = in_virtual_time(lambda: run([topic(0), topic(), topic(1)])).topics
    assert [each.partition_index for each in row.partitions] == [0, 1]
    assert in_virtual_time(lambda: run([topic()])).topics == []


@pytest.mark.parametrize(("epoch", "error"), [(0, NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_leader_epochs_are_compared(filled: ApiNode, epoch: int, error: ErrorCode) -> None:
    assert ask(filled, ("apples", 0, -1), epoch=epoch)[0][0] is error


@pytest.mark.parametrize(("replica_id", "offset"), [(-1, 0), (2, 1), (-2, 1)])
def test_who_is_no_consumer_sees_the_log_end(node: ApiNode, replica_id: int, offset: int) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.append("apples", b"a")
    assert ask(node, ("apples", 0, -1), replica_id=replica_id) == [(NONE, -1, offset, 0)]


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_says_what_the_version_knows(node: ApiNode, version: int, error: ErrorCode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.append("apples", b"a")
    node.change_partition("apples", 0, leader=1)
    assert ask(node, ("apples", 0, -1), version=version) == [(error, -1, -1, -1)]


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("topic", "current", "asked", "expected"),
    [
        ("apples", -1, 0, (NONE, 0, 4)),
        ("apples", 0, 0, (NONE, 0, 4)),
        ("apples", -1, 1, (NONE, -1, -1)),
        ("apples", -1, -1, (NONE, -1, -1)),
        ("apples", 1, 0, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
        ("nothing", -1, 0, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
    ],
)
def test_where_a_leader_epoch_ended(
    filled: ApiNode, version: int, topic: str, current: int, asked: int, expected: tuple[ErrorCode, int, int]
) -> None:
    message = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=asked)],
            )
        ],
    )

    async def run() -> OffsetForLeaderEpochResponse:
        response: OffsetForLeaderEpochResponse = await filled.call(offset_for_leader_epoch, message, version)
        return response

    (answer,) = in_virtual_time(run).topics[0].partitions
    assert answer.partition == 0
    assert (ErrorCode(answer.error_code), answer.leader_epoch, answer.end_offset) == expected
