"""Subjects of an audit: a topic of a cluster, or of an archive. Both are a table, and are asked for a few records."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.consumer import Consumer
from pykbroker.client.offsets import EARLIEST_TIMESTAMP
from pykbroker.client.transactions import find_open
from pykbroker.protocol.topic_partition import TopicPartition

from ..reading import SCHEMA, read_ranges
from ..small_tables import small_table
from ..source import ISOLATION_LEVELS, Source, ask
from .report import OpenTransaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY_CHARACTERS = 80
MOST_LOOKUPS = 64
"""More records than this are looked up in one pass over all of them."""
_LOOKUP_S = 60
_LOOKUP_BYTES = 64 << 10
"""Of a partition at a time; a batch that is larger comes as a whole."""


class At(NamedTuple):
    """The place of a record."""

    partition: int
    offset: int


class Subject(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...

    @property
    def offsets(self) -> int:
        """About as many records as there are."""
        ...

    def records(self) -> DataFrame:
        """The columns of Spark's Kafka source."""
        ...

    def keys_at(self, places: Collection[At]) -> dict[At, bytes | None]:
        """The keys, or their beginnings, of those records that are still there. Raises ClusterUnavailable."""
        ...


@dataclass(frozen=True)
class TopicSubject:
    """A topic of a cluster, with the offsets of its partitions that are looked at, each without its end."""

    spark: SparkSession
    source: Source
    name: str
    ranges: Mapping[int, tuple[int, int]]
    isolation_level: str

    @property
    def origin(self) -> str:
        return self.source.bootstrap_servers

    @property
    def offsets(self) -> int:
        return sum(end - start for start, end in self.ranges.values())

    def records(self) -> DataFrame:
        if not self.ranges:
            return self.spark.createDataFrame([], SCHEMA)
        return read_ranges(self.spark, self.source, {self.name: self.ranges}, self.isolation_level)

    def keys_at(self, places: Collection[At]) -> dict[At, bytes | None]:
        if len(places) > MOST_LOOKUPS:
            return _keys_among(self.records(), places)
        return _fetched_keys(self.source, self.name, self.isolation_level, places)


@dataclass(frozen=True)
class ArchiveSubject:
    """A topic of an archive, whose records are `frame`."""

    frame: DataFrame
    name: str
    origin: str
    offsets: int

    def records(self) -> DataFrame:
        return self.frame

    def keys_at(self, places: Collection[At]) -> dict[At, bytes | None]:
        if not places:
            return {}
        if len(places) > MOST_LOOKUPS:
            return _keys_among(self.frame, places)
        wanted = " OR ".join(f"(partition = {at.partition} AND offset = {at.offset})" for at in places)
        return _keys(self.frame.where(wanted))


def _keys_among(records: DataFrame, places: Collection[At]) -> dict[At, bytes | None]:
    """The keys of any number of records, in one pass."""
    from pyspark.sql.functions import broadcast

    wanted = small_table(records.sparkSession, sorted(places), "partition INT, offset BIGINT")
    return _keys(records.join(broadcast(wanted), ["partition", "offset"]))


def _keys(records: DataFrame) -> dict[At, bytes | None]:
    rows = records.selectExpr("partition", "offset", f"SUBSTRING(key, 1, {4 * KEY_CHARACTERS}) AS key").collect()
    return {At(row["partition"], row["offset"]): None if row["key"] is None else bytes(row["key"]) for row in rows}


def _fetched_keys(source: Source, topic: str, isolation_level: str, places: Collection[At]) -> dict[At, bytes | None]:
    """Fetch the records in this process: a job of Spark for each of them costs more."""
    found: dict[At, bytes | None] = {}

    async def question(cluster: Cluster) -> None:
        consumer = Consumer(
            cluster,
            isolation_level=ISOLATION_LEVELS[isolation_level],
            reset_to=EARLIEST_TIMESTAMP,
            partition_max_bytes=_LOOKUP_BYTES,
        )
        with trio.move_on_after(_LOOKUP_S):  # a record that was cut off is waited for in vain
            for at in sorted(places):
                place = TopicPartition(topic, at.partition)
                consumer.assign({place: at.offset})
                while at not in found and consumer.positions[place] <= at.offset:
                    for record in await consumer.poll():
                        of_record = At(record.partition, record.offset)
                        if of_record in places:
                            found[of_record] = record.key

    ask(source, question)
    return found


def open_transactions(source: Source, topic: str, partitions: Sequence[int]) -> list[OpenTransaction]:
    """Raises BadOptions, ClusterUnavailable."""
    places = [TopicPartition(topic, partition) for partition in partitions]

    async def question(cluster: Cluster) -> list[OpenTransaction]:
        return [
            OpenTransaction(
                each.at.partition,
                each.producer.producer_id,
                each.producer.producer_epoch,
                each.producer.current_txn_start_offset,
                each.producer.last_timestamp,
            )
            for each in await find_open(cluster, places, time.time_ns() // 1_000_000 + 1)
        ]

    return ask(source, question)


def key_text(key: bytes | None) -> str | None:
    """The beginning of a key; bytes that are no UTF-8 as `\\xff`."""
    if key is None:
        return None
    text = key.decode("utf-8", "backslashreplace")
    return text if len(text) <= KEY_CHARACTERS else f"{text[:KEY_CHARACTERS]}…"
