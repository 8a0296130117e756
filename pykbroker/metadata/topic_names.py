"""Rules for names of topics: `org.apache.kafka.common.internals.Topic`.

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
    """Return why a topic may not have this name, as Kafka words it; None where it may."""
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


class NameCollisions:
    """Existing topics that differ from another name only in `.` and `_`. Names without either cannot collide.

    Good for one request: the existing names are gone through once, when the first such name comes.
    """

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing
        self._by_key: dict[str, list[str]] | None = None

    def find(self, name: str) -> str | None:
        if "." not in name and "_" not in name:
            return None
        if self._by_key is None:
            self._by_key = {}
            for other in self._existing:
                if "." in other or "_" in other:
                    self._by_key.setdefault(collision_key(other), []).append(other)
        return next((other for other in self._by_key.get(collision_key(name), ()) if other != name), None)


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS
