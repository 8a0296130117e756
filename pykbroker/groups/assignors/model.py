"""What an assignor of the consumer protocol is told, and what it answers (KIP-848).

Pure values: who is in the group, what it is subscribed to and what it has by the last target assignment. The model is
Kafka's `GroupSpec`, `SubscribedTopicDescriber` and `PartitionAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]
"""One member's partitions by topic id. A topic without partitions is not in it."""

TopicPartition: TypeAlias = tuple[bytes, int]
"""Topic id and partition."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """topic_ids: of the topics that exist. assignment: the member's part of the last target assignment.

    rack_id, instance_id: None or empty where the member did not say.
    """

    topic_ids: frozenset[bytes]
    rack_id: str | None = None
    instance_id: str | None = None
    assignment: Assignment = field(default_factory=dict)


class TopicDescriber(Protocol):
    def partition_count(self, topic_id: bytes) -> int:
        """0 for a topic that there is not."""
        ...

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        """The racks of the partition's replicas, as far as they are known."""
        ...


class Assignor(Protocol):
    @property
    def name(self) -> str:
        """As members ask for it (`group.remote.assignor`)."""
        ...

    def assign(
        self, members: Mapping[str, MemberSubscription], topics: TopicDescriber, is_homogeneous: bool
    ) -> dict[str, dict[bytes, frozenset[int]]]:
        """The new target assignment, with every member in it. Neither chance nor the order of `members` counts.

        is_homogeneous: all members are subscribed to the same topics.
        """
        ...
