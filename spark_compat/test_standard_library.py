"""The main job on real input: what confluent-kafka produced, Spark streams into files: every line, in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.brokers import Broker
from compat_tests.standard_library import PARTITIONS, FileDigest, expected, load_by_confluent_kafka
from spark_compat.streams import STREAM_DEADLINE_S, read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def loaded_topic(shared_broker: Broker) -> str:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=shared_broker.bootstrap)
    admin.create_topics([NewTopic("standard-library-for-spark", PARTITIONS, 1)])
    admin.close()
    load_by_confluent_kafka(shared_broker.bootstrap, "standard-library-for-spark")
    return "standard-library-for-spark"


def test_spark_streams_every_line(spark: SparkSession, broker: Broker, loaded_topic: str, tmp_path: Path) -> None:
    stream = read_stream(spark, broker.bootstrap, loaded_topic).select("key", "value", "partition", "offset")
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(tmp_path / "lines"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(STREAM_DEADLINE_S), f"the query did not end: {query.lastProgress}"
    finally:
        query.stop()
    assert digests(spark.read.parquet(str(tmp_path / "lines"))) == expected()


def digests(lines: DataFrame) -> dict[str, FileDigest]:
    """Each file put together again from its lines in the order of their offsets; Latin-1 maps every byte to itself."""
    files = lines.groupBy("key").agg({"*": "count"}).withColumnRenamed("count(1)", "line_count")
    joined = lines.selectExpr("key", "struct(offset, decode(value, 'ISO-8859-1') AS text) AS line").groupBy("key")
    content = joined.agg({"line": "collect_list"}).withColumnRenamed("collect_list(line)", "found")
    hashed = content.selectExpr(
        "key", "sha2(encode(array_join(array_sort(found).text, ''), 'ISO-8859-1'), 256) AS sha256"
    )
    rows = files.join(hashed, "key").collect()
    return {bytes(row.key).decode(): FileDigest(row.line_count, row.sha256) for row in rows}
