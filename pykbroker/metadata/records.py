"""The frame of a record of the metadata log: Kafka's `MetadataRecordSerde`.

Frame version 1, the record's API key and its version, each an unsigned varint; then the body. Versions are those that
a cluster of metadata.version 30 (4.3-IV0) writes, and of the later ones up to 33 (4.4-IV2).
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages import metadata_records
from pykbroker.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from pykbroker.protocol.primitives import encode_uvarint, read_uvarint
from pykbroker.protocol.schema import Message

FRAME_VERSION: Final = 1

_WRITTEN_VERSIONS: Final[dict[type[Message], int]] = {
    RegisterBrokerRecord: 4,
    PartitionRecord: 2,
    PartitionChangeRecord: 2,
}

_TYPES: Final[dict[int, type[Message]]] = {
    each.__schema__.api_key: each
    for each in vars(metadata_records).values()
    if isinstance(each, type) and issubclass(each, Message) and each.__schema__.api_key is not None
}


def record_version(record: Message) -> int:
    """The version in which the record is written."""
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _change_version(record)
    return _WRITTEN_VERSIONS.get(type(record), 0)


def encode_record(record: Message) -> bytes:
    api_key, version = record.__schema__.api_key, record_version(record)
    assert api_key is not None, f"{type(record).__name__} is not a record of the metadata log"
    frame = encode_uvarint(FRAME_VERSION) + encode_uvarint(api_key) + encode_uvarint(version)
    return frame + encode(record, version)


def decode_record(value: bytes | memoryview) -> Message:
    """Raises MalformedMessage for what is no such frame, or holds a record that is not known."""
    data = memoryview(value)
    try:
        frame_version, at = read_uvarint(data, 0)
        api_key, at = read_uvarint(data, at)
        version, at = read_uvarint(data, at)
    except IndexError:
        raise MalformedMessage("a metadata record ends within its frame") from None
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"metadata record with frame version {frame_version}, {FRAME_VERSION} is known")
    record_type = _TYPES.get(api_key)
    if record_type is None or not record_type.__schema__.versions.includes(version):
        raise MalformedMessage(f"metadata record of type {api_key} version {version} is not known")
    record, end = decode(record_type, version, data, at)
    if end != len(data):
        raise MalformedMessage(f"{len(data) - end} bytes follow a {record_type.__name__}")
    return record


def _change_version(record: BrokerRegistrationChangeRecord) -> int:
    """Kafka writes the oldest version that has what changed, so that older nodes can read it."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
