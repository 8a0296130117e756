"""Java's classes in the driver of a Spark session, which has no types that Python could check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_of(spark: SparkSession) -> Any:
    """The root of Java's packages, as py4j has it."""
    return spark._jvm


def hadoop_configuration(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()
