"""A local Spark session with the stock Kafka connector, which is resolved once into the cache directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.apache_kafka import find_java
from compat_tests.apache_kafka.jars import cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"


def open_session(work: Path, *, cores: int = 2, jars: str | None = None) -> SparkSession:
    """work: where it keeps its files. jars: as `connector_jars` gives them; None: they are resolved."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(Path(find_java()).resolve().parent.parent)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("pykbroker-spark-compat")
    if jars is None:
        builder = builder.config("spark.jars.packages", CONNECTOR)
        builder = builder.config("spark.jars.ivy", str(cache_directory() / "ivy"))
    else:
        builder = builder.config("spark.jars", jars)
    session = (
        builder.config("spark.ui.showConsoleProgress", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .config("spark.local.dir", str(work / "local"))
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def connector_jars(session: SparkSession) -> str:
    """Of a session that has resolved them."""
    jars = session.sparkContext.getConf().get("spark.jars")
    assert jars
    return jars
