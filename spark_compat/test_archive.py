"""`pykbroker.spark.archive`: each record of a topic once, with all of its fields, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from compat_tests.topics import create_topic, fill_topic, wait_for_leaders
from compat_tests.waiting import until
from pykbroker.spark import ArchiveOptions, Listener, Source, archive, read_archive
from pykbroker.spark.directories import HadoopDirectory
from pykbroker.spark.errors import (
    ArchiveDamaged,
    ArchiveMismatch,
    BadOptions,
    ClusterUnavailable,
    JobFailed,
    RecordsLost,
)
from pykbroker.spark.jvm import hadoop_configuration
from spark_compat.pipelines import archive_command, archive_topics, assert_archived, commits
from spark_compat.streams import numbers, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker


def delete_records(broker: Broker, topic: str, before: int) -> None:
    """Of partition 0."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result()


def test_every_field_is_kept(spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> None:
    sent, stamped = unique("sent"), unique("stamped")
    create_topic(broker, sent, 3)
    create_topic(broker, stamped, 1, {"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4"})
    now_ms = time.time_ns() // 1_000_000
    timestamps = [now_ms - i * 86_400_000 // 20 for i in range(60)]
    some = [None, b"", b"\x00\xff\xfe", "ключ".encode()]
    headers = [None, [("a", b"1"), ("a", b"2"), ("", None), ("b", b"")], [("ü", b"\xff")]]
    for topic in (sent, stamped):
        for i, timestamp in enumerate(timestamps):
            producer.produce(
                topic,
                key=some[i % 4],
                value=some[i // 4 % 4],
                headers=headers[i % 3],
                timestamp=timestamp,
                partition=i % (3 if topic == sent else 1),
            )
    producer.produce(sent, b"x" * 900_000, partition=0, timestamp=now_ms)
    assert producer.flush(30) == 0
    summary = archive_topics(spark, broker, tmp_path / "archive", sent, stamped)
    assert (summary.commits, summary.records, summary.left) == (1, 121, 0)
    for topic in (sent, stamped):
        assert_archived(spark, broker, tmp_path / "archive", topic)
    assert {path.name for path in tmp_path.glob("archive/*")} == {f"topic={sent}", f"topic={stamped}", "_pykbroker"}
    days = {path.name for path in tmp_path.glob(f"archive/topic={sent}/*")}
    assert days == {time.strftime("date=%Y-%m-%d", time.gmtime(each / 1000)) for each in timestamps}


def test_a_run_goes_on_where_the_last_one_ended(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Each commit says how far it has read; a run that finds nothing new writes nothing."""
    create_topic(broker, topic, 2)
    assert archive_topics(spark, broker, tmp_path, topic).commits == 0
    written = 0
    for count in (30, 20, 0):
        write_numbers(spark, broker.bootstrap, topic, range(written, written + count))
        written += count
        summary = archive_topics(spark, broker, tmp_path, topic)
        assert (summary.records, summary.commits) == (count, 1 if count else 0)
        assert sum(row.records for row in summary.partitions[topic].values()) == written
    assert_archived(spark, broker, tmp_path, topic)
    assert [sum(row[1] for row in each["reads"][topic].values()) for each in commits(tmp_path)] == [30, 50]
    # Whatever the batches: the checksums are those of the records.
    again = archive_topics(spark, broker, tmp_path / "again", topic, max_batch_records=7)
    assert again.commits > 5
    assert again.partitions == summary.partitions


def test_small_files_become_large_ones(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fill_topic(broker, topic, 2, 120)
    apart = archive_topics(spark, broker, tmp_path / "apart", topic, max_batch_records=10, target_file_bytes=0)
    merged = archive_topics(spark, broker, tmp_path / "merged", topic, max_batch_records=10)
    assert merged.partitions == apart.partitions
    files = {each: len(list((tmp_path / each).glob("topic=*/*/*.parquet"))) for each in ("apart", "merged")}
    assert files["apart"] >= 12
    assert files["merged"] <= 8
    for each in ("apart", "merged"):
        assert_archived(spark, broker, tmp_path / each, topic)


def test_an_archive_has_what_was_committed_alone(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """It stops at an open transaction, and goes on when that is over."""
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": unique("id")})
    producer.init_transactions()

    def transaction(numbers: range) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.produce(topic, b"%d" % number)
        assert producer.flush(30) == 0

    transaction(range(5))
    producer.commit_transaction()
    transaction(range(5, 10))
    producer.abort_transaction()
    transaction(range(10, 15))
    first = archive_topics(spark, broker, tmp_path / "committed", topic)
    assert first.records == 5
    producer.commit_transaction()
    second = archive_topics(spark, broker, tmp_path / "committed", topic)
    assert second.records == 5
    assert_archived(spark, broker, tmp_path / "committed", topic, **{"kafka.isolation.level": "read_committed"})
    every = archive_topics(spark, broker, tmp_path / "all", topic, isolation_level="read_uncommitted")
    assert every.records == 15
    with pytest.raises(ArchiveMismatch, match="isolation level read_uncommitted"):
        archive_topics(spark, broker, tmp_path / "all", topic)


def test_records_that_were_deleted_before_they_were_read_are_noted(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    delete_records(broker, topic, 3)  # nobody misses what was gone before the first run
    assert archive_topics(spark, broker, tmp_path, topic).records == 7
    write_numbers(spark, broker.bootstrap, topic, range(10, 30))
    delete_records(broker, topic, 15)
    with pytest.raises(RecordsLost, match="begins at offset 15, and the archive ends at 10: 5 offsets were deleted"):
        archive_topics(spark, broker, tmp_path, topic)
    said: list[str] = []
    summary = archive_topics(spark, broker, tmp_path, topic, accept_loss=True, listener=Listener(said.append))
    assert summary.records == 15
    assert any(line.startswith("WARN: offsets 10 to 14 of") for line in said)
    assert commits(tmp_path)[-1]["reads"][topic]["0"][3] == [[10, 15]]
    assert numbers(read_archive(spark, str(tmp_path))) == [*range(3, 10), *range(15, 30)]
    write_numbers(spark, broker.bootstrap, topic, range(30, 33))
    assert archive_topics(spark, broker, tmp_path, topic).records == 3


def test_partitions_that_came_later_are_read_from_their_beginning(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    archive_topics(spark, broker, tmp_path, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    wait_for_leaders(broker, topic, 3)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10, 40):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    assert producer.flush(30) == 0
    assert archive_topics(spark, broker, tmp_path, topic).records == 30
    assert_archived(spark, broker, tmp_path, topic)


def test_a_topic_that_was_created_again_is_another_one(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    archive_topics(spark, broker, tmp_path, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result()
    until(lambda: topic not in admin.list_topics(timeout=10).topics, "the topic is gone")
    fill_topic(broker, topic, 1, 20)
    with pytest.raises(ArchiveMismatch, match="deleted and created again"):
        archive_topics(spark, broker, tmp_path, topic)
    assert len(commits(tmp_path)) == 1


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")  # the other's have one id
def test_another_cluster_has_another_archive(
    spark: SparkSession, broker: Broker, fresh_broker: FreshBroker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    archive_topics(spark, broker, tmp_path / "archive", topic)
    other = fresh_broker()
    fill_topic(other, topic, 1, 10)
    with pytest.raises(ArchiveMismatch, match="is of the cluster"):
        archive_topics(spark, other, tmp_path / "archive", topic)


def test_until_a_time(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    base_ms = time.time_ns() // 1_000_000 - 100_000
    for number in range(100):
        producer.produce(topic, b"%d" % number, timestamp=base_ms + number * 1000)
    assert producer.flush(30) == 0
    summary = archive_topics(spark, broker, tmp_path, topic, until=base_ms + 40_000)
    assert (summary.records, summary.partitions[topic][0].next_offset) == (40, 40)
    assert archive_topics(spark, broker, tmp_path, topic).records == 60
    assert_archived(spark, broker, tmp_path, topic)


def test_topics_that_match(spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> None:
    names = sorted(unique("matching") for _ in range(2))
    for name in names:
        fill_topic(broker, name, 1, 5)
    pattern = "|".join(name.replace(".", "[.]") for name in names)
    assert sorted(archive_topics(spark, broker, tmp_path, topics_matching=pattern).partitions) == names
    with pytest.raises(BadOptions, match="No topic matches 'nothing"):
        archive_topics(spark, broker, tmp_path, topics_matching="nothing[.]of[.]it")
    with pytest.raises(BadOptions, match="is no regular expression"):
        archive_topics(spark, broker, tmp_path, topics_matching="(")


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_what_is_refused(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fill_topic(broker, topic, 1, 5)
    with pytest.raises(BadOptions, match="does not exist"):
        archive_topics(spark, broker, tmp_path, f"{topic}-not")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ArchiveDamaged, match="has files, and no manifest of an archive"):
        archive_topics(spark, broker, tmp_path / "other", topic)
    archive_topics(spark, broker, tmp_path / "archive", topic)
    commit = tmp_path / "archive/_pykbroker/commits/00000000000000000001.json"
    text = commit.read_text()
    for damaged in (
        "",
        "[]",
        "{}",
        text[:-9],
        text.replace('"reads"', '"raeds"'),
        text.replace('"version":1', '"version":2'),
    ):
        commit.write_text(damaged)
        with pytest.raises(ArchiveDamaged, match=r"00000000000000000001\.json"):
            archive_topics(spark, broker, tmp_path / "archive", topic)
    with pytest.raises(ArchiveMismatch, match="is no archive"):
        read_archive(spark, str(tmp_path / "nothing"))

    class Nowhere:
        bootstrap = "127.0.0.1:1"

    with pytest.raises(ClusterUnavailable, match=r"127\.0\.0\.1:1"):
        archive_topics(spark, Nowhere(), tmp_path, topic)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_file_system_of_hadoop(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not `file:`: commits are exclusive there by a rename that does not overwrite."""
    hadoop_configuration(spark).set("fs.viewfs.mounttable.test.link./data", tmp_path.as_uri())
    fill_topic(broker, topic, 2, 40)
    path = "viewfs://test/data/archive"
    options = ArchiveOptions(Source(broker.bootstrap), path, topics=[topic], max_batch_records=20)
    assert archive(options, spark=spark).commits == 2
    assert_archived(spark, broker, tmp_path / "archive", topic)
    directory = HadoopDirectory(spark, path)
    taken = "_pykbroker/commits/00000000000000000002.json"
    text = directory.read_text(taken)
    assert not directory.create_text(taken, "another run's")
    assert directory.read_text(taken) == text
    names = ["00000000000000000001.json", "00000000000000000002.json"]
    assert directory.names("_pykbroker/commits") == names

    def fail(*_: object) -> bool:
        raise JobFailed("the file system is gone")

    monkeypatch.setattr(directory, "_take_name", fail)
    with pytest.raises(JobFailed):
        directory.create_text("_pykbroker/commits/00000000000000000003.json", "not to be seen")
    assert directory.names("_pykbroker/commits") == names
    assert archive(options, spark=spark).commits == 0


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_the_command(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fill_topic(broker, topic, 2, 40)
    path = tmp_path / "an archive, 100%"

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = archive_command(spark, broker.bootstrap, topic, path, *options)
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    dry = run("--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"Would archive {topic}: 40 offsets (partitions: 2)" in dry.stderr
    assert not path.exists()
    done = run("--json", "--max-batch-records", "20")
    assert done.returncode == 0, done.stderr
    assert "2 batches, 40 records" in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["records"], summary["commits"], summary["left"]) == (40, 2, 0)
    assert_archived(spark, broker, path, topic)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_spark_that_cannot_start_says_why(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_topic(broker, topic, 1, 1)

    def error_of(command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 1, done.stderr
        return done.stderr.splitlines()[-1]

    command = archive_command(spark, broker.bootstrap, topic, tmp_path / "archive")
    broken = [*command, "--jars", str(tmp_path / "nothing.jar")]
    assert error_of(broken) == f"Error: There is no jar {tmp_path / 'nothing.jar'}"
    with monkeypatch.context() as environment:
        environment.setenv("JAVA_HOME", str(tmp_path))
        assert (
            error_of(command) == f"Error: No java in JAVA_HOME={tmp_path}: install Java 17 or newer, and set JAVA_HOME"
        )
    resolved = [each for i, each in enumerate(command) if each != "--jars" and command[i - 1] != "--jars"]
    monkeypatch.setenv("PYKBROKER_SPARK_IVY", str(tmp_path / "ivy"))
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        '<url name="none"><artifact pattern="http://127.0.0.1:1/[artifact].[ext]"/></url></resolvers></ivysettings>'
    )
    offline = [*resolved, "--spark-conf", f"spark.jars.ivySettings={settings}"]
    assert "cannot be fetched from Maven Central. Without a network" in error_of(offline)
