"""What is known to be sound: whatever is checked in whatever order, nothing counts that was not."""

from random import Random

import pytest

from pykbroker.storage.segments.verified_extents import VerifiedExtents

END = 40


@pytest.mark.parametrize("seed", range(30))
def test_extents_know_what_a_set_of_positions_knows(seed: int) -> None:
    rng = Random(seed)
    extents, known, end = VerifiedExtents(END, 7), set[int](), END
    for _ in range(60):
        start = rng.randrange(end)
        stop = rng.randint(start + 1, end)
        if rng.random() < 0.1:
            end = rng.randint(1, end)
            extents.truncate(end)
            known = {position for position in known if position < end}
        elif rng.random() < 0.3:
            extents.add(start, stop)
            known |= set(range(start, stop))
        assert extents.covers(start, stop) == (known >= set(range(start, min(stop, end))))
        assert extents.covers(end, end + 5), "this process wrote that"
        assert extents.is_complete == (known >= set(range(end)))
        if end > 1:
            position = rng.randrange(end)
            until = position
            while until in known:
                until += 1
            is_known = position in known or position - 1 in known
            assert extents.known_until(position) == (until if is_known else None)


def test_a_truncated_segment_ends_at_no_known_offset() -> None:
    extents = VerifiedExtents(END, 7)
    extents.truncate(END)
    assert extents.end_offset == 7
    extents.truncate(END - 1)
    assert (extents.end, extents.end_offset) == (END - 1, None)
