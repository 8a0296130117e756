"""One Spark session for all tests here, with the stock Kafka connector; brokers come from `compat_tests`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.apache_kafka import find_java
from compat_tests.apache_kafka.jars import cache_directory
from compat_tests.conftest import broker, fresh_broker, kind, shared_broker, shared_brokers, topic, unique

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["broker", "fresh_broker", "kind", "shared_broker", "shared_brokers", "spark", "topic", "unique"]

SPARK_VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"


MARKS = (
    pytest.mark.spark,
    pytest.mark.java,
    # PySpark leaves the sockets on which it collects rows to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for mark in MARKS:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores. Its connector is resolved once into the cache directory."""
    from pyspark.sql import SparkSession

    work = tmp_path_factory.mktemp("spark")
    os.environ["JAVA_HOME"] = str(Path(find_java()).resolve().parent.parent)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pykbroker-spark-compat")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.jars.ivy", str(cache_directory() / "ivy"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .config("spark.local.dir", str(work / "local"))
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
