"""What the metadata says of one partition: `org.apache.kafka.metadata.PartitionRegistration`.

A value; every change makes a new one. Not here: the partition's log and high watermark (`replication`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


@dataclass(frozen=True, slots=True)
class PartitionState:
    """directories: the log directory of each replica, in the order of `replicas`.

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
        """As a new partition or a snapshot records it."""
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
        """What a null or "no change" value leaves alone stays."""
        changed = replace(
            self,
            replicas=_or(record.replicas, self.replicas),
            isr=_or(record.isr, self.isr),
            removing_replicas=_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_or(record.adding_replicas, self.adding_replicas),
            eligible_leader_replicas=_or(record.eligible_leader_replicas, self.eligible_leader_replicas),
            last_known_elr=_or(record.last_known_elr, self.last_known_elr),
            partition_epoch=self.partition_epoch + 1,
        )
        if record.directories is not None:
            changed = replace(changed, directories=tuple(bytes(each) for each in record.directories))
        if record.leader_recovery_state != NO_RECOVERY_CHANGE:
            changed = replace(changed, leader_recovery_state=record.leader_recovery_state)
        if record.leader != NO_LEADER_CHANGE:
            changed = replace(changed, leader=record.leader, leader_epoch=self.leader_epoch + 1)
        return changed


def _or(changed: list[int] | None, unchanged: tuple[int, ...]) -> tuple[int, ...]:
    return unchanged if changed is None else tuple(changed)
