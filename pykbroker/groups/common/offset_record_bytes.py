"""The bytes of a committed offset in the versions that are written today, encoded and decoded by hand.

No record is written as often, and a coordinator that loads reads little else: these functions take a quarter of the
time of the generated codecs. The generated codecs define the format, and serve every unusual record, for which the
functions here return None.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.schema import NO_UUID

KEY_TYPE = 1
VALUE_VERSION = 4
NO_TIMESTAMP = -1

_KEY_HEAD = struct.Struct(">hh")
"""Type, and the length of the group's id."""
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_VALUE_HEAD = struct.Struct(">hqiB")
"""Version, offset, leader epoch, and the length of the metadata plus one, where that fits into one byte."""
_VALUE_TAIL = struct.Struct(">qB")
"""Commit time, and how many tagged fields follow."""
_TOPIC_ID = b"\x00\x10"
"""Tag 0 with sixteen bytes."""
_USUAL_VALUE = struct.Struct(">hqiBqBH16s")
"""All of a value without metadata and with a topic id: what most of them are."""
_USUAL_TAG: Final = 0x0010
_LONGEST_METADATA_BYTES = 0x7E
_REMEMBERED: Final = 256
"""Topics of groups: those who commit again and again have the same ones. The bound is 16 MB, of names that are as long
as they may be.
"""


def key_bytes(key: OffsetCommitKey) -> bytes | None:
    try:
        return _before_partition(key.group, key.topic) + _INT.pack(key.partition)
    except (struct.error, UnicodeError):
        return None


@lru_cache(_REMEMBERED)
def _before_partition(group_id: str, topic: str) -> bytes:
    """Raises struct.error and UnicodeError, which are not remembered."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_KEY_HEAD.pack(KEY_TYPE, len(group)), group, _SHORT.pack(len(name)), name))


def value_bytes(value: OffsetCommitValue) -> bytes | None:
    try:
        topic_id = value.topic_id
        if value.expire_timestamp != NO_TIMESTAMP or len(topic_id) != 16 or value.unknown_tagged_fields:
            return None
        if not value.metadata and topic_id != NO_UUID:
            return _USUAL_VALUE.pack(
                VALUE_VERSION, value.offset, value.leader_epoch, 1, value.commit_timestamp, 1, _USUAL_TAG, topic_id
            )
        metadata = value.metadata.encode()
        if len(metadata) > _LONGEST_METADATA_BYTES:
            return None
        head = _VALUE_HEAD.pack(VALUE_VERSION, value.offset, value.leader_epoch, len(metadata) + 1)
        if topic_id == NO_UUID:
            return b"".join((head, metadata, _VALUE_TAIL.pack(value.commit_timestamp, 0)))
        return b"".join((head, metadata, _VALUE_TAIL.pack(value.commit_timestamp, 1), _TOPIC_ID, topic_id))
    except (struct.error, UnicodeError):
        return None


def read_key(data: bytes) -> OffsetCommitKey | None:
    try:
        key_type, size = _KEY_HEAD.unpack_from(data)
        topic_at = _KEY_HEAD.size + size + _SHORT.size
        (topic_size,) = _SHORT.unpack_from(data, topic_at - _SHORT.size)
        end = topic_at + topic_size
        if key_type != KEY_TYPE or size < 0 or topic_size < 0 or end + _INT.size != len(data):
            return None
        (partition,) = _INT.unpack_from(data, end)
        group, topic = data[_KEY_HEAD.size : topic_at - _SHORT.size].decode(), data[topic_at:end].decode()
        return OffsetCommitKey(group=group, topic=topic, partition=partition)
    except (struct.error, UnicodeError):
        return None


def read_value(data: bytes) -> OffsetCommitValue | None:
    try:
        version, offset, leader_epoch, size = _VALUE_HEAD.unpack_from(data)
        if version != VALUE_VERSION or not 0 < size <= _LONGEST_METADATA_BYTES + 1:
            return None
        end = _VALUE_HEAD.size + size - 1
        commit_timestamp, tags = _VALUE_TAIL.unpack_from(data, end)
        rest = data[end + _VALUE_TAIL.size :]
        if tags == 1 and len(rest) == len(_TOPIC_ID) + len(NO_UUID) and rest.startswith(_TOPIC_ID):
            topic_id = rest[len(_TOPIC_ID) :]
        elif tags or rest:
            return None
        else:
            topic_id = NO_UUID
        return OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=data[_VALUE_HEAD.size : end].decode(),
            commit_timestamp=commit_timestamp,
            topic_id=topic_id,
        )
    except (struct.error, UnicodeError):
        return None
