"""The settings that the rules of groups and offsets read, under Kafka's names.

Only values that a rule needs stand here; where a partition of `__consumer_offsets` lives is the driver's business.
"""

from __future__ import annotations

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member that waits for its first JoinGroup answer is kept; it cannot send heartbeats yet (KIP-394)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """What may be different for each consumer group: the `group.consumer.…` of the broker, or the group's own."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """How far apart target assignments are at least, so that many members that join together cost one (KIP-1263)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Defaults are Kafka's. Times are in milliseconds, `offset_metadata_max_chars` in UTF-16 units as Java counts.

    max_record_bytes: what a record's key and value may take together; what is larger could not be appended.
    """

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    offset_metadata_max_chars: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    max_record_bytes: int = 1_000_000
    new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """Names, the default first."""
    consumer_assigned_at_once: int = 0
    """Members and partitions of a group up to which a target assignment is computed in the heartbeat that is due for
    one, where there is somebody who computes larger ones."""
    consumer_migration_policy: str = "bidirectional"
    """Which way a group with members may change its protocol: upgrade, downgrade, bidirectional or disabled."""
    consumer_regex_refresh_interval_ms: int = 600_000
    """How old the topics of a regular expression may be, if no topic has changed."""
