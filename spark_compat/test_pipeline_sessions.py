"""The pipeline in a Spark that somebody else has started, as in a notebook: it stays, with its settings."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.topics import fill_topic
from pykbroker.spark import ArchiveOptions, ArchiveSummary, Source, archive
from pykbroker.spark.errors import SparkMissing
from pykbroker.spark.python_tasks import ARROW, check_packages, tasks_in_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.shuffle.partitions")


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_a_spark_that_runs_is_used_and_left_alone(
    in_a_thread: bool, spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    before = [spark.conf.get(name) for name in SETTINGS]
    found: list[ArchiveSummary] = []

    def run() -> None:
        found.append(archive(ArchiveOptions(Source(broker.bootstrap), str(tmp_path), topics=[topic])))

    if in_a_thread:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    assert found[0].records == 10
    assert spark.range(3).count() == 3
    assert [spark.conf.get(name) for name in SETTINGS] == before


def test_tasks_run_in_this_python_as_long_as_somebody_asks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    context = spark.sparkContext
    before = context.pythonExec
    with tasks_in_this_python(spark):
        with tasks_in_this_python(spark):
            assert context.pythonExec == sys.executable
        assert context.pythonExec == sys.executable
    assert context.pythonExec == before
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    with tasks_in_this_python(spark):
        assert context.pythonExec == before


def test_what_tasks_need_is_named() -> None:
    check_packages(*ARROW)
    with pytest.raises(SparkMissing, match=r"no_such_module is not installed: pip install 'pykbroker\[spark\]'"):
        check_packages(*ARROW, "no_such_module")
