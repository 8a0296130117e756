"""The settings that the share coordinator's rules need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorConfig:
    """The settings of one node.

    updates_per_snapshot: `share.coordinator.snapshot.update.records.per.snapshot`. cold_snapshot_interval_ms:
    `share.coordinator.cold.partition.snapshot.interval.ms`. max_record_bytes: of the key and the value of one record
    that the log takes.
    """

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    max_record_bytes: int = 1_048_576
