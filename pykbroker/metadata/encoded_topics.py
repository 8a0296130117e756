"""Topics as Metadata describes them, encoded once for all who ask: a client asks every few minutes, thousands of
clients do at once, and most topics are as they were.

What is kept is compared with the very states that it was made of, so that nobody has to say what has changed. Pure:
long work is a generator, which yields the number of steps that each piece took.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.compile import encode_structs
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

from .image import MetadataImage, TopicState
from .offline_replicas import OfflineReplicas
from .partition_state import PartitionState
from .topic_names import is_internal

PARTITIONS_AT_ONCE: Final = 250
STEPS_OF_PARTITION: Final = 8
_LISTENER_NOT_FOUND_SINCE: Final = 6
_OFFLINE_REPLICAS_TOLD_SINCE: Final = 1
"""Version 0 names those replicas alone that can be reached."""


@dataclass(frozen=True, slots=True)
class _EncodedTopic:
    """One encoded topic. portions: of so many partitions each. parts: the whole topic."""

    topic_id: bytes
    indexes: tuple[int, ...]
    states: tuple[PartitionState, ...]
    portions: tuple[Sequence[bytes], ...]
    parts: Sequence[bytes]

    def has(self, portion: slice, indexes: tuple[int, ...], states: tuple[PartitionState, ...]) -> bool:
        return self.indexes[portion] == indexes[portion] and self.states[portion] == states[portion]


@dataclass(frozen=True, slots=True)
class _AllTopics:
    image: MetadataImage
    revision: int
    encoded: EncodedStructs


class EncodedTopics:
    """Encoded topics for the clients of one listener, in one version of the response.

    operations: what is said of the authorized operations on every topic.
    """

    def __init__(self, listener_name: str, version: int, operations: int) -> None:
        self.version = version
        self._listener_name = listener_name
        self._operations = operations
        self._topics: dict[str, _EncodedTopic] = {}
        self._all: _AllTopics | None = None
        self._brokers: tuple[MetadataImage, int] | None = None

    # One topic

    def find(self, image: MetadataImage, topic: TopicState) -> Sequence[bytes] | None:
        """The topic as it is now, where nothing has changed since it was encoded."""
        self._look_at_brokers(image)
        known = self._topics.get(topic.name)
        if known is None or known.topic_id != topic.topic_id:
            return None
        if known.indexes != tuple(topic.partitions) or known.states != tuple(topic.partitions.values()):
            return None
        return known.parts

    def encode(self, image: MetadataImage, topic: TopicState) -> Generator[int, None, Sequence[bytes]]:
        """The topic as it is when this begins."""
        self._look_at_brokers(image)
        brokers = self._brokers
        known = self._topics.get(topic.name)
        topic_id, indexes, states = topic.topic_id, tuple(topic.partitions), tuple(topic.partitions.values())
        portions: list[Sequence[bytes]] = []
        for start in range(0, len(states), PARTITIONS_AT_ONCE):
            portion = slice(start, start + PARTITIONS_AT_ONCE)
            if (
                known is not None
                and known.indexes[portion] == indexes[portion]
                and known.states[portion] == states[portion]
            ):
                portions.append(known.portions[len(portions)])
                yield 1 + PARTITIONS_AT_ONCE // 20
            else:
                portions.append(self._encode_partitions(image, indexes[portion], states[portion]))
                yield len(states[portion]) * STEPS_OF_PARTITION
        parts = self._encode_topic(topic.name, topic_id, len(states), portions)
        yield STEPS_OF_PARTITION
        if self._brokers == brokers:
            self._topics[topic.name] = _EncodedTopic(topic_id, indexes, states, tuple(portions), parts)
        return parts

    def _look_at_brokers(self, image: MetadataImage) -> None:
        """Look at the brokers: which leaders and replicas can be reached is part of every topic."""
        brokers = self._brokers
        if brokers is None or brokers[0] is not image or brokers[1] != image.brokers_revision:
            self._topics.clear()
            self._brokers = image, image.brokers_revision

    def _encode_partitions(
        self, image: MetadataImage, indexes: Sequence[int], states: Sequence[PartitionState]
    ) -> Sequence[bytes]:
        offline = OfflineReplicas(image, self._listener_name)
        errors = {leader: self._leader_error(image, leader) for leader in {each.leader for each in states}}
        partitions = [
            _partition(index, each, errors[each.leader], offline) for index, each in zip(indexes, states, strict=True)
        ]
        if self.version < _OFFLINE_REPLICAS_TOLD_SINCE:
            for each in partitions:
                self._leave_out_unreachable(image, each)
        return encode_structs(MetadataResponse, partitions, self.version)

    def _leave_out_unreachable(self, image: MetadataImage, partition: MetadataResponsePartition) -> None:
        """Kafka's `maybeFilterAliveReplicas`: a replica whose directory has failed is reachable."""
        told = len(partition.replica_nodes) + len(partition.isr_nodes)
        replicas, isr = (
            [each for each in brokers if leader_error(image, each, self._listener_name) is ErrorCode.NONE]
            for brokers in (partition.replica_nodes, partition.isr_nodes)
        )
        partition.replica_nodes, partition.isr_nodes = replicas, isr
        if len(replicas) + len(isr) < told and not partition.error_code:
            partition.error_code = ErrorCode.REPLICA_NOT_AVAILABLE

    def _leader_error(self, image: MetadataImage, leader: int) -> ErrorCode:
        error = leader_error(image, leader, self._listener_name)
        if error is ErrorCode.LISTENER_NOT_FOUND and self.version < _LISTENER_NOT_FOUND_SINCE:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return error

    def _encode_topic(
        self, name: str, topic_id: bytes, count: int, portions: Iterable[Sequence[bytes]]
    ) -> Sequence[bytes]:
        parts = [part for portion in portions for part in portion]
        topic = MetadataResponseTopic(
            name=name,
            topic_id=topic_id,
            is_internal=is_internal(name),
            partitions=EncodedStructs(count, parts, self.version).of(MetadataResponsePartition),
            topic_authorized_operations=self._operations,
        )
        return encode_structs(MetadataResponse, [topic], self.version)

    # All of them

    def find_all(self, image: MetadataImage) -> EncodedStructs | None:
        """All topics as they are now, where nothing at all has changed since."""
        known = self._all
        if known is None or known.image is not image or known.revision != image.revision:
            return None
        return known.encoded

    def keep_all(self, image: MetadataImage, revision: int, encoded: EncodedStructs) -> None:
        """All topics of that revision of the image. Those that are gone need not be known any longer."""
        self._all = _AllTopics(image, revision, encoded)
        if len(self._topics) > len(image.topics):
            self._topics = {name: each for name, each in self._topics.items() if name in image.topics}


_MOST_KEPT: Final = 200
"""Without ACLs there are two for each listener and version; with them, what clients may do is in the topics, too."""


class EncodedTopicsOfNode:
    """All that one node has encoded (`Broker.encoded_topics`): by listener, version, and what is said of operations."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, int], EncodedTopics] = {}

    def of(self, listener_name: str, version: int, operations: int) -> EncodedTopics:
        asked = listener_name, version, operations
        kept = self._kept.get(asked)
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[asked] = EncodedTopics(*asked)
        return kept


def leader_error(image: MetadataImage, leader: int, listener_name: str) -> ErrorCode:
    """Return why a client of this listener cannot reach the leader."""
    if not image.is_alive(leader):
        return ErrorCode.LEADER_NOT_AVAILABLE
    reachable = image.brokers[leader].endpoint(listener_name) is not None
    return ErrorCode.NONE if reachable else ErrorCode.LISTENER_NOT_FOUND


def _partition(
    index: int, partition: PartitionState, error_code: ErrorCode, offline: OfflineReplicas
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=-1 if error_code else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline.of(partition),
    )
