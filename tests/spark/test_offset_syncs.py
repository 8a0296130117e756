"""Offsets of a source beside those of its copy: no record is left out by a translation, and few are read twice."""

from __future__ import annotations

import random
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.spark.writing.offset_syncs import MOST_SYNCS, CopyPosition, OffsetSync, thinned, translated

METADATA_BYTES = 4096
"""`offset.metadata.max.bytes`, Kafka's default."""


class CopiedLog:
    """A source with gaps, and its copy with markers of transactions; syncs are those of the position behind it."""

    def __init__(self, seed: int, transactions: int, largest: int, gaps: float) -> None:
        rng = random.Random(seed)
        source, target = rng.randrange(3), rng.randrange(3)
        self.targets: dict[int, int] = {}
        """By offset of the source."""
        self.syncs: tuple[OffsetSync, ...] = (OffsetSync(source, target, 0),)
        for _ in range(transactions):
            first, first_target = -1, target
            for _ in range(rng.randint(1, largest)):
                while rng.random() < gaps:
                    source += 1
                first = source if first < 0 else first
                self.targets[source] = target
                source, target = source + 1, target + 1
            records, last = target - first_target, source - 1
            new = [OffsetSync(first, first_target, records)]
            if last - first != records - 1:
                new = [OffsetSync(first, first_target, 1), OffsetSync(last, target - 1, 1)]
            self.syncs = thinned([*self.syncs, *new])
            target += 1
        self.next_offset = source

    def exact(self, offset: int) -> int | None:
        """The place of the first record at or behind this offset; None where there is none."""
        later = [source for source in self.targets if source >= offset]
        return self.targets[min(later)] if later else None


@given(
    seed=st.integers(0, 2**32),
    transactions=st.integers(1, 200),
    largest=st.integers(1, 8),
    gaps=st.sampled_from([0.0, 0.05, 0.5]),
)
def test_no_record_is_left_out(seed: int, transactions: int, largest: int, gaps: float) -> None:
    log = CopiedLog(seed, transactions, largest, gaps)
    sources = sorted(log.targets)
    for offset in range(log.next_offset + 2):
        found = translated(log.syncs, offset)
        assert found is not None
        at = bisect_left(sources, offset)
        if at < len(sources):
            assert found <= log.targets[sources[at]]
        if at > 0 and transactions <= MOST_SYNCS // 2 - 1 and gaps == 0:
            assert found > log.targets[sources[at - 1]], "a record would be read twice"
    assert translated(log.syncs, log.next_offset) == log.targets[sources[-1]] + 1


@given(seed=st.integers(0, 2**32), transactions=st.integers(100, 1500))
def test_old_offsets_are_translated_too(seed: int, transactions: int) -> None:
    """With an error that is no larger than their distance from the end."""
    log = CopiedLog(seed, transactions, 3, 0.0)
    assert len(log.syncs) <= MOST_SYNCS
    sources = sorted(log.targets)
    for offset in random.Random(seed).choices(sources, k=50):
        found = translated(log.syncs, offset)
        assert found is not None
        exact = log.targets[offset]
        assert 0 <= exact - found <= log.targets[sources[-1]] - exact + 8


def test_metadata_is_small_enough_for_a_broker() -> None:
    most = 2**63 - 1
    syncs = tuple(OffsetSync(most - 61 + each, most, 20_000) for each in range(MOST_SYNCS))
    position = CopyPosition(most, "f" * 32, 2**31 - 1, syncs)
    assert len(position.metadata) <= METADATA_BYTES
    assert CopyPosition.of(most, position.metadata) == position
    assert CopyPosition.of(5, CopyPosition(5, "run").metadata) == CopyPosition(5, "run")


@pytest.mark.parametrize("metadata", ["run;x", "run;1;2,3", "run;1;2,3,4,5", "run;1;a,b,c"])
def test_metadata_of_somebody_else(metadata: str) -> None:
    with pytest.raises(ValueError):
        CopyPosition.of(1, metadata)


def test_nothing_is_known_without_syncs() -> None:
    assert translated((), 5) is None
