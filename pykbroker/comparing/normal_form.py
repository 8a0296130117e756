"""Answers in normal form: nested mappings and lists of plain values, the same for the same behaviour.

Left out are times, throttle times, sessions, what SASL draws, offsets and records of a Fetch or Produce, which depend
on when a client asked; the records that a run left are compared by `final_state`. Texts of errors only count as there
or not there.
Error codes have their names. Lists whose entries have names are in the order of those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import NO_UUID, Message, Struct

from .placeholders import KINDS, Placeholders

LEFT_OUT: Final = frozenset(
    {
        "throttle_time_ms",
        "session_id",
        "session_lifetime_ms",
        "client_instance_id",
        "subscription_id",
        "auth_bytes",
        "finalized_features_epoch",
        "log_append_time_ms",
        "timestamp",
        "base_offset",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "records",
        "aborted_transactions",
        "diverging_epoch",
        "current_leader",
        "node_endpoints",
        "snapshot_id",
        "transaction_start_time_ms",
        "last_timestamp",
        "total_bytes",
        "usable_bytes",
        "offset_lag",
        "size",
    }
)
"""By the name of the field."""

_TEXTS: Final = frozenset({"error_message", "batch_index_error_message"})
_IDENTITIES: Final = (
    "api_key",
    "name",
    "topic",
    "topic_name",
    "resource_name",
    "group_id",
    "transactional_id",
    "key",
    "partition_index",
    "partition",
    "index",
    "node_id",
    "broker_id",
    "topic_id",
    "member_id",
)
_NAMES_OF_TOPICS: Final = ("name", "topic", "topic_name")
_TOPIC_ID: Final = "topic_id"
_API_KEY: Final = "api_key"
_MOST_BYTES: Final = 64


def normal_form(message: Struct | Message, placeholders: Placeholders) -> dict[str, Any]:
    form = {
        each.name: _value(each.name, getattr(message, each.name), placeholders)
        for each in type(message).__schema__.fields
        if each.name not in LEFT_OUT
    }
    if _TOPIC_ID in form:
        _name_topic(form, placeholders.topic_names.get(bytes(getattr(message, _TOPIC_ID))))
    return form


def learn_topics(message: Struct | Message, placeholders: Placeholders) -> None:
    """Note which topics have which ids, where an answer says both."""
    values = {each.name: getattr(message, each.name) for each in type(message).__schema__.fields}
    name, topic_id = values.get("name") or values.get("topic_name"), values.get(_TOPIC_ID)
    if isinstance(name, str) and topic_id is not None and bytes(topic_id) != NO_UUID:
        placeholders.topic_names[bytes(topic_id)] = name
    for value in values.values():
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, (Struct, Message)):
                learn_topics(each, placeholders)


def _name_topic(form: dict[str, Any], name: str | None) -> None:
    """A topic goes by its name, in versions with ids and in those without."""
    field = next((each for each in _NAMES_OF_TOPICS if each in form), None)
    if field is not None and name is not None and not form[field]:
        form[field] = name
    if field is None and name is not None:
        form["topic"] = name
    if name is not None or (field is not None and form[field]):
        del form[_TOPIC_ID]


def identity(entry: object) -> str | None:
    """The name by which an entry of a list is known among the others: None where it has none."""
    if not isinstance(entry, Mapping):
        return None
    return next((str(entry[name]) for name in _IDENTITIES if entry.get(name) is not None), None)


def _value(name: str, value: Any, placeholders: Placeholders) -> Any:
    if isinstance(value, (Struct, Message)):
        return normal_form(value, placeholders)
    if isinstance(value, list):
        rows = [_value(name, each, placeholders) for each in value]
        names = [identity(row) for row in rows]
        if all(each is not None for each in names):
            return [row for _, row in sorted(zip(names, rows, strict=True), key=lambda pair: str(pair[0]))]
        return rows
    if name == _API_KEY:
        return api_name(value)
    if name in KINDS:
        return placeholders.of(KINDS[name], bytes(value) if isinstance(value, memoryview) else value)
    if name.endswith("error_code") and isinstance(value, int):
        return _error_name(value)
    if name in _TEXTS:
        return value and "<text>"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return shown_bytes(bytes(value))
    return value


def shown_bytes(data: bytes) -> str:
    """Show bytes as text, where they are one, and as a digest where they are long."""
    if len(data) > _MOST_BYTES:
        return f"<{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()[:16]}>"
    text = data.decode("ascii", "replace")
    return text if text.isprintable() and "\ufffd" not in text else data.hex()


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
