"""Subjects of an audit: a topic of a cluster, or of an archive. Both are a table, and are asked for a few records."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pykbroker.client.cluster import Cluster
from pykbroker.client.transactions import find_open
from pykbroker.protocol.topic_partition import TopicPartition

from ..reading import SCHEMA, read_ranges
from ..records import SIZE
from ..source import Source, ask
from .blocks import BLOCK
from .report import OpenTransaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY_CHARACTERS = 80
MOST_READS = 16
"""Reads of a few offsets each cost a fifth of a second; more of them than this are one pass over all records."""


class Stretch(NamedTuple):
    """Offsets of a partition, without `end`, all in one block (`blocks.BLOCK`)."""

    partition: int
    start: int
    end: int


class Found(NamedTuple):
    """A record. size_bytes: of key and value."""

    partition: int
    offset: int
    size_bytes: int
    key: bytes | None


class Subject(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...

    def records(self) -> DataFrame:
        """The columns of Spark's Kafka source."""
        ...

    def find(self, stretches: Sequence[Stretch]) -> list[Found]:
        """The records of a few stretches that are still there."""
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

    def records(self) -> DataFrame:
        if not self.ranges:
            return self.spark.createDataFrame([], SCHEMA)
        return read_ranges(self.spark, self.source, {self.name: self.ranges}, self.isolation_level)

    def find(self, stretches: Sequence[Stretch]) -> list[Found]:
        rounds: list[dict[int, tuple[int, int]]] = []  # of each partition one stretch at most: so Spark reads
        for partition, start, end in stretches:
            reading = next((each for each in rounds if partition not in each), None)
            if reading is None:
                reading = {}
                rounds.append(reading)
            reading[partition] = (start, min(end, self.ranges[partition][1]))
        if len(rounds) > MOST_READS:
            return _found(_among(self.records(), stretches))
        frames = [
            read_ranges(self.spark, self.source, {self.name: each}, self.isolation_level, fail_on_loss=False)
            for each in rounds
        ]
        return _found(reduce(lambda one, other: one.union(other), frames)) if frames else []


@dataclass(frozen=True)
class ArchiveSubject:
    """A topic of an archive, whose records are `frame`."""

    frame: DataFrame
    name: str
    origin: str

    def records(self) -> DataFrame:
        return self.frame

    def find(self, stretches: Sequence[Stretch]) -> list[Found]:
        if not stretches:
            return []
        if len(stretches) > MOST_READS:
            return _found(_among(self.frame, stretches))
        places = " OR ".join(
            f"(partition = {each.partition} AND offset >= {each.start} AND offset < {each.end})" for each in stretches
        )
        return _found(self.frame.where(places))


def _among(records: DataFrame, stretches: Sequence[Stretch]) -> DataFrame:
    """The records of any number of stretches, in one pass."""
    from pyspark.sql.functions import broadcast, expr

    rows = [(each.partition, each.start // BLOCK, each.start, each.end) for each in stretches]
    places = records.sparkSession.createDataFrame(rows, "partition INT, block BIGINT, start BIGINT, end BIGINT")
    by_block = records.withColumn("block", expr(f"offset DIV {BLOCK}"))
    return by_block.join(broadcast(places), ["partition", "block"]).where("offset >= start AND offset < end")


def _found(records: DataFrame) -> list[Found]:
    rows = records.selectExpr(
        "partition", "offset", f"{SIZE} AS size", f"SUBSTRING(key, 1, {4 * KEY_CHARACTERS}) AS key"
    )
    return [
        Found(row["partition"], row["offset"], row["size"], None if row["key"] is None else bytes(row["key"]))
        for row in rows.collect()
    ]


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
