"""The records of `__share_group_state`: snapshots of share partitions, and updates of the last snapshot.

Keys and values carry their version as an int16 before the body; the version of a key says what the record is. A
snapshot without a value deletes the share partition. Kafka's counterparts are `ShareCoordinatorRecordHelpers` and
`ShareCoordinatorRecordSerde`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from pykbroker.protocol.schema import MessageT
from pykbroker.state_machine import BadRecord, UnknownRecord

ShareKey: TypeAlias = ShareSnapshotKey | ShareUpdateKey
ShareValue: TypeAlias = ShareSnapshotValue | ShareUpdateValue

SNAPSHOT = 0
UPDATE = 1
VALUE_VERSION = 0

_BATCH_BYTES = 8 + 8 + 1 + 2 + 1
_KEY_AND_VALUE_BYTES = 128
"""More than a record takes beside its group's id and its batches."""


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """A record of `__share_group_state`. value: None is a tombstone, of which only snapshots have one."""

    key: ShareKey
    value: ShareValue | None

    def encode(self) -> tuple[bytes, bytes | None]:
        kind = SNAPSHOT if isinstance(self.key, ShareSnapshotKey) else UPDATE
        key = struct.pack(">h", kind) + encode(self.key, 0)
        if self.value is None:
            return key, None
        return key, struct.pack(">h", VALUE_VERSION) + encode(self.value, VALUE_VERSION)


def most_bytes(group_id: str, batches: int) -> int:
    """Return what the key and the value of a record of so many batches take at most."""
    return _KEY_AND_VALUE_BYTES + len(group_id.encode("utf-8", "surrogatepass")) + batches * _BATCH_BYTES


def decode_record(key: bytes | None, value: bytes | None) -> ShareRecord:
    """Raises BadRecord."""
    if key is None:
        raise BadRecord("the record has no key")
    try:
        kind = _version(key)
        if kind == SNAPSHOT:
            snapshot = _whole(ShareSnapshotKey, key, 0)
            return ShareRecord(snapshot, None if value is None else _value(ShareSnapshotValue, value))
        if kind == UPDATE:
            update = _whole(ShareUpdateKey, key, 0)
            if value is None:
                raise BadRecord("an update without a value")
            return ShareRecord(update, _value(ShareUpdateValue, value))
    except (MalformedMessage, struct.error) as error:
        raise BadRecord(f"malformed record: {error}") from error
    raise UnknownRecord(f"a record of type {kind}")


def _value(type_: type[MessageT], data: bytes) -> MessageT:
    version = _version(data)
    if version != VALUE_VERSION:
        raise UnknownRecord(f"{type_.__name__} of version {version}")
    return _whole(type_, data, version)


def _version(data: bytes) -> int:
    version: int
    (version,) = struct.unpack_from(">h", data)
    return version


def _whole(type_: type[MessageT], data: bytes, version: int) -> MessageT:
    message, end = decode(type_, version, data, 2)
    if end != len(data):
        raise BadRecord(f"{len(data) - end} bytes behind the end of {type_.__name__}")
    return message
