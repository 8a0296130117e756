"""A part of the records that an archive has of a topic, by their offsets and timestamps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import BadOptions
from .manifest import TopicState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of a topic's records, all of them by default.

    from_ms, until_ms: of timestamps, milliseconds of Unix time, the second one excluded. offsets: by partition the
    first and the end, which is excluded; other partitions are left out.
    """

    from_ms: int | None = None
    until_ms: int | None = None
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def by_time(self) -> bool:
        return self.from_ms is not None or self.until_ms is not None

    def check(self) -> None:
        """Raises BadOptions."""
        if self.from_ms is not None and self.until_ms is not None and self.from_ms >= self.until_ms:
            raise BadOptions("The range of times is empty")
        for partition, (first, end) in self.offsets.items():
            if not 0 <= first < end:
                raise BadOptions(f"Offsets {first} to {end} of partition {partition} are no range")

    def ranges(self, name: str, topic: TopicState) -> dict[int, tuple[int, int]]:
        """The offsets by partition; timestamps are looked at record by record. Raises BadOptions."""
        ranges = {each: (row.start_offset, row.next_offset) for each, row in topic.partitions.items()}
        if not self.offsets:
            return ranges
        unknown = sorted(set(self.offsets) - set(ranges))
        if unknown:
            raise BadOptions(f"The archive has no partition {unknown[0]} of {name}")
        found = {}
        for partition, (first, end) in self.offsets.items():
            start = max(first, ranges[partition][0])
            found[partition] = (start, max(start, min(end, ranges[partition][1])))
        return found

    def of_times(self, records: DataFrame) -> DataFrame:
        if self.from_ms is not None:
            records = records.where(f"timestamp >= timestamp_millis({self.from_ms})")
        if self.until_ms is not None:
            records = records.where(f"timestamp < timestamp_millis({self.until_ms})")
        return records
