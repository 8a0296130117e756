"""Who leads a partition when brokers come and go: the rules of Kafka's `PartitionChangeBuilder`.

The leader is the first replica in the ISR that is alive. The last member of an ISR stays in it while it is away: it is
the one that may lead when it is back. Kafka with eligible leader replicas (KIP-966) empties the ISR instead and notes
who may lead; partitions that it left so are taken up here, and no new ones are made. Not here: reassignments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord

from .image import MetadataImage, TopicState
from .partition_state import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionState

IsAlive = Callable[[int], bool]
RECOVERING = 1


def partitions_of(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicState, int, PartitionState]]:
    """Every partition with a replica on the broker."""
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield topic, index, partition


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(partition.leader == broker_id for _, _, partition in partitions_of(image, broker_id))


def fence_records(
    image: MetadataImage, broker_id: int, is_alive: IsAlive, may_lead_unclean: Callable[[str], bool]
) -> list[PartitionChangeRecord]:
    """What changes when a broker is gone; `is_alive` says so of it already."""
    records = []
    for topic, index, partition in partitions_of(image, broker_id):
        isr = tuple(each for each in partition.isr if each != broker_id) or partition.isr
        unclean = may_lead_unclean(topic.name)
        record = change_record(topic.topic_id, index, partition, isr, is_alive, may_lead_unclean=unclean)
        if record is not None:
            records.append(record)
    return records


def unfence_records(
    image: MetadataImage, broker_id: int, is_alive: IsAlive, may_lead_unclean: Callable[[str], bool]
) -> list[PartitionChangeRecord]:
    """What changes when a broker is back: it leads what nobody leads, if it may."""
    records = []
    for topic, index, partition in partitions_of(image, broker_id):
        if partition.leader == NO_LEADER:
            unclean = may_lead_unclean(topic.name)
            record = change_record(topic.topic_id, index, partition, partition.isr, is_alive, may_lead_unclean=unclean)
            if record is not None:
                records.append(record)
    return records


def change_record(
    topic_id: bytes,
    index: int,
    partition: PartitionState,
    isr: tuple[int, ...],
    is_alive: IsAlive,
    *,
    may_lead_unclean: bool,
) -> PartitionChangeRecord | None:
    """The record that gives the partition this ISR and a leader out of it; None where nothing changes."""
    elected = _elect(partition, isr, is_alive, may_lead_unclean)
    if elected.leader == partition.leader and elected.isr == partition.isr:
        return None
    had_elr = partition.eligible_leader_replicas or partition.last_known_elr
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=list(elected.isr) if elected.isr != partition.isr else None,
        leader=elected.leader if elected.leader != partition.leader else NO_LEADER_CHANGE,
        leader_recovery_state=elected.recovery,
        eligible_leader_replicas=[] if had_elr and elected.isr else None,
        last_known_elr=[] if had_elr and elected.isr else None,
    )


class _Election(NamedTuple):
    leader: int
    isr: tuple[int, ...]
    recovery: int = NO_RECOVERY_CHANGE


def _elect(partition: PartitionState, isr: tuple[int, ...], is_alive: IsAlive, may_lead_unclean: bool) -> _Election:
    if partition.leader in isr and is_alive(partition.leader):
        return _Election(partition.leader, isr)
    alive = [replica for replica in partition.replicas if is_alive(replica)]
    for replica in alive:
        if replica in isr:
            return _Election(replica, isr)
    for replica in alive:
        if replica in partition.eligible_leader_replicas:
            return _Election(replica, (replica,))
    eligible = partition.eligible_leader_replicas
    for replica in alive:
        only_known = not isr and not eligible and partition.last_known_elr == (replica,)
        if may_lead_unclean or only_known:
            return _Election(replica, (replica,), RECOVERING)
    return _Election(NO_LEADER, isr)
