"""A consumer of a share group (KIP-932): each record goes to one of its members, which says what became of it.

Acknowledgements go with the next fetch, and at the end. What a consumer was given and has not acknowledged is free for
others once it leaves, or once the group's `share.record.lock.duration.ms` is over. Nothing is renewed here (KIP-1222).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum

import trio

from pykbroker.protocol.messages.share_groups import (
    AcquiredRecords,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.topic_partition import TopicPartition

from .background import background
from .cluster import RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS, Cluster
from .errors import BadInput, ClientError, check, code_of
from .fetched import ConsumedRecord
from .metadata import Node
from .share_acknowledgements import Acknowledgements, AcknowledgeType
from .share_membership import ShareMembership, TopicIdPartition
from .share_session import Batches, ShareSession

MAX_WAIT_MS = 500
MAX_BYTES = 50 * 1024 * 1024
MAX_RECORDS = 500
"""Of one fetch, as `max.poll.records` is by default."""
CLOSE_TIMEOUT_MS = 5_000
FAILING_TIMEOUT_MS = 30_000
"""How long a leader may answer with retriable errors before the consumer gives up."""
_NO_EPOCH = -1


class AcquireMode(IntEnum):
    """The bound on the records of a fetch (KIP-1206): whole batches, or no more than asked for."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@dataclass(slots=True)
class _Leader:
    """One leader: the session with it, what is to be acknowledged there, and the offsets that are held."""

    node: Node
    session: ShareSession
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    held: dict[TopicPartition, set[int]] = field(default_factory=dict)
    failing_since: float | None = None


@asynccontextmanager
async def open_share_consumer(
    cluster: Cluster,
    group_id: str,
    topics: Sequence[str],
    *,
    acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    max_wait_ms: int = MAX_WAIT_MS,
    max_bytes: int = MAX_BYTES,
    max_records: int = MAX_RECORDS,
) -> AsyncIterator[ShareConsumer]:
    """A member while the block runs; it acknowledges what it was told to, and leaves, however the block ends.

    max_records: of one fetch, at each leader. Raises ClientError.
    """
    membership = ShareMembership(cluster, group_id, topics)
    consumer = ShareConsumer(cluster, membership, topics, acquire_mode, max_wait_ms, max_bytes, max_records)
    await membership.join()
    async with background(membership.run_heartbeats):
        try:
            yield consumer
        finally:
            with trio.move_on_after(CLOSE_TIMEOUT_MS / 1000, shield=True):
                await consumer.close()


class ShareConsumer:
    """Made by `open_share_consumer`. refused: why acknowledgements were not taken, by partition, the last time each."""

    def __init__(
        self,
        cluster: Cluster,
        membership: ShareMembership,
        topics: Sequence[str],
        acquire_mode: AcquireMode,
        max_wait_ms: int,
        max_bytes: int,
        max_records: int,
    ) -> None:
        self.refused: dict[TopicPartition, str] = {}
        self._cluster = cluster
        self._membership = membership
        self._topics = list(topics)
        self._acquire_mode = acquire_mode
        self._max_wait_ms = max_wait_ms
        self._max_bytes = max_bytes
        self._max_records = max_records
        self._names: dict[bytes, str] = {}
        self._leaders: dict[int, _Leader] = {}
        self._ready: deque[tuple[_Leader, ConsumedRecord]] = deque()
        self._given: dict[tuple[str, int], _Leader] = {}
        self._next_look = 0.0

    async def poll(self, max_records: int | None = None) -> list[ConsumedRecord]:
        """Return records, none after at most `max_wait_ms`; each is to be acknowledged. Raises ClientError."""
        if not self._ready:
            await self._fetch(self._max_records if max_records is None else min(max_records, self._max_records))
        count = len(self._ready) if max_records is None else min(max_records, len(self._ready))
        records = []
        for _ in range(count):
            leader, record = self._ready.popleft()
            self._given[record.topic, record.partition] = leader
            records.append(record)
        return records

    def acknowledge(self, records: Iterable[ConsumedRecord], kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Say what became of records that `poll` gave. Those that were lost meanwhile, with a session, are left out."""
        ids = {name: topic_id for topic_id, name in self._names.items()}
        for record in records:
            leader = self._given.get((record.topic, record.partition))
            held = None if leader is None else leader.held.get(TopicPartition(record.topic, record.partition))
            if leader is None or held is None or record.offset not in held or record.topic not in ids:
                continue
            held.discard(record.offset)
            of = TopicIdPartition(ids[record.topic], record.partition)
            leader.acknowledgements.add(of, record.offset, record.offset, kind)

    async def close(self) -> None:
        """Acknowledge, end the sessions and leave. Failures are not raised: the brokers end all that by themselves."""
        async with trio.open_nursery() as nursery:
            for leader in self._leaders.values():
                nursery.start_soon(self._end_session, leader)
        try:
            await self._membership.leave()
        except ClientError:
            pass

    # ---- one round of fetches

    async def _fetch(self, max_records: int) -> None:
        by_leader = await self._assigned()
        left = [each for node_id, each in self._leaders.items() if node_id not in by_leader]
        if not by_leader and not left:
            with trio.move_on_after(self._max_wait_ms / 1000):
                await self._membership.changed.wait()
            return
        failures: dict[int, ClientError] = {}
        async with trio.open_nursery() as nursery:
            for node_id, partitions in by_leader.items():
                nursery.start_soon(self._fetch_from, self._leaders[node_id], partitions, max_records, failures)
            for each in left:
                del self._leaders[each.node.node_id]
                nursery.start_soon(self._end_session, each)
        if failures:
            await self._recover(failures)

    async def _assigned(self) -> dict[int, list[TopicIdPartition]]:
        """Return the assigned partitions by the nodes that lead them, each of which has its entry in `_leaders`."""
        wanted = self._membership.partitions
        if any(self._leader_of(of) is None for of in wanted) and trio.current_time() >= self._next_look:
            self._next_look = trio.current_time() + RETRY_BACKOFF_MAX_MS / 1000
            await self._learn_names()
        found: dict[int, list[TopicIdPartition]] = {}
        for of in sorted(wanted):
            node = self._leader_of(of)
            if node is None:
                continue
            found.setdefault(node.node_id, []).append(of)
            known = self._leaders.get(node.node_id)
            if known is None or known.node != node:
                if known is not None:
                    self._lose(known, known.acknowledgements.taken(), f"Node {node.node_id} has another address.")
                session = ShareSession(self._membership.group_id, self._membership.member_id)
                self._leaders[node.node_id] = _Leader(node, session)
        return found

    def _leader_of(self, of: TopicIdPartition) -> Node | None:
        name = self._names.get(of.topic_id)
        return None if name is None else self._cluster.metadata.leader(TopicPartition(name, of.partition))

    async def _learn_names(self) -> None:
        metadata = await self._cluster.refresh(self._topics)
        self._names |= {topic.topic_id: name for name, topic in metadata.topics.items() if name in self._topics}

    async def _fetch_from(
        self, leader: _Leader, partitions: list[TopicIdPartition], max_records: int, failures: dict[int, ClientError]
    ) -> None:
        """Failures are put aside, so that one leader's do not lose what another one sent."""
        acknowledgements = leader.acknowledgements.taken() if leader.session.is_open else {}
        try:
            request = leader.session.fetch(
                partitions,
                acknowledgements,
                max_wait_ms=self._max_wait_ms,
                max_bytes=self._max_bytes,
                max_records=max_records,
                batch_size=max_records,
                acquire_mode=self._acquire_mode,
            )
            connection = await self._cluster.node_connection(leader.node)
            response = await connection.request(request, ShareFetchResponse)
            check(response.error_code, response.error_message)
        except ClientError as error:
            self._lose(leader, acknowledgements, str(error))
            failures[leader.node.node_id] = error
            return
        leader.session.answered()
        for topic in response.responses:
            for row in topic.partitions:
                of = TopicIdPartition(topic.topic_id, row.partition_index)
                if row.acknowledge_error_code:
                    self._refuse(of, row.acknowledge_error_message or code_of(row.acknowledge_error_code).description)
                try:
                    check(row.error_code, row.error_message)
                    self._take(leader, of, row)
                except ClientError as error:
                    failures[leader.node.node_id] = error
        if leader.node.node_id not in failures:
            leader.failing_since = None

    def _take(self, leader: _Leader, of: TopicIdPartition, row: ShareFetchResponsePartitionData) -> None:
        """Make the acquired records ready, and acknowledge the offsets between them that have none.

        Raises BadInput for records that cannot be read, which stay locked until their time is over.
        """
        name = self._names.get(of.topic_id)
        if name is None or not row.acquired_records:
            return
        at = TopicPartition(name, of.partition)
        ranges = sorted(row.acquired_records, key=lambda each: each.first_offset)
        held = leader.held.setdefault(at, set())
        records = row.records or b""
        assert isinstance(records, (bytes, memoryview)), "what was decoded is in memory"
        try:
            found = list(_acquired(at, records, ranges))
        except InvalidRecords as error:
            raise BadInput(f"Partition {at} has a batch that cannot be read: {error}") from None
        for each in found:
            self._ready.append((leader, each))
            held.add(each.offset)
        offsets = iter([each.offset for each in found])
        following = next(offsets, None)
        for acquired in ranges:
            begin = acquired.first_offset
            while following is not None and following <= acquired.last_offset:
                if begin < following:
                    leader.acknowledgements.add(of, begin, following - 1, AcknowledgeType.GAP)
                begin = following + 1
                following = next(offsets, None)
            if begin <= acquired.last_offset:
                leader.acknowledgements.add(of, begin, acquired.last_offset, AcknowledgeType.GAP)

    async def _recover(self, failures: Mapping[int, ClientError]) -> None:
        """New metadata for what failed. Raises what no retry can help."""
        now = trio.current_time()
        for node_id, error in failures.items():
            leader = self._leaders[node_id]
            leader.failing_since = leader.failing_since or now
            if not error.retriable or now - leader.failing_since > FAILING_TIMEOUT_MS / 1000:
                raise error
        await trio.sleep(RETRY_BACKOFF_MS / 1000)
        await self._learn_names()

    # ---- the end of a session

    async def _end_session(self, leader: _Leader) -> None:
        if not leader.session.is_open:
            return
        acknowledgements = leader.acknowledgements.taken()
        try:
            connection = await self._cluster.node_connection(leader.node)
            response = await connection.request(leader.session.closing(acknowledgements), ShareAcknowledgeResponse)
            check(response.error_code, response.error_message)
        except ClientError as error:
            self._lose(leader, acknowledgements, str(error))
            return
        for topic in response.responses:
            for row in topic.partitions:
                if row.error_code:
                    of = TopicIdPartition(topic.topic_id, row.partition_index)
                    self._refuse(of, row.error_message or code_of(row.error_code).description)
        self._forget(leader)

    def _lose(self, leader: _Leader, acknowledgements: Batches, why: str) -> None:
        """Begin a session anew. The leader gives others what this consumer still holds, or will in time."""
        for of in acknowledgements:
            self._refuse(of, why)
        self._forget(leader)

    def _forget(self, leader: _Leader) -> None:
        leader.session.lose()
        leader.held.clear()
        leader.acknowledgements = Acknowledgements()
        self._ready = deque(entry for entry in self._ready if entry[0] is not leader)

    def _refuse(self, of: TopicIdPartition, why: str) -> None:
        name = self._names.get(of.topic_id)
        if name is not None:
            self.refused[TopicPartition(name, of.partition)] = why


def _acquired(
    at: TopicPartition, data: bytes | memoryview, ranges: Sequence[AcquiredRecords]
) -> Iterable[ConsumedRecord]:
    """Yield the records of the ranges, which are sorted, with their delivery counts. Raises InvalidRecords."""
    index = 0
    for batch in iter_batches(data, allow_partial=True):
        batch.ensure_valid()
        if batch.header.is_control:
            continue
        for record in iter_records(batch):
            while index < len(ranges) and ranges[index].last_offset < record.offset:
                index += 1
            if index == len(ranges):
                return
            if record.offset >= ranges[index].first_offset:
                yield ConsumedRecord(
                    at.topic,
                    at.partition,
                    record.offset,
                    _NO_EPOCH,
                    record.timestamp,
                    batch.header.timestamp_type,
                    record.key,
                    record.value,
                    tuple(record.headers),
                    ranges[index].delivery_count,
                )
