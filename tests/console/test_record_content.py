"""Keys and values as the console shows them, and the records in what was fetched, damaged and hostile ones included."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.client.errors import BadInput
from pykbroker.client.places import Anchor, Place
from pykbroker.client.spans import Span
from pykbroker.console.records import unpacking
from pykbroker.console.records.content import content_of
from pykbroker.console.records.cursor import cursor_text, parse_cursor
from pykbroker.console.records.fetching import Fetched
from pykbroker.console.records.json_layout import check, pretty
from pykbroker.console.records.places import offsets_of, parse_place
from pykbroker.console.records.unpacking import Part, entries_of
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression

NOW_MS = 1_764_410_400_000
ALL = Part(0, 0, 1_000_000, 100)

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


def batch(*values: bytes, base_offset: int = 0, compression: Compression = Compression.NONE) -> bytes:
    records = [Record(b"k", value, (), NOW_MS) for value in values]
    return encode_batch(records, base_offset=base_offset, compression=compression)


def fetched(*batches: bytes, end: int = 1_000_000) -> Fetched:
    return Fetched(b"".join(batches), end, ())


@given(documents)
def test_laid_out_json_is_the_same_document(document: object) -> None:
    text = json.dumps(document)
    assert json.loads(pretty(text, 10**9)) == document


@pytest.mark.parametrize("text", ["[1e400]", "[123456789012345678901234567890.10]", '["\\u0041\\/"]', "[-0, 1E+2]"])
def test_no_number_and_no_escape_is_changed(text: str) -> None:
    assert "".join(pretty(text, 1000).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["", "{", "[NaN]", "[Infinity]", "[1,]", "[" * 100_000, '{"a":1} x'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check(text)


def test_a_deep_document_does_not_grow_beyond_what_is_shown() -> None:
    deep = "[" * 400 + "]" * 400
    assert len(pretty(deep * 1, 1000)) < 1200
    wide = "[" + ",".join("1" for _ in range(300_000)) + "]"
    assert len(content_of(wide.encode(), 1000).text) == 1000


@given(st.binary(max_size=400), st.integers(10, 300), st.sampled_from(["auto", "text", "hex"]))
def test_all_bytes_can_be_shown_in_every_form_within_the_bound(data: bytes, most: int, form: str) -> None:
    shown = content_of(data, most, form)
    assert shown.size_bytes == len(data)
    assert len(shown.text) <= max(most, 80)
    assert all(each >= " " or each in "\t\r\n" for each in shown.text) or form == "text"


def test_a_character_at_the_cut_makes_no_bytes_of_a_text() -> None:
    shown = content_of("é".encode() * 1000, 11)
    assert (shown.kind, shown.text, shown.is_cut) == ("text", "é" * 11, True)


def test_a_damaged_batch_is_a_line_and_reading_goes_on_behind() -> None:
    damaged = bytearray(batch(b"x", base_offset=1))
    damaged[-1] ^= 1
    piece = entries_of(fetched(batch(b"a"), bytes(damaged), batch(b"b", base_offset=2)), ALL)
    assert [each.offset for each in piece.entries] == [0, 1, 2]
    assert piece.entries[1].problem == "the batch at offset 1 has a wrong checksum"
    assert piece.next_offset == 3


def test_a_batch_that_decompresses_to_too_much_is_a_line() -> None:
    bomb = batch(b"\0" * 70_000_000, base_offset=1, compression=Compression.ZSTD)
    assert len(bomb) < 20_000
    piece = entries_of(fetched(batch(b"a"), bomb, batch(b"b", base_offset=2)), ALL)
    assert [each.offset for each in piece.entries] == [0, 1, 2]
    assert "decompresses to more than" in (piece.entries[1].problem or "")


def test_a_batch_of_too_many_records_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_RECORDS", 2)
    piece = entries_of(fetched(batch(b"a", b"b", b"c"), batch(b"d", base_offset=3)), ALL)
    assert [(each.offset, each.problem is None) for each in piece.entries] == [(0, False), (3, True)]


def test_bytes_that_are_no_batch_end_the_reading_with_a_line() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        entries_of(Fetched(b"\xff" * 100, 10, ()), ALL)


def test_a_part_ends_where_it_shall_and_says_where_to_go_on() -> None:
    data = fetched(batch(*(b"%d" % number for number in range(10))))
    piece = entries_of(data, Part(0, 3, 8, 2))
    assert ([each.offset for each in piece.entries], piece.next_offset) == ([3, 4], 5)
    piece = entries_of(data, Part(0, 5, 8, 100))
    assert ([each.offset for each in piece.entries], piece.next_offset) == ([5, 6, 7], 8)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("17", Place(Anchor.OFFSET, 17)),
        ("start", Place(Anchor.START)),
        ("start+5", Place(Anchor.START, 5)),
        (" END - 3 ", Place(Anchor.END, -3)),
        ("5m ago", Place(Anchor.TIME, NOW_MS - 300_000)),
        ("1h30m ago", Place(Anchor.TIME, NOW_MS - 5_400_000)),
        ("now", Place(Anchor.TIME, NOW_MS)),
        ("@5", Place(Anchor.TIME, 5)),
        ("1970-01-01T00:00:01Z", Place(Anchor.TIME, 1000)),
        ("1970-01-01T01:00:01+01:00", Place(Anchor.TIME, 1000)),
        ("1970-01-02", Place(Anchor.TIME, 86_400_000)),
    ],
)
def test_places(text: str, place: Place) -> None:
    assert parse_place(text, "from", NOW_MS) == place


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "9" * 25, "start-1", "1969-01-01", "9999999w ago", "NaN"])
def test_what_is_no_place_is_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="'from'") as caught:
        parse_place(text, "from", NOW_MS)
    assert "\n" not in str(caught.value)


@given(st.integers(0, 2**62), st.sampled_from([Anchor.OFFSET, Anchor.START, Anchor.END]))
def test_a_place_is_inside_of_every_partition(number: int, anchor: Anchor) -> None:
    found = offsets_of(Place(anchor, number), {0: Span(5, 9), 1: Span(0, 0)})
    assert 5 <= found[0] <= 9
    assert found[1] == 0


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1, max_size=100))
def test_a_cursor_goes_into_an_address_and_back(offsets: dict[int, int]) -> None:
    assert parse_cursor(cursor_text(offsets), "after") == offsets
