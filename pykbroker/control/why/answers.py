"""The answers, as values. Names that end in `_timestamp_ms` are times by the wall clock; `_ago_ms` is before now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar, Final

from . import text

GETS_NOTHING: Final = (
    "topic-does-not-exist",
    "partition-does-not-exist",
    "not-authorized",
    "no-leader",
    "no-such-group",
    "no-coordinator",
    "coordinated-elsewhere",
    "no-members",
    "not-ready",
    "group-rebalances",
    "not-subscribed",
    "not-assigned",
    "not-initialized",
    "led-elsewhere",
    "throttled",
    "offset-out-of-range",
    "no-fetch",
    "state-loading",
    "behind-last-stable-offset",
    "behind-high-watermark",
    "records-locked",
    "state-writing",
    "offset-reset",
    "not-told",
    "end-of-log",
    "reads",
)
"""The reasons of partitions, the gravest first: that of the gravest one is the consumer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer. verdict: one sentence. reason: a word for programs. facts: further sentences."""

    question: ClassVar[str]

    verdict: str
    reason: str
    facts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON has it."""
        return {"question": self.question, **_plain(self)}

    def __str__(self) -> str:
        return text.of_answer(self.to_json())


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no number for it
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a group or of a transaction. why: of a rebalance; all of the step is in `causes`.

    api: the request that brought it about; empty where time or the metadata did. request_number: in the journal, 0
    where none is kept.
    """

    timestamp_ms: int
    why: str
    causes: tuple[str, ...]
    api: str
    member_id: str
    client_id: str
    host: str
    principal: str
    request_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member. epoch: its own, or the generation. last_sign_ago_ms: of its last sign of life, None where unknown.

    tasks: of a member of a streams group, by their kind (active, standby, warmup), as Kafka Streams names them.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    state: str
    epoch: int | None
    subscription: tuple[str, ...]
    assignment: Mapping[str, tuple[int, ...]]
    session_timeout_ms: int | None
    last_sign_ago_ms: int | None
    tasks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A member that the group waits for. due_in_ms: until it is given up, None where that is not timed."""

    member_id: str
    client_id: str
    host: str
    what: str
    since_timestamp_ms: int | None
    due_in_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """A partition of a group. end_offset and lag: None where the brokers that were asked do not lead it."""

    topic: str
    partition: int
    committed: int | None
    committed_timestamp_ms: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A member that has acquired records of a share partition. until_timestamp_ms: when the first of them go back."""

    member_id: str
    client_id: str
    host: str
    records: int
    first_offset: int
    until_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPartition:
    """A partition of a share group, and what became of the records between start_offset and end_offset.

    state: initialized, initializing, or deleting. lag: records that are not settled yet. What only the leader knows is
    None or empty where it was not asked, or no member reads there. end_offset: behind the last record that was handed
    out. acquired, available, acknowledged, archived: records in flight. archived_by_limit: those of them that were
    delivered as often as they may be. most_deliveries: of the available ones.
    """

    topic: str
    partition: int
    state: str
    start_offset: int | None
    high_watermark: int | None
    lag: int | None
    end_offset: int | None = None
    acquired: int = 0
    available: int = 0
    acknowledged: int = 0
    archived: int = 0
    archived_by_limit: int = 0
    most_deliveries: int = 0
    delivery_count_limit: int | None = None
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer(Answer):
    """A group. epoch: the generation of a classic group, the group epoch of the others.

    shared: the partitions of a share group, which has no committed offsets. missing_topics: topics that a streams group
    waits for.
    """

    question: ClassVar[str] = "group"

    group: str
    type: str | None = None
    state: str | None = None
    epoch: int | None = None
    coordinator: int | None = None
    coordinator_since_timestamp_ms: int | None = None
    members: tuple[Member, ...] = ()
    member_count: int = 0
    awaited: tuple[Awaited, ...] = ()
    rebalances: tuple[Step, ...] = ()
    history: tuple[Step, ...] = ()
    partitions: tuple[Lag, ...] = ()
    shared: tuple[SharedPartition, ...] = ()
    partition_count: int = 0
    lag: int | None = None
    missing_topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAnswer:
    """The reason why a consumer gets no more of one partition.

    position: where its newest Fetch begins. is_fetching: a Fetch waits for records now. shared: of a share group.
    """

    topic: str
    partition: int
    reason: str
    verdict: str
    facts: tuple[str, ...] = ()
    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None
    committed: int | None = None
    position: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    is_fetching: bool = False
    last_fetch_ago_ms: int | None = None
    shared: SharedPartition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerAnswer(Answer):
    """A consumer: all of a group, or the client of that id."""

    question: ClassVar[str] = "consumer"

    group: str | None = None
    client_id: str | None = None
    partitions: tuple[PartitionAnswer, ...] = ()
    partition_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that is open in a partition.

    coordinator: the state that its coordinator knows; None where no broker that was asked coordinates it. is_hanging:
    every coordinator was asked, and none knows of it. ends_in_ms: until the coordinator aborts it.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_timestamp_ms: int
    transactional_id: str | None = None
    coordinator: int | None = None
    state: str | None = None
    started_timestamp_ms: int | None = None
    timeout_ms: int | None = None
    ends_in_ms: int | None = None
    client_id: str | None = None
    host: str | None = None
    principal: str | None = None
    is_hanging: bool = False
    command: str | None = None
    history: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LsoAnswer(Answer):
    """A last stable offset. transactions: the open ones, the oldest first."""

    question: ClassVar[str] = "lso"

    topic: str
    partition: int
    last_stable_offset: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    transactions: tuple[OpenTransaction, ...] = ()
    transaction_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedQuota:
    """A quota that applies. entity: whose it is, such as "user alice, client-id app". rate: None where nothing was
    measured yet. throttle_ms: what an answer would say now."""

    key: str
    entity: str
    limit: float
    rate: float | None
    throttle_ms: int
    passed_over: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleAnswer(Answer):
    """The quotas of a client."""

    question: ClassVar[str] = "throttle"

    user: str
    client_id: str
    quotas: tuple[AppliedQuota, ...] = ()
