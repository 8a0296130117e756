"""The sizes of a member's fetches of the log and of snapshots, under the names of `controller.quorum.*.max.bytes`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchSizes:
    """Fetch sizes in bytes; the defaults are Kafka's. A fetch returns at least one batch, whatever its size."""

    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20


KAFKA_FETCH_SIZES = FetchSizes()

MOST_SERVED_BYTES = 8 << 20
"""In one answer, whatever the other one asks for."""
