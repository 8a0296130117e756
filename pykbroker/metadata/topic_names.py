"""What a topic may be called: `org.apache.kafka.common.internals.Topic`.

A name becomes part of a path, so nothing may be created, looked up on disk or shown in a path without this check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def invalid_reason(name: str) -> str | None:
    """Why a topic may not have this name, as Kafka words it; None where it may."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if _LEGAL.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Names with the same key collide: metrics cannot tell `.` from `_`."""
    return name.replace(".", "_")


def colliding_name(name: str, existing: Iterable[str]) -> str | None:
    """An existing topic that differs only in `.` and `_`. Names without either cannot collide."""
    if "." not in name and "_" not in name:
        return None
    key = collision_key(name)
    return next((other for other in existing if other != name and collision_key(other) == key), None)


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS
