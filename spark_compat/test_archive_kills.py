"""Runs of an archive that die anywhere, beside each other, or of a disk that is full: each record is there once."""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.steady_producers import ConfluentProducer, finished
from compat_tests.topics import create_topic
from compat_tests.volumes import tmpfs
from pykbroker.spark import read_archive
from pykbroker.spark.archiving import run as archive_run
from pykbroker.spark.directories import HadoopDirectory
from pykbroker.spark.errors import ArchiveBusy, NoRoom
from spark_compat.pipelines import archive_command, archive_topics, assert_archived, commits
from spark_compat.processes import QueryProcess, pipeline_process
from spark_compat.streams import numbers, write_batch, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker

PARTITIONS = 4


def following(
    spark: SparkSession, broker: Broker, path: Path, topic: str, *options: str
) -> AbstractContextManager[QueryProcess]:
    """A run that goes on."""
    command = archive_command(
        spark, broker.bootstrap, topic, path, "--follow", "--poll-interval", "0.1", "--max-batch-records", "400"
    )
    path.mkdir(exist_ok=True)
    return pipeline_process([*command, *options], path.with_suffix(".log"))


@pytest.mark.timeout(1800)
@pytest.mark.flaky(reruns=0)
def test_a_run_that_is_killed_with_its_broker(spark: SparkSession, fresh_broker: FreshBroker, tmp_path: Path) -> None:
    """kill -9 of the driver, of an executor, and of the broker below a run; with writes going on."""
    broker = fresh_broker()
    create_topic(broker, "source", PARTITIONS)
    path = tmp_path / "archive"
    producer = ConfluentProducer(broker, "source", PARTITIONS, pause_s=0.001)
    with finished(producer):
        with following(spark, broker, path, "source") as process:
            process.await_batches(2)
        with following(spark, broker, path, "source", "--master", "local-cluster[2,1,1024]") as process:
            process.await_batches(2)
            process.executors()[0].kill()
            process.await_batches(2)
            broker.kill()
            broker.start()
            process.await_batches(2)
            assert process.end() == 0
    archive_topics(spark, broker, path, "source")
    assert_archived(spark, broker, path, "source")
    rows = read_archive(spark, str(path)).selectExpr("INT(CAST(value AS STRING))", "partition", "offset").collect()
    archived = {row[0]: (row[1], row[2]) for row in rows}
    missing = [number for number, place in producer.acknowledged.items() if archived.get(number) != place]
    assert not missing, f"{len(missing)} of {len(producer.acknowledged)} are not there, such as {missing[:5]}"


class Died(Exception):
    """The process ends here."""


class DyingDirectory(HadoopDirectory):
    """The file system of a process that dies at its `life`-th change of a file: before it, or behind it."""

    life = 0.0

    def _change(self, change: Any) -> Any:
        cls = DyingDirectory
        cls.life -= 0.5
        if cls.life == 0:
            raise Died
        result = change()
        cls.life -= 0.5
        if cls.life == 0:
            raise Died
        return result

    def create_text(self, path: str, text: str) -> bool:
        return bool(self._change(lambda: super(DyingDirectory, self).create_text(path, text)))

    def move(self, source: str, target: str) -> bool:
        return bool(self._change(lambda: super(DyingDirectory, self).move(source, target)))

    def delete(self, path: str) -> None:
        self._change(lambda: super(DyingDirectory, self).delete(path))


@pytest.mark.flaky(reruns=0)
@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_run_that_dies_at_any_change_of_a_file(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each of them in turn. Whoever lists the files then sees no record twice, whoever asks the manifest all."""
    create_topic(broker, topic, 1)
    monkeypatch.setattr(archive_run, "HadoopDirectory", DyingDirectory)
    monkeypatch.setattr("pykbroker.spark.archiving.compaction.FILES_OF_A_TIER", 2)
    written = 0
    for half in itertools.count(1):
        write_numbers(spark, broker.bootstrap, topic, range(written, written + 3))
        written += 3
        DyingDirectory.life = half / 2
        try:
            archive_topics(spark, broker, tmp_path, topic)
            done = True
        except Died:
            done = False
        ends = [each["reads"][topic]["0"][1] for each in commits(tmp_path) if each["reads"]]
        if not ends:
            continue
        assert numbers(read_archive(spark, str(tmp_path))) == list(range(max(ends)))
        listed = Counter(row.offset for row in spark.read.schema("offset BIGINT").parquet(str(tmp_path)).collect())
        assert set(listed.values()) <= {1}
        if done:
            break
    assert half > 15
    assert any(each["removed"] for each in commits(tmp_path)), "nothing was merged"
    assert max(ends) == written
    assert_archived(spark, broker, tmp_path, topic)


def test_two_runs_at_once(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """One of them is told that the other has added something, and nothing is there twice."""
    create_topic(broker, topic, PARTITIONS)
    write_numbers(spark, broker.bootstrap, topic, range(400))
    busy: list[ArchiveBusy] = []
    failures: list[BaseException] = []

    def add_all() -> None:
        while True:
            try:
                if archive_topics(spark, broker, tmp_path, topic, max_batch_records=50).commits == 0:
                    return
            except ArchiveBusy as error:
                busy.append(error)
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=add_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert busy
    assert_archived(spark, broker, tmp_path, topic)


@pytest.mark.mounts
def test_a_disk_that_is_full(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    create_topic(broker, topic, 2)
    rows = spark.range(20_000).selectExpr("sha2(CAST(id AS STRING), 512) AS value")
    with tmpfs(tmp_path / "disk", "1m") as disk:
        write_batch(rows.limit(2000), broker.bootstrap, topic)
        assert archive_topics(spark, broker, disk / "archive", topic).records == 2000
        write_batch(rows, broker.bootstrap, topic)
        with pytest.raises(NoRoom, match=r"disk is full|No room"):
            archive_topics(spark, broker, disk / "archive", topic)
        assert read_archive(spark, str(disk / "archive")).count() == 2000
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert archive_topics(spark, broker, disk / "archive", topic).records == 20_000
        assert_archived(spark, broker, disk / "archive", topic)
