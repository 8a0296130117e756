"""ConsumerGroupHeartbeats as members send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
VERSION = 1


def consumer_beat(
    group: str,
    member_id: str,
    epoch: int = JOINING,
    *,
    topics: Sequence[str] | None = None,
    regex: str | None = None,
    owned: Mapping[bytes, Sequence[int]] | None = None,
    instance: str | None = None,
    rack: str | None = None,
    assignor: str | None = None,
    rebalance: int | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """Whoever joins says all of it."""
    is_joining = epoch == JOINING
    if is_joining and topics is None and regex is None:
        topics = []
    if is_joining and owned is None:
        owned = {}
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=rebalance if rebalance is not None else (60_000 if is_joining else -1),
        subscribed_topic_names=None if topics is None else list(topics),
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=None
        if owned is None
        else [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in owned.items()
        ],
    )


def assigned(response: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """None where the answer leaves it as it was."""
    if response.assignment is None:
        return None
    return {topic.topic_id: sorted(topic.partitions) for topic in response.assignment.topic_partitions}


def on_the_wire(response: Any, version: int) -> Any:
    """The answer to a heartbeat as it arrives: a part of it may be encoded already."""
    if not isinstance(response, ConsumerGroupHeartbeatResponse):
        return response
    return decode(ConsumerGroupHeartbeatResponse, version, encode(response, version))[0]
