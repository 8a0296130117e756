"""The partitions of this node: who asks for one finds it here, or learns why it is not.

Which ones there are is decided by `replica_manager`; Kafka has the same map in `ReplicaManager.allPartitions`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from pykbroker.metadata.image import MetadataImage, TopicState
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import NO_UUID
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import Partition
from pykbroker.replication.traffic import TrafficByTopic
from pykbroker.storage.directories.directory_names import parse_partition_directory
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.log.log import Log

K = TypeVar("K")

_NONE: Mapping[int, Partition] = MappingProxyType({})


class LeadershipListener(Protocol):
    """A coordinator lives in the partitions of an internal topic and is told of their leaders."""

    def on_election(self, partition: Partition) -> None:
        """The partition is led here, from now on or in a new leader epoch."""
        ...

    def on_resignation(self, index: int) -> None:
        """The partition is led elsewhere, or it is gone. Also called where it was never led here."""
        ...


class ReplicationListener(Protocol):
    """The replica fetchers copy partitions from their leaders."""

    def applied(self, partition: Partition) -> None:
        """The partition's state was applied: it is led here, elsewhere or by nobody."""
        ...

    def removed(self, partition: Partition) -> None:
        """The partition is not hosted here any more."""
        ...


class HostedPartitions:
    """The partitions of this node.

    image: the metadata that is followed. offline: topic ids and indexes of partitions that are this node's, and whose
    logs cannot be used.
    """

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.offline: set[tuple[bytes, int]] = set()
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._listeners: dict[str, LeadershipListener] = {}
        self.replication: ReplicationListener | None = None
        self.traffic = TrafficByTopic()

    # What requests ask

    def get(self, topic: str, index: int) -> Partition | ErrorCode:
        hosted = self._by_name.get(topic)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        return self._why_missing(self.image.topic(topic), index)

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | ErrorCode:
        hosted = self._by_id.get(topic_id)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        topic = self.image.topic_by_id(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self._why_missing(topic, index)

    def get_fetched(self, topic: str | None, topic_id: bytes, index: int) -> Partition | ErrorCode:
        """Find a partition of a fetch session: by name, and since version 13 also by the id that had the name."""
        if topic_id == NO_UUID and topic is not None:
            return self.get(topic, index)
        hosted = self._by_id.get(topic_id)
        if hosted is not None:
            partition = hosted.get(index)
            if partition is not None:
                return partition
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        namesake = self.get(topic, index)
        return namesake if isinstance(namesake, ErrorCode) else ErrorCode.INCONSISTENT_TOPIC_ID

    def _why_missing(self, topic: TopicState | None, index: int) -> ErrorCode:
        if topic is None or index not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic.topic_id, index) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    # What the node itself asks

    def __iter__(self) -> Iterator[Partition]:
        for hosted in self._by_id.values():
            yield from hosted.values()

    def topics(self) -> list[str]:
        return sorted(self._by_name)

    def of_topic(self, topic: str) -> Mapping[int, Partition]:
        return self._by_name.get(topic, _NONE)

    def of_topic_id(self, topic_id: bytes) -> Mapping[int, Partition]:
        return self._by_id.get(topic_id, _NONE)

    def of_log(self, at: TopicPartition, log: Log) -> Partition | None:
        """Return None where the log is no partition's at the moment."""
        partition = self.of_topic(at.topic).get(at.partition)
        return partition if partition is not None and partition.log is log else None

    def __contains__(self, partition: Partition) -> bool:
        return self.of_topic_id(partition.topic_id).get(partition.index) is partition

    # What the work on logs asks and tells

    def flushed(self, log: Log) -> None:
        """Records of the log that only waited for the disk can be read now."""
        at = parse_partition_directory(posixpath.basename(log.directory))
        partition = None if at is None else self.of_log(at, log)
        if partition is not None:
            partition.maybe_increment_high_watermark()

    def begins_later(self, at: TopicPartition, log: Log) -> None:
        """The log's start has moved, and its followers learn it."""
        partition = self.of_log(at, log)
        if partition is not None:
            partition.notify()

    def high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        hosted = {id(log): at for at, log in directory.logs.copy().items()}
        return {
            hosted[id(partition.log)]: partition.high_watermark for partition in self if id(partition.log) in hosted
        }

    def last_stable_offset(self, at: TopicPartition, log: Log) -> int | None:
        partition = self.of_log(at, log)
        return None if partition is None else partition.last_stable_offset

    # Changes

    def add(self, partition: Partition) -> None:
        self._by_id.setdefault(partition.topic_id, {})[partition.index] = partition
        self._by_name.setdefault(partition.topic, {})[partition.index] = partition
        partition.traffic = self.traffic.of(partition.topic)

    def remove(self, partition: Partition) -> None:
        """Remove the partition; every request that waits for it learns so at once."""
        _remove(self._by_id, partition.topic_id, partition.index)
        _remove(self._by_name, partition.topic, partition.index)
        if partition.topic not in self._by_name:
            self.traffic.forget(partition.topic)
        partition.resign()
        if self.replication is not None:
            self.replication.removed(partition)
        listener = self._listeners.get(partition.topic)
        if listener is not None:
            listener.on_resignation(partition.index)

    def lose(self, partition: Partition) -> None:
        """The partition is this node's still, and cannot be served."""
        self.offline.add((partition.topic_id, partition.index))
        self.remove(partition)

    def subscribe(self, topic: str, listener: LeadershipListener) -> None:
        """`listener` learns of elections in this topic, those before included."""
        self._listeners[topic] = listener
        for partition in self.of_topic(topic).values():
            if partition.is_leader:
                listener.on_election(partition)

    def tell(self, partition: Partition, *, is_elected: bool) -> None:
        """Tell the listeners that a state was applied. is_elected: it is led here, and was not in this epoch."""
        if self.replication is not None:
            self.replication.applied(partition)
        listener = self._listeners.get(partition.topic)
        if listener is None:
            return
        if is_elected:
            listener.on_election(partition)
        elif not partition.is_leader:
            listener.on_resignation(partition.index)

    def tell_coordinators(self) -> None:
        """Tell coordinators of all partitions that are led here."""
        for topic, listener in self._listeners.items():
            for partition in list(self.of_topic(topic).values()):
                if partition.is_leader:
                    listener.on_election(partition)


def _remove(partitions: dict[K, dict[int, Partition]], key: K, index: int) -> None:
    del partitions[key][index]
    if not partitions[key]:
        del partitions[key]
