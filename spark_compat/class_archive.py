"""JVMs of Spark that live for a minute: no optimising compiler, one collector thread, and an archive of Spark's classes
as the JVM keeps them once they are loaded (AppCDS, JEP 350).

A session begins with a third of the processor time. `python -m spark_compat.class_archive` writes the archive; a JVM
that finds other jars, or is not the one that wrote it, leaves it aside by itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from compat_tests.apache_kafka import JavaMissing, find_java
from spark_compat.session import SPARK_VERSION, open_session

_SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def class_archive() -> Path:
    """The archive belongs to one environment: it holds for jars of one directory."""
    return Path(sys.prefix) / f"spark-{SPARK_VERSION}.jsa"


def use_short_lived_jvms() -> None:
    """Give the options to all sessions that this process and its children open, and to executors of `local-cluster`."""
    archived = f'{_SHORT} "-XX:SharedArchiveFile={class_archive()}" -Xlog:disable'
    options = archived if class_archive().exists() else _SHORT
    quoted = options.replace('"', '\\"')
    executors = f'"-Dspark.executor.defaultJavaOptions={quoted}"'
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{options} {executors}")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _SHORT)


def is_current() -> bool:
    """Whether it was written after this Java was installed."""
    archive = class_archive()
    return archive.exists() and archive.stat().st_mtime > Path(find_java()).resolve().stat().st_ctime


def write_class_archive() -> None:
    """By a session that does a little of everything."""
    class_archive().unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=class_archive().parent) as directory:
        work = Path(directory)
        written = work / "archive.jsa"
        os.environ["SPARK_SUBMIT_OPTS"] = f'{_SHORT} "-XX:ArchiveClassesAtExit={written}" -Xlog:disable'
        spark = open_session(work)
        files = str(work / "table")
        spark.range(100).selectExpr("id", "id % 7 AS key").groupBy("key").count().write.parquet(files)
        stream = spark.readStream.schema("key BIGINT, count BIGINT").parquet(files)
        query = stream.writeStream.format("noop").trigger(availableNow=True)
        query.option("checkpointLocation", str(work / "checkpoint")).start().awaitTermination()
        assert len(spark.read.parquet(files).orderBy("key").collect()) == 7
        gateway = spark.sparkContext._gateway
        spark.stop()
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        written.rename(class_archive())


if __name__ == "__main__":
    try:
        if not is_current():
            write_class_archive()
    except JavaMissing as reason:
        sys.exit(str(reason))
