"""Dead letters as bytes: headers, copies, how many go into a batch, and when there can be none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.config.dead_letters import DeadLetterSettings
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.sharing.dead_letters import (
    MOST_FAILURES,
    MOST_LETTERS,
    Copies,
    Source,
    backoff_ms,
    encode_letters,
    find_copies,
    first_letters,
    headers,
    refusal,
)
from pykbroker.sharing.partition.values import DeadLetterCause, DeadLetters

SOURCE = Source("books", 3, "readers")
REJECT, SPENT = DeadLetterCause.CLIENT_REJECT, DeadLetterCause.DELIVERY_COUNT_EXCEEDED
ROOM = 1 << 20
SETTINGS = DeadLetterSettings("dlq.books", copies_records=False, creates_topic=False, prefix="dlq.")

letters = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(1, 9), st.sampled_from(DeadLetterCause)), min_size=1
)


def in_a_row(parts: list[tuple[int, int, int, DeadLetterCause]]) -> list[DeadLetters]:
    """Make letters of gaps, lengths, counts and causes."""
    made, offset = [], 0
    for gap, length, count, cause in parts:
        made.append(DeadLetters(offset + gap, offset + gap + length, count, cause))
        offset += gap + length + 1
    return made


def decoded(records: bytes) -> list[Record]:
    (batch,) = iter_batches(records)
    batch.ensure_valid()
    return list(iter_records(batch))


def offsets_of(found: list[DeadLetters]) -> list[int]:
    return [offset for first, last, *_ in found for offset in range(first, last + 1)]


def test_a_letter_says_what_it_is_about() -> None:
    assert headers(SOURCE, 17, DeadLetters(10, 20, 5, SPENT)) == [
        ("__dlq.errors.topic", b"books"),
        ("__dlq.errors.partition", b"3"),
        ("__dlq.errors.offset", b"17"),
        ("__dlq.errors.group", b"readers"),
        ("__dlq.errors.delivery.count", b"5"),
        ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
    ]


@given(letters, st.integers(0, 3000), st.dictionaries(st.integers(0, 40), st.binary(max_size=200), max_size=9))
def test_a_batch_has_letters_from_the_first_one_on_and_no_more_than_it_may(
    parts: list[tuple[int, int, int, DeadLetterCause]], limit_bytes: int, values: dict[int, bytes]
) -> None:
    wanted = in_a_row(parts)
    copies = Copies(1 << 40, {offset: (None, value) for offset, value in values.items()})
    batch = encode_letters(SOURCE, wanted, copies, 1234, limit_bytes)
    covered = offsets_of(batch.covered)
    assert covered == offsets_of(wanted)[: len(covered)]
    assert covered
    assert len(batch.records) <= limit_bytes or len(covered) == 1
    found = decoded(batch.records)
    by_offset = {offset: each for each in wanted for offset in range(each.first_offset, each.last_offset + 1)}
    for record, offset in zip(found, covered, strict=True):
        assert list(record.headers) == headers(SOURCE, offset, by_offset[offset])
        assert record.timestamp == 1234
        assert record.value in (values.get(offset), None)
    if len(batch.records) <= limit_bytes:
        assert [record.value for record in found[1:]] == [values.get(offset) for offset in covered[1:]]
    assert [each[2:] for each in batch.covered] == [each[2:] for each in wanted[: len(batch.covered)]]


@given(letters, st.integers(1, 30))
def test_letters_in_front_are_taken_entry_by_entry(
    parts: list[tuple[int, int, int, DeadLetterCause]], most: int
) -> None:
    wanted = in_a_row(parts)
    taken = first_letters(wanted, most)
    assert offsets_of(taken) == offsets_of(wanted)[:most]
    assert [each.first_offset for each in taken] == [each.first_offset for each in wanted[: len(taken)]]


def test_a_copy_that_has_no_room_is_left_out_and_its_letter_is_not() -> None:
    wanted = [DeadLetters(0, 1, 1, REJECT)]
    copies = Copies(2, {0: (b"k", b"v" * 1000), 1: (b"k", b"w")})
    batch = encode_letters(SOURCE, wanted, copies, 0, 600)
    assert [(record.key, record.value) for record in decoded(batch.records)] == [(None, None), (b"k", b"w")]


def test_letters_of_what_was_not_looked_for_wait_but_for_the_first() -> None:
    wanted = [DeadLetters(5, 9, 1, REJECT)]
    assert offsets_of(encode_letters(SOURCE, wanted, Copies(7), 0, ROOM).covered) == [5, 6]
    assert offsets_of(encode_letters(SOURCE, wanted, Copies(5), 0, ROOM).covered) == [5]
    assert offsets_of(encode_letters(SOURCE, wanted, None, 0, ROOM).covered) == [5, 6, 7, 8, 9]


# Copies.


def log_of(*values: list[bytes], codec: Compression = Compression.NONE) -> bytes:
    """Return batches with these values, one behind the other."""
    data, offset = b"", 0
    for batch in values:
        records = [Record(b"k" + value, value, (("h", b"x"),), 1) for value in batch]
        data += encode_batch(records, base_offset=offset, compression=codec)
        offset += len(batch)
    return data


@pytest.mark.parametrize("codec", list(Compression))
def test_wanted_records_are_copied_with_key_and_value(codec: Compression) -> None:
    data = log_of([b"a", b"b"], [b"c", b"d"], [b"e"], codec=codec)
    copies = find_copies(data, [DeadLetters(1, 2, 1, REJECT), DeadLetters(4, 4, 1, REJECT)], ROOM)
    assert copies.of == {1: (b"kb", b"b"), 2: (b"kc", b"c"), 4: (b"ke", b"e")}
    assert copies.until > 4


def test_what_was_cut_off_is_looked_for_again() -> None:
    data = log_of([b"a", b"b"], [b"c", b"d"])
    copies = find_copies(data[:-1], [DeadLetters(0, 3, 1, REJECT)], ROOM)
    assert (copies.until, sorted(copies.of)) == (2, [0, 1])


def test_copies_are_bounded_together_and_a_record_that_is_too_large_has_none() -> None:
    data = log_of([b"a" * 10, b"b" * 10], [b"c" * 100, b"d"])
    wanted = [DeadLetters(0, 3, 1, REJECT)]
    copies = find_copies(data, wanted, 30)
    assert (copies.until, sorted(copies.of)) == (1, [0])
    copies = find_copies(data, [DeadLetters(2, 3, 1, REJECT)], 30)
    assert (copies.until, copies.of) == (4, {3: (b"kd", b"d")})


def test_a_batch_that_grows_too_much_has_no_copies() -> None:
    data = log_of([b"a" * 5000], [b"b"], codec=Compression.ZSTD)
    copies = find_copies(data, [DeadLetters(0, 1, 1, REJECT)], 1000)
    assert (copies.until, copies.of) == (2, {1: (b"kb", b"b")})


def test_damaged_data_give_letters_without_copies() -> None:
    data = bytearray(log_of([b"a", b"b"]))
    data[16] = 9
    copies = find_copies(bytes(data), [DeadLetters(0, 1, 1, REJECT)], ROOM)
    assert (copies.until, copies.of) == (2, {})


# Whether letters can be written.


@pytest.mark.parametrize(
    ("settings", "is_there", "is_enabled", "reason"),
    [
        (DeadLetterSettings("", False, True, ""), False, False, "is empty."),
        (DeadLetterSettings("__x", False, True, ""), False, False, "cannot start with __, topic: __x."),
        (SETTINGS, True, False, "DLQ is not enabled on configured DLQ topic"),
        (SETTINGS, False, False, "DLQ topic does not exist and auto create is disabled"),
        (DeadLetterSettings("x", False, False, "dlq."), True, True, "does not comply with the DLQ topic prefix"),
        (SETTINGS, True, True, None),
        (DeadLetterSettings("x", False, False, ""), True, True, None),
        (DeadLetterSettings("dlq.x", False, True, "dlq."), False, False, None),
    ],
)
def test_letters_are_refused_in_kafkas_words(
    settings: DeadLetterSettings, is_there: bool, is_enabled: bool, reason: str | None
) -> None:
    given = refusal(settings, "readers", is_there=is_there, is_enabled=is_enabled)
    assert given is reason is None or (reason is not None and reason in (given or ""))


def test_the_wait_doubles_up_to_half_a_minute() -> None:
    assert [backoff_ms(each) for each in range(1, MOST_FAILURES)] == [1000, 2000, 4000, 8000]
    assert backoff_ms(40) == 30_000
    assert len(first_letters([DeadLetters(0, 9999, 1, REJECT)])) == 1
    assert len(offsets_of(first_letters([DeadLetters(0, 9999, 1, REJECT)]))) == MOST_LETTERS
