"""An archive as a table of Spark: the records that its manifest names, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ..directories import HadoopDirectory
from ..errors import ArchiveMismatch
from ..failures import job_errors
from ..reading import COLUMNS, within
from .batches import IN_FILES
from .manifest import ArchivedFile, ArchiveState
from .store import ArchiveStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_archive(spark: SparkSession, path: str, topics: Sequence[str] = ()) -> DataFrame:
    """The records of an archive, with the columns of Spark's Kafka source: those of the topics, or all of them.

    What a run adds meanwhile is not in it. Raises ArchiveMismatch where there is no archive or no such topic,
    ArchiveDamaged.
    """
    with job_errors():
        store = ArchiveStore(HadoopDirectory(spark, path))
        return archived_records(spark, store, store.load(), topics)


def check_archived(store: ArchiveStore, state: ArchiveState, topics: Sequence[str]) -> None:
    """Raises ArchiveMismatch where there is no archive, or not with these topics."""
    if not state.topics:
        raise ArchiveMismatch(f"{store.directory.root} is no archive")
    unknown = sorted(set(topics) - set(state.topics))
    if unknown:
        raise ArchiveMismatch(f"The archive has no topic '{unknown[0]}'; it has {', '.join(sorted(state.topics))}")


def archived_records(
    spark: SparkSession, store: ArchiveStore, state: ArchiveState, topics: Sequence[str] = ()
) -> DataFrame:
    """Raises ArchiveMismatch."""
    check_archived(store, state, topics)
    frames = [_records(spark, store, topic, state.topic_files(topic)) for topic in topics or sorted(state.topics)]
    return reduce(lambda first, second: first.union(second), frames)


def archived_ranges(
    spark: SparkSession, store: ArchiveStore, state: ArchiveState, topic: str, ranges: Mapping[int, tuple[int, int]]
) -> DataFrame:
    """The records with these offsets, by partition; files that have none of them are not opened."""
    files = [file for file in state.topic_files(topic) if _has_any(file, ranges)]
    return within(_records(spark, store, topic, files), ranges)


def _has_any(file: ArchivedFile, ranges: Mapping[int, tuple[int, int]]) -> bool:
    return any(
        share.first_offset < ranges[each][1] and share.last_offset >= ranges[each][0]
        for each, share in file.shares.items()
        if each in ranges
    )


def _records(spark: SparkSession, store: ArchiveStore, topic: str, files: Iterable[ArchivedFile]) -> DataFrame:
    from pyspark.sql.functions import lit

    uris = [store.directory.uri(path) for path in store.places(files)]
    frame = spark.read.schema(IN_FILES).parquet(*uris) if uris else spark.createDataFrame([], IN_FILES)
    return frame.withColumn("topic", lit(topic)).select(*COLUMNS)
