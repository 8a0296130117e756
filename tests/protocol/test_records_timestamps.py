"""The first record of a batch at or behind a timestamp: as a walk over whole records finds it, in turns."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.records.batch import Record, decode_batch_header, encode_batch, records_payload
from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import decode_records
from pykbroker.protocol.records.timestamps import Deltas, first_record_in_turns
from tests.examples import examples

BASE_MS = 1_700_000_000_000


def find(payload: bytes, count: int, least: Deltas) -> tuple[Deltas | None, int]:
    """And how many turns it took."""
    budget = CheckBudget(TURN_UNITS)
    surrounded = b"\xff" * 7 + payload + b"\xff" * 20
    steps = first_record_in_turns(surrounded, 7, 7 + len(payload), count, least, budget)
    turns = 1
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Deltas | None = done.value
            return found, turns
        assert budget.left <= 0
        budget.left = TURN_UNITS
        turns += 1


def payload_of(deltas: list[int], sizes: list[int], offset_deltas: list[int] | None = None) -> bytes:
    records = [
        Record(None, bytes(size), (), BASE_MS + delta) for delta, size in zip([0, *deltas], [3, *sizes], strict=True)
    ]
    data = encode_batch(records, offset_deltas=offset_deltas)
    return records_payload(decode_batch_header(data), data)


def walked(payload: bytes, count: int, least: Deltas) -> Deltas | None:
    for record in decode_records(payload, count, 0, 0):
        if record.timestamp >= least.timestamp_delta and record.offset >= least.offset_delta:
            return Deltas(record.timestamp, record.offset)
    return None


@examples(150)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 100, 20_000, 10**7, 10**12]), st.sampled_from([1, 2, 200]))
def test_the_first_record_is_that_of_a_walk(seed: int, step: int, sizes: int) -> None:
    rng = Random(seed)
    count = rng.randrange(1, 400)
    deltas, now = [], 0
    for _ in range(count - 1):
        now += rng.randrange(step + 1) if rng.random() < 0.97 else -rng.randrange(3 * step)
        deltas.append(now)
    offset_deltas = sorted(rng.sample(range(2 * count), count))
    payload = payload_of(deltas, [rng.randrange(sizes) for _ in deltas], offset_deltas)
    for _ in range(20):
        least = Deltas(rng.choice([0, *deltas]) + rng.randrange(-1, 2), rng.choice([-5, 0, rng.choice(offset_deltas)]))
        assert find(payload, count, least)[0] == walked(payload, count, least)


@pytest.mark.parametrize("wanted", [0, 1, 63, 64, 8191, 8192, 30_000, 99_999, 100_000])
def test_records_of_one_length_are_passed_by_columns(wanted: int) -> None:
    count = 100_000
    payload = payload_of(list(range(1, count)), [20] * (count - 1))
    found, turns = find(payload, count, Deltas(wanted, 0))
    assert found == (None if wanted == count else (wanted, wanted))
    assert turns <= 10, "a walk takes fifty"


def test_records_without_neighbours_of_their_length_take_turns() -> None:
    count = 10_000
    payload = payload_of([5] * (count - 1), [10 + number % 2 for number in range(count - 1)])
    found, turns = find(payload, count, Deltas(6, 0))
    assert found is None
    assert turns >= count / TURN_UNITS


@pytest.mark.parametrize(
    "damage",
    [
        lambda payload: payload[:-1],
        lambda payload: payload + b"\x00",
        lambda payload: b"\x01" + payload[1:],
        lambda payload: b"\x04" + payload[1:],
        lambda payload: b"\xff" * 5 + payload[5:],
        lambda payload: payload[:40] + b"\xff" * 20,
    ],
)
def test_what_are_no_records_is_refused(damage) -> None:  # type: ignore[no-untyped-def]
    payload = payload_of([1, 2, 3, 4], [10] * 4)
    with pytest.raises(InvalidRecords):
        find(damage(payload), 5, Deltas(100, 0))
