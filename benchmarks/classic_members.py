"""Members of a classic group that do what the protocol asks of them and nothing else: no fetching, no threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio

from pykbroker.client.connection import Connection
from pykbroker.client.consumer_protocol import decode_assignment, encode_assignment
from pykbroker.client.errors import check
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 60_000
RETRY_S = 0.02
BEAT_S = 0.05
PROTOCOL = "range"
SUBSCRIPTION_VERSION = 1


class ClassicMember:
    """partitions: of the topic, those that the last assignment gave it."""

    def __init__(self, connection: Connection, group_id: str, topic: str, topic_partitions: int) -> None:
        self.connection = connection
        self.group_id = group_id
        self.topic = topic
        self.member_id = ""
        self.generation_id = -1
        self.partitions: list[int] = []
        self.topic_partitions = topic_partitions
        self._rebalances = 0

    async def settle(self, is_settled: Callable[[], bool]) -> None:
        """Is a member until all of them are: joins, and again when a heartbeat says so."""
        await self.rebalance()
        while not is_settled():
            beat = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id)
            answer = await self.connection.request(beat, HeartbeatResponse)
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                await self.rebalance()
            else:
                check(answer.error_code)
                await trio.sleep(BEAT_S)

    async def rebalance(self) -> None:
        """Joins with another subscription than before, and again where a rebalance comes between, until it has its
        part of an assignment."""
        self._rebalances += 1
        while not await self._sync(await self._join()):
            pass

    def _subscription(self) -> bytes:
        """Whoever joins with what it had already is told the generation that there is."""
        subscription = ConsumerProtocolSubscription(topics=[self.topic], user_data=b"%d" % self._rebalances)
        return SUBSCRIPTION_VERSION.to_bytes(2, "big") + encode(subscription, SUBSCRIPTION_VERSION)

    async def _join(self) -> JoinGroupResponse:
        while True:
            request = JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=self._subscription())],
            )
            answer = await self.connection.request(request, JoinGroupResponse)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                continue
            check(answer.error_code)
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
            return answer

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """The leader hands in ranges of the partitions."""
        members = [member.member_id for member in joined.members]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=self._share(number, len(members)))
                for number, member_id in enumerate(members)
            ],
        )
        answer = await self.connection.request(request, SyncGroupResponse)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        check(answer.error_code)
        self.partitions = [of.partition for of in decode_assignment(bytes(answer.assignment))]
        return True

    def _share(self, number: int, members: int) -> bytes:
        return encode_assignment(
            TopicPartition(self.topic, partition) for partition in range(number, self.topic_partitions, members)
        )


async def settle(members: list[ClassicMember]) -> None:
    """Until all are in the same generation, and have all partitions among them."""

    def is_settled() -> bool:
        owned = [partition for member in members for partition in member.partitions]
        generations = {member.generation_id for member in members}
        return len(generations) == 1 and sorted(owned) == list(range(members[0].topic_partitions))

    await run_together([partial(member.settle, is_settled) for member in members])


async def run_together(steps: list[Callable[[], Awaitable[None]]]) -> None:
    async with trio.open_nursery() as nursery:
        for step in steps:
            nursery.start_soon(step)


@asynccontextmanager
async def connections(address: tuple[str, int], group_id: str, count: int) -> AsyncIterator[list[Connection]]:
    """To the broker, which coordinates the group and has loaded what it needs for that."""
    opened: list[Connection] = []
    try:
        for number in range(count):
            stream = await trio.open_tcp_stream(*address)
            opened.append(Connection(stream, client_id=f"bench-{number}"))
            await opened[-1].negotiate()
        await _wait_for_coordinator(opened[0], group_id)
        yield opened
    finally:
        for connection in opened:
            await connection.aclose()


async def _wait_for_coordinator(connection: Connection, group_id: str) -> None:
    """A heartbeat of nobody is refused as one of nobody only where the group is served."""
    while True:
        found = await connection.request(FindCoordinatorRequest(coordinator_keys=[group_id]), FindCoordinatorResponse)
        beat = HeartbeatRequest(group_id=group_id, generation_id=0, member_id="nobody")
        answer = await connection.request(beat, HeartbeatResponse)
        if not found.coordinators[0].error_code and answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            return
        await trio.sleep(RETRY_S)
