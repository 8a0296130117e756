"""The plan of a run that copies topics: where each partition goes on, up to where, and what of it is gone already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .errors import BadOptions, RecordsLost
from .reading import Ranges, first_of, offsets_in
from .source import ISOLATION_LEVELS, ClusterEnds, Source, TopicEnds, offsets_at


class CopiedPartition(Protocol):
    """A partition of a copy, which has its offsets `[start_offset, next_offset)`. leader_epoch: none of these records
    is of a later one; -1 where that is not known.
    """

    @property
    def start_offset(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


NOW = "now"


class CopyOptions(Protocol):
    """The options of a run that say which records it copies. until: `now`, or milliseconds of Unix time."""

    @property
    def topics(self) -> Sequence[str]: ...

    @property
    def topics_matching(self) -> str | None: ...

    @property
    def until(self) -> str | int: ...

    @property
    def follow(self) -> bool: ...

    @property
    def isolation_level(self) -> str: ...

    @property
    def max_batch_records(self) -> int: ...


def check_options(options: CopyOptions) -> None:
    """Raises BadOptions."""
    if not options.topics and options.topics_matching is None:
        raise BadOptions("No topic is named")
    if options.isolation_level not in ISOLATION_LEVELS:
        raise BadOptions(f"isolation_level is {' or '.join(ISOLATION_LEVELS)}, not '{options.isolation_level}'")
    if options.follow and options.until != NOW:
        raise BadOptions("A run that follows its topics has no end: leave out either follow or until")
    if isinstance(options.until, str) and options.until != NOW:
        raise BadOptions(f"until is '{NOW}' or milliseconds, not '{options.until}'")
    if options.max_batch_records < 1:
        raise BadOptions("max_batch_records is 1 at least")


Copied = Mapping[str, Mapping[int, CopiedPartition]]
"""What a copy has, by topic and partition."""


@dataclass(frozen=True, slots=True)
class Position:
    """Offsets: the copy has all from `first_offset` up to `next_offset`; `[next_offset, start)` are gone, and
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


def check_logs(copied: Copied, cluster: ClusterEnds, ends_of_epochs: Mapping[tuple[str, int], int], copy: str) -> None:
    """Raises RecordsLost where a log was cut off behind an offset that is copied (an unclean election).

    ends_of_epochs: where the leader epochs of the copy end in the logs as they are now. copy: what it is, for errors.
    """
    for topic in cluster.topics.values():
        for partition, before in copied.get(topic.name, {}).items():
            end = min(topic.partitions[partition].end, ends_of_epochs.get((topic.name, partition), before.next_offset))
            if end < before.next_offset:
                raise RecordsLost(
                    f"Partition {topic.name}-{partition} was cut off at offset {end}, and {copy} has its records "
                    f"up to {before.next_offset}: what {copy} has behind {end} is not what the topic has there"
                )


def epochs_of(copied: Copied, cluster: ClusterEnds) -> dict[tuple[str, int], int]:
    """The leader epochs to ask the cluster for, by topic and partition."""
    return {
        (name, partition): row.leader_epoch
        for name, rows in copied.items()
        if name in cluster.topics
        for partition, row in rows.items()
        if row.leader_epoch >= 0
    }


def plan_of(copied: Copied, cluster: ClusterEnds, copy: str, *, accept_loss: bool) -> Plan:
    """Raises RecordsLost where records are gone that were not read. copy: what it is, for errors."""
    return {name: _of_topic(copied.get(name), topic, copy, accept_loss) for name, topic in cluster.topics.items()}


def _of_topic(
    copied: Mapping[int, CopiedPartition] | None, topic: TopicEnds, copy: str, accept_loss: bool
) -> dict[int, Position]:
    positions = {}
    for partition, ends in topic.partitions.items():
        if copied is None:  # what was deleted before the first run nobody misses
            first_offset = next_offset = ends.start
        elif partition in copied:
            first_offset, next_offset = copied[partition].start_offset, copied[partition].next_offset
        else:  # a partition that came later
            first_offset = next_offset = 0
        start = max(next_offset, ends.start)
        position = Position(first_offset, next_offset, start, ends.end, ends.leader_epoch)
        if position.lost and not accept_loss:
            raise RecordsLost(
                f"Partition {topic.name}-{partition} begins at offset {ends.start}, and {copy} ends at "
                f"{next_offset}: {ends.start - next_offset} offsets were deleted before they were read; "
                "--accept-loss goes on without them"
            )
        positions[partition] = position
    return positions


def bounded(plan: Plan, source: Source, until_ms: int) -> Plan:
    """The plan with each partition up to its first record that is not older. Raises ClusterUnavailable."""
    ends = offsets_at(source, {topic: list(rows) for topic, rows in plan.items()}, until_ms)

    def of(topic: str, partition: int, at: Position) -> Position:
        end = ends.get((topic, partition))
        return at if end is None else replace(at, end=min(at.end, max(at.start, end)))

    return {topic: {each: of(topic, each, at) for each, at in rows.items()} for topic, rows in plan.items()}


def losses(plan: Plan) -> list[str]:
    """Sentences about what the plan goes on without."""
    return [
        f"offsets {start} to {end - 1} of {topic}-{partition} were deleted before they were read"
        for topic, rows in plan.items()
        for partition, at in rows.items()
        for start, end in at.lost
    ]


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
