"""Members of a consumer group (KIP-848): they tell what they own, give up what is taken, commit, leave, and die."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

from .group_offsets import commit
from .stage import RETRIABLE, Gone, Lost, Stage, Wire

CONSUMER_GROUP = "consumer"
_REBALANCE_MS = 2_000
_LEAVING_EPOCH = -1
_MUST_JOIN_AGAIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
_COMMITS_LATER = (ErrorCode.STALE_MEMBER_EPOCH,)


async def live_in_a_consumer_group(stage: Stage) -> None:
    """One member after another, each a process of its own."""
    while not stage.is_quiet:
        member = _ConsumerMember(stage)
        try:
            await member.live()
        except Gone:
            pass
        await stage.pause(300)


class _ConsumerMember:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._proc = stage.recorder.new_process()
        self._wire = Wire(stage, "member")
        self._member_id = f"member-{self._proc}"
        self._epoch = 0
        self._owned: list[int] = []

    async def live(self) -> None:
        """Raises Gone when it dies or leaves."""
        stage = self._stage
        while not stage.is_quiet:
            await self._beat()
            await stage.pause(120)
            if self._owned and self._epoch > 0 and stage.rng.random() < 0.7:
                await self._commit()
            if stage.chance(0.02):
                self._wire.cut()
                raise Gone
            if stage.chance(0.05):
                break
        await self._leave()

    async def _ask(self, epoch: int, owned: list[int]) -> Any:
        topic_id = self._stage.topic_ids["orders"]
        request = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP,
            member_id=self._member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=_REBALANCE_MS,
            subscribed_topic_names=["orders"],
            topic_partitions=[ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=owned)]
            if owned
            else [],
        )
        return await self._wire.ask(request, 1)

    async def _beat(self) -> None:
        try:
            response = await self._ask(self._epoch, self._owned)
        except Lost:
            return
        code = ErrorCode(response.error_code)
        if code in _MUST_JOIN_AGAIN:
            self._epoch, self._owned = 0, []
        elif code is ErrorCode.NONE:
            self._epoch = response.member_epoch
            if response.assignment is not None:
                self._is_assigned(response.assignment)
        else:
            assert code in RETRIABLE, code

    def _is_assigned(self, assignment: Any) -> None:
        self._owned = [index for topic in assignment.topic_partitions for index in topic.partitions]
        keys = [f"orders-{index}" for index in self._owned]
        self._stage.recorder.tell(
            self._proc, "own", group=CONSUMER_GROUP, member=self._member_id, epoch=self._epoch, keys=keys
        )

    async def _commit(self) -> None:
        key = f"orders-{self._stage.rng.choice(self._owned)}"
        member: dict[str, Any] = {"member_id": self._member_id, "generation": self._epoch}
        code = await commit(self._stage, self._wire, self._proc, CONSUMER_GROUP, key, **member)
        if code in _MUST_JOIN_AGAIN:
            self._epoch, self._owned = 0, []
        else:
            assert code in (None, ErrorCode.NONE, *_COMMITS_LATER) or code in RETRIABLE, code

    async def _leave(self) -> None:
        try:
            await self._ask(_LEAVING_EPOCH, [])
        except Lost:
            pass
        self._wire.cut()
