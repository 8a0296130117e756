"""One member of a share group (KIP-932): heartbeats, and the partitions that the coordinator assigns."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
)
from pykbroker.protocol.uuids import uuid_to_text

from .cluster import Cluster
from .errors import KafkaError, check

_JOINS = 0
_LEAVES = -1
_MUST_REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class TopicIdPartition(NamedTuple):
    """A partition as requests of share groups name it."""

    topic_id: bytes
    partition: int


class ShareMembership:
    """`partitions` is the assignment as the last heartbeat told it; `changed` is set once it is another one."""

    def __init__(self, cluster: Cluster, group_id: str, topics: Sequence[str]) -> None:
        self.group_id = group_id
        self.member_id = uuid_to_text(uuid.uuid4().bytes)
        self.partitions: frozenset[TopicIdPartition] = frozenset()
        self.changed = trio.Event()
        self._cluster = cluster
        self._topics = list(topics)
        self._epoch = _JOINS
        self._interval_ms = 0

    async def join(self) -> None:
        """Become a member, with or without partitions. Raises KafkaError."""
        await self._heartbeat()

    async def run_heartbeats(self) -> None:
        """Stay a member, at the intervals that the coordinator asks for; one that was forgotten joins again."""
        while True:
            await trio.sleep(self._interval_ms / 1000)
            try:
                await self._heartbeat()
            except KafkaError as error:
                if error.error_code not in _MUST_REJOIN:
                    raise
                self._epoch = _JOINS
                self._assign(frozenset())
                await self._heartbeat()

    async def leave(self) -> None:
        """Leave, so that others have the partitions at once. Raises ClientError."""
        if self._epoch > 0:
            self._epoch = _LEAVES
            await self._ask()

    async def _heartbeat(self) -> None:
        response = await self._ask()
        self._epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self._assign(_partitions(response.assignment))

    async def _ask(self) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if self._epoch == _JOINS else None,
        )
        return await self._cluster.group_request(
            self.group_id,
            request,
            ShareGroupHeartbeatResponse,
            verify=lambda answer: check(answer.error_code, answer.error_message),
        )

    def _assign(self, partitions: frozenset[TopicIdPartition]) -> None:
        if partitions != self.partitions:
            self.partitions = partitions
            self.changed.set()
            self.changed = trio.Event()


def _partitions(assignment: ShareGroupHeartbeatResponseAssignment) -> frozenset[TopicIdPartition]:
    return frozenset(
        TopicIdPartition(topic.topic_id, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
