"""A cut of a log, and what happens to the log until the copy is made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.log_cut import cut_log
from tests.storage.batches import NOW_MS, config, open_log
from tests.storage.cleaning import MEMORY_BYTES, cleanable, keyed, swaps

PATH = "/data/t-0"


@pytest.fixture
def log(disk: SimulatedDisk) -> Iterator[Log]:
    """A closed segment and an active one, each too large to be cleaned together with another."""
    log = open_log(disk, PATH, config(cleanup_policy="compact"))
    append(log, b"a", b"b")
    log.roll(NOW_MS)
    append(log, b"b", b"c")
    log.update_config(config(cleanup_policy="compact", segment_bytes=log.segments[0].size))
    yield log
    log.close()


def append(log: Log, *keys: bytes) -> None:
    log.append_as_leader(keyed(*((key, b"value") for key in keys)), 0, NOW_MS)


def first_swap(log: Log) -> None:
    """Clean the first segment, by what all segments but the active one have."""
    cleaning = Cleaning(cleanable(log), CleanerConfig(MEMORY_BYTES, 0.9), now_ms=NOW_MS, progress=lambda _: None)
    next(swaps(log, cleaning))


def test_a_cleaning_up_to_the_cut_leaves_what_the_cut_has(log: Log) -> None:
    cut = cut_log(log)
    log.roll(NOW_MS)
    first_swap(log)
    assert not cut.is_overtaken
    renewed = cut.renewed()
    assert renewed is not None
    assert renewed.closed == log.segments[:1]


def test_a_cut_is_overtaken_by_a_cleaning_that_knows_later_records(log: Log) -> None:
    """The record `a` has gone for one that is behind the cut: the copy would have neither."""
    cut = cut_log(log)
    append(log, b"a")
    log.roll(NOW_MS)
    first_swap(log)
    assert cut.active in log.segments, "of the groups of segments only the first one has been cleaned"
    assert cut.is_overtaken
    assert not cut_log(log).is_overtaken


def test_a_cut_behind_a_truncation_does_not_care_what_was_cleaned_before(log: Log) -> None:
    append(log, b"a")
    log.roll(NOW_MS)
    first_swap(log)
    log.truncate_to(4)
    assert not cut_log(log).is_overtaken
