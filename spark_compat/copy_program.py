"""A streaming query as a process of its own, for tests that kill it.

    python -m spark_compat.copy_program JARS BOOTSTRAP SOURCE DIRECTORY [SINK]

Writes each micro-batch of the topic SOURCE into files below DIRECTORY, or to the topic SINK, and prints its number
when it is complete. It goes on until it is killed, and resumes from its checkpoint. JARS are the connector's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_compat.session import open_session
from spark_compat.streams import read_stream, topic_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def copy_writer(
    spark: SparkSession, bootstrap: str, source: str, directory: str, sink: str | None = None
) -> DataStreamWriter:
    """The query; whoever runs it with the same arguments goes on where the last one ended."""
    stream = read_stream(spark, bootstrap, source, maxOffsetsPerTrigger="2000")
    if sink is None:
        records = stream.select("key", "value", "headers", "partition", "offset")
        writer = records.writeStream.format("parquet").option("path", f"{directory}/records")
    else:
        writer = topic_writer(stream, bootstrap, sink)
    return writer.option("checkpointLocation", f"{directory}/checkpoint")


def main(jars: str, bootstrap: str, source: str, directory: str, sink: str | None = None) -> None:
    spark = open_session(Path(directory), cores=1, jars=jars)
    writer = copy_writer(spark, bootstrap, source, directory, sink)
    query = writer.trigger(processingTime="100 milliseconds").start()
    told = -1
    while not query.awaitTermination(0.05):
        last = query.lastProgress
        if last is not None and last["batchId"] != told and last["numInputRows"]:
            told = last["batchId"]
            print(f"batch {told}", flush=True)  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(*sys.argv[1:])
