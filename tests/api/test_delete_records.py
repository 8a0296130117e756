"""DeleteRecords: the start of a log moves for every reader at once, and stays where it is after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from pykbroker.api.delete_records import delete_records
from pykbroker.metadata.topic_names import GROUP_METADATA_TOPIC
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import BrokerRegistrationChangeRecord
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from pykbroker.replication.reads import FetchIsolation, OffsetSpec
from pykbroker.storage.files.errors import DiskFailed
from tests.api.api_node import ApiNode, in_virtual_time

NONE = ErrorCode.NONE
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE

Answer = tuple[ErrorCode, int]
"""Error and low watermark."""


async def send(node: ApiNode, *asked: tuple[str, int, int], version: int = 2, timeout_ms: int = 1000) -> list[Answer]:
    message = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for topic, index, offset in asked
        ],
        timeout_ms=timeout_ms,
    )
    response: DeleteRecordsResponse = await node.call(delete_records, message, version)
    return [(ErrorCode(each.error_code), each.low_watermark) for topic in response.topics for each in topic.partitions]


def ask(node: ApiNode, *asked: tuple[str, int, int], version: int = 2) -> list[Answer]:
    return in_virtual_time(lambda: send(node, *asked, version=version))


@pytest.fixture
def filled(node: ApiNode) -> ApiNode:
    node.create_topic("apples", 2)
    node.append("apples", *[b"value"] * 10)
    return node


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (0, (NONE, 0)),
        (3, (NONE, 3)),
        (10, (NONE, 10)),
        (-1, (NONE, 10)),
        (11, (OUT_OF_RANGE, -1)),
        (-2, (OUT_OF_RANGE, -1)),
    ],
)
def test_everything_before_the_offset_is_gone(filled: ApiNode, version: int, offset: int, answer: Answer) -> None:
    assert ask(filled, ("apples", 0, offset), version=version) == [answer]
    start = max(answer[1], 0)
    partition = filled.partition("apples")
    assert partition.list_offset(OffsetSpec.EARLIEST, FetchIsolation.HIGH_WATERMARK).offset == start
    assert partition.list_offset(OffsetSpec.EARLIEST_LOCAL, FetchIsolation.HIGH_WATERMARK).offset == start
    assert partition.read(start, 1000, FetchIsolation.HIGH_WATERMARK).error_code is NONE
    if start:
        assert partition.read(start - 1, 1000, FetchIsolation.HIGH_WATERMARK).error_code is OUT_OF_RANGE


def test_the_start_never_goes_back(filled: ApiNode) -> None:
    assert ask(filled, ("apples", 0, 7)) == [(NONE, 7)]
    assert ask(filled, ("apples", 0, 3)) == [(NONE, 7)]


def test_of_two_offsets_for_one_partition_the_last_one_counts(filled: ApiNode) -> None:
    assert ask(filled, ("apples", 0, 7), ("apples", 1, 0), ("apples", 0, 3)) == [(NONE, 3), (NONE, 0)]


def test_each_partition_has_its_own_answer(filled: ApiNode) -> None:
    filled.create_topic("compacted", cleanup_policy="compact")
    filled.create_topic("both", cleanup_policy="compact,delete")
    filled.create_topic("elsewhere", leader=2)
    filled.create_topic("followed", replicas=[1, 2], leader=2)
    filled.create_topic(GROUP_METADATA_TOPIC)
    answers = ask(
        filled,
        ("apples", 0, 5),
        ("apples", 7, 0),
        ("nothing", 0, 0),
        ("compacted", 0, 0),
        ("both", 0, 0),
        ("elsewhere", 0, 0),
        ("followed", 0, 0),
        (GROUP_METADATA_TOPIC, 0, 0),
    )
    assert answers == [
        (NONE, 5),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ErrorCode.POLICY_VIOLATION, -1),
        (NONE, 0),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_answered_holds_after_a_restart(filled: ApiNode, clean: bool) -> None:
    assert ask(filled, ("apples", 0, 6)) == [(NONE, 6)]
    filled.restart(clean=clean)
    log = filled.partition("apples").log
    assert (log.log_start_offset, log.log_end_offset) == (6, 10)


def test_a_checkpoint_that_cannot_be_written_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    node.create_topic("apples", 2)
    for index in (0, 1):
        node.append("apples", b"value", index=index)

    def fail() -> None:
        raise DiskFailed("write", "", OSError(5, "Input/output error"))

    monkeypatch.setattr(node.directories[0], "checkpoint_log_start_offsets", fail)
    assert ask(node, ("apples", 0, 1), ("apples", 1, 1)) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1), (NONE, 1)]


def test_the_answer_waits_for_the_followers_that_are_alive(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.append("apples", *[b"value"] * 10)
    partition = node.partition("apples")
    partition.read_as_replica(2, 10, 1000, log_start_offset=0, now_ms=0)
    answers: list[list[Answer]] = []

    async def ask_now() -> None:
        answers.append(await send(node, ("apples", 0, 4)))

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_now)
            await trio.sleep(0.5)
            assert partition.log.log_start_offset == 4
            assert answers == []
            partition.read_as_replica(2, 10, 1000, log_start_offset=4, now_ms=0)
        assert answers.pop() == [(NONE, 4)]
        assert await send(node, ("apples", 0, 6)) == [(ErrorCode.REQUEST_TIMED_OUT, 4)]
        node.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=0, fenced=1))
        assert await send(node, ("apples", 0, 8)) == [(NONE, 8)]

    in_virtual_time(run)


def test_who_loses_the_leadership_while_waiting_says_so(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.append("apples", b"value")
    node.partition("apples").read_as_replica(2, 1, 1000, log_start_offset=0, now_ms=0)

    async def resign_soon() -> None:
        await trio.sleep(0.5)
        node.change_partition("apples", 0, leader=2)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(resign_soon)
            [(error, _)] = await send(node, ("apples", 0, 1))
        assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_virtual_time(run)
