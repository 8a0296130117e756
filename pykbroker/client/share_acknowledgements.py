"""Acknowledgements of a share consumer on their way to one leader: ranges of offsets, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from pykbroker.protocol.messages.share_groups import AcknowledgementBatch

from .share_membership import TopicIdPartition


class AcknowledgeType(IntEnum):
    """The end of a delivery. GAP: the offset has no record that a consumer is given."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class Acknowledgements:
    """Ranges of offsets with their types, by partition; neighbours of one type are one range."""

    def __init__(self) -> None:
        self._ranges: dict[TopicIdPartition, list[tuple[int, int, AcknowledgeType]]] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def add(self, of: TopicIdPartition, first: int, last: int, kind: AcknowledgeType) -> None:
        """Acknowledge the offsets from first to last, both included."""
        ranges = self._ranges.setdefault(of, [])
        if ranges and ranges[-1][1] + 1 == first and ranges[-1][2] is kind:
            ranges[-1] = (ranges[-1][0], last, kind)
        else:
            ranges.append((first, last, kind))

    def taken(self) -> Mapping[TopicIdPartition, list[AcknowledgementBatch]]:
        """Return all of them as requests have them, in the order of offsets, and forget them."""
        taken = {of: _batches(ranges) for of, ranges in self._ranges.items()}
        self._ranges = {}
        return taken


def _batches(ranges: Iterable[tuple[int, int, AcknowledgeType]]) -> list[AcknowledgementBatch]:
    merged: list[tuple[int, int, AcknowledgeType]] = []
    for first, last, kind in sorted(ranges):
        if merged and merged[-1][1] + 1 == first and merged[-1][2] is kind:
            merged[-1] = (merged[-1][0], last, kind)
        else:
            merged.append((first, last, kind))
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        for first, last, kind in merged
    ]
