"""Whole records as JSON lines, without loss."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.cli.line_reader import InvalidLine
from pykbroker.cli.records.codecs import CODECS
from pykbroker.cli.records.envelope import EnvelopeFormat
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.protocol.records.batch import TimestampType

DATA = st.none() | st.binary() | st.text().map(str.encode)
NAMES = st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))
RECORDS = st.builds(
    ConsumedRecord,
    topic=st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.integers(-1, 10),
    timestamp=st.integers(-1, 2**63 - 1),
    timestamp_type=st.sampled_from(TimestampType),
    key=DATA,
    value=DATA,
    headers=st.lists(st.tuples(NAMES, DATA), max_size=4).map(tuple),
)
RECORD = ConsumedRecord("t", 0, 5, 0, 1_700_000_000_000, TimestampType.CREATE_TIME, b"k", b"v", (("h", b"x"),))


@given(RECORDS)
def test_a_record_comes_back_exactly(record: ConsumedRecord) -> None:
    line = EnvelopeFormat().line(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    back = EnvelopeFormat().parse(line)
    assert back == (record.key, record.value, record.headers, record.timestamp, record.partition)
    shown = json.loads(line)
    assert (shown["topic"], shown["offset"]) == (record.topic, record.offset)


def test_an_envelope_is_what_the_documentation_says() -> None:
    assert EnvelopeFormat().line(RECORD) == (
        b'{"topic":"t","partition":0,"offset":5,"timestamp":1700000000000,"timestamp_type":"CreateTime",'
        b'"key":"k","value":"v","headers":[{"name":"h","value":"x"}]}\n'
    )
    other = json.loads(EnvelopeFormat().line(RECORD._replace(key=None, value=b"\xff", headers=(("\udcff", None),))))
    assert other["key"] is None
    assert other["value_base64"] == "/w=="
    assert other["headers"] == [{"name_base64": "/w==", "value": None}]


def test_a_document_stands_in_the_envelope_and_what_is_none_in_base64() -> None:
    envelope = EnvelopeFormat(value=CODECS["json"])
    assert json.loads(envelope.line(RECORD._replace(value=b'{"a": 1.50}')))["value"] == {"a": 1.5}
    for data in (b"{", b"null"):
        line = envelope.line(RECORD._replace(value=data))
        assert base64.b64decode(json.loads(line)["value_base64"]) == data
        assert envelope.parse(line).value == data


def test_what_is_left_out_is_null_or_the_producers_choice() -> None:
    assert EnvelopeFormat().parse(b'{"value":""}') == (None, b"", (), None, None)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8: invalid start byte at byte 0"),
        (b'{"value":"\\ud800"}', "half a surrogate pair"),
        (b"[]", "a list is not the envelope of a record"),
        (b"1", "a number is not the envelope"),
        (b"{}", "no value; a tombstone says null"),
        (b'{"value":"a","keys":"b"}', "'keys' is no field of the envelope"),
        (b'{"value":{"a":1}}', "value: an object is not a string"),
        (b'{"value":"a","value_base64":"YQ=="}', "exclude each other"),
        (b'{"value_base64":"a"}', "is not base64"),
        (b'{"value_base64":1}', "value_base64 is not a string"),
        (b'{"value":"a","timestamp":"now"}', "timestamp is not a whole number"),
        (b'{"value":"a","timestamp":1e3}', "timestamp is not a whole number"),
        (b'{"value":"a","timestamp":9223372036854775808}', r"below 2\^63"),
        (b'{"value":"a","partition":-1}', "partition is not a whole number"),
        (b'{"value":"a","partition":true}', "partition is not a whole number"),
        (b'{"value":"a","headers":{}}', "headers are not a list"),
        (b'{"value":"a","headers":{"a":"b"}}', "headers are not a list"),
        (b'{"value":"a","headers":[1]}', "a number is not a header"),
        (b'{"value":"a","headers":[{"value":"x"}]}', "a header has no name"),
        (b'{"value":NaN}', "NaN is no number"),
        (b'{"value":1e400}', "the number 1e400 does not fit into 64 bits"),
        (b'{"value":0.12345678901234567890}', "the number 0.12345678901234567890 does not fit"),
        (b'{"value":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_envelope_is_refused(line: bytes, complaint: str) -> None:
    with pytest.raises(InvalidLine, match=complaint):
        EnvelopeFormat().parse(line)
