"""Lines of standard input as records."""

import pytest

from pykbroker.cli.line_reader import InvalidLine, LineReader, ParsedLine


def reader(**properties: str) -> LineReader:
    return LineReader.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_a_line_is_a_value_unless_told_otherwise() -> None:
    assert reader().parse(b"a\tb", 1) == ParsedLine(None, b"a\tb")
    assert reader().parse(b"", 1) == ParsedLine(None, b"")
    assert reader().parse(b"\xff\xfe", 1) == ParsedLine(None, b"\xff\xfe")


def test_a_key_ends_at_the_first_separator() -> None:
    assert reader(parse_key="true").parse(b"k\tv\tw", 1) == ParsedLine(b"k", b"v\tw")
    assert reader(parse_key="true", key_separator="::").parse(b"k::v", 1) == ParsedLine(b"k", b"v")
    assert reader(parse_key="true").parse(b"\t", 1) == ParsedLine(b"", b"")


def test_headers_come_before_the_key() -> None:
    both = reader(parse_key="true", parse_headers="true")
    assert both.parse(b"h1:x,h2:y:z\tk\tv", 1) == ParsedLine(b"k", b"v", (("h1", b"x"), ("h2", b"y:z")))
    own = reader(parse_headers="true", headers_delimiter="|", headers_separator=";", headers_key_separator="=")
    assert own.parse(b"a=1;b=|v", 1) == ParsedLine(None, b"v", (("a", b"1"), ("b", b"")))


def test_the_null_marker_stands_for_no_key_no_value_no_header_value_and_no_headers() -> None:
    both = reader(parse_key="true", parse_headers="true", null_marker="NULL")
    assert both.parse(b"NULL\tNULL\tNULL", 1) == ParsedLine(None, None)
    assert both.parse(b"h:NULL\tk\tv", 1) == ParsedLine(b"k", b"v", (("h", None),))
    with pytest.raises(InvalidLine, match="header's name"):
        both.parse(b"NULL:x\tk\tv", 1)


@pytest.mark.parametrize(
    ("properties", "line", "complaint"),
    [
        ({"parse_key": "true"}, b"bad", "No key separator found on line number 7: 'bad'"),
        ({"parse_headers": "true"}, b"bad", "No headers delimiter found on line number 7: 'bad'"),
        ({"parse_headers": "true"}, b"h\tv", "No header key separator found in pair 'h' on line number 7"),
    ],
)
def test_what_is_missing_is_named_with_its_line(properties: dict[str, str], line: bytes, complaint: str) -> None:
    with pytest.raises(InvalidLine) as caught:
        reader(**properties).parse(line, 7)
    assert str(caught.value) == complaint


def test_errors_may_be_ignored() -> None:
    lenient = reader(parse_key="true", parse_headers="true", ignore_error="true")
    assert lenient.parse(b"only a value", 1) == ParsedLine(None, b"only a value")
    assert lenient.parse(b"h\tk\tv", 1) == ParsedLine(b"k", b"v", (("h", None),))


@pytest.mark.parametrize(
    "properties",
    [
        {"parse_key": "yes"},
        {"key_separator": ""},
        {"key_separator": "x", "null_marker": "x"},
        {"headers_delimiter": ","},
        {"headers_separator": ":"},
    ],
)
def test_settings_that_do_not_fit_together_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidLine):
        reader(**properties)
