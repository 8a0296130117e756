"""A commit or a heartbeat without a task is answered as one that has one, and is made once."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.api.offset_fetch import offset_fetch
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.throttling import Throttling
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import HANDLERS
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.threads import OnTheLoop

from .api_node import ApiNode, in_virtual_time

VERSIONS = range(2, 11)


@pytest.fixture
def coordinating(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    node.create_topic("__consumer_offsets", 3)
    node.create_topic("apples", 3)
    node.create_topic("pears", 100)
    return node


@asynccontextmanager
async def running(node: ApiNode) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.groups.run)
        await wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()


def dispatcher_of(node: ApiNode, quotas: ClientQuotas | None = None) -> Dispatcher[Broker]:
    throttling = None if quotas is None else Throttling(quotas, SystemClock())
    return Dispatcher(
        node.broker, HANDLERS.broker, OnTheLoop(), disk_failed=lambda failure: None, throttling=throttling
    )


def connection() -> ConnectionState:
    return ConnectionState("PLAINTEXT", "127.0.0.1")


def commit(node: ApiNode, chance: random.Random, version: int) -> bytes:
    """A frame without its size: mostly one that a coordinator takes."""
    topics = []
    for name in chance.choices(["apples", "pears", "nowhere"], [5, 5, 1], k=chance.choice([0, 1, 1, 2, 2, 3])):
        known = node.image.topic(name)
        indexes = chance.choices([0, 1, 2, 50, 1000], [5, 5, 5, 1, 1], k=chance.choice([0, 1, 1, 2, 3, 60]))
        metadata = chance.choice(["", "mine", None, "long" * 2000])
        topics.append(
            OffsetCommitRequestTopic(
                name=name,
                topic_id=bytes(16) if known is None or version < 10 else known.topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=chance.randint(0, 9), committed_metadata=metadata
                    )
                    for index in indexes
                ],
            )
        )
    request = OffsetCommitRequest(
        group_id=chance.choice(["g", "h", ""]),
        generation_id_or_member_epoch=chance.choices([-1, 3], [5, 1])[0],
        member_id=chance.choices(["", "m"], [5, 1])[0],
        topics=topics,
    )
    return encode_request(request, version, chance.randint(0, 1 << 30), "test")[4:]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_coordinator", [True, False])
def test_the_answers_are_those_of_the_handler(coordinating: ApiNode, seed: int, *, is_coordinator: bool) -> None:
    node, chance = coordinating, random.Random(seed)
    if not is_coordinator:
        node.delete_topic("__consumer_offsets")
    begun = 0

    async def run() -> None:
        nonlocal begun
        async with running(node):
            dispatcher = dispatcher_of(node)
            for _ in range(150):
                frame = memoryview(commit(node, chance, chance.choice(VERSIONS)))
                answers: list[bytes | None] = []
                if dispatcher.begin(frame, connection(), answers.append):
                    begun += 1
                    await wait_all_tasks_blocked()
                    parts: Any = await dispatcher.answer(frame, connection())
                    assert answers == [b"".join(parts)]
                else:
                    await dispatcher.answer(frame, connection())
                    assert answers == []

    in_virtual_time(run)
    assert begun > 20


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("is_coordinator", [True, False])
def test_heartbeats_are_answered_as_by_the_handler(
    coordinating: ApiNode, version: int, *, is_coordinator: bool
) -> None:
    node = coordinating
    if not is_coordinator:
        node.delete_topic("__consumer_offsets")

    async def run() -> None:
        async with running(node):
            dispatcher, codes = dispatcher_of(node), set[int]()
            committed = OffsetCommitRequestTopic(
                name="apples", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
            )
            commit = encode_request(OffsetCommitRequest(group_id="g", topics=[committed]), 9, 1, None)[4:]
            for group_id in ("g", "h", ""):
                request = HeartbeatRequest(group_id=group_id, generation_id=3, member_id="m")
                frame = memoryview(encode_request(request, version, 7, "test")[4:])
                answers: list[bytes | None] = []
                committed_answers: list[bytes | None] = []
                assert dispatcher.begin(memoryview(commit), connection(), committed_answers.append)
                assert dispatcher.begin(frame, connection(), answers.append)
                await wait_all_tasks_blocked()
                parts: Any = await dispatcher.answer(frame, connection())
                assert answers == [b"".join(parts)]
                assert len(committed_answers) == 1
                codes.add(decode(HeartbeatResponse, version, answers[0] or b"", 9 if version == 4 else 8)[0].error_code)
            not_here = ErrorCode.NOT_COORDINATOR
            expected = {ErrorCode.UNKNOWN_MEMBER_ID} if is_coordinator else {not_here}
            assert codes - {ErrorCode.INVALID_GROUP_ID} == expected

    in_virtual_time(run)


def test_commits_of_one_turn_are_one_batch_and_are_all_there(coordinating: ApiNode) -> None:
    node = coordinating

    async def run() -> None:
        async with running(node):
            dispatcher, answers = dispatcher_of(node), list[bytes | None]()
            index = node.groups.partition_for("g")
            assert index is not None
            log = node.partition("__consumer_offsets", index).log
            for number in range(100):
                partition = OffsetCommitRequestPartition(partition_index=number, committed_offset=number + 7)
                topic = OffsetCommitRequestTopic(name="pears", partitions=[partition])
                frame = encode_request(OffsetCommitRequest(group_id="g", topics=[topic]), 9, number, None)[4:]
                assert dispatcher.begin(memoryview(frame), connection(), answers.append)
            assert answers == [], "nobody is told before the records are in the log"
            assert log.log_end_offset == 0
            await wait_all_tasks_blocked()
            assert len(answers) == 100
            assert log.log_end_offset == 100
            topics = [OffsetFetchRequestTopics(name="pears", partition_indexes=list(range(100)))]
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
            (group,) = (await node.call(offset_fetch, request, 9)).groups
            assert [each.committed_offset for each in group.topics[0].partitions] == [n + 7 for n in range(100)]

    in_virtual_time(run)


def test_whoever_still_waits_is_told_when_the_shard_is_closed(coordinating: ApiNode) -> None:
    node = coordinating

    async def run() -> None:
        async with running(node):
            dispatcher, answers = dispatcher_of(node), list[bytes | None]()
            for number in range(3):
                frame = commit_of_one("g", number)
                assert dispatcher.begin(memoryview(frame), connection(), answers.append)
            node.delete_topic("__consumer_offsets")
            await wait_all_tasks_blocked()
            assert [int.from_bytes(each[4:8], "big") for each in answers if each] == [0, 1, 2]
            parts: Any = await dispatcher.answer(memoryview(commit_of_one("g", 2)), connection())
            assert b"".join(parts) == answers[2]

    in_virtual_time(run)


def commit_of_one(group: str, correlation_id: int) -> bytes:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="apples", partitions=[partition])
    return encode_request(OffsetCommitRequest(group_id=group, topics=[topic]), 9, correlation_id, None)[4:]


def test_clients_without_rights_and_with_quotas_have_the_handler(coordinating: ApiNode) -> None:
    node = coordinating
    frame = memoryview(commit_of_one("g", 1))

    async def run() -> None:
        async with running(node):
            answers = list[bytes | None]()
            node.broker.authorizer = NodeAuthorizer(AuthorizerConfig(frozenset(), False, frozenset()), SystemClock())
            node.broker.authorizer.note_applied()
            assert not dispatcher_of(node).begin(frame, connection(), answers.append)
            node.broker.authorizer = None
            quotas = ClientQuotas(QuotaWindows(), QuotaWindows())
            quotas.change(frozenset({("client-id", "c")}), {"request_percentage": 1.0})
            assert not dispatcher_of(node, quotas).begin(frame, connection(), answers.append)
            assert answers == []

    in_virtual_time(run)
