"""The keys that Apache Kafka documents, from the table beside the tests.

`python -m compat_tests.apache_kafka.config_definitions` writes the table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).parents[1] / "kafka_4_3_config_keys.txt"
NOT_OFFERED: Final = ("share.", "streams.")
"""Beginnings of keys of groups that pykbroker does not have."""


@dataclass(frozen=True, slots=True)
class KafkaKey:
    """A key as Apache Kafka documents it. update: `read-only`, `per-broker` or `cluster-wide`; `-` of other kinds."""

    name: str
    type: str
    update: str
    default: str | None


@cache
def kafka_keys(kind: str) -> dict[str, KafkaKey]:
    """Return the keys of one kind: "broker", "topic" or "group"."""
    rows = [line.split(maxsplit=4) for line in TABLE.read_text().splitlines()[1:]]
    return {
        name: KafkaKey(name, type_, update, json.loads(default))
        for of, name, type_, update, default in rows
        if of == kind
    }
