"""Replicas of a partition that are out of reach, as Metadata and DescribeTopicPartitions tell."""

from __future__ import annotations

from pykbroker.protocol.uuids import LOST_DIRECTORY, RESERVED_DIRECTORIES

from .image import MetadataImage
from .partition_state import PartitionState


class OfflineReplicas:
    """Offline replicas for one answer: of a thousand partitions most have the same replicas and directories."""

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        self._image = image
        self._listener_name = listener_name
        self._known: dict[tuple[tuple[int, ...], tuple[bytes, ...]], list[int]] = {}

    def of(self, partition: PartitionState) -> list[int]:
        """Return the offline replicas of a partition.

        Their brokers are fenced or unknown, or cannot be reached by this listener, or their log directory has failed.
        """
        placement = partition.replicas, partition.directories
        known = self._known.get(placement)
        if known is None:
            known = self._known[placement] = self._find(partition)
        return list(known)

    def _find(self, partition: PartitionState) -> list[int]:
        directories = partition.directories or (None,) * len(partition.replicas)
        pairs = zip(partition.replicas, directories, strict=True)
        return [replica for replica, directory in pairs if not self._is_online(replica, directory)]

    def _is_online(self, broker_id: int, directory: bytes | None) -> bool:
        broker = self._image.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.endpoint(self._listener_name) is None:
            return False
        if directory is None or not broker.directories:
            return True
        return directory != LOST_DIRECTORY and (directory in RESERVED_DIRECTORIES or directory in broker.directories)
