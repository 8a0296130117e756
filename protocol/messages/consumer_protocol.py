"""Subscriptions and assignments that consumers put into the opaque bytes of the classic protocol.

A 16-bit version stands in front of each.
"""

from __future__ import annotations

from ..schema import Message, Struct, field


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    """Topics a consumer wants, and what it owns now.

    v1 adds owned partitions (KIP-429), v2 the generation (KIP-792), v3 the rack (KIP-881).
    """

    topics: list[str] = field("[]string")
    user_data: bytes | None = field("bytes", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = field("[]struct", "1+", ignorable=True)
    generation_id: int = field("int32", "2+", default=-1, ignorable=True)
    rack_id: str | None = field("string", "3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = field("string", "1+", map_key=True)
    partitions: list[int] = field("[]int32", "1+")


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    """Partitions that the leader gave to a consumer."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = field("[]struct")
    user_data: bytes | None = field("bytes", nullable="0+", default=None)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")
