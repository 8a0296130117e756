"""One Spark session for all tests here, with the stock Kafka connector; brokers come from `compat_tests`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.clusters.conftest import cluster_kind, new_cluster
from compat_tests.conftest import broker, fresh_broker, kind, shared_broker, shared_brokers, topic, unique
from spark_compat.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "broker",
    "cluster_kind",
    "fresh_broker",
    "kind",
    "new_cluster",
    "shared_broker",
    "shared_brokers",
    "spark",
    "topic",
    "unique",
]

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
    """With two cores."""
    session = open_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def table(unique: Callable[[str], str]) -> str:
    """The name of a table in memory."""
    return f"table_{unique('table')[-5:]}"
