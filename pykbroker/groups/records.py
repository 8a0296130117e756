"""The records of `__consumer_offsets` that classic groups need: a group's state, and one committed offset.

Keys carry their type as an int16 before the body, values their version, as Kafka's `CoordinatorRecordSerde` writes
them. Types that this coordinator does not know (KIP-848's among them) are reported by `UnknownRecord`, not guessed at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.protocol.schema import MessageT

LEGACY_OFFSET_COMMIT_KEY = 0
OFFSET_COMMIT_KEY = 1
GROUP_METADATA_KEY = 2

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
"""The one version that has `expire_timestamp`; used where the client set a retention time (OffsetCommit v2-4)."""

NO_TIMESTAMP = -1

RecordKey: TypeAlias = OffsetCommitKey | GroupMetadataKey
RecordValue: TypeAlias = OffsetCommitValue | GroupMetadataValue
ValueT = TypeVar("ValueT", OffsetCommitValue, GroupMetadataValue)


class BadRecord(Exception):
    """The bytes are not a record of the coordinator's; the text says what is wrong with them."""


class UnknownRecord(BadRecord):
    """A key type, or a value version, of a later Kafka or of a group type that is not served here."""


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """value: None is a tombstone."""

    key: RecordKey
    value: RecordValue | None

    def encode(self) -> tuple[bytes, bytes | None]:
        key_type = OFFSET_COMMIT_KEY if isinstance(self.key, OffsetCommitKey) else GROUP_METADATA_KEY
        key = struct.pack(">h", key_type) + encode(self.key, 0)
        if self.value is None:
            return key, None
        version = _value_version(self.value)
        return key, struct.pack(">h", version) + encode(self.value, version)

    @property
    def size_bytes(self) -> int:
        key, value = self.encode()
        return len(key) + len(value or b"")


def offset_commit_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue | None
) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value)


def group_metadata_record(group_id: str, value: GroupMetadataValue | None) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value)


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Raises BadRecord."""
    if key is None:
        raise BadRecord("the record has no key")
    try:
        return _decode(key, value)
    except (MalformedMessage, struct.error) as error:
        raise BadRecord(f"malformed record: {error}") from error


def _decode(key: bytes, value: bytes | None) -> CoordinatorRecord:
    (key_type,) = struct.unpack_from(">h", key)
    if key_type in (LEGACY_OFFSET_COMMIT_KEY, OFFSET_COMMIT_KEY):
        return CoordinatorRecord(_whole(OffsetCommitKey, 0, key), _decode_value(OffsetCommitValue, value))
    if key_type == GROUP_METADATA_KEY:
        return CoordinatorRecord(_whole(GroupMetadataKey, 0, key), _decode_value(GroupMetadataValue, value))
    raise UnknownRecord(f"unknown record type {key_type}")


def _decode_value(type_: type[ValueT], data: bytes | None) -> ValueT | None:
    if data is None:
        return None
    (version,) = struct.unpack_from(">h", data)
    if not type_.__schema__.versions.includes(version):
        raise UnknownRecord(f"{type_.__name__} of version {version}")
    return _whole(type_, version, data)


def _whole(type_: type[MessageT], version: int, data: bytes) -> MessageT:
    """The message behind the leading int16, to the last byte."""
    message, end = decode(type_, version, data, 2)
    if end != len(data):
        raise BadRecord(f"{len(data) - end} bytes behind the end of {type_.__name__}")
    return message


def _value_version(value: RecordValue) -> int:
    if isinstance(value, GroupMetadataValue):
        return GROUP_METADATA_VERSION
    return OFFSET_COMMIT_VERSION if value.expire_timestamp == NO_TIMESTAMP else OFFSET_COMMIT_VERSION_WITH_EXPIRY
