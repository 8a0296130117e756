"""An append is committed, or it is lost, or that is still open.

An offset alone does not name an append. Its leader may be demoted, truncate it as a follower, and be elected again:
then another record is at the offset, and is replicated in its place. So an append is lost for whoever waits as soon as
its leader is demoted, whatever comes later, as Kafka completes its delayed operations then. Perhaps the record is there
all the same; nobody is told that it is. A leader that goes on in a later epoch has truncated nothing, and the wait goes
on.

Producers, transaction markers and coordinators ask here, and nobody compares offsets without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from .partition import Partition


class Appended:
    """An append: all below `end_offset`, in the leader epoch in which this is made, at once behind the append."""

    __slots__ = ("end_offset", "leader_epoch", "partition")

    def __init__(self, partition: Partition, end_offset: int) -> None:
        self.partition = partition
        self.end_offset = end_offset
        self.leader_epoch = partition.leader_epoch

    def __repr__(self) -> str:
        return f"<Appended up to {self.end_offset} in epoch {self.leader_epoch} of {self.partition}>"

    @property
    def is_lost(self) -> bool:
        """The append may have been truncated, and nothing that is committed from now on says anything about it."""
        return not self.partition.has_led_since(self.leader_epoch)

    @property
    def lacks_flush(self) -> bool:
        """`flush.messages` of its topic: nobody may be told before it is on the disk."""
        return self.partition.log.lacks_flush(self.end_offset)

    @property
    def is_replicated(self) -> bool:
        """Every in-sync replica has the append, as durably as its topic wants; of no meaning where it is lost."""
        partition = self.partition
        return self.end_offset <= partition.high_watermark and not partition.log.lacks_flush(self.end_offset)

    @property
    def is_committed(self) -> bool:
        return self.is_replicated and not self.is_lost

    def settled(self) -> ErrorCode | None:
        """Return what `acks=all` is answered; None as long as that is open."""
        partition = self.partition
        if not partition.has_led_since(self.leader_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.is_replicated:
            return None
        return ErrorCode.NONE if partition.has_min_isr else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def is_settled_at_once(partition: Partition, end_offset: int) -> bool:
    """The append is committed already, as with a single replica. To be asked at once behind the append."""
    return (
        end_offset <= partition.high_watermark and partition.has_min_isr and not partition.log.lacks_flush(end_offset)
    )
