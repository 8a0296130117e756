"""The effects that a committed step has outside of its shard."""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMarkers:
    """A transaction is decided: its markers are to be written, again and again until they are there.

    The same effect comes again after a load; a partition that has its marker takes no harm from another one.
    partitions is never empty. producer_epoch is that of the markers, which may be one higher than the producer's.
    `MarkersWritten` is expected with the same id and epoch, for all partitions at once or in parts.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    coordinator_epoch: int
    transaction_version: int
