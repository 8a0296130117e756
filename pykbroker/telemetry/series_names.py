"""Names and labels of what clients push, as Prometheus wants them.

`org.apache.kafka.producer.record.send.total` is `kafka_client_producer_record_send_total`: all names begin alike, and
none can be that of a metric of the broker. Different names of a client may come to the same one here; then the last
value counts.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

PREFIX: Final = "kafka_client_"
OF_CLIENTS: Final = ("client_instance_id", "client_id", "client_software_name", "client_software_version")
"""The labels that tell whose series it is."""
_RESERVED: Final = frozenset((*OF_CLIENTS, "le", "quantile"))
_OF_KAFKA: Final = "org.apache.kafka."
_OTHERS: Final = re.compile(r"[^a-zA-Z0-9]+")
_LONGEST_NAME: Final = 120


def series_name(pushed: str, *, is_counter: bool = False) -> str:
    """Return the name of a series, for a counter without `_total`, which its sample gets."""
    name = PREFIX + _bounded(_OTHERS.sub("_", pushed.removeprefix(_OF_KAFKA)).strip("_"))
    return name.removesuffix("_total") if is_counter else name


def label_name(pushed: str) -> str:
    name = _bounded(_OTHERS.sub("_", pushed).strip("_"))
    return f"attribute_{name}" if not name or name[0].isdigit() or name in _RESERVED else name


def _bounded(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
