"""The files of one commit: Spark reads a range of offsets, or files that are there, and writes Parquet.

What was written is read back before it counts: the shares and the checksums of a commit are those of its files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import xxhash

from ..directories import HadoopDirectory
from ..errors import ArchiveDamaged
from ..reading import Ranges, offsets_in
from ..records import DATE, RECORD_HASH, SIZE, checksum_text
from ..session import tasks_for
from .manifest import ArchivedFile, Share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WRITER = {
    # What differs in each record is not looked up in a dictionary first.
    "parquet.enable.dictionary#value": "false",
    "parquet.enable.dictionary#offset": "false",
    "parquet.enable.dictionary#timestamp": "false",
}
IN_FILES = (
    "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def gathered(frame: DataFrame, ranges: Ranges) -> DataFrame:
    """The frame in few partitions: a task writes a file per topic and date, and small files are written once more."""
    return frame.coalesce(tasks_for(frame.sparkSession, offsets_in(ranges)))


def write_files(frame: DataFrame, directory: HadoopDirectory, staging: str, codec: str) -> tuple[ArchivedFile, ...]:
    """Write the records below `staging`, a file per partition of the frame, topic and date, and look what is there.

    Raises ArchiveDamaged.
    """
    from pyspark.sql.functions import expr

    writer = frame.withColumn("date", expr(DATE)).write.partitionBy("topic", "date")
    writer.options(**_WRITER, compression=codec).parquet(directory.uri(staging))
    found = directory.files(staging)
    with ThreadPoolExecutor(1) as threads:
        synced = threads.submit(directory.sync, [path for path, _ in found])
        archived = _check_files(frame.sparkSession, directory, staging, dict(found))
        synced.result()
    return archived


def check_ranges(files: Sequence[ArchivedFile], ranges: Ranges) -> None:
    """Raises ArchiveDamaged where the files have other records than the ranges can have."""
    records: Counter[tuple[str, int]] = Counter()
    for file in files:
        for partition, share in file.shares.items():
            start, end = ranges[file.topic][partition]
            records[file.topic, partition] += share.records
            if share.first_offset < start or share.last_offset >= end or records[file.topic, partition] > end - start:
                raise ArchiveDamaged(
                    f"Offsets {start} to {end - 1} of {file.topic}-{partition} were read, and what was written has "
                    f"{records[file.topic, partition]} records from {share.first_offset} to {share.last_offset}"
                )


def _check_files(
    spark: SparkSession, directory: HadoopDirectory, staging: str, sizes: Mapping[str, int]
) -> tuple[ArchivedFile, ...]:
    """The files with what they hold, read from them."""
    if not sizes:
        return ()
    shares = _shares(spark, directory, staging, list(sizes))
    files = []
    for path, file_bytes in sizes.items():
        at = path.removeprefix(f"{staging}/")
        files.append(ArchivedFile(at, at.partition("/")[0].removeprefix("topic="), file_bytes, shares[path]))
    return tuple(files)


def _shares(
    spark: SparkSession, directory: HadoopDirectory, staging: str, paths: Sequence[str]
) -> dict[str, dict[int, Share]]:
    """The shares by path and partition."""
    from pyspark.sql.functions import expr

    # Of a path its hash: a grouping by texts of a hundred bytes is slower by a third.
    names = {_hash_of_text(directory.file_path(path)): path for path in paths}
    rows = (
        spark.read.schema(IN_FILES)
        .parquet(directory.uri(staging))
        .groupBy(expr("xxhash64(_metadata.file_path)").alias("path"), "partition")
        .agg(
            expr("COUNT(1)").alias("records"),
            expr(f"SUM({RECORD_HASH})").alias("checksum"),
            expr(f"SUM({SIZE})").alias("size_bytes"),
            expr("MIN(offset)").alias("first_offset"),
            expr("MAX(offset)").alias("last_offset"),
            expr("MIN(unix_millis(timestamp))").alias("first_timestamp_ms"),
            expr("MAX(unix_millis(timestamp))").alias("last_timestamp_ms"),
        )
        .collect()
    )
    found: dict[str, dict[int, Share]] = {path: {} for path in paths}
    for row in rows:
        if row["path"] not in names:
            raise ArchiveDamaged(f"{directory.uri(staging)} has a file that was not there when it was listed")
        found[names[row["path"]]][row["partition"]] = Share(
            row["records"],
            checksum_text(row["checksum"]),
            row["size_bytes"],
            row["first_offset"],
            row["last_offset"],
            row["first_timestamp_ms"],
            row["last_timestamp_ms"],
        )
    return found


def _hash_of_text(text: str) -> int:
    """Spark's `xxhash64` of a string, signed."""
    unsigned = xxhash.xxh64_intdigest(text.encode(), seed=42)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
