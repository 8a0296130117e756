"""How much a member of the quorum asks for at a time, under the names of `controller.quorum.*.max.bytes`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchSizes:
    """In bytes; the defaults are Kafka's. One batch of the log comes at least, whatever its size."""

    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20


KAFKA_FETCH_SIZES = FetchSizes()

MOST_SERVED_BYTES = 8 << 20
"""In one answer, whatever the other one asks for."""
