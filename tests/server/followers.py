"""Others who know of no later leader than the one who asks."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from pykbroker.server.coordinators.leadership import Leadership


def told(request: OffsetForLeaderEpochRequest, error_code: ErrorCode) -> OffsetForLeaderEpochResponse:
    """Return the answer with that error for each partition that is asked for."""
    topics = [
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[EpochEndOffset(partition=each.partition, error_code=error_code) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


class Followers:
    """The replicas that follow: `BrokerRequests`."""

    async def request(
        self, node_id: int, request: Any, response_type: type[Any], *, purpose: str = "", timeout_ms: int | None = None
    ) -> Any:
        assert isinstance(request, OffsetForLeaderEpochRequest)
        return told(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def close(self, node_id: int, purpose: str = "") -> None:
        raise AssertionError("they are never silent")


class Controller:
    """The controller has nothing that is not known here: `leadership.CommittedMetadata`."""

    async def caught_up(self, timeout_ms: int) -> bool:
        return True


def unchallenged() -> Leadership:
    """Return what tells of each partition that is led here that nobody else leads it."""
    return Leadership(Followers(), Controller(), timeout_ms=5_000)
