"""A consumer that shares its topics with the other members of a group.

Offsets are committed automatically: every five seconds, before a rebalance and at the end. Only records that `poll`
has returned are committed, and only once `poll` is called again: the caller is done with them by then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio

from pykbroker.protocol.topic_partition import TopicPartition

from .background import background
from .cluster import Cluster
from .consumer import MAX_BYTES, MAX_WAIT_MS, PARTITION_MAX_BYTES, Consumer
from .errors import ClientError
from .fetched import ConsumedRecord
from .membership import SESSION_TIMEOUT_MS, Membership
from .offsets import LATEST_TIMESTAMP, READ_UNCOMMITTED

HEARTBEAT_INTERVAL_MS = 3_000
AUTO_COMMIT_INTERVAL_MS = 5_000
CLOSE_TIMEOUT_MS = 5_000


@asynccontextmanager
async def open_group_consumer(
    cluster: Cluster,
    group_id: str,
    topics: Sequence[str],
    *,
    reset_to: int = LATEST_TIMESTAMP,
    isolation_level: int = READ_UNCOMMITTED,
    max_wait_ms: int = MAX_WAIT_MS,
    max_bytes: int = MAX_BYTES,
    partition_max_bytes: int = PARTITION_MAX_BYTES,
    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
) -> AsyncIterator[GroupConsumer]:
    """A member while the block runs; commits and leaves at its end, however it ends."""
    consumer = Consumer(
        cluster,
        reset_to=reset_to,
        isolation_level=isolation_level,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
    )
    membership = Membership(cluster, group_id, topics, session_timeout_ms=session_timeout_ms)
    member = GroupConsumer(membership, consumer, reset_to, heartbeat_interval_ms)
    async with background(member.run_heartbeats):
        try:
            yield member
        finally:
            with trio.move_on_after(CLOSE_TIMEOUT_MS / 1000, shield=True):
                await member.close()


class GroupConsumer:
    """Made by `open_group_consumer`. `rebalancing_s` is the time that joining the group has taken so far."""

    def __init__(self, membership: Membership, consumer: Consumer, reset_to: int, heartbeat_interval_ms: int) -> None:
        self._membership = membership
        self._consumer = consumer
        self._reset_to = reset_to
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._is_member = False
        self._next_commit = 0.0
        self._committed: dict[TopicPartition, int] = {}
        self.rebalancing_s = 0.0

    @property
    def positions(self) -> dict[TopicPartition, int]:
        return self._consumer.positions

    async def poll(self, max_records: int | None = None) -> list[ConsumedRecord]:
        if not self._is_member:
            await self._rejoin()
        elif trio.current_time() >= self._next_commit:
            await self._commit()
        return await self._consumer.poll(max_records)

    async def run_heartbeats(self) -> None:
        while True:
            await trio.sleep(self._heartbeat_interval_ms / 1000)
            if self._is_member and not await self._membership.heartbeat():
                self._is_member = False

    async def close(self) -> None:
        """Failures are not reported: the group ends this member's session by itself."""
        try:
            await self._commit()
            await self._membership.leave()
        except ClientError:
            pass

    async def _rejoin(self) -> None:
        began = trio.current_time()
        await self._commit()
        partitions = await self._membership.join()
        committed = await self._membership.committed(partitions)
        await self._consumer.assign_at({of: self._reset_to for of in partitions if of not in committed})
        self._consumer.assign({**self._consumer.positions, **committed})
        self._committed = committed
        self._next_commit = trio.current_time() + AUTO_COMMIT_INTERVAL_MS / 1000
        self._is_member = True
        self.rebalancing_s += trio.current_time() - began

    async def _commit(self) -> None:
        self._next_commit = trio.current_time() + AUTO_COMMIT_INTERVAL_MS / 1000
        offsets = {of: offset for of, offset in self.positions.items() if self._committed.get(of) != offset}
        if offsets and await self._membership.commit(offsets):
            self._committed.update(offsets)
