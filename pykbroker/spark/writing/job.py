"""A job that writes, as its tasks have to know it, and what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .offset_syncs import OffsetSync

_QUEUE_KB = 128 << 10
_LARGEST_RECORD_BYTES = 64 << 20

_PROPERTIES = {
    "enable.idempotence": True,
    "compression.type": "zstd",
    "linger.ms": 20,
    # As Java's producer spreads keys.
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": _QUEUE_KB,
    # The broker's bound on what a batch has counts, not librdkafka's own.
    "message.max.bytes": _LARGEST_RECORD_BYTES,
}
OWN_PROPERTIES = frozenset({"bootstrap.servers", "enable.idempotence", "partitioner", "transactional.id"})
"""Those on which order and identities depend."""
_LOG_LEVEL = {"log_level": 2}
"""Of librdkafka, as syslog has it: what goes wrong is raised, and the rest it tries again."""
_BEGIN = OffsetSync(0, 0, 0)
_OF_THE_CONNECTION = ("security.", "sasl.", "ssl.", "socket.", "broker.", "client.")


@dataclass(frozen=True, slots=True)
class Transactions:
    """The names of a partition's transactions, which make its copy exactly once.

    transactional_id: no two partitions have the same. group: its position of `topic` and `partition` says where the
    source goes on. begin: this position where the group has none, and what it stands for in the target.
    """

    transactional_id: str
    group: str
    topic: str
    partition: int
    begin: OffsetSync = _BEGIN


@dataclass(frozen=True, slots=True)
class Route:
    """The way of the records of one partition of the source.

    source: its name, for errors. topic, partition: where they go; None: their keys say it. identity: the beginning of
    their identities; None for no such header. end: the offset up to which the source is read, 0 where its last record
    is the end. leader_epoch: no record in front of `end` is of a later one. transactions: None for at least once.
    """

    source: str
    topic: str
    partition: int | None = None
    identity: str | None = None
    end: int = 0
    leader_epoch: int = -1
    transactions: Transactions | None = None


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A job of Spark that writes to topics. It is sent to executors, on which pykbroker has to be installed.

    routes: by a number for each partition of the source, its own where there is one topic. properties: of librdkafka's
    producer. run_id: with transactions; positions that another run has committed do not count. journal: a compacted
    topic in which each transaction writes its position, too, since those of groups expire. rates: records a second by
    route; none for as fast as it goes.
    """

    bootstrap_servers: str
    routes: Mapping[int, Route]
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str | None = None
    journal: str | None = None
    rates: Mapping[int, float] = field(default_factory=dict)

    def producer_properties(self, transactions: Transactions | None) -> dict[str, Any]:
        properties = _PROPERTIES | _LOG_LEVEL | dict(self.properties) | {"bootstrap.servers": self.bootstrap_servers}
        if transactions is not None:
            properties["transactional.id"] = transactions.transactional_id
        return properties

    def group_properties(self, transactions: Transactions) -> dict[str, Any]:
        properties = {name: value for name, value in self.properties.items() if name.startswith(_OF_THE_CONNECTION)}
        return _LOG_LEVEL | properties | {"bootstrap.servers": self.bootstrap_servers, "group.id": transactions.group}


class Written(NamedTuple):
    """A partition of the source. size_bytes: of keys and values. there: records left out, which an earlier try of the
    task has committed. failure: why the task has ended before its end. zeros: timestamps 0, which became 1 ms.
    """

    route: int
    records: int
    size_bytes: int
    there: int
    failure: str | None = None
    zeros: int = 0


COLUMNS = ("route", "offset", "timestamp_ms", "key", "value", "headers")
"""Of the table that is written."""

WRITTEN_SCHEMA = "route INT, records BIGINT, size_bytes BIGINT, there BIGINT, failure STRING, zeros BIGINT"

TIMESTAMP_ZERO = "the timestamp 0, which librdkafka cannot send: it becomes 1 ms"
"""Ends a sentence about records."""
