"""Offsets of tasks: how far members of a streams group have their state, as they tell it (KIP-1071, Kafka 4.4).

The coordinator keeps what it was told last in memory alone, of tasks that the topology has. The model is Kafka's
`MemberTaskOffsets`, which keeps what it is told of any task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import TaskOffset

from .configured_topology import ConfiguredTopology

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id to partitions, each with an offset."""


@dataclass(frozen=True, slots=True)
class MemberTaskOffsets:
    """The offsets of one member. offsets: how much of a task's state it has. end_offsets: how much there is."""

    offsets: Offsets = field(default_factory=dict)
    end_offsets: Offsets = field(default_factory=dict)


NOT_TOLD = MemberTaskOffsets()


def told_offsets(
    before: MemberTaskOffsets,
    offsets: Sequence[TaskOffset] | None,
    end_offsets: Sequence[TaskOffset] | None,
    configured: ConfiguredTopology,
) -> MemberTaskOffsets:
    """The offsets after a heartbeat, which may leave one of the two out. Raises ApiError for a task named twice."""
    return MemberTaskOffsets(
        before.offsets if offsets is None else _by_task(offsets, configured),
        before.end_offsets if end_offsets is None else _by_task(end_offsets, configured),
    )


def _by_task(told: Sequence[TaskOffset], configured: ConfiguredTopology) -> Offsets:
    subtopologies = (configured.subtopologies if configured.is_ready else None) or {}
    seen: set[tuple[str, int]] = set()
    found: dict[str, dict[int, int]] = {}
    for each in told:
        task = each.subtopology_id, each.partition
        if task in seen:
            words = (
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and partition "
                f"{each.partition}."
            )
            raise ApiError(ErrorCode.INVALID_REQUEST, words)
        seen.add(task)
        subtopology = subtopologies.get(each.subtopology_id)
        if subtopology is not None and 0 <= each.partition < subtopology.task_count:
            found.setdefault(each.subtopology_id, {})[each.partition] = each.offset
    return found


def in_order_of_tasks(offsets: Offsets) -> list[TaskOffset]:
    """The offsets as a description has them."""
    return [
        TaskOffset(subtopology_id=name, partition=partition, offset=offsets[name][partition])
        for name in sorted(offsets)
        for partition in sorted(offsets[name])
    ]
