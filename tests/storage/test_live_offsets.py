"""What the first pass of a cleaning remembers of each record."""

from pykbroker.protocol.records.record_parts import TOMBSTONE, WITH_VALUE, WITHOUT_KEY
from pykbroker.storage.compaction.live_offsets import LiveOffsets, count_live, without_tombstones

GONE = WITHOUT_KEY


def test_what_has_a_later_record_of_its_key_is_gone() -> None:
    live = LiveOffsets(100, 1000)
    live.add(100, 102, [0, 1, 2], bytes([WITH_VALUE, TOMBSTONE, WITH_VALUE]))
    live.add(103, 103, [0], bytes([WITH_VALUE]))
    live.supersede([100, 102, 7, 5000])
    assert live.of_batch(100, 102) == bytes([GONE, TOMBSTONE, GONE])
    assert live.of_batch(103, 103) == bytes([WITH_VALUE])


def test_nothing_is_known_of_batches_that_it_was_not_told_of() -> None:
    live = LiveOffsets(100, 1000)
    live.add(104, 105, [0, 1], bytes([WITH_VALUE, WITH_VALUE]))
    live.supersede([101])
    assert [live.of_batch(*each) for each in ((98, 103), (100, 103), (103, 105), (104, 106))] == [None] * 4
    assert live.of_batch(104, 105) == bytes([WITH_VALUE, WITH_VALUE])


def test_a_batch_with_holes_has_nothing_there() -> None:
    live = LiveOffsets(0, 1000)
    live.add(0, 4, [1, 3], bytes([WITH_VALUE, TOMBSTONE]))
    kinds = live.of_batch(0, 4)
    assert kinds is not None
    assert kinds == bytes([GONE, WITH_VALUE, GONE, TOMBSTONE, GONE])
    assert count_live(kinds) == 2
    assert without_tombstones(kinds) == bytes([GONE, WITH_VALUE, GONE, GONE, GONE])


def test_offsets_that_are_not_the_batchs_own_are_not_taken() -> None:
    live = LiveOffsets(0, 1000)
    live.add(0, 1, [1, 0], bytes([WITH_VALUE, WITH_VALUE]))
    live.add(2, 3, [2], bytes([WITH_VALUE]))
    live.add(4, 5, [-1], bytes([WITH_VALUE]))
    assert [live.of_batch(first, first + 1) for first in (0, 2, 4)] == [None] * 3


def test_it_takes_no_more_memory_than_it_may() -> None:
    live = LiveOffsets(0, 3)
    live.add(0, 1, [0, 1], bytes([WITH_VALUE] * 2))
    live.add(2, 3, [0, 1], bytes([WITH_VALUE] * 2))
    live.add(2**40, 2**40, [0], bytes([WITH_VALUE]))
    assert live.of_batch(0, 1) is not None
    assert live.of_batch(2, 3) is None
