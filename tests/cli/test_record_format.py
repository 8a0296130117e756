"""Records as lines of standard output."""

import pytest

from pykbroker.cli.line_reader import InvalidLine
from pykbroker.cli.record_format import RecordFormat
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.protocol.records.batch import TimestampType

RECORD = ConsumedRecord(
    topic="t",
    partition=3,
    offset=42,
    leader_epoch=5,
    timestamp=1_700_000_000_000,
    timestamp_type=TimestampType.CREATE_TIME,
    key=b"k",
    value=b"v",
    headers=(("h1", b"x"), ("h2", None)),
)
EVERYTHING = ("timestamp", "partition", "offset", "epoch", "headers", "key")


def line(record: ConsumedRecord, **properties: str) -> bytes:
    return RecordFormat.from_properties({name.replace("_", "."): value for name, value in properties.items()}).line(
        record
    )


def test_a_record_is_its_value_unless_told_otherwise() -> None:
    assert line(RECORD) == b"v\n"
    assert line(RECORD._replace(value=b"\xff\0")) == b"\xff\0\n"
    assert line(RECORD._replace(value=None)) == b"null\n"


def test_everything_stands_in_kafkas_order() -> None:
    shown = {f"print_{name}": "true" for name in EVERYTHING}
    assert line(RECORD, **shown) == (b"CreateTime:1700000000000\tPartition:3\tOffset:42\tEpoch:5\th1:x,h2:null\tk\tv\n")
    bare = RECORD._replace(
        timestamp=-1, leader_epoch=-1, headers=(), key=None, timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    assert line(bare, **shown) == b"NO_TIMESTAMP\tPartition:3\tOffset:42\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tv\n"


def test_separators_and_the_word_for_null_are_settings() -> None:
    text = line(
        RECORD._replace(key=None),
        print_key="true",
        print_headers="true",
        print_value="false",
        key_separator="|",
        headers_separator=";",
        line_separator="\r\n",
        null_literal="NIL",
    )
    assert text == b"h1:x;h2:NIL|NIL\r\n"


def test_the_time_of_the_broker_is_named_so() -> None:
    record = RECORD._replace(timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert line(record, print_timestamp="true") == b"LogAppendTime:1700000000000\tv\n"


@pytest.mark.parametrize(
    ("deserializer", "data", "text"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", b"\xff" * 8, b"-1"),
        ("IntegerDeserializer", b"\0\0\1\0", b"256"),
        ("DoubleDeserializer", bytes.fromhex("3ff8000000000000"), b"1.5"),
        ("StringDeserializer", b"text", b"text"),
    ],
)
def test_values_may_be_deserialized(deserializer: str, data: bytes, text: bytes) -> None:
    assert line(RECORD._replace(value=data), value_deserializer=deserializer) == text + b"\n"


def test_what_a_deserializer_cannot_read_is_refused() -> None:
    with pytest.raises(InvalidLine, match="is 1, not 8"):
        line(RECORD, value_deserializer="LongDeserializer")
    with pytest.raises(InvalidLine, match="not that of a UUID"):
        line(RECORD, value_deserializer="UUIDDeserializer")
    with pytest.raises(InvalidLine, match="AvroDeserializer is not one of"):
        line(RECORD, value_deserializer="io.example.AvroDeserializer")


def test_a_switch_is_true_or_false() -> None:
    with pytest.raises(InvalidLine, match=r"print\.key must be true or false, not 'yes'"):
        line(RECORD, print_key="yes")
