"""Which batches of a leader are taken, and how what it sends is cut into pieces."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches
from pykbroker.storage.segments.trusted_batches import (
    PIECE_BATCHES,
    PIECE_BYTES,
    pieces_of_batches,
    replicated_batches,
)
from tests.storage.batches import batch


def batches(*sizes: int) -> bytes:
    return b"".join(encode_batch([Record(None, bytes(size), (), 1)]) for size in sizes)


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        pytest.param(batches(*[1] * 100), 1, id="few"),
        pytest.param(batches(*[1] * PIECE_BATCHES), 1, id="as many as a piece may have"),
        pytest.param(batches(*[1] * (3 * PIECE_BATCHES + 1)), 4, id="one more than three pieces have"),
        pytest.param(batches(*[100_000] * 30), 3, id="ten in a piece"),
        pytest.param(batches(10, 3 * PIECE_BYTES, 10), 3, id="one that is larger than a piece"),
        pytest.param(batches(*[300_000] * 8)[:-1], 3, id="the last is cut off"),
    ],
)
def test_pieces_are_whole_batches_and_all_of_them(data: bytes, pieces: int) -> None:
    found = [bytes(each) for each in pieces_of_batches(data)]
    assert b"".join(found) == data
    assert len(found) == pieces
    for piece in found[:-1]:
        assert 1 <= len(list(iter_batches(piece))) <= PIECE_BATCHES


@pytest.mark.parametrize("junk", [bytes(200_000), b"\xff" * 200_000, batches(1) + b"\xff" * 200_000])
def test_what_is_no_batch_ends_the_cutting(junk: bytes) -> None:
    assert b"".join(bytes(each) for each in pieces_of_batches(junk)) == junk


def test_batches_of_a_later_leader_epoch_are_not_taken() -> None:
    """Whoever has sent them leads in an epoch that was not asked (KAFKA-18723)."""
    data = batch(base_offset=5, epoch=3) + batch(base_offset=6, epoch=4) + batch(base_offset=7, epoch=3)
    assert len(replicated_batches(data, 5)) == 3
    assert len(replicated_batches(data, 5, max_leader_epoch=4)) == 3
    assert len(replicated_batches(data, 5, max_leader_epoch=3)) == 1
    assert not replicated_batches(data, 5, max_leader_epoch=2)


@pytest.mark.parametrize("second", [4, 5, 6])
def test_batches_that_overlap_are_refused(second: int) -> None:
    data = batch(2, base_offset=5) + batch(2, base_offset=second)
    with pytest.raises(ApiError) as refused:
        replicated_batches(data, 5)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_batches_may_leave_out_what_was_compacted_away() -> None:
    assert len(replicated_batches(batch(2, base_offset=5) + batch(2, base_offset=9), 5)) == 2
