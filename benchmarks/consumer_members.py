"""Members of a group of the consumer protocol (KIP-848) that take and give up partitions as they are told."""

from __future__ import annotations

from uuid import uuid4

import trio

from pykbroker.client.connection import Connection
from pykbroker.client.errors import check
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

REBALANCE_TIMEOUT_MS = 60_000
LEAVING_EPOCH = -1


class ConsumerMember:
    """partitions: what it owns, and has told the broker that it owns."""

    def __init__(self, connection: Connection, group_id: str, topic: str) -> None:
        self.epoch = 0
        self.partitions: list[int] = []
        self._connection = connection
        self._group_id = group_id
        self._topic = topic
        self._member_id = str(uuid4())
        self._owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        self._next = ConsumerGroupHeartbeatRequest(
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, subscribed_topic_names=[topic], topic_partitions=[]
        )

    async def live(self, changed: trio.Condition) -> None:
        """Heartbeats for good: at once where there is something to acknowledge, else as often as the broker says."""
        while True:
            interval_s = await self.beat()
            if interval_s is None:
                continue
            async with changed:
                changed.notify_all()
            await trio.sleep(interval_s)

    async def beat(self) -> float | None:
        """One heartbeat, with what it has to tell. Returns how many seconds the next one has time, None where there is
        something to acknowledge.
        """
        answer = await self._beat(self._next)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=bytes(topic.topic_id), partitions=topic.partitions
                )
                for topic in answer.assignment.topic_partitions
            ]
            self._next = ConsumerGroupHeartbeatRequest(topic_partitions=self._owned)
            return None
        self.partitions = [partition for topic in self._owned for partition in topic.partitions]
        self._next = ConsumerGroupHeartbeatRequest()
        return answer.heartbeat_interval_ms / 1000

    def idle_beat(self) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat of a member that has nothing to tell, in its present epoch."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self._member_id, member_epoch=self.epoch
        )

    async def leave(self) -> None:
        self.epoch = LEAVING_EPOCH
        await self._beat(ConsumerGroupHeartbeatRequest())

    async def _beat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        request.group_id, request.member_id, request.member_epoch = self._group_id, self._member_id, self.epoch
        answer = await self._connection.request(request, ConsumerGroupHeartbeatResponse)
        check(answer.error_code, answer.error_message)
        return answer
