"""The record formats of `__consumer_offsets`, byte for byte as Apache Kafka 4.3.1 wrote them."""

from __future__ import annotations

import pytest

from pykbroker.groups.common.records import CoordinatorRecord, decode_record
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.state_machine import BadRecord, UnknownRecord

SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x06events\xff\xff\xff\xff\x00\x00\x00\x00"
FIRST = "i1-edee0ae6-993f-43b9-8ae9-13785629c6d2"
SECOND = "i2-593c3d4f-d9e6-4f61-a001-11e6d7e33a14"


def _member(member_id: str, instance_id: str, client_id: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=client_id,
        client_host="/127.0.0.1",
        rebalance_timeout=1000,
        session_timeout=10_000,
        subscription=SUBSCRIPTION,
        assignment=assignment,
    )


RECORDED = {
    "an offset": (
        b"\x00\x01\x00\x06simple\x00\x06events\x00\x00\x00\x02",
        b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\xff\xff\xff\xff\x06by id\x00\x00\x01\xa1\xfeO\xe5k"
        b"\x01\x00\x10\xa4az\xf8Z\x07C\xf9\x82\x92=5\x07P\xc3\x1b",
        CoordinatorRecord(
            OffsetCommitKey(group="simple", topic="events", partition=2),
            OffsetCommitValue(
                offset=8,
                metadata="by id",
                commit_timestamp=1795268011371,
                topic_id=b"\xa4az\xf8Z\x07C\xf9\x82\x92=5\x07P\xc3\x1b",
            ),
        ),
    ),
    "an offset with a retention time": (
        b"\x00\x01\x00\x06simple\x00\x06events\x00\x00\x00\x01",
        b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x01\xa1\xfeO\xe5V\x00\x00\x01\xa2\x03vAV",
        CoordinatorRecord(
            OffsetCommitKey(group="simple", topic="events", partition=1),
            OffsetCommitValue(
                offset=7, metadata="", commit_timestamp=1795268011350, expire_timestamp=1795268011350 + 86_400_000
            ),
        ),
    ),
    "a deleted offset": (
        b"\x00\x01\x00\x0fdeleted-offsets\x00\x06orders\x00\x00\x00\x00",
        None,
        CoordinatorRecord(OffsetCommitKey(group="deleted-offsets", topic="orders", partition=0), None),
    ),
    "a new group": (
        b"\x00\x02\x00\x0bstatic-away",
        b"\x00\x03\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x01\xa1\xfeT\x19\xf4\x00\x00\x00\x00",
        CoordinatorRecord(
            GroupMetadataKey(group="static-away"),
            GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=1795268286964),
        ),
    ),
    "a stable group": (
        b"\x00\x02\x00\x0bstatic-away",
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x01\x00\x05range\x00'i1-edee0ae6-993f-43b9-8ae9-13785629c6d2"
        b"\x00\x00\x01\xa1\xfeT\x1cK\x00\x00\x00\x02\x00'i1-edee0ae6-993f-43b9-8ae9-13785629c6d2\x00\x02i1\x00\x01a"
        b"\x00\n/127.0.0.1\x00\x00\x03\xe8\x00\x00'\x10\x00\x00\x00\x16\x00\x01\x00\x00\x00\x01\x00\x06events"
        b"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x03one\x00'i2-593c3d4f-d9e6-4f61-a001-11e6d7e33a14\x00\x02i2"
        b"\x00\x01b\x00\n/127.0.0.1\x00\x00\x03\xe8\x00\x00'\x10\x00\x00\x00\x16\x00\x01\x00\x00\x00\x01\x00\x06events"
        b"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x03two",
        CoordinatorRecord(
            GroupMetadataKey(group="static-away"),
            GroupMetadataValue(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader=FIRST,
                current_state_timestamp=1795268287563,
                members=[_member(FIRST, "i1", "a", b"one"), _member(SECOND, "i2", "b", b"two")],
            ),
        ),
    ),
    "a group that was left": (
        b"\x00\x02\x00\x0fdeleted-offsets",
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff\x00\x00\x01\xa1\xfeO\xf4\xce\x00\x00\x00\x00",
        CoordinatorRecord(
            GroupMetadataKey(group="deleted-offsets"),
            GroupMetadataValue(
                protocol_type="consumer",
                generation=2,
                protocol=None,
                leader=None,
                current_state_timestamp=1795268015310,
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_records_are_written_as_kafka_writes_them(name: str) -> None:
    key, value, record = RECORDED[name]
    assert record.encode() == (key, value)


@pytest.mark.parametrize("name", RECORDED)
def test_records_are_read_as_kafka_wrote_them(name: str) -> None:
    key, value, record = RECORDED[name]
    assert decode_record(key, value) == record


def test_a_legacy_key_is_read_as_an_offset() -> None:
    key = b"\x00\x00\x00\x06simple\x00\x06events\x00\x00\x00\x02"
    value = b"\x00\x00" + b"\x00\x00\x00\x00\x00\x00\x00\x08" + b"\x00\x00" + b"\x00" * 8
    assert decode_record(key, value).value == OffsetCommitValue(offset=8, metadata="", commit_timestamp=0)


@pytest.mark.parametrize("key_type", [18, 24, 32767, -1])
def test_types_of_later_kafkas_are_unknown(key_type: int) -> None:
    with pytest.raises(UnknownRecord, match=f"type {key_type}"):
        decode_record(key_type.to_bytes(2, "big", signed=True) + b"\x00\x01g", b"")


def test_a_version_to_come_is_unknown() -> None:
    key, _, _ = RECORDED["a new group"]
    with pytest.raises(UnknownRecord, match="version 5"):
        decode_record(key, b"\x00\x05\x00\x00")


@pytest.mark.parametrize("name", [name for name, (_, value, _) in RECORDED.items() if value is not None])
def test_cut_and_padded_records_are_bad(name: str) -> None:
    key, value, _ = RECORDED[name]
    assert value is not None
    for data in [value[:end] for end in range(len(value))] + [value + b"\0"]:
        with pytest.raises(BadRecord):
            decode_record(key, data)
    for data in [key[:end] for end in range(len(key))] + [key + b"\0"]:
        with pytest.raises(BadRecord):
            decode_record(data, value)
    with pytest.raises(BadRecord):
        decode_record(None, value)
