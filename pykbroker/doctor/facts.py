"""Facts about a cluster, as a client sees it from outside. `knocks` has those about one address.

A fact that could not be found out is None, or is missing, and stands in `Facts.unknown` with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pykbroker.protocol.topic_partition import TopicPartition

from .knocks import Knock


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another address at which a broker was looked for. is_node: None where the peer does not say which one it is."""

    knock: Knock
    is_same_cluster: bool
    is_node: bool | None

    @property
    def is_found(self) -> bool:
        """Tell whether the broker answered there. Which one it is may stay unknown; another one it is not."""
        return self.is_same_cluster and self.is_node is not False


@dataclass(frozen=True, slots=True)
class AdvertisedAddress:
    """A broker's address in Metadata, and what is behind it.

    candidates: tried where the address leads to no broker, or to another one.
    """

    node_id: int
    host: str
    port: int
    knock: Knock
    is_same_cluster: bool
    is_node: bool | None
    candidates: tuple[Candidate, ...] = ()

    @property
    def is_good(self) -> bool:
        return self.knock.is_served and self.is_same_cluster and self.is_node is not False

    @property
    def working(self) -> tuple[str, int] | None:
        """The address at which the broker was found; None where it was not."""
        if self.is_good:
            return self.host, self.port
        return next(((each.knock.host, each.knock.port) for each in self.candidates if each.is_found), None)


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The configuration of one broker. values: those that are not secret. given: the keys that somebody has set.

    is_apache_kafka: the broker explains its keys in other words than pykbroker's, or is too old to be asked.
    """

    node_id: int
    values: Mapping[str, str]
    given: frozenset[str]
    is_apache_kafka: bool


@dataclass(frozen=True, slots=True)
class Quorum:
    """The answer of DescribeQuorum. clock_ahead_ms: the active controller's clock less that of this machine.

    error: why no answer came. uncertain_ms: how much of `clock_ahead_ms` may be the way of the answer.
    """

    leader_id: int | None
    error: str | None = None
    clock_ahead_ms: int | None = None
    uncertain_ms: int = 0


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as Metadata has it. leader: None where there is none. error: of the partition, by its name."""

    of: TopicPartition
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. min_isr, unclean: None where the configuration could not be read."""

    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    min_isr: int | None = None
    unclean: bool | None = None

    @property
    def replication_factor(self) -> int:
        """The smallest of its partitions; 0 without any."""
        return min((len(each.replicas) for each in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class GroupLook:
    """A group at one moment. ends: the log end offsets of the partitions that have a committed offset and a leader."""

    state: str
    committed: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    @property
    def lag(self) -> int:
        return sum(max(end - self.committed[of], 0) for of, end in self.ends.items() if of in self.committed)


@dataclass(frozen=True, slots=True)
class Group:
    """A group at the beginning and at the end of `Facts.watched_s`."""

    group_id: str
    first: GroupLook
    last: GroupLook


@dataclass(frozen=True, slots=True)
class ShareLook:
    """A share group at one moment. start_offsets: of partitions that were read. lags: records that are not settled."""

    state: str
    members: int
    start_offsets: Mapping[TopicPartition, int]
    lags: Mapping[TopicPartition, int]

    @property
    def lag(self) -> int:
        return sum(self.lags.values())


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group at the beginning and at the end of `Facts.watched_s`. offline: its partitions without a leader."""

    group_id: str
    first: ShareLook
    last: ShareLook
    offline: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A streams group at the same two moments. missing: topics of its topology that are not there, at the last one."""

    group_id: str
    first_state: str
    last_state: str
    members: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory of a broker. error: by its name. Sizes are those of its volume, None from older brokers."""

    node_id: int
    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(slots=True)
class Facts:
    """All that was found out. entry: the first knock that was served; without one there is nothing but `knocks`.

    fenced: None where the brokers do not tell. absent_topics: internal topics that are not there, for certain. unknown:
    what was not looked at, and why, a sentence each.
    """

    knocks: list[Knock]
    entry: Knock | None = None
    addresses: list[AdvertisedAddress] = field(default_factory=list)
    fenced: list[int] | None = None
    quorum: Quorum | None = None
    topics: list[Topic] = field(default_factory=list)
    absent_topics: frozenset[str] = frozenset()
    settings: list[BrokerSettings] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    share_groups: list[ShareGroup] = field(default_factory=list)
    streams_groups: list[StreamsGroup] = field(default_factory=list)
    watched_s: float = 0.0
    directories: list[Directory] = field(default_factory=list)
    time_over_at: str | None = None
    """The step that there was no more time for; None where there was enough."""
    unknown: list[str] = field(default_factory=list)

    @property
    def registered(self) -> int:
        """The number of brokers, those that are fenced included, as far as they are known."""
        answer = None if self.entry is None else self.entry.answer
        return (0 if answer is None else len(answer.nodes)) + len(self.fenced or ())
