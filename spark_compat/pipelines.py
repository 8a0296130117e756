"""How the tests here archive topics, replay and audit them, and what they look for in an archive."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykbroker.spark import (
    ArchiveOptions,
    ArchiveSummary,
    AuditOptions,
    Listener,
    ReplayOptions,
    ReplaySummary,
    Selection,
    Source,
    archive,
    audit,
    read_archive,
    replay,
)
from pykbroker.spark.auditing.report import ReplayReport
from spark_compat.session import connector_jars
from spark_compat.streams import read_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from compat_tests.brokers import Broker

FIELDS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
PYKBROKER = (sys.executable, "-c", "from pykbroker.cli.main import main; main()")


def archive_topics(
    spark: SparkSession, broker: Broker, path: Path, *topics: str, listener: Listener | None = None, **options: Any
) -> ArchiveSummary:
    """options: fields of ArchiveOptions."""
    given = ArchiveOptions(Source(broker.bootstrap), str(path), topics=topics, **options)
    return archive(given, spark=spark, listener=listener)


def replay_topic(
    spark: SparkSession,
    broker: Broker,
    path: Path,
    topic: str,
    to_topic: str,
    listener: Listener | None = None,
    **options: Any,
) -> ReplaySummary:
    """options: fields of ReplayOptions."""
    given = ReplayOptions(Source(broker.bootstrap), str(path), topic, to_topic, **options)
    return replay(given, spark=spark, listener=listener)


def audit_replay(
    spark: SparkSession, broker: Broker, path: Path, topic: str, to_topic: str, selection: Selection | None = None
) -> ReplayReport:
    options = AuditOptions(
        Source(broker.bootstrap),
        topics=[to_topic],
        archive=str(path),
        replayed_from=topic,
        selection=selection or Selection(),
    )
    (found,) = audit(options, spark=spark).replays
    return found


def spark_command(spark: SparkSession, bootstrap: str, name: str, *options: str) -> list[str]:
    """`pykbroker spark NAME`, with the connector that this session has."""
    command = [*PYKBROKER, "spark", name, "--bootstrap-server", bootstrap]
    return [*command, "--master", "local[2]", "--jars", connector_jars(spark).replace("file://", ""), *options]


def run_command(spark: SparkSession, broker: Broker, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Whatever its exit code."""
    command = spark_command(spark, broker.bootstrap, name, *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def archive_command(spark: SparkSession, bootstrap: str, topic: str, path: Path, *options: str) -> list[str]:
    return spark_command(spark, bootstrap, "archive", "--topic", topic, "--to", str(path), *options)


def records_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All fields of the records, by topic, partition and offset."""

    def plain(value: Any) -> Any:
        return bytes(value) if isinstance(value, bytearray) else value

    def of(row: Any) -> tuple[Any, ...]:
        headers = row["headers"] and [(each["key"], plain(each["value"])) for each in row["headers"]]
        return (*(plain(row[field]) for field in FIELDS[:-1]), headers or None)

    return sorted((of(row) for row in frame.select(*FIELDS).collect()), key=lambda record: record[:3])


def assert_archived(spark: SparkSession, broker: Broker, path: Path, topic: str, **options: str) -> None:
    """The archive has what Spark reads from the topic, each record once; so have the files that a reader lists."""
    expected = records_of(read_batch(spark, broker.bootstrap, topic, **options))
    assert records_of(read_archive(spark, str(path), [topic])) == expected
    listed = spark.read.parquet(str(path)).where(f"topic = '{topic}'").select("partition", "offset").collect()
    assert sorted(map(tuple, listed)) == [record[1:3] for record in expected]


def commits(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each.read_text()) for each in sorted((path / "_pykbroker/commits").glob("*.json"))]
