"""The settings that the rules of groups and offsets read, under Kafka's names.

Settings that no rule reads, as those of the topic `__consumer_offsets`, are the driver's.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.reckoning import Reckoning, by_the_clock

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member may wait for its first JoinGroup answer, in which time it cannot send heartbeats (KIP-394)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Settings that each consumer group may have of its own; else they are the broker's `group.consumer.…`."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """The shortest time between two target assignments, so that many members that join together cost one (KIP-1263)."""
    is_of_4_4: bool = False
    """Whether the rules are those of Kafka 4.4: another assignor begins an epoch, and static members have a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """Settings that each share group may have of its own; else they are the broker's `group.share.…`."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """The shortest time between two target assignments (KIP-1263)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """Settings that each streams group may have of its own; else they are the broker's `group.streams.…`."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """The shortest time between two target assignments, so that many members that join together cost one (KIP-1263)."""
    initial_rebalance_delay_ms: int = 3_000
    """How long a group that was empty waits for more members before its first assignment."""
    num_standby_replicas: int = 0
    rack_aware_tags: tuple[str, ...] = ()
    """Tags that each client must have, by their keys."""
    task_offset_interval_ms: int = 60_000
    """How often members tell how far they have the state of their tasks."""
    acceptable_recovery_lag: int = 10_000
    """How many records a task's state may be behind to count as caught up."""
    is_of_4_4: bool = False
    """Whether the rules are those of Kafka 4.4 for requests of all versions; they are for those that 4.4 brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The settings of all groups, with Kafka's defaults.

    offset_metadata_max_chars: in UTF-16 units, as Java counts. max_record_bytes: the limit of a record's key and value
    together, above which it could not be appended. reckon_offsets: how late it is for offsets that nobody uses.
    """

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    offset_metadata_max_chars: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    reckon_offsets: Reckoning = by_the_clock
    max_record_bytes: int = 1_000_000
    new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The names of the assignors that members may ask for, the default first."""
    consumer_assigned_at_once: int = 0
    """How many members and partitions, or tasks, a group may have for its target assignment to be computed in a
    heartbeat, and not beside the event loop. Streams groups have the same limit."""
    consumer_migration_policy: str = "bidirectional"
    """Which way a group with members may change its type: upgrade, downgrade, bidirectional or disabled."""
    consumer_regex_refresh_interval_ms: int = 600_000
    """How old the topics of a regular expression may be, if no topic has changed."""
    streams_max_size: int = 2**31 - 1
    share_max_size: int = 200
    share_initialize_retry_interval_ms: int = 30_000
    """How long a partition may be initializing until that is tried again."""
