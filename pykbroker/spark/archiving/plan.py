"""The plan of a run: where each partition goes on, up to where, and what of it is gone already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import ArchiveMismatch, RecordsLost
from ..reading import Ranges, first_of, offsets_in
from ..source import ClusterEnds, TopicEnds
from .manifest import ArchiveState


@dataclass(frozen=True, slots=True)
class Position:
    """Offsets: the archive has all from `first_offset` up to `next_offset`; `[next_offset, start)` are gone, and
    `[start, end)` are to be read. No record in front of `end` is of a later leader epoch than `leader_epoch`.
    """

    first_offset: int
    next_offset: int
    start: int
    end: int
    leader_epoch: int

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        return ((self.next_offset, self.start),) if self.start > self.next_offset else ()


Plan = Mapping[str, Mapping[int, Position]]


def check_topics(state: ArchiveState, cluster: ClusterEnds) -> None:
    """Raises ArchiveMismatch where the archive is of something else."""
    if state.cluster_id is not None and state.cluster_id != cluster.cluster_id:
        raise ArchiveMismatch(
            f"The archive is of the cluster {state.cluster_id}, not of {cluster.cluster_id}: "
            "archive into another directory"
        )
    for topic in cluster.topics.values():
        known = state.topics.get(topic.name)
        if known is None:
            continue
        if known.topic_id != topic.topic_id:
            raise ArchiveMismatch(
                f"The topic '{topic.name}' is not the one of the archive: it was deleted and created again "
                f"(its id is {topic.topic_id}, archived is {known.topic_id}); archive into another directory"
            )
        if not set(known.partitions) <= set(topic.partitions):
            raise ArchiveMismatch(
                f"The topic '{topic.name}' has {len(topic.partitions)} partitions, its archive {len(known.partitions)}"
            )


def check_logs(state: ArchiveState, cluster: ClusterEnds, ends_of_epochs: Mapping[tuple[str, int], int]) -> None:
    """Raises RecordsLost where a log was cut off behind an offset that is archived (an unclean election).

    ends_of_epochs: where the leader epochs of the archive end in the logs as they are now.
    """
    for topic in cluster.topics.values():
        known = state.topics.get(topic.name)
        for partition, before in known.partitions.items() if known is not None else ():
            end = min(topic.partitions[partition].end, ends_of_epochs.get((topic.name, partition), before.next_offset))
            if end < before.next_offset:
                raise RecordsLost(
                    f"Partition {topic.name}-{partition} was cut off at offset {end}, and the archive has its records "
                    f"up to {before.next_offset}: what the archive has behind {end} is not what the topic has there"
                )


def plan_of(state: ArchiveState, cluster: ClusterEnds, *, accept_loss: bool) -> Plan:
    """Raises RecordsLost where records are gone that were not read."""
    return {name: _of_topic(state, topic, accept_loss) for name, topic in cluster.topics.items()}


def _of_topic(state: ArchiveState, topic: TopicEnds, accept_loss: bool) -> dict[int, Position]:
    known = state.topics.get(topic.name)
    positions = {}
    for partition, ends in topic.partitions.items():
        if known is None:  # what was deleted before the first run nobody misses
            first_offset = next_offset = ends.start
        elif partition in known.partitions:
            first_offset, next_offset = (
                known.partitions[partition].start_offset,
                known.partitions[partition].next_offset,
            )
        else:  # a partition that came later
            first_offset = next_offset = 0
        start = max(next_offset, ends.start)
        position = Position(first_offset, next_offset, start, ends.end, ends.leader_epoch)
        if position.lost and not accept_loss:
            raise RecordsLost(
                f"Partition {topic.name}-{partition} begins at offset {ends.start}, and the archive ends at "
                f"{next_offset}: {ends.start - next_offset} offsets were deleted before they were read; "
                "--accept-loss goes on without them"
            )
        positions[partition] = position
    return positions


def next_batch(plan: Plan, most: int) -> Ranges:
    """The next ranges, `most` offsets together at most (`first_of`)."""
    return first_of(_ranges_of(plan), most)


def offsets_left(plan: Plan) -> int:
    return offsets_in(_ranges_of(plan))


def _ranges_of(plan: Plan) -> Ranges:
    return {
        topic: {partition: (at.start, max(at.start, at.end)) for partition, at in positions.items()}
        for topic, positions in plan.items()
    }


def plan_after(plan: Plan, ranges: Ranges) -> Plan:
    """The plan of what is left when these ranges are committed."""
    left = {topic: dict(positions) for topic, positions in plan.items()}
    for topic, rows in ranges.items():
        for partition, (_, end) in rows.items():
            left[topic][partition] = replace(left[topic][partition], next_offset=end, start=end)
    return left
