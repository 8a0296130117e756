"""Formats of keys and values: bytes as text and as JSON, and back."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.cli.line_reader import InvalidLine
from pykbroker.cli.records import json_text
from pykbroker.cli.records.codecs import CODECS, JsonCodec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
DATA = {
    "text": st.text().map(str.encode),
    "hex": st.binary(),
    "base64": st.binary(),
    "short": st.binary(min_size=2, max_size=2),
    "int": st.binary(min_size=4, max_size=4),
    "long": st.binary(min_size=8, max_size=8),
    "float": st.floats(width=32, allow_nan=False).map(lambda number: struct.pack(">f", number)),
    "double": st.floats(allow_nan=False).map(lambda number: struct.pack(">d", number)),
    "uuid": st.uuids().map(lambda each: str(each).encode()),
    "json": JSON.map(lambda each: json.dumps(each, ensure_ascii=False, separators=(",", ":")))
    .filter(lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text)
    .map(str.encode),
}


def test_every_format_is_tried() -> None:
    assert set(DATA) == set(CODECS)


@pytest.mark.parametrize("name", sorted(DATA))
@given(st.data())
def test_bytes_come_back_from_their_line_and_from_their_document(name: str, data: st.DataObject) -> None:
    encoded = data.draw(DATA[name])
    codec = CODECS[name]
    assert codec.from_line(codec.shown(encoded)) == encoded
    assert codec.from_document(json.loads(codec.document(encoded))) == encoded


@given(JSON, st.sampled_from([None, 1, "\t"]))
def test_json_keeps_all_but_its_white_space(document: object, indent: int | str | None) -> None:
    text = json.dumps(document, indent=indent)
    for other in (json_text.compact(text), json_text.pretty(text)):
        assert json.loads(other) == document
    assert json_text.compact(text) == json.dumps(document, separators=(",", ":"))
    if indent is None:
        assert json_text.pretty(text) == json.dumps(document, indent=2)


def test_numbers_of_json_keep_their_digits() -> None:
    text = b'{ "big": 1234567890123456789012345678901234567890.10, "e": 1E400, "s": "a  b" }'
    assert JsonCodec().shown(text) == (b'{"big":1234567890123456789012345678901234567890.10,"e":1E400,"s":"a  b"}')
    assert JsonCodec(is_pretty=True).shown(b'{"a":[1,{}],"b":[]}') == (
        b'{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}'
    )


def test_a_deep_document_does_not_grow_without_bound() -> None:
    deep = "[" * 500 + ",".join(["0"] * 1_000) + "]" * 500
    assert len(json_text.pretty(deep)) < 200_000


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("json", b"{", "not JSON: "),
        ("json", b"NaN", "not JSON: NaN is no number"),
        ("json", b"\xff", "not UTF-8"),
        ("json", b"[" * 100_000, "not JSON: nested too deeply"),
        ("long", b"1234", "is 4, not 8"),
        ("uuid", b"no", "not that of a UUID"),
    ],
)
def test_bytes_without_the_format_are_refused(name: str, data: bytes, complaint: str) -> None:
    for method in (CODECS[name].shown, CODECS[name].document):
        with pytest.raises(InvalidLine, match=complaint):
            method(data)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("short", b"32768"),
        ("int", b"-2147483649"),
        ("long", b"9" * 5_000),
        ("long", b"1_0"),
        ("long", b"1.0"),
        ("long", "٣".encode()),
        ("double", b"1e999"),
        ("double", b"one"),
        ("float", b"1e39"),
        ("hex", b"abc"),
        ("hex", b"zz"),
        ("base64", b"a"),
        ("base64", b"a\xff=="),
        ("uuid", b"1"),
        ("json", b"{a}"),
        ("json", b"\xff"),
    ],
)
def test_text_that_is_no_value_is_refused_shortly(name: str, text: bytes) -> None:
    with pytest.raises(InvalidLine) as caught:
        CODECS[name].from_line(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("name", "document"), [("text", 1), ("hex", 1), ("long", True), ("long", []), ("text", "\ud800")]
)
def test_a_document_of_another_kind_is_refused(name: str, document: object) -> None:
    with pytest.raises(InvalidLine):
        CODECS[name].from_document(document)
