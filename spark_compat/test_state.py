"""Queries with state, which Spark keeps between micro-batches: joins of two topics, and a million keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.topics import create_topic
from spark_compat.streams import batches_to_the_end, read_batch, read_stream, run_to_the_end, write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from compat_tests.brokers import Broker

KEYS = 1_000_000


def test_two_topics_are_joined(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Both sides grow between runs of the query: each record waits in the state for the other one."""
    orders, payments = unique("orders"), unique("payments")
    for name in (orders, payments):
        create_topic(broker, name, 2)

    def write(name: str, first: int, end: int) -> None:
        frame = spark.range(first, end).selectExpr("CAST(id AS STRING) AS key", "CAST(id * 2 AS STRING) AS value")
        write_batch(frame, broker.bootstrap, name)

    def side(name: str, prefix: str) -> DataFrame:
        stream = read_stream(spark, broker.bootstrap, name)
        return stream.selectExpr(f"CAST(key AS STRING) AS {prefix}_key", f"timestamp AS {prefix}_at").withWatermark(
            f"{prefix}_at", "1 hour"
        )

    condition = (
        "order_key = payment_key AND payment_at BETWEEN order_at - INTERVAL 1 HOUR AND order_at + INTERVAL 1 HOUR"
    )

    def joined() -> list[int]:
        from pyspark.sql.functions import expr

        frame = side(orders, "order").join(side(payments, "payment"), expr(condition))
        found = batches_to_the_end(frame, tmp_path, lambda each: [int(row.order_key) for row in each.collect()])
        return sorted(number for batch in found for number in batch)

    write(orders, 0, 100)
    write(payments, 50, 120)
    assert joined() == list(range(50, 100))
    write(orders, 100, 110)
    write(payments, 0, 10)
    assert joined() == [*range(10), *range(100, 110)]


def test_a_million_keys_are_counted(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    create_topic(broker, topic, 4)
    frame = spark.range(KEYS).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    write_batch(frame, broker.bootstrap, topic)
    counted = read_stream(spark, broker.bootstrap, topic).groupBy("key").count()

    def summary(each: DataFrame) -> tuple[int, int, int]:
        [row] = each.selectExpr("COUNT(*) AS keys", "SUM(count) AS records", "MAX(count) AS most").collect()
        return row["keys"], row["records"], row["most"]

    found: list[tuple[int, int, int]] = []
    writer = counted.writeStream.outputMode("update").option("checkpointLocation", str(tmp_path))
    writer = writer.foreachBatch(lambda each, _: found.append(summary(each)))
    run_to_the_end(writer)
    assert found == [(KEYS, KEYS, 1)]
    again = read_batch(spark, broker.bootstrap, topic).where("partition = 1").select("key", "value")
    write_batch(again, broker.bootstrap, topic)
    run_to_the_end(writer)
    assert found[1][2] == 2
    assert found[1][1] == 2 * found[1][0]
