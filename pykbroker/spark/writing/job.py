"""A job that writes, as its tasks have to know it, and what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..identities import Origin

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
_OF_THE_CONNECTION = ("security.", "sasl.", "ssl.", "socket.", "broker.", "client.")


@dataclass(frozen=True, slots=True)
class Transactions:
    """Exactly once. prefix: of transactional ids and groups, one for each partition of the source. run_id: positions
    of these groups that another run has committed do not count.
    """

    prefix: str
    run_id: str

    def name(self, partition: int) -> str:
        return f"{self.prefix}-{partition}"


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A job of Spark that writes to a topic. It is sent to executors, on which pykbroker has to be installed.

    same_partitions: a record's partition is that of its source; else its key says where it goes. properties: of
    librdkafka's producer. transactions: None for at least once. rates: records a second by partition of the source;
    none for as fast as it goes.
    """

    bootstrap_servers: str
    topic: str
    origin: Origin
    same_partitions: bool
    properties: Mapping[str, str] = field(default_factory=dict)
    transactions: Transactions | None = None
    rates: Mapping[int, float] = field(default_factory=dict)

    def producer_properties(self, partition: int) -> dict[str, Any]:
        properties = _PROPERTIES | dict(self.properties) | {"bootstrap.servers": self.bootstrap_servers}
        if self.transactions is not None:
            properties["transactional.id"] = self.transactions.name(partition)
        return properties

    def group_properties(self, partition: int) -> dict[str, Any]:
        """The group whose position says where the partition goes on."""
        assert self.transactions is not None
        properties = {name: value for name, value in self.properties.items() if name.startswith(_OF_THE_CONNECTION)}
        return properties | {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": self.transactions.name(partition),
        }


class Written(NamedTuple):
    """A partition of the source. size_bytes: of keys and values. there: records left out, which an earlier try of the
    task has committed. failure: why the task has ended before its end.
    """

    partition: int
    records: int
    size_bytes: int
    there: int
    failure: str | None = None


COLUMNS = ("partition", "offset", "timestamp_ms", "key", "value", "headers")
"""Of the table that is written."""

WRITTEN_SCHEMA = "partition INT, records BIGINT, size_bytes BIGINT, there BIGINT, failure STRING"
