"""The log directories that clients want for replicas which the broker does not host yet (KIP-113).

AlterReplicaLogDirs answers such a replica with an error, and its log is created in the named directory all the same
when the replica comes. As in Kafka's `LogManager`, a restart forgets the wish.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.log_dirs import LogDirectory

MOST_PREFERRED: Final = 10_000
"""Kafka has no bound. The oldest wish goes."""


class PreferredDirectories:
    def __init__(self) -> None:
        self._by_replica: dict[TopicPartition, LogDirectory] = {}

    def note(self, at: TopicPartition, directory: LogDirectory) -> None:
        self._by_replica.pop(at, None)
        self._by_replica[at] = directory
        if len(self._by_replica) > MOST_PREFERRED:
            del self._by_replica[next(iter(self._by_replica))]

    def of(self, at: TopicPartition) -> LogDirectory | None:
        return self._by_replica.get(at)

    def forget(self, at: TopicPartition) -> None:
        """The log is there."""
        self._by_replica.pop(at, None)
