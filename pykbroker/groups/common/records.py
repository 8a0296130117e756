"""The records of `__consumer_offsets`: classic groups, committed offsets, and in their parts consumer groups (KIP-848),
share groups (KIP-932) and streams groups (KIP-1071).

Keys carry their type as an int16 before the body, values their version, as Kafka's `CoordinatorRecordSerde` writes
them. Types that this coordinator does not know are reported by `UnknownRecord`, not guessed at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages import consumer_group_records as consumer
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.protocol.schema import Message, MessageT
from pykbroker.state_machine import BadRecord, UnknownRecord

from .offset_record_bytes import NO_TIMESTAMP as NO_TIMESTAMP
from .offset_record_bytes import key_bytes, read_key, read_value, value_bytes

if TYPE_CHECKING:
    from pykbroker.protocol.messages import share_group_records as share
    from pykbroker.protocol.messages import streams_group_records as streams

LEGACY_OFFSET_COMMIT_KEY = 0
OFFSET_COMMIT_KEY = 1
GROUP_METADATA_KEY = 2

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
"""The only version with `expire_timestamp`, for a client that sets a retention time (OffsetCommit v2-4)."""

CONSUMER_GROUP_TYPES: dict[type[Message], type[Message]] = {
    consumer.ConsumerGroupMetadataKey: consumer.ConsumerGroupMetadataValue,
    consumer.ConsumerGroupPartitionMetadataKey: consumer.ConsumerGroupPartitionMetadataValue,
    consumer.ConsumerGroupMemberMetadataKey: consumer.ConsumerGroupMemberMetadataValue,
    consumer.ConsumerGroupTargetAssignmentMetadataKey: consumer.ConsumerGroupTargetAssignmentMetadataValue,
    consumer.ConsumerGroupTargetAssignmentMemberKey: consumer.ConsumerGroupTargetAssignmentMemberValue,
    consumer.ConsumerGroupCurrentMemberAssignmentKey: consumer.ConsumerGroupCurrentMemberAssignmentValue,
    consumer.ConsumerGroupRegularExpressionKey: consumer.ConsumerGroupRegularExpressionValue,
}
_CONSUMER_GROUP_TYPES_BY_NUMBER = {key.__schema__.api_key: (key, value) for key, value in CONSUMER_GROUP_TYPES.items()}
CONSUMER_GROUP_VERSION = 0
SHARE_GROUP_NUMBERS = range(10, 16)
STREAMS_GROUP_NUMBERS = range(17, 24)

RecordKey: TypeAlias = """(
    OffsetCommitKey
    | GroupMetadataKey
    | consumer.ConsumerGroupMetadataKey
    | consumer.ConsumerGroupPartitionMetadataKey
    | consumer.ConsumerGroupMemberMetadataKey
    | consumer.ConsumerGroupTargetAssignmentMetadataKey
    | consumer.ConsumerGroupTargetAssignmentMemberKey
    | consumer.ConsumerGroupCurrentMemberAssignmentKey
    | consumer.ConsumerGroupRegularExpressionKey
    | share.ShareGroupMemberMetadataKey
    | share.ShareGroupMetadataKey
    | share.ShareGroupTargetAssignmentMetadataKey
    | share.ShareGroupTargetAssignmentMemberKey
    | share.ShareGroupCurrentMemberAssignmentKey
    | share.ShareGroupStatePartitionMetadataKey
    | streams.StreamsGroupMetadataKey
    | streams.StreamsGroupTopologyKey
    | streams.StreamsGroupMemberMetadataKey
    | streams.StreamsGroupTargetAssignmentMetadataKey
    | streams.StreamsGroupTargetAssignmentMemberKey
    | streams.StreamsGroupCurrentMemberAssignmentKey
)"""
RecordValue: TypeAlias = """(
    OffsetCommitValue
    | GroupMetadataValue
    | consumer.ConsumerGroupMetadataValue
    | consumer.ConsumerGroupPartitionMetadataValue
    | consumer.ConsumerGroupMemberMetadataValue
    | consumer.ConsumerGroupTargetAssignmentMetadataValue
    | consumer.ConsumerGroupTargetAssignmentMemberValue
    | consumer.ConsumerGroupCurrentMemberAssignmentValue
    | consumer.ConsumerGroupRegularExpressionValue
    | share.ShareGroupMemberMetadataValue
    | share.ShareGroupMetadataValue
    | share.ShareGroupTargetAssignmentMetadataValue
    | share.ShareGroupTargetAssignmentMemberValue
    | share.ShareGroupCurrentMemberAssignmentValue
    | share.ShareGroupStatePartitionMetadataValue
    | streams.StreamsGroupMetadataValue
    | streams.StreamsGroupTopologyValue
    | streams.StreamsGroupMemberMetadataValue
    | streams.StreamsGroupTargetAssignmentMetadataValue
    | streams.StreamsGroupTargetAssignmentMemberValue
    | streams.StreamsGroupCurrentMemberAssignmentValue
)"""


@cache
def share_group_types() -> Mapping[int | None, tuple[type[Message], type[Message]]]:
    """The types of keys and values by number. A broker without share groups does not need the memory."""
    from pykbroker.protocol.messages import share_group_records as share

    types: dict[type[Message], type[Message]] = {
        share.ShareGroupMemberMetadataKey: share.ShareGroupMemberMetadataValue,
        share.ShareGroupMetadataKey: share.ShareGroupMetadataValue,
        share.ShareGroupTargetAssignmentMetadataKey: share.ShareGroupTargetAssignmentMetadataValue,
        share.ShareGroupTargetAssignmentMemberKey: share.ShareGroupTargetAssignmentMemberValue,
        share.ShareGroupCurrentMemberAssignmentKey: share.ShareGroupCurrentMemberAssignmentValue,
        share.ShareGroupStatePartitionMetadataKey: share.ShareGroupStatePartitionMetadataValue,
    }
    return {key.__schema__.api_key: (key, value) for key, value in types.items()}


@cache
def streams_group_types() -> Mapping[int | None, tuple[type[Message], type[Message]]]:
    """The types of keys and values by number. A broker without streams groups does not need the memory."""
    from pykbroker.protocol.messages import streams_group_records as streams

    types: dict[type[Message], type[Message]] = {
        streams.StreamsGroupMetadataKey: streams.StreamsGroupMetadataValue,
        streams.StreamsGroupTopologyKey: streams.StreamsGroupTopologyValue,
        streams.StreamsGroupMemberMetadataKey: streams.StreamsGroupMemberMetadataValue,
        streams.StreamsGroupTargetAssignmentMetadataKey: streams.StreamsGroupTargetAssignmentMetadataValue,
        streams.StreamsGroupTargetAssignmentMemberKey: streams.StreamsGroupTargetAssignmentMemberValue,
        streams.StreamsGroupCurrentMemberAssignmentKey: streams.StreamsGroupCurrentMemberAssignmentValue,
    }
    return {key.__schema__.api_key: (key, value) for key, value in types.items()}


def _types_by_number(number: int) -> Mapping[int | None, tuple[type[Message], type[Message]]]:
    """The types of keys and values of the groups to which the number belongs."""
    if number in SHARE_GROUP_NUMBERS:
        return share_group_types()
    return streams_group_types() if number in STREAMS_GROUP_NUMBERS else _CONSUMER_GROUP_TYPES_BY_NUMBER


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A record of `__consumer_offsets`. A value of None is a tombstone."""

    key: RecordKey
    value: RecordValue | None

    def encode(self) -> tuple[bytes, bytes | None]:
        key = key_bytes(self.key) if isinstance(self.key, OffsetCommitKey) else None
        if key is None:
            key = struct.pack(">h", _key_type(self.key)) + encode(self.key, 0)
        if self.value is None:
            return key, None
        value = value_bytes(self.value) if isinstance(self.value, OffsetCommitValue) else None
        if value is None:
            version = _value_version(self.value)
            value = struct.pack(">h", version) + encode(self.value, version)
        return key, value

    def in_bytes(self) -> CoordinatorRecord:
        """The same record with its bytes, so that it is not encoded again."""
        return _RecordInBytes(self.key, self.value, self.encode())

    def only_bytes(self) -> CoordinatorRecord:
        """The same record as bytes alone, once nobody needs its value any more."""
        return _RecordInBytes(self.key, None, self.encode())

    @property
    def size_bytes(self) -> int:
        key, value = self.encode()
        return len(key) + len(value or b"")


@dataclass(frozen=True, slots=True)
class _RecordInBytes(CoordinatorRecord):
    encoded: tuple[bytes, bytes | None]

    def encode(self) -> tuple[bytes, bytes | None]:
        return self.encoded


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record that was encoded in a thread; only its bytes are needed."""

    encoded: tuple[bytes, bytes | None]

    def encode(self) -> tuple[bytes, bytes | None]:
        return self.encoded


def offset_commit_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue | None
) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return offset_commit_record(group_id, topic, partition, None)


def group_metadata_record(group_id: str, value: GroupMetadataValue | None) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value)


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """The record of these bytes. Raises BadRecord."""
    if key is None:
        raise BadRecord("the record has no key")
    try:
        return _decode(key, value)
    except (MalformedMessage, struct.error) as error:
        raise BadRecord(f"malformed record: {error}") from error


def _decode(key: bytes, value: bytes | None) -> CoordinatorRecord:
    (key_type,) = struct.unpack_from(">h", key)
    if key_type in (LEGACY_OFFSET_COMMIT_KEY, OFFSET_COMMIT_KEY):
        offset = None if value is None else read_value(value) or _decode_value(OffsetCommitValue, value)
        return CoordinatorRecord(read_key(key) or _whole(OffsetCommitKey, 0, key), offset)
    if key_type == GROUP_METADATA_KEY:
        return CoordinatorRecord(_whole(GroupMetadataKey, 0, key), _decode_value(GroupMetadataValue, value))
    types = _types_by_number(key_type)
    if key_type not in types:
        raise UnknownRecord(f"unknown record type {key_type}")
    of_key, of_value = types[key_type]
    return CoordinatorRecord(
        cast("RecordKey", _whole(of_key, 0, key)), cast("RecordValue", _decode_value(of_value, value))
    )


def _decode_value(type_: type[MessageT], data: bytes | None) -> MessageT | None:
    if data is None:
        return None
    (version,) = struct.unpack_from(">h", data)
    if not type_.__schema__.versions.includes(version):
        raise UnknownRecord(f"{type_.__name__} of version {version}")
    return _whole(type_, version, data)


def _whole(type_: type[MessageT], version: int, data: bytes) -> MessageT:
    """The message that fills the bytes behind the leading int16. Raises BadRecord where bytes are left over."""
    message, end = decode(type_, version, data, 2)
    if end != len(data):
        raise BadRecord(f"{len(data) - end} bytes behind the end of {type_.__name__}")
    return message


def _key_type(key: RecordKey) -> int:
    match key:
        case OffsetCommitKey():
            return OFFSET_COMMIT_KEY
        case GroupMetadataKey():
            return GROUP_METADATA_KEY
        case _:
            number = type(key).__schema__.api_key
            assert number is not None
            return number


def _value_version(value: RecordValue) -> int:
    if isinstance(value, GroupMetadataValue):
        return GROUP_METADATA_VERSION
    if not isinstance(value, OffsetCommitValue):
        return CONSUMER_GROUP_VERSION
    return OFFSET_COMMIT_VERSION if value.expire_timestamp == NO_TIMESTAMP else OFFSET_COMMIT_VERSION_WITH_EXPIRY
