"""The check of a producer's records against the plain decoder: they accept the same bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.records.batch import Record
from pykbroker.protocol.records.checking import CheckBudget, CheckedRecords, check_records, check_records_in_turns
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import decode_records, encode_record
from pykbroker.protocol.records.varints import encode_zigzag
from tests.examples import examples


def payload(records: list[Record]) -> bytes:
    return b"".join(encode_record(record, index, record.timestamp) for index, record in enumerate(records))


def raw_record(*parts: bytes, offset_delta: int = 0) -> bytes:
    """attributes, timestamp delta 0 and the offset delta, then whatever comes."""
    body = b"\x00\x00" + encode_zigzag(offset_delta) + b"".join(parts)
    return encode_zigzag(len(body)) + body


NULL = b"\x01"
EMPTY = b"\x00"

keys = st.sampled_from([None, b"", b"same", b"key" * 30])
values = st.sampled_from([None, b"", b"v" * 20, b"v" * 20, b"v" * 20, b"v" * 300])
deltas = st.sampled_from([0, 0, 0, 0, 1, 1, 7, 64, 9000, -1, 10**10])
headers = st.sampled_from([(), (), (), (), (), (("h", None),)])
record_lists = st.lists(st.builds(Record, keys, values, headers, deltas), max_size=40)


@examples(300)
@given(record_lists, st.integers(1, 5))
def test_sound_records_pass_with_their_largest_timestamp(records: list[Record], times: int) -> None:
    records = records * times
    checked = check_records(payload(records), len(records), find_null_keys=True)
    assert checked.max_timestamp_delta == max((record.timestamp for record in records), default=0)
    null_keys = [index for indexes in checked.null_keys for index in indexes]
    assert null_keys == [index for index, record in enumerate(records) if record.key is None]


@pytest.mark.parametrize("value_size", [0, 20, 100, 5000, 8_200, 1_048_576])
@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 200, 9000])
def test_long_runs_of_equal_records_pass(count: int, value_size: int) -> None:
    if count * value_size > 2_000_000:
        count = 2_000_000 // value_size
    records = [Record(b"key", bytes(value_size), (), index // 3) for index in range(count)]
    data = payload(records)
    assert check_records(data, count).max_timestamp_delta == (count - 1) // 3
    for wrong in (count - 1, count + 1):
        with pytest.raises(InvalidRecords):
            check_records(data, wrong)


def test_timestamps_that_go_back_inside_a_run_are_compared_as_pairs() -> None:
    timestamps = [0, 0, 0, *([8190, 64, 8191, 128, 100, 8128] * 20)]
    records = [Record(None, b"x", (), timestamp) for timestamp in timestamps]
    assert check_records(payload(records), len(records)).max_timestamp_delta == 8191
    ups_and_downs = [Record(None, b"x", (), [300, 200, 319, 250][index % 4]) for index in range(60)]
    assert check_records(payload(ups_and_downs), 60).max_timestamp_delta == 319


def test_negative_timestamp_deltas_alone() -> None:
    records = [Record(None, b"x", (), -5 - index) for index in range(30)]
    assert check_records(payload(records), 30).max_timestamp_delta == -5


def plain_check(data: bytes, count: int) -> int | None:
    """What the decoder, which makes an object of every record, says of the same bytes."""
    try:
        records = list(decode_records(data, count, 0, 0))
    except InvalidRecords:
        return None
    if [record.offset for record in records] != list(range(count)):
        return None
    return max((record.timestamp for record in records), default=0)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records_are_judged_as_the_plain_decoder_judges_them(seed: int) -> None:
    rng = random.Random(seed)
    value_size = rng.choice([10, 20, 100])
    records = [
        Record(b"k" * rng.choice([3, 3, 3, 4]) if seed % 2 else None, bytes(value_size), (), index // 4)
        for index in range(rng.choice([5, 70, 150]))
    ]
    sound = payload(records)
    for _ in range(200):
        data = bytearray(sound)
        for _ in range(rng.choice([1, 1, 2])):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 3, 127, 128, 255, rng.randrange(256)])
        expected = plain_check(bytes(data), len(records))
        try:
            found = check_records(bytes(data), len(records)).max_timestamp_delta
        except InvalidRecords:
            assert expected is None
        else:
            assert found == expected


@pytest.mark.parametrize(
    ("value_size", "times"), [(8_180, 100), (8_192, 100), (10_000, 100), (1_048_570, 10), (1_048_576, 10)]
)
def test_damaged_lengths_of_large_records_are_judged_as_the_plain_decoder_judges_them(
    value_size: int, times: int
) -> None:
    """Lengths of two, three and four bytes."""
    rng = random.Random(value_size)
    sound = payload([Record(None, bytes(value_size), (), 1), Record(b"key", bytes(value_size + 1), (), 2)])
    starts = (0, len(sound) - value_size - 13)
    for _ in range(times):
        data = bytearray(sound)
        data[rng.choice(starts) + rng.randrange(13)] = rng.choice([0, 1, 2, 3, 127, 128, 255, rng.randrange(256)])
        expected = plain_check(bytes(data), 2)
        try:
            found = check_records(bytes(data), 2).max_timestamp_delta
        except InvalidRecords:
            assert expected is None
        else:
            assert found == expected


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(encode_zigzag(-1), id="negative record length"),
        pytest.param(encode_zigzag(10**6) + bytes(20), id="record beyond the batch"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff", id="record length of more than five bytes"),
        pytest.param(raw_record(NULL, NULL, encode_zigzag(2**31 - 1)), id="two billion headers"),
        pytest.param(raw_record(NULL, NULL, encode_zigzag(-1)), id="minus one headers"),
        pytest.param(raw_record(NULL, NULL, encode_zigzag(1), NULL, NULL), id="header without a key"),
        pytest.param(raw_record(NULL, NULL, encode_zigzag(1), EMPTY, b"\x03"), id="header value of length -2"),
        pytest.param(raw_record(b"\x03", NULL, EMPTY), id="key of length -2"),
        pytest.param(raw_record(NULL, b"\x03", EMPTY), id="value of length -2"),
        pytest.param(raw_record(encode_zigzag(50), NULL, EMPTY), id="key beyond its record"),
        pytest.param(raw_record(NULL, NULL, EMPTY, b"more"), id="bytes behind the headers"),
        pytest.param(raw_record(NULL, NULL, EMPTY, offset_delta=7), id="offset delta 7"),
        pytest.param(raw_record(NULL, NULL, EMPTY) + b"x", id="bytes behind the record"),
        pytest.param(b"", id="no bytes"),
    ],
)
def test_broken_record_is_refused(record: bytes) -> None:
    with pytest.raises(InvalidRecords):
        check_records(record, 1)


def test_a_run_ends_where_a_record_only_looks_like_its_neighbours() -> None:
    """The offset delta of record 30 is wrong, everything else fits."""
    good = [encode_record(Record(b"k", b"value", (), 0), index, 0) for index in range(60)]
    good[30] = encode_record(Record(b"k", b"value", (), 0), 31, 0)
    with pytest.raises(InvalidRecords, match="record 30 "):
        check_records(b"".join(good), 60)


def checked_in_turns(data: bytes, count: int, units: int, **options: int) -> tuple[CheckedRecords, list[int]]:
    """With so many units for each turn; and what each turn has left over, below zero where it went too far."""
    budget = CheckBudget(units)
    steps = check_records_in_turns(data, len(data), count, budget, **options)
    left = []
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, [*left, budget.left]
        left.append(budget.left)
        budget.left = units


@examples(200)
@given(record_lists, st.integers(1, 5), st.integers(1, 50))
def test_a_check_in_turns_finds_what_a_check_at_once_finds(records: list[Record], times: int, units: int) -> None:
    records = records * times
    data = payload(records)
    assert checked_in_turns(data, len(records), units)[0] == check_records(data, len(records))


def units_used(data: bytes, count: int) -> int:
    [left] = checked_in_turns(data, count, 1 << 40)[1]
    return (1 << 40) - left


@pytest.mark.parametrize("step_ms", [0, 1, 50, 3_000])
def test_equal_records_are_compared_by_columns_however_many_there_are(step_ms: int) -> None:
    """Their offset deltas take three bytes from record 8192 on, and their timestamps up to four."""
    count = 40_000
    data = payload([Record(None, b"v" * 20, (), index * step_ms) for index in range(count)])
    assert check_records(data, count).max_timestamp_delta == (count - 1) * step_ms
    assert units_used(data, count) < count / 8


@pytest.mark.parametrize("place", [8191, 8192, 8193, 16_383, 16_384, 20_000, 39_999])
def test_a_wrong_offset_delta_is_found_beyond_two_bytes(place: int) -> None:
    good = [encode_record(Record(None, b"v" * 20), index, 0) for index in range(40_000)]
    good[place] = encode_record(Record(None, b"v" * 20), place + 64, 0)
    with pytest.raises(InvalidRecords, match=f"record {place} "):
        check_records(b"".join(good), len(good))


def test_timestamps_of_three_bytes_that_go_back_inside_a_run() -> None:
    timestamps = [20_000, 2_000_000, 16_384, 1_999_999, 8_192] * 20
    records = [Record(None, b"x", (), timestamp) for timestamp in timestamps]
    assert check_records(payload(records), len(records)).max_timestamp_delta == 2_000_000


def test_records_of_every_size_are_walked_in_turns() -> None:
    count = 20_000
    data = payload([Record(None, b"v" * (index * 7 % 11), (), -index) for index in range(count)])
    _, left = checked_in_turns(data, count, 1000)
    assert len(left) >= count / 1000
    assert min(left) > -100


def with_headers(count: int) -> bytes:
    """One record of headers that are two bytes each."""
    return raw_record(NULL, NULL, encode_zigzag(count), b"\x00\x01" * count)


def test_headers_of_one_record_are_walked_in_turns() -> None:
    count = 100_000
    _, left = checked_in_turns(with_headers(count), 1, 1000)
    assert len(left) >= count / 1000 / 8
    assert min(left) > -100


def test_more_headers_than_are_allowed_are_not_even_walked() -> None:
    data = with_headers(100_000)
    assert checked_in_turns(data, 1, 1000, max_headers=100_000)[0] == check_records(data, 1)
    budget = CheckBudget(1000)
    with pytest.raises(InvalidRecords, match="more than 99999 headers"):
        next(check_records_in_turns(data, len(data), 1, budget, max_headers=99_999))
    records = [Record(b"k", b"v", (("a", b""),) * 30, 0)] * 50
    with pytest.raises(InvalidRecords, match="more than 1499 headers"):
        checked_in_turns(payload(records), 50, 1000, max_headers=1499)
    checked_in_turns(payload(records), 50, 1000, max_headers=1500)


def test_every_other_record_without_a_key_leaves_a_bounded_list() -> None:
    count = 10_000
    data = payload([Record(None if index % 2 else b"k", b"v", (), 0) for index in range(count)])
    null_keys = check_records(data, count, find_null_keys=True).null_keys
    assert null_keys[:2] == [range(1, 2), range(3, 4)]
    assert len(null_keys) == 1000
