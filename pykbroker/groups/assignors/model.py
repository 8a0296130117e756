"""Inputs and outputs of an assignor of the consumer protocol (KIP-848).

All of it is values: the members of the group, what each is subscribed to, and its part of the last target assignment.
The models are Kafka's `GroupSpec`, `SubscribedTopicDescriber` and `PartitionAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]
"""One member's partitions by topic id. No topic in it is without partitions."""

TopicPartition: TypeAlias = tuple[bytes, int]
"""Topic id and partition."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription of a member, and what the member has.

    topic_ids: of the topics that exist. assignment: the member's part of the last target assignment. rack_id,
    instance_id: None or empty where the member has none.
    """

    topic_ids: frozenset[bytes]
    rack_id: str | None = None
    instance_id: str | None = None
    assignment: Assignment = field(default_factory=dict)


class TopicDescriber(Protocol):
    def partition_count(self, topic_id: bytes) -> int:
        """0 for a topic that does not exist."""
        ...

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        """The racks of the partition's replicas, as far as they are known."""
        ...


class Assignor(Protocol):
    @property
    def name(self) -> str:
        """The name by which members ask for the assignor (`group.remote.assignor`)."""
        ...

    def assign(
        self, members: Mapping[str, MemberSubscription], topics: TopicDescriber, is_homogeneous: bool
    ) -> dict[str, dict[bytes, frozenset[int]]]:
        """The new target assignment, with every member in it. It depends neither on chance nor on the order of
        `members`.

        is_homogeneous: all members are subscribed to the same topics.
        """
        ...
