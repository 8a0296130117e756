"""The state of one partition in the metadata: `org.apache.kafka.metadata.PartitionRegistration`.

A value; every change makes a new one. Not here: the partition's log and high watermark (`replication`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord
from pykbroker.protocol.uuids import MIGRATING_DIRECTORY

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
_GREATEST_EPOCH = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of one partition, as a value.

    directories: the log directory of each replica, in the order of `replicas`.
    leader_epoch grows with every change of the leader, partition_epoch with every change at all.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def directory(self, broker_id: int) -> bytes:
        """The log directory of a replica; a partition from before directories were recorded names none (KIP-858)."""
        return self.directories[self.replicas.index(broker_id)] if self.directories else MIGRATING_DIRECTORY

    @staticmethod
    def from_record(record: PartitionRecord) -> PartitionState:
        return PartitionState(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(bytes(each) for each in record.directories),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def to_record(self, topic_id: bytes, partition_id: int) -> PartitionRecord:
        """Return the record of a new partition or of a snapshot."""
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    def changed_by(self, record: PartitionChangeRecord) -> PartitionState:
        """Return the state that a record changed; a null or "no change" value leaves its field alone."""
        has_leader = record.leader != NO_LEADER_CHANGE
        has_recovery = record.leader_recovery_state != NO_RECOVERY_CHANGE
        # Made in one go: a start replays hundreds of thousands of these.
        return PartitionState(
            replicas=_or(record.replicas, self.replicas),
            isr=_or(record.isr, self.isr),
            leader=record.leader if has_leader else self.leader,
            leader_epoch=_next_epoch(self.leader_epoch) if has_leader else self.leader_epoch,
            partition_epoch=_next_epoch(self.partition_epoch),
            directories=self.directories if record.directories is None else tuple(map(bytes, record.directories)),
            removing_replicas=_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_or(record.adding_replicas, self.adding_replicas),
            leader_recovery_state=record.leader_recovery_state if has_recovery else self.leader_recovery_state,
            eligible_leader_replicas=_or(record.eligible_leader_replicas, self.eligible_leader_replicas),
            last_known_elr=_or(record.last_known_elr, self.last_known_elr),
        )


def _or(changed: list[int] | None, unchanged: tuple[int, ...]) -> tuple[int, ...]:
    return unchanged if changed is None else tuple(changed)


def _next_epoch(epoch: int) -> int:
    """Return the epoch behind another one: the least number behind the greatest, as Java counts."""
    return epoch + 1 if epoch < _GREATEST_EPOCH else -_GREATEST_EPOCH - 1
