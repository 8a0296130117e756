"""Metadata records that are kept but not served: delegation tokens.

A directory that Apache Kafka wrote may hold such records. They mean nothing to this node, but a snapshot takes the
place of the log and must not lose them: the latest record of each entity is kept as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pykbroker.protocol.messages.metadata_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from pykbroker.protocol.schema import Message

RecordKey = tuple[type[Message], object]
"""The entity that a record describes: the type of its record and its key."""

_NAMES: Final[dict[type[Message], str]] = {
    DelegationTokenRecord: "delegation tokens",
}


def keep(kept: dict[RecordKey, Message], record: Message) -> None:
    """Keep the next record of the log, or remove what it removes. Records of other types are passed over."""
    match record:
        case DelegationTokenRecord():
            _put(kept, (DelegationTokenRecord, record.token_id), record)
        case RemoveDelegationTokenRecord():
            _put(kept, (DelegationTokenRecord, record.token_id), None)


def security_records(kept: Mapping[RecordKey, Message]) -> Iterator[Message]:
    """Return the security records that stand behind all others in Kafka's snapshots."""
    return _of_type(kept, DelegationTokenRecord)


def kinds(kept: Mapping[RecordKey, Message]) -> list[str]:
    """Return the kinds of records that are kept, in an operator's words."""
    types = {record_type for record_type, _ in kept}
    return [name for record_type, name in _NAMES.items() if record_type in types]


def _put(kept: dict[RecordKey, Message], key: RecordKey, record: Message | None) -> None:
    if record is None:
        kept.pop(key, None)
    else:
        kept[key] = record


def _of_type(kept: Mapping[RecordKey, Message], record_type: type[Message]) -> Iterator[Message]:
    return (record for (kind, _), record in kept.items() if kind is record_type)
