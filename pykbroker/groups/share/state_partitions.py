"""The share partitions of a group whose state the share coordinator keeps, or is about to create or delete.

A topic's partitions are initializing from the step that asks the share coordinator to create their state until the one
that knows it did; only then may members be assigned them. A topic is deleting while its state is being deleted. One
record has all of it, so each topic keeps its bytes: a change of one topic does not encode the others again. The model
is Kafka's `ShareGroupStatePartitionMetadataInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.protocol.compile import encode_structs
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class StateTopic:
    """The partitions of one topic, and the name that the topic had."""

    name: str
    partitions: frozenset[int]
    _bytes: bytes = field(default=b"", init=False, compare=False, repr=False)

    def in_bytes(self, topic_id: bytes) -> bytes:
        """The topic as it stands in the record of its group. It is encoded once: a topic has one id."""
        if not self._bytes:
            info = TopicPartitionsInfo(topic_id=topic_id, topic_name=self.name, partitions=sorted(self.partitions))
            encoded = b"".join(encode_structs(ShareGroupStatePartitionMetadataValue, [info], VERSION))
            object.__setattr__(self, "_bytes", encoded)
        return self._bytes


UNKNOWN_TOPIC: Final = "<UNKNOWN>"
_BYTES_OF_TOPIC: Final = 26
"""The most that a topic takes besides its name and its partitions: id, lengths, and a byte for tagged fields."""
_BYTES_OF_PARTITION: Final = 4


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The share partitions by topic id; a value. deleting: the names of topics by their ids."""

    initializing: Mapping[bytes, StateTopic] = field(default_factory=dict)
    initialized: Mapping[bytes, StateTopic] = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)

    @classmethod
    def of_record(cls, value: ShareGroupStatePartitionMetadataValue) -> StatePartitions:
        return cls(
            _topics(value.initializing_topics),
            _topics(value.initialized_topics),
            {bytes(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
        )

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        """The value of the record. Only an encoder may look at its topics."""
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_in_bytes(self.initializing),
            initialized_topics=_in_bytes(self.initialized),
            deleting_topics=[TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in self.deleting.items()],
        )

    @property
    def size_bytes(self) -> int:
        """The greatest size that the record's value may have."""
        listed = (*self.initializing.values(), *self.initialized.values())
        return 16 + sum(map(size_of_topic, listed)) + sum(size_of_name(name) for name in self.deleting.values())

    def topic_ids(self) -> set[bytes]:
        return {*self.initializing, *self.initialized, *self.deleting}

    # Changes

    def initializing_too(self, topics: Mapping[bytes, StateTopic]) -> StatePartitions:
        """Begin to initialize partitions. Their topics are not deleting any more."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return replace(self, initializing=together(self.initializing, topics), deleting=deleting)

    def initialized_too(self, topics: Mapping[bytes, StateTopic]) -> StatePartitions:
        """Note that the partitions are initialized, whether or not the group waited for it."""
        return replace(
            self,
            initializing=_without(self.initializing, topics),
            initialized=together(self.initialized, topics),
        )

    def not_initializing(self, topics: Mapping[bytes, StateTopic]) -> StatePartitions:
        """Note that nobody initializes these partitions any more."""
        return replace(self, initializing=_without(self.initializing, topics))

    def without_topics(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """Forget the topics, which are gone."""
        gone = set(topic_ids)
        return StatePartitions(
            {topic_id: topic for topic_id, topic in self.initializing.items() if topic_id not in gone},
            {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id not in gone},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
        )


def together(one: Mapping[bytes, StateTopic], other: Mapping[bytes, StateTopic]) -> dict[bytes, StateTopic]:
    """The partitions of both. Where both have a topic, the second's name counts."""
    result = dict(one)
    for topic_id, topic in other.items():
        known = result.get(topic_id)
        result[topic_id] = topic if known is None else StateTopic(topic.name, known.partitions | topic.partitions)
    return result


def _without(topics: Mapping[bytes, StateTopic], gone: Mapping[bytes, StateTopic]) -> dict[bytes, StateTopic]:
    result = dict(topics)
    for topic_id in gone.keys() & topics.keys():
        left = topics[topic_id].partitions - gone[topic_id].partitions
        if left:
            result[topic_id] = StateTopic(topics[topic_id].name, left)
        else:
            del result[topic_id]
    return result


def size_of_topic(topic: StateTopic) -> int:
    return size_of_name(topic.name) + _BYTES_OF_PARTITION * len(topic.partitions)


def size_of_name(name: str) -> int:
    return _BYTES_OF_TOPIC + len(name.encode("utf-8", "surrogatepass"))


def _topics(infos: Iterable[TopicPartitionsInfo]) -> dict[bytes, StateTopic]:
    return {bytes(info.topic_id): StateTopic(info.topic_name, frozenset(info.partitions)) for info in infos}


def _in_bytes(topics: Mapping[bytes, StateTopic]) -> list[TopicPartitionsInfo]:
    parts = [topic.in_bytes(topic_id) for topic_id, topic in topics.items()]
    return EncodedStructs(len(parts), [b"".join(parts)], VERSION).of(TopicPartitionsInfo)
