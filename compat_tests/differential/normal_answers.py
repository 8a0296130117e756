"""Answers in normal form: values that JSON can hold, the same for the same behaviour.

A value that a broker draws is told by its kind and by the order in which answers told it, as `<member 1>`; the same
numbers are what references in requests mean. Rows of lists are in the order of what they say: Kafka gives many in the
order of a hash table. Fields at their defaults are left out. Rows of other sequences are left out, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchableTopicResponse
from pykbroker.protocol.messages.log_dirs import DescribeLogDirsTopic
from pykbroker.protocol.messages.quorum import DescribeQuorumResponsePartitionData
from pykbroker.protocol.messages.quotas import DescribeClientQuotasResponseEntryData
from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.schema import NO_UUID, Field, Message, Struct
from pykbroker.protocol.uuids import uuid_to_text

from .record_batches import T0

MEMBER, TOPIC_ID, PRODUCER, SESSION, CLUSTER, ADDRESS = "member", "topic id", "producer", "session", "cluster", "port"
KINDS: Final[Mapping[str, str]] = {
    "member_id": MEMBER,
    "leader": MEMBER,
    "topic_id": TOPIC_ID,
    "producer_id": PRODUCER,
    "ongoing_txn_producer_id": PRODUCER,
    "session_id": SESSION,
    "cluster_id": CLUSTER,
    "port": ADDRESS,
    "log_dir": "directory",
    "hmac": "hmac",
    "token_id": "token",
    "broker_epoch": "broker epoch",
    "replica_directory_id": "directory id",
    "voter_directory_id": "directory id",
    "candidate_directory_id": "directory id",
    "directory_id": "directory id",
    "client_instance_id": "client instance",
    "subscription_id": "subscription",
    "producer_id_start": "producer ids",
}
"""What is drawn, by the name of the field."""

_MEASURED: Final = frozenset(
    {
        "transaction_start_time_ms",
        "last_timestamp",
        "log_append_time_ms",
        "issue_timestamp",
        "issue_timestamp_ms",
        "expiry_timestamp",
        "expiry_timestamp_ms",
        "max_timestamp",
        "max_timestamp_ms",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "total_bytes",
        "usable_bytes",
        "finalized_features_epoch",
        "log_end_offset",
        "session_lifetime_ms",
    }
)
_SETS: Final = frozenset({"subscribed_topic_names"})
"""Lists that are sets in Kafka: in the order of a hash table."""
_NAMES: Final = frozenset(
    [
        "name",
        "topic",
        "topic_name",
        "topic_id",
        "group_id",
        "transactional_id",
        "member_id",
        "partition_index",
        "partition",
        "index",
        "partition_id",
        "resource_type",
        "resource_name",
        "producer_id",
        "user",
        "entity_type",
        "entity_name",
        "feature",
        "api_key",
        "key",
        "broker_id",
        "node_id",
        "principal",
        "operation",
        "permission_type",
        "pattern_type",
    ]
)
_MEASURED_OF_QUORUMS: Final = tuple(
    field
    for field in DescribeQuorumResponsePartitionData.__schema__.fields
    if field.name in ("high_watermark", "leader_epoch")
)
_OTHERS: Final = re.compile(r"^(?:s\d{5}-|barrier)")
_UUIDS: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
_ADDRESSES: Final = re.compile(r"127\.0\.0\.1:\d+")
_NUMBERS_OF_PRODUCERS: Final = re.compile(r"(?i)(producer ?id[: =]+)(\d+)")
_TIMES: Final = re.compile(r"\b\d{13}\b")
_LONGEST_BYTES: Final = 200


class _Drawn(NamedTuple):
    kind: str
    value: Any


class Learned:
    """What the answers to one sequence told, by kind and in order."""

    def __init__(self) -> None:
        self._by_kind: dict[str, list[Any]] = {}

    def value(self, kind: str, number: int) -> Any:
        told = self._by_kind.get(kind, [])
        return told[number - 1] if 1 <= number <= len(told) else None

    def name(self, drawn: _Drawn, *, learn: bool = True) -> str | None:
        """`<member 1>`; None for one that no answer told, where it is not learned by this."""
        told = self._by_kind.setdefault(drawn.kind, [])
        if drawn.value not in told:
            if not learn:
                return None
            told.append(drawn.value)
        return f"<{drawn.kind} {told.index(drawn.value) + 1}>"

    def texts(self) -> list[tuple[str, str]]:
        """What may stand in a text, and what is said in its place, the longest first."""
        found = []
        for kind, told in self._by_kind.items():
            for number, value in enumerate(told, 1):
                if isinstance(value, str) and len(value) > 4:
                    found.append((value, f"<{kind} {number}>"))
                elif isinstance(value, bytes) and len(value) == len(NO_UUID):
                    found.append((uuid_to_text(value), f"<{kind} {number}>"))
        return sorted(found, key=lambda pair: -len(pair[0]))


class NormalAnswers:
    """Brings the answers to one sequence into normal form. prefix: of the sequence's names."""

    def __init__(self, prefix: str, learned: Learned, *, hide: Callable[[str], str] = lambda text: text) -> None:
        self._prefix = prefix
        self._learned = learned
        self._hide = hide

    def of(self, answer: Message, version: int) -> Any:
        return self._named(self._struct(answer, version))

    def _struct(self, value: Struct, version: int) -> dict[str, Any]:
        rows: dict[str, Any] = {}
        for field in type(value).__schema__.fields:
            if not field.versions.includes(version) and not field.tagged.includes(version):
                continue
            found = getattr(value, field.name)
            shown = self._value(field, found, version)
            if shown != field.new_default() or field.name.endswith("error_code"):
                rows[field.name] = shown
        if value.unknown_tagged_fields:
            rows["unknown tagged fields"] = sorted(value.unknown_tagged_fields)
        return rows

    def _value(self, field: Field, value: Any, version: int) -> Any:
        if value is None:
            return None
        if field.is_array:
            rows = [(each, self._element(field, each, version)) for each in value]
            kept = [row for each, row in rows if not self._is_of_others(each, row)]
            if value and isinstance(value[0], FetchableTopicResponse):
                kept = _joined(kept)
            in_any_order = field.element == "struct" or field.name in _SETS
            return sorted(kept, key=self._sort_key) if in_any_order and len(kept) > 1 else kept
        return self._element(field, value, version)

    def _element(self, field: Field, value: Any, version: int) -> Any:
        if isinstance(value, Struct):
            return self._struct(value, version)
        value = bytes(value) if isinstance(value, memoryview) else value
        kind = KINDS.get(field.name)
        is_told = not _is_nothing(value)
        if kind is not None and is_told and not isinstance(value, bool):
            return _Drawn(kind, value)
        if field.name.endswith("error_code"):
            return _error_name(value)
        if (field.name in _MEASURED or field in _MEASURED_OF_QUORUMS) and is_told:
            return "<measured>"
        if field.element == "records":
            return self._records(bytes(value))
        if isinstance(value, bytes):
            return _shown_bytes(value, self._hide)
        if field.name in ("timestamp", "timestamp_ms"):
            return _shown_time(value)
        return value

    def _is_of_others(self, value: Any, row: Any) -> bool:
        """Tell whether a row names what another sequence made, or what all sequences share and change."""
        if isinstance(value, DescribeLogDirsTopic):
            return not value.name.startswith(self._prefix)
        if isinstance(value, DescribeClientQuotasResponseEntryData):
            return len(row.get("entity", ())) < len(value.entity)
        values = row.values() if isinstance(row, dict) else [row]
        return any(
            isinstance(each, str) and _OTHERS.match(each) and not each.startswith(self._prefix) for each in values
        )

    def _sort_key(self, row: Any) -> tuple[str, str]:
        """What a row is about comes first, then what is said of it."""
        shown = self._without_new(row)
        about = {name: each for name, each in shown.items() if name in _NAMES} if isinstance(shown, dict) else shown
        return json.dumps(about, sort_keys=True), json.dumps(shown, sort_keys=True)

    def _without_new(self, value: Any) -> Any:
        match value:
            case _Drawn():
                return self._learned.name(value, learn=False) or ""
            case dict():
                return {name: self._without_new(each) for name, each in value.items()}
            case list():
                return [self._without_new(each) for each in value]
        return value

    def _named(self, value: Any) -> Any:
        match value:
            case _Drawn():
                return self._learned.name(value)
            case dict():
                return {name: self._named(each) for name, each in value.items()}
            case list():
                return [self._named(each) for each in value]
            case str():
                return self._text(value)
        return value

    def _text(self, text: str) -> str:
        text = text.replace(self._prefix, "~")
        for told, name in self._learned.texts():
            text = text.replace(told, name)
        text = _ADDRESSES.sub("<address>", text)
        text = _TIMES.sub("<time>", text)
        text = _NUMBERS_OF_PRODUCERS.sub(r"\1<number>", text)
        return self._hide(text)

    def _records(self, data: bytes) -> Any:
        shown = [self._batch(each) for each in iter_batches(data, allow_partial=True)]
        return shown or f"{len(data)} bytes"

    def _batch(self, batch: RecordBatch) -> dict[str, Any]:
        header = batch.header
        producer = header.producer_id
        row: dict[str, Any] = {
            "offset": header.base_offset,
            "last": header.last_offset_delta,
            "magic": header.magic,
            "attributes": header.attributes,
            "records": [self._record(each) for each in iter_records(batch)],
        }
        if header.magic >= 2:
            row["epoch"] = header.partition_leader_epoch
            row["crc"] = batch.is_crc_valid
            if producer != -1:
                row["producer"] = [_Drawn(PRODUCER, producer), header.producer_epoch, header.base_sequence]
        return row

    def _record(self, record: Any) -> list[Any]:
        return [
            record.offset,
            _shown_time(record.timestamp),
            None if record.key is None else _shown_bytes(record.key, self._hide),
            None if record.value is None else _shown_bytes(record.value, self._hide),
        ]


def _is_nothing(value: object) -> bool:
    return value in (-1, 0, None, "", NO_UUID, b"")


def _joined(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one topic, which Kafka joins only where they are neighbours in its order, are one."""
    rows: dict[str, dict[str, Any]] = {}
    for each in topics:
        row = rows.setdefault(repr((each.get("topic"), each.get("topic_id"))), each)
        if row is not each:
            row["partitions"] = sorted([*row.get("partitions", []), *each.get("partitions", [])], key=repr)
    return list(rows.values())


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def _shown_time(timestamp_ms: int) -> Any:
    """A sequence's own times as they are; one of the broker's clock is measured."""
    return "<measured>" if timestamp_ms > T0 + 86_400_000 else timestamp_ms


def _shown_bytes(data: bytes, hide: Callable[[str], str]) -> str:
    text = data.decode("ascii", "replace")
    shown = text if text.isprintable() and "\ufffd" not in text else data.hex()
    return hide(shown) if len(shown) <= _LONGEST_BYTES else f"{len(data)} bytes"
