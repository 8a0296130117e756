"""What is put together and taken apart by hand is what the generated codecs make of it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.common.offset_record_bytes import key_bytes, read_key, read_value, value_bytes
from pykbroker.groups.common.records import (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VERSION,
    decode_record,
    offset_commit_record,
)
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.schema import NO_UUID
from pykbroker.state_machine import BadRecord

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(max_size=40)
METADATA = st.text(max_size=60) | st.integers(120, 130).map("x".__mul__)
TOPIC_IDS = st.just(NO_UUID) | st.binary(min_size=16, max_size=16)

keys = st.builds(OffsetCommitKey, group=NAMES, topic=NAMES, partition=INT32)
values = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=INT32,
    metadata=METADATA,
    commit_timestamp=INT64,
    topic_id=TOPIC_IDS,
)


def generated_key(key: OffsetCommitKey) -> bytes:
    return struct.pack(">h", OFFSET_COMMIT_KEY) + encode(key, 0)


def generated_value(value: OffsetCommitValue) -> bytes:
    return struct.pack(">h", OFFSET_COMMIT_VERSION) + encode(value, OFFSET_COMMIT_VERSION)


@given(keys)
def test_keys_are_those_of_the_codec(key: OffsetCommitKey) -> None:
    assert key_bytes(key) == generated_key(key)
    assert read_key(generated_key(key)) == key


@given(values)
def test_values_are_those_of_the_codec(value: OffsetCommitValue) -> None:
    expected = generated_value(value)
    is_short = len(value.metadata.encode()) < 127
    assert value_bytes(value) == (expected if is_short else None)
    assert read_value(expected) == (value if is_short else None)


@given(keys, values, st.data())
def test_damage_is_read_as_the_codec_reads_it(
    key: OffsetCommitKey, value: OffsetCommitValue, data: st.DataObject
) -> None:
    """Or not at all: then the codec is asked."""
    for whole, read, type_, version in (
        (generated_key(key), read_key, OffsetCommitKey, 0),
        (generated_value(value), read_value, OffsetCommitValue, OFFSET_COMMIT_VERSION),
    ):
        damaged = bytearray(whole)
        damaged[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
        cut = bytes(damaged[: data.draw(st.integers(0, len(whole)))])
        for each in (bytes(damaged), cut, whole + b"x"):
            found = read(each)
            if found is not None:
                assert decode(type_, version, each, 2) == (found, len(each))


@pytest.mark.parametrize("field", ["expire", "tags", "id"])
def test_what_is_unusual_is_left_to_the_codec(field: str) -> None:
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=1)
    match field:
        case "expire":
            value.expire_timestamp = 5
        case "tags":
            value.unknown_tagged_fields = {9: b"later"}
        case _:
            value.topic_id = b"short"
    assert value_bytes(value) is None


def test_names_that_nothing_can_hold_are_told_by_the_codec() -> None:
    record = offset_commit_record("g", "t" * 40_000, 0, None)
    with pytest.raises(ValueError, match="topic"):
        record.encode()


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1", b"\0\1\0\5abc", b"\0\1\xff\xff\0\0\0\0\0\0"])
def test_a_key_that_is_cut_short_is_a_bad_record(key: bytes) -> None:
    with pytest.raises((BadRecord, MalformedMessage)):
        decode_record(key, None)
