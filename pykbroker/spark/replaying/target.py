"""The topic that a replay writes to: whether it can take the records, and which of them it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import BadOptions
from ..identities import Origin, identified
from ..open_transactions import await_transactions
from ..reading import read_ranges
from ..session import Say
from ..source import Source, TopicEnds, configs_of, ends_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def records_there(spark: SparkSession, source: Source, name: str, origin: Origin, say: Say) -> DataFrame | None:
    """The target's records from that origin, with their identities; None where the topic is empty.

    Records behind an open transaction cannot be told from aborted ones, so its end is waited for.
    Raises BadOptions, ClusterUnavailable.
    """
    ends = ends_of(source, [name], "read_uncommitted").topics[name]
    ranges = {each: (row.start, row.end) for each, row in ends.partitions.items() if row.start < row.end}
    if not ranges:
        return None
    await_transactions(source, ends, say)
    return identified(read_ranges(spark, source, {name: ranges}, "read_committed"), origin)


def warnings_about(source: Source, name: str, oldest_ms: int, now_ms: int) -> list[str]:
    """Sentences about what the topic's configs do to records as old as that. Raises ClusterUnavailable."""
    configs = configs_of(source, name)
    policy = configs.get("cleanup.policy") or ""
    retention_ms = int(configs.get("retention.ms") or -1)
    found = []
    if configs.get("message.timestamp.type") == "LogAppendTime":
        found.append(f"{name} has message.timestamp.type=LogAppendTime: records get new timestamps")
    elif "delete" in policy and 0 <= retention_ms < now_ms - oldest_ms:
        found.append(
            f"{name} has retention.ms={retention_ms}, and records are older than that: the brokers delete them soon"
        )
    if "compact" in policy:
        found.append(f"{name} is compacted: of records with the same key the brokers keep the last one")
    return found


def check_partitions(target: TopicEnds, last: int) -> None:
    """Raises BadOptions where the last partition of the archive that is asked for has no counterpart."""
    if last >= len(target.partitions):
        raise BadOptions(
            f"The topic '{target.name}' has {len(target.partitions)} partitions, and the archive has partition {last}: "
            "add partitions, or spread the records anew by their keys (--repartition)"
        )
