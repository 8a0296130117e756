"""One partition from one state to the next: the record that Kafka's `PartitionChangeBuilder` builds.

Whoever changes a partition says what it wants of it; here a reassignment is completed once its replicas are in sync,
the eligible leader replicas (KIP-966) are kept, and a leader is elected. Pure: nothing is looked up. Not here: who may
want what (`alter_partition`, `reassignments`), and what a cluster's state allows (`elections`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.uuids import UNASSIGNED_DIRECTORY

from .partition_state import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionState

RECOVERED, RECOVERING = 0, 1


class Election(Enum):
    """PREFERRED: the first replica if it is in sync. ONLINE: whoever is in sync. UNCLEAN: anybody before nobody."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


class _Elected(NamedTuple):
    leader: int
    unclean: bool = False


def _unassigned(_broker_id: int) -> bytes:
    return UNASSIGNED_DIRECTORY


@dataclass(slots=True)
class PartitionChange:
    """A change of a partition by what is wanted of it; None is what it has.

    may_lead: whether a broker is alive, is to stay, and has the partition's directory.
    min_isr: from so many in-sync replicas on no others are eligible.
    unclean_shutdown: a broker that may have lost what it had acknowledged.
    directories: new ones, by broker. default_directory: of a replica that is new.
    """

    topic_id: bytes
    index: int
    partition: PartitionState
    may_lead: Callable[[int], bool]
    min_isr: int = 1
    elr_enabled: bool = False
    election: Election = Election.ONLINE
    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    recovery_state: int | None = None
    unclean_shutdown: int | None = None
    directories: Mapping[int, bytes] = field(default_factory=dict)
    default_directory: Callable[[int], bytes] = _unassigned

    def record(self) -> PartitionChangeRecord | None:
        """The change that gives the partition what is wanted; None where it is so already."""
        before = self.partition
        isr, replicas, removing, adding = self._with_completed_reassignment()
        elr = self._eligible(isr, replicas)
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        elected = self._elect(isr, elr, replicas)
        recovery_state = before.leader_recovery_state if self.recovery_state is None else self.recovery_state
        if elected.leader != before.leader:
            record.leader = elected.leader
            if elected.leader in elr:
                isr, elr = (elected.leader,), tuple(each for each in elr if each != elected.leader)
            if elected.unclean:
                # What the others have, and this one has not, is lost.
                isr, elr, recovery_state = (elected.leader,), (), RECOVERING
        elif not set(before.replicas) <= set(replicas):
            record.leader = before.leader  # A removed replica must not take itself for a follower of this epoch.
        if not self.elr_enabled:
            elr = ()
        if elr != before.eligible_leader_replicas:
            record.eligible_leader_replicas = list(elr)
        if isr != before.isr and (isr or self.elr_enabled):
            record.isr = list(isr)
        self._set_last_known(record)
        self._set_assignment(record, replicas, removing, adding)
        if recovery_state != before.leader_recovery_state:
            record.leader_recovery_state = recovery_state
        return None if _changes_nothing(record) else record

    def _with_completed_reassignment(self) -> tuple[tuple[int, ...], ...]:
        """Kafka's `PartitionReassignmentReplicas.maybeCompleteReassignment`."""
        before = self.partition
        isr = _or(self.isr, before.isr)
        replicas = _or(self.replicas, before.replicas)
        removing = _or(self.removing, before.removing_replicas)
        adding = _or(self.adding, before.adding_replicas)
        if removing or adding:
            staying = tuple(each for each in replicas if each not in removing)
            in_sync = tuple(each for each in isr if each not in removing)
            if staying and in_sync and set(staying) <= set(in_sync):
                return in_sync, staying, (), ()
        return isr, replicas, removing, adding

    def _eligible(self, isr: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Return the replicas that were in sync when the ISR fell below its minimum: they have what was acknowledged.

        Kafka keeps those too that are no replicas any more.
        """
        if not self.elr_enabled:
            return self.partition.eligible_leader_replicas  # Of a time when it was: one of them may lead once more.
        if len(isr) >= self.min_isr:
            return ()
        candidates = ({*self.partition.eligible_leader_replicas, *self.partition.isr} & {*replicas}) - {*isr}
        kept = tuple(sorted(candidates - {self.unclean_shutdown}))
        before = self.partition.eligible_leader_replicas
        return before if set(kept) == set(before) else kept

    def _elect(self, isr: tuple[int, ...], elr: tuple[int, ...], replicas: tuple[int, ...]) -> _Elected:
        def is_valid(replica: int) -> bool:
            return replica in (isr or elr) and self.may_lead(replica)

        leader = self.partition.leader
        first = [leader] if self.election is not Election.PREFERRED else [replicas[0], leader]
        for replica in (*first, *replicas):
            if is_valid(replica):
                return _Elected(replica)
        last_known = self.partition.last_known_elr
        if self.elr_enabled and not isr and not elr and len(last_known) == 1 and self.may_lead(last_known[0]):
            return _Elected(last_known[0], unclean=True)
        if self.election is Election.UNCLEAN:
            for replica in replicas:
                if self.may_lead(replica):
                    return _Elected(replica, unclean=True)
        return _Elected(NO_LEADER)

    def _set_last_known(self, record: PartitionChangeRecord) -> None:
        """Remember who led last while nobody can lead: of those that lost something it lost the least."""
        if not self.elr_enabled:
            return
        before = self.partition
        leader = before.leader if record.leader == NO_LEADER_CHANGE else record.leader
        if record.isr == []:
            # Nobody led a partition whose last in-sync replica stayed away while eligible leaders were not kept.
            last = before.isr[0] if before.leader == NO_LEADER else before.leader
            if before.last_known_elr != (last,):
                record.last_known_elr = [last]
        elif leader != NO_LEADER and before.last_known_elr:
            record.last_known_elr = []

    def _set_assignment(
        self,
        record: PartitionChangeRecord,
        replicas: tuple[int, ...],
        removing: tuple[int, ...],
        adding: tuple[int, ...],
    ) -> None:
        before = self.partition
        if replicas != before.replicas:
            record.replicas = list(replicas)
        if self.directories or replicas != before.replicas:
            known = {each: before.directory(each) for each in before.replicas} | dict(self.directories)
            directories = [known.get(each) or self.default_directory(each) for each in replicas]
            if directories != [before.directory(each) for each in before.replicas]:
                record.directories = directories
        if removing != before.removing_replicas:
            record.removing_replicas = list(removing)
        if adding != before.adding_replicas:
            record.adding_replicas = list(adding)


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.isr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.directories is None
    )


def _or(wanted: Sequence[int] | None, had: tuple[int, ...]) -> tuple[int, ...]:
    return had if wanted is None else tuple(wanted)
