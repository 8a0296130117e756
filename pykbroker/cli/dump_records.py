"""The records of a batch for `pykbroker dump`: as they are, or as what they mean in Kafka's own topics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import construct

from pykbroker.config import broker_keys
from pykbroker.protocol.descriptions.internal_topics import (
    METADATA_TOPIC,
    TOPICS,
    DescribedRecord,
    parse_coordinator_record,
    parse_metadata_record,
)
from pykbroker.protocol.descriptions.messages import fields_by_name
from pykbroker.protocol.descriptions.record_batches import CONTROL_KEY, CONTROL_VALUES
from pykbroker.protocol.descriptions.values import parse
from pykbroker.protocol.messages.metadata_records import ConfigRecord, UserScramCredentialRecord
from pykbroker.protocol.records.batch import NO_SEQUENCE, Record, RecordBatchHeader, iter_records
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.legacy import iter_legacy_records
from pykbroker.protocol.schema import StructType
from pykbroker.storage.checks.batch_walk import FoundBatch, FoundLegacyMessage

from .batch_listing import without_empty_tags

HIDDEN = "[hidden]"
_SECRETS: dict[StructType, tuple[str, ...]] = {
    UserScramCredentialRecord: ("salt", "stored_key", "server_key"),
}
"""What a dump does not show: whoever has the keys of a user can pass for the broker, and guess the password."""
_SECRET_KEYS = {bytes([each.__schema__.api_key or 0]) for each in _SECRETS}


def is_described(topic: str | None) -> bool:
    """Tell whether the records of the topic are messages of Kafka's own."""
    return topic == METADATA_TOPIC or topic in TOPICS


def record_entries(batch: FoundBatch, topic: str | None, *, with_plain: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Control records and those of Kafka's own topics always, others `with_plain`.

    Where the records cannot be read the entries end: the check of the batch says why.
    """
    header = batch.header
    if batch.data is None or not (header.is_control or is_described(topic) or with_plain):
        return
    try:
        for record in iter_records(batch.data):
            fields = _record_fields(record, _sequence_of(header, record))
            if topic == METADATA_TOPIC and _holds_secrets(record.value):
                fields["value"] = HIDDEN.encode()
            yield "record", fields | _meaning(record, header.is_control, topic)
    except InvalidRecords:
        return


def legacy_record_entries(message: FoundLegacyMessage, topic: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same for a message of an old format."""
    try:
        for record in iter_legacy_records(message.data):
            yield "record", _record_fields(record, NO_SEQUENCE) | _meaning(record, False, topic)
    except InvalidRecords:
        return


def _holds_secrets(value: bytes | None) -> bool:
    """Tell it by the API key in the record's frame, so that a damaged record is hidden, too."""
    if value is None:
        return False
    is_config = value[1:2] == bytes([ConfigRecord.__schema__.api_key or 0])
    return value[1:2] in _SECRET_KEYS or (is_config and any(each in value for each in _passwords()))


@cache
def _passwords() -> list[bytes]:
    """The keys of brokers whose values are passwords; for one listener they have something in front."""
    return [name.encode() for name, key in broker_keys().items() if key.type == "password"]


def _sequence_of(header: RecordBatchHeader, record: Record) -> int:
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF


def _record_fields(record: Record, sequence: int) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": sequence,
        "key": record.key,
        "value": record.value,
        "headers": [[name, value] for name, value in record.headers],
    }


def _meaning(record: Record, is_control: bool, topic: str | None) -> dict[str, Any]:
    """`record_type`, `version` and `content` of a record that means something, or why that cannot be told."""
    try:
        if is_control:
            return _control_meaning(record)
        if topic == METADATA_TOPIC:
            return _described(parse_metadata_record(record.value or b""))
        if topic in TOPICS:
            return _coordinator_meaning(topic, record)
    except (KeyError, TypeError, ValueError, OverflowError, construct.ConstructError) as error:
        return {"not_understood": " ".join(str(error).split())}
    return {}


def _control_meaning(record: Record) -> dict[str, Any]:
    kind = str(parse(CONTROL_KEY, record.key or b"").type)
    content = without_empty_tags(parse(CONTROL_VALUES[kind], record.value or b""))
    return {"record_type": kind, "version": content.pop("version", 0), "content": content}


def _coordinator_meaning(topic: str, record: Record) -> dict[str, Any]:
    key, value = parse_coordinator_record(topic, record.key or b"", record.value)
    meaning: dict[str, Any] = {
        "record_type": key.cls.__name__.removesuffix("Key"),
        "version": None,
        "content_of_key": fields_by_name(key.cls, key.fields, key.version),
    }
    if value is not None:
        meaning |= {"version": value.version, "content": _described(value)["content"]}
    return meaning


def _described(record: DescribedRecord) -> dict[str, Any]:
    content = fields_by_name(record.cls, record.fields, record.version)
    content |= {name: HIDDEN for name in _SECRETS.get(record.cls, ()) if name in content}
    if (
        record.cls is ConfigRecord
        and content["value"]
        and any(each in content["name"].encode() for each in _passwords())
    ):
        content["value"] = HIDDEN
    return {"record_type": record.cls.__name__, "version": record.version, "content": content}
