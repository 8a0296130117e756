"""Positions of a mirror, where it goes on: of groups of the target, or of the journal where those have expired."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.groups import list_groups
from pykbroker.protocol.uuids import uuid_to_text

from ..open_transactions import await_transactions
from ..reading import read_ranges
from ..session import Say
from ..small_tables import small_table
from ..source import Source, TopicEnds, ask, ends_of, partition_counts
from ..writing.offset_syncs import CopyPosition
from .topics import JOURNAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "pykbroker-mirror-"
_ID_LENGTH = 22
"""Of a topic's id as text, with which the name of a group ends: that of the source, and that of the target."""


def group_of(cluster_id: str, source: TopicEnds, target: TopicEnds) -> str:
    """The group of a topic's copy. cluster_id: of the source. A topic that was created again has another group."""
    has_id = bool(source.topic_id.strip("0"))
    origin = _text(source.topic_id) if has_id else f"{cluster_id}-{source.name}"
    return f"{PREFIX}{target.name}-{origin}-{_text(target.topic_id)}"


def _text(topic_id: str) -> str:
    return uuid_to_text(bytes.fromhex(topic_id))


def positions_of(target: Source, groups: Collection[str]) -> dict[str, dict[int, CopyPosition]]:
    """The positions that the groups have committed, by group and partition. Raises ClusterUnavailable."""

    async def question(cluster: Cluster) -> dict[str, dict[int, CopyPosition]]:
        found: dict[str, dict[int, CopyPosition]] = {}
        for group in groups:
            for at, committed in (await fetch_offsets(cluster, group)).items():
                try:
                    position = CopyPosition.of(committed.offset, committed.metadata)
                except ValueError:  # somebody else's
                    continue
                found.setdefault(group, {})[at.partition] = position
        return found

    return ask(target, question)


def journaled(spark: SparkSession, target: Source, keys: Collection[str], say: Say) -> dict[str, int]:
    """The offsets of the journal where the source goes on, by key. Raises ClusterUnavailable."""
    from pyspark.sql.functions import broadcast, expr

    if not keys or JOURNAL not in partition_counts(target, [JOURNAL]):
        return {}
    ends = ends_of(target, [JOURNAL], "read_uncommitted").topics[JOURNAL]
    await_transactions(target, ends, say)
    ranges = {JOURNAL: {each: (row.start, row.end) for each, row in ends.partitions.items() if row.start < row.end}}
    if not ranges[JOURNAL]:
        return {}
    wanted = small_table(spark, ((key,) for key in keys), "name STRING")
    records = read_ranges(spark, target, ranges, "read_committed", fail_on_loss=False)  # it is compacted
    rows = (
        records.selectExpr(
            "CAST(key AS STRING) AS name", "offset", "CAST(CAST(value AS STRING) AS BIGINT) AS next_offset"
        )
        .join(broadcast(wanted), "name")
        .groupBy("name")
        .agg(expr("MAX_BY(next_offset, offset)").alias("next_offset"))
        .collect()
    )
    return {row["name"]: row["next_offset"] for row in rows}


def copies_of_target(source: Source, target: Source) -> set[str]:
    """The ids of the source's topics that a mirror writes from a topic of the target. Raises ClusterUnavailable."""

    async def groups(cluster: Cluster) -> list[str]:
        return [group.group_id for group in await list_groups(cluster) if group.group_id.startswith(PREFIX)]

    async def ids(cluster: Cluster) -> dict[str, str]:
        topics = (await cluster.refresh()).topics.values()
        return {uuid_to_text(topic.topic_id): topic.topic_id.hex() for topic in topics if any(topic.topic_id)}

    ours, theirs = ask(source, ids), ask(target, ids)
    ends = [(name[-_ID_LENGTH:], name[-2 * _ID_LENGTH - 1 : -_ID_LENGTH - 1]) for name in ask(source, groups)]
    return {ours[copy] for copy, origin in ends if copy in ours and origin in theirs}
