"""Counts of what share groups did at a node since its start: for metrics (`pykbroker.metrics.of_shares`).

A group's part goes when the group has nothing here any more. Kafka's counterparts are `ShareGroupMetrics` and the
counters of `SharePartitionMetrics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ..runtime.histogram import Histogram

if TYPE_CHECKING:
    from pykbroker.sharing.partition.values import Acknowledgement

TYPES: Final[Mapping[int, str]] = {1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}
"""The types of acknowledgements that are counted, by the names of Kafka's MBeans: a gap is no record."""


class FetchRatio:
    """ShareFetch requests of one group. requests: how many. percent: the sum, over them, of the percentage of their
    partitions that gave records.
    """

    __slots__ = ("percent", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.percent = 0


class LetterCounts:
    """Dead letters of one group. letters: those that are written. requests: Produce requests that were to write some.
    failed: those behind which letters were given up.
    """

    __slots__ = ("failed", "letters", "requests")

    def __init__(self) -> None:
        self.letters = 0
        self.requests = 0
        self.failed = 0


class ShareTraffic:
    """The counts of one node. acknowledged: records by type of acknowledgement. load_times: of share partitions.
    letters: by group.
    """

    def __init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        self.load_times = Histogram()
        self.fetch_ratios: dict[str, FetchRatio] = {}
        self.letters: dict[str, LetterCounts] = {}

    def count_acknowledged(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Count acknowledgements that were persisted, or are renewals."""
        for first, last, types in acknowledgements:
            if len(types) == 1:
                self.acknowledged[types[0]] += last - first + 1
            else:
                self.acknowledged.update(types)

    def count_fetch(self, group_id: str, asked: int, gave: int) -> None:
        """Count a ShareFetch. asked: the number of its partitions. gave: of those that gave records."""
        ratio = self.fetch_ratios.get(group_id)
        if ratio is None:
            ratio = self.fetch_ratios[group_id] = FetchRatio()
        ratio.requests += 1
        ratio.percent += 100 * gave // asked

    def letters_of(self, group_id: str) -> LetterCounts:
        """Return the counts of a group's dead letters, to be added to."""
        counts = self.letters.get(group_id)
        if counts is None:
            counts = self.letters[group_id] = LetterCounts()
        return counts

    def forget_group(self, group_id: str) -> None:
        self.fetch_ratios.pop(group_id, None)
        self.letters.pop(group_id, None)
