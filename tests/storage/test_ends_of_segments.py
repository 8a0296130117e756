"""What a log leaves where a segment ends or is cut: indexes, recovery point, and who may read to where."""

from __future__ import annotations

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, batch, config, offsets, open_log, read_all

PATH = "/data/t-0"


def log_with_timestamps(disk: SimulatedDisk, *timestamps: int) -> Log:
    """A batch and index entries for each of them."""
    log = open_log(disk, PATH, config(index_interval_bytes=0))
    for timestamp in timestamps:
        log.append_as_leader(batch(timestamp=timestamp), 0, NOW_MS)
    return log


def test_the_time_index_forgets_what_was_cut_off(disk: SimulatedDisk) -> None:
    """A search that starts from an entry of before would pass over younger records that came since."""
    log = log_with_timestamps(disk, 10, 20, 30, 40)
    log.truncate_to(1)
    assert log.segments[0].time_index.last() in (None, (10, 0))
    log.append_as_leader(batch(timestamp=25), 0, NOW_MS)
    found = log.find_offset_for_timestamp(25)
    assert found is not None
    assert (found.timestamp, found.offset) == (25, 1)
    log.roll(NOW_MS)
    assert log.segments[0].time_index.last() == (25, 1)


def test_the_last_entry_of_a_time_index_is_its_segments_largest_timestamp(disk: SimulatedDisk) -> None:
    """Retention and searches of a segment that nobody has read yet go by it (KIP-33)."""
    log = open_log(disk, PATH)
    for timestamp in (50, 70, 60):
        log.append_as_leader(batch(timestamp=timestamp), 0, NOW_MS)
    log.roll(NOW_MS)
    assert log.segments[0].time_index.last() == (70, 1)
    log.close()
    again = open_log(disk, PATH, clean_shutdown=True, recovery_point=log.recovery_point)
    assert again.segments[0].max_timestamp == 70


@pytest.mark.parametrize(("offset", "durable"), [(9, 5), (6, 5), (5, 5), (3, 0)])
def test_a_log_that_was_cut_within_a_batch_is_durable_up_to_that_batch(
    disk: SimulatedDisk, offset: int, durable: int
) -> None:
    """A batch is kept or goes as a whole: there is nothing from its beginning on."""
    log = open_log(disk, PATH)
    for _ in range(2):
        log.append_as_leader(batch(5), 0, NOW_MS)
    log.flush()
    log.truncate_to(offset)
    assert log.log_end_offset == log.recovery_point == durable
    assert offsets(read_all(log)) == list(range(durable))


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_a_reader_sees_nothing_at_its_bound(disk: SimulatedDisk, bound: int) -> None:
    """The high watermark is the offset of the first record that is not replicated."""
    log = log_with_timestamps(disk, 10, 20, 30, 40)
    one_batch = len(batch())
    assert log.read(0, 1 << 20, max_offset=bound).size == bound * one_batch
    assert log.read(bound, 1 << 20, max_offset=bound).size == 0
    assert log.read(bound - 1, 1 << 20, max_offset=bound).size == one_batch
