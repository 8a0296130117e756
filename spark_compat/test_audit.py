"""`pykbroker.spark.audit`: what it says of topics and archives, beside what Python counts in the same records."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.topics import create_topic, fill_topic
from pykbroker.spark import AuditOptions, AuditReport, Source, audit
from pykbroker.spark.auditing import scanning as audit_scanning
from pykbroker.spark.auditing import subjects as audit_subjects
from pykbroker.spark.auditing.blocks import blocks_of
from pykbroker.spark.auditing.page import page_of
from pykbroker.spark.auditing.report import Gap, PartitionReport
from pykbroker.spark.auditing.scanning import scan
from pykbroker.spark.errors import ArchiveMismatch, BadOptions
from pykbroker.spark.reading import read_ranges
from pykbroker.spark.session import pipeline_session
from spark_compat.pipelines import archive_topics, records_of, run_command
from spark_compat.streams import read_batch, write_batch, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

FIELDS = (
    "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING"
)


def audit_topics(spark: SparkSession, broker: Broker, *topics: str, **options: Any) -> AuditReport:
    return audit(AuditOptions(Source(broker.bootstrap), topics=topics, **options), spark=spark)


def counted(rows: list[tuple[Any, ...]]) -> dict[int, dict[str, int]]:
    """By partition, of `(partition, offset, timestamp in ms, key, value)` in any order, without the checksums."""
    found: dict[int, dict[str, int]] = {}
    by_partition = defaultdict(list)
    for row in rows:
        by_partition[row[0]].append(row)
    for partition, mine in by_partition.items():
        times: dict[int, int] = {}
        for _, offset, timestamp, *_ in mine:
            times[offset] = max(timestamp, times.get(offset, timestamp))
        offsets = sorted(times)
        steps = [times[one] - times[next] for one, next in pairwise(offsets)]
        found[partition] = {
            "partition": partition,
            "records": len(mine),
            "size_bytes": sum(len(row[3] or b"") + len(row[4] or b"") for row in mine),
            "first_offset": offsets[0],
            "last_offset": offsets[-1],
            "missing_offsets": offsets[-1] - offsets[0] + 1 - len(offsets),
            "duplicate_offsets": len(mine) - len(offsets),
            "null_keys": sum(row[3] is None for row in mine),
            "null_values": sum(row[4] is None for row in mine),
            "first_timestamp_ms": min(row[2] for row in mine),
            "last_timestamp_ms": max(row[2] for row in mine),
            "backwards": sum(step > 0 for step in steps),
            "largest_step_back_ms": max([0, *steps]),
        }
    return found


def gaps_of(rows: list[tuple[Any, ...]]) -> list[Gap]:
    found = []
    for partition in {row[0] for row in rows}:
        offsets = sorted({row[1] for row in rows if row[0] == partition})
        found += [Gap(partition, one + 1, next - 1) for one, next in pairwise(offsets) if next > one + 1]
    return sorted(found, key=lambda gap: (gap.first_offset - gap.last_offset, gap.partition, gap.first_offset))


def without_checksums(reports: list[PartitionReport]) -> dict[int, dict[str, int]]:
    rows = [{name: value for name, value in asdict(each).items() if "checksum" not in name} for each in reports]
    return {row["partition"]: row for row in rows}


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[SparkSession]:
    """A session as the pipeline has it."""
    with pipeline_session(spark=spark) as session:
        yield session


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(3))
def test_any_records_are_counted_exactly(
    own_settings: SparkSession, seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gaps of all lengths, offsets that are there several times, and times that run anyhow; in their order, and in
    another one, in which they are grouped.
    """
    rng = random.Random(seed)
    rows = []
    for partition in range(3):
        offset, timestamp = rng.randrange(40), 1_700_000_000_000
        for _ in range(rng.randrange(1, 400)):
            offset += rng.choice([0, 1, 1, 1, 1, 1, 2, 5, 16, 40])
            timestamp += rng.choice([-7_200_000, -1, 0, 1, 1000, 3_600_000])
            key = rng.choice([None, b"", b"key"])
            rows.append((partition, offset, timestamp, key, rng.choice([None, b"x" * rng.randrange(30)])))
    frame = own_settings.createDataFrame(
        [(key, value, partition, offset, timestamp) for partition, offset, timestamp, key, value in rows],
        "key BINARY, value BINARY, partition INT, offset BIGINT, ms BIGINT",
    ).selectExpr(
        "key", "value", "partition", "offset", "timestamp_millis(ms) AS timestamp", "0 AS timestampType",
        "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers", "'t' AS topic",
    )  # fmt: skip
    grouped: list[object] = []
    monkeypatch.setattr(audit_scanning, "blocks_of", lambda records: grouped.append(records) or blocks_of(records))
    expected = Counter((row[0], row[2] // 3_600_000 * 3_600_000) for row in rows)
    once = frame.dropDuplicates(["partition", "offset"]).coalesce(1).sortWithinPartitions("partition", "offset")
    for records, times in ((frame.repartition(3), 1), (frame, 2), (once, 2)):
        found = scan(records, 1_000_000, 1000)
        assert len(grouped) == times
        assert found.period_hours == 1
        if records is once:
            assert {each.partition: each.duplicate_offsets for each in found.partitions} == dict.fromkeys(range(3), 0)
            assert sum(each.records for each in found.partitions) == len({row[:2] for row in rows})
        else:
            assert without_checksums(found.partitions) == counted(rows)
            assert {(each.partition, each.start_ms): each.records for each in found.periods} == expected
        assert found.gaps == gaps_of(rows)


@pytest.fixture
def mixed(broker: Broker, topic: str, unique: Callable[[str], str]) -> tuple[str, Producer]:
    """Aborted and committed transactions, large records beside each other, a key in two partitions, and, at the end, a
    transaction that is open.
    """
    create_topic(broker, topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": unique("id")})
    producer.init_transactions()
    now_ms = time.time_ns() // 1_000_000

    def send(numbers: range) -> None:
        producer.begin_transaction()
        for i in numbers:
            size = 5000 + i if i in (40, 42) else i % 7
            producer.produce(
                topic,
                key=None if i % 10 == 0 else b"key-%d" % (i % 9),
                value=b"v" * size,
                partition=i % 2,
                timestamp=now_ms - (i * 37 % 100) * 60_000,
            )
        assert producer.flush(30) == 0

    send(range(60))
    producer.commit_transaction()
    send(range(60, 90))
    producer.abort_transaction()
    send(range(90, 120))
    producer.commit_transaction()
    send(range(120, 125))
    return topic, producer


def test_a_topic_is_reported(spark: SparkSession, broker: Broker, mixed: tuple[str, Producer]) -> None:
    topic, producer = mixed
    report = audit_topics(spark, broker, topic)
    frame = read_batch(spark, broker.bootstrap, topic, **{"kafka.isolation.level": "read_committed"})
    rows = [
        (row["partition"], row["offset"], row["ms"], row["key"], row["value"])
        for row in frame.selectExpr("partition", "offset", "unix_millis(timestamp) AS ms", "key", "value").collect()
    ]
    found = report.topics[0]
    assert len(rows) == 90
    assert (found.name, found.origin, found.records) == (topic, broker.bootstrap, 90)
    assert without_checksums(found.partitions) == counted(rows)
    assert found.gaps == gaps_of(rows)
    assert len(found.gaps) == 2  # a marker, what was aborted, and its marker
    assert [each.partition for each in found.open_transactions] == [0, 1]
    by_size = sorted(rows, key=lambda row: (-len(row[3] or b"") - len(row[4] or b""), row[0], row[1]))
    assert [(each.partition, each.offset) for each in found.largest] == [row[:2] for row in by_size[:10]]
    assert found.largest[0].size_bytes == 5042 + len("key-6")
    keys = Counter(bytes(row[3]).decode() for row in rows if row[3] is not None)
    assert found.keys.distinct == found.keys.in_several_partitions == len(keys) == 9
    assert {each.key: each.records for each in found.keys.heaviest} == keys
    assert {each.partitions for each in found.keys.scattered} == {2}
    assert report.problems == []
    assert json.loads(json.dumps(report.as_json()))["topics"][0]["name"] == topic
    producer.commit_transaction()
    assert audit_topics(spark, broker, topic).topics[0].open_transactions == []


def test_a_topic_beside_its_archive(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """What the topic has deleted, and what the archive has not read yet, is in no comparison."""
    fill_topic(broker, topic, 2, 100)
    archive_topics(spark, broker, tmp_path, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 21)])[TopicPartition(topic, 0)].result()
    write_numbers(spark, broker.bootstrap, topic, range(200, 210))
    report = audit_topics(spark, broker, topic, archive=str(tmp_path))
    (beside,) = report.comparisons
    assert report.problems == []
    assert beside.equal
    assert beside.newer_offsets == 10
    assert beside.differences == []
    assert sum(each.records for each in beside.partitions) == 100 - 21
    alone = audit(AuditOptions(None, archive=str(tmp_path)), spark=spark)
    assert alone.topics[0].records == 100
    assert alone.problems == []
    with pytest.raises(ArchiveMismatch, match="has no topic 'other'"):
        audit(AuditOptions(None, topics=["other"], archive=str(tmp_path)), spark=spark)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_of_many_keys_the_heaviest_are_listed(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(1, 41):
        for i in range(number):
            producer.produce(topic, b"x" * (number % 3), key=b"%d" % number, partition=i % 2 if number % 2 else 0)
    assert producer.flush(30) == 0
    keys = audit_topics(spark, broker, topic, listed=5).topics[0].keys
    assert (keys.distinct, keys.in_several_partitions) == (40, 19)
    assert [(each.key, each.records) for each in keys.heaviest] == [(str(n), n) for n in (40, 39, 38, 37, 36)]
    assert [(each.key, each.records) for each in keys.scattered] == [(str(n), n) for n in (39, 37, 35, 33, 31)]
    assert [each.size_bytes for each in keys.heaviest] == [n * (2 + n % 3) for n in (40, 39, 38, 37, 36)]


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_many_records_are_looked_up_in_one_pass(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch for each of a hundred would take longer than a read of all; in an archive as well."""
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    sizes = {offset: 1000 + offset * 7 % 1000 if offset % 20 == 3 else offset % 5 for offset in range(1200)}
    for offset, size in sizes.items():
        producer.produce(topic, b"v" * size, key=b"%04d" % offset)
    assert producer.flush(30) == 0
    archive_topics(spark, broker, tmp_path, topic)
    largest = sorted(sizes, key=lambda offset: (-sizes[offset], offset))[:50]
    reads: list[object] = []
    monkeypatch.setattr(audit_subjects, "read_ranges", lambda *of, **kept: reads.append(of) or read_ranges(*of, **kept))
    for report in (
        audit_topics(spark, broker, topic, listed=50),
        audit(AuditOptions(None, archive=str(tmp_path), listed=50), spark=spark),
    ):
        found = report.topics[0]
        assert [(each.offset, each.key) for each in found.largest] == [(each, f"{each:04d}") for each in largest]
        assert {each.key for each in found.keys.heaviest} <= {f"{each:04d}" for each in range(1200)}
        assert len(found.keys.heaviest) == 50
    assert len(reads) == 2
    reads.clear()
    assert len(audit_topics(spark, broker, topic, listed=20).topics[0].largest) == 20
    assert len(reads) == 1


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_an_archive_with_damage(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """A value that somebody has changed in a file: the manifest and the topic both tell."""
    fill_topic(broker, topic, 2, 100)
    path = tmp_path / "archive"
    archive_topics(spark, broker, path, topic)
    file = min(path.glob("topic=*/*/*.parquet"))
    rows = spark.read.schema(FIELDS.removesuffix(", topic STRING")).parquet(str(file)).collect()
    partition, offset = rows[3]["partition"], rows[3]["offset"]
    forged = [row if row["offset"] != offset else (row[0], b"forged", *row[2:]) for row in rows]
    frame = spark.createDataFrame(forged, FIELDS.removesuffix(", topic STRING")).coalesce(1)
    frame.write.parquet(str(tmp_path / "forged"))
    (written,) = (tmp_path / "forged").glob("*.parquet")
    file.write_bytes(written.read_bytes())
    file.with_name(f".{file.name}.crc").unlink()
    done = run_command(
        spark, broker, "audit", "--topic", topic, "--archive", str(path), "--html", str(tmp_path / "page.html")
    )
    assert done.returncode == 3, done.stderr
    assert f"PROBLEM: the files of {topic}-{partition} in file:{path} hold 50 records" in done.stdout
    assert f"PROBLEM: {topic} at {broker.bootstrap} and its archive in file:{path} differ" in done.stdout
    block = offset // 16 * 16
    assert f"partition {partition}, offsets {block} to {block + 15}: 16 records, there 16" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert "and the manifest says 50" in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", page)


def test_a_topic_beside_another_one(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]
) -> None:
    """Keys, values and headers are compared, offsets and times are not."""
    copy, other, wider = unique("copy"), unique("other"), unique("wider")
    for name, partitions in ((topic, 2), (copy, 2), (other, 2), (wider, 5)):
        create_topic(broker, name, partitions)
    write_numbers(spark, broker.bootstrap, topic, range(50))
    source = read_batch(spark, broker.bootstrap, topic)
    write_batch(source.select("key", "value", "headers", "partition"), broker.bootstrap, copy)
    write_batch(source.selectExpr("key", "IF(offset = 7, 'x', value) AS value"), broker.bootstrap, other)
    write_batch(source.select("key", "value"), broker.bootstrap, wider)
    for name, equal in ((copy, True), (other, False), (wider, True)):
        report = audit_topics(spark, broker, topic, compare_with=name)
        assert report.comparisons[0].equal == equal, name
        assert bool(report.problems) != equal


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_the_command(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fill_topic(broker, topic, 2, 30)
    empty = f"{topic}-empty"
    create_topic(broker, empty, 1)
    page = tmp_path / "page.html"
    done = run_command(spark, broker, "audit", "--topic", topic, "--topic", empty, "--json", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert f"Reading {topic}, {empty} at {broker.bootstrap}: 30 offsets (partitions: 3)" in done.stderr
    report = json.loads(done.stdout)
    assert [sum(each["records"] for each in row["partitions"]) for row in report["topics"]] == [30, 0]
    assert "Records per hour and partition" in page.read_text()
    with pytest.raises(BadOptions, match="A topic is compared with one other topic"):
        audit_topics(spark, broker, topic, empty, compare_with=topic)
    dry = audit_topics(spark, broker, topic, dry_run=True)
    assert dry.topics == []


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_page_shows_what_a_producer_sent_as_text(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"x", key=b"<script>alert(1)</script>", timestamp=253_402_300_800_000)
    producer.produce(topic, b"x", key=b"\xff\xfe", timestamp=1)
    assert producer.flush(30) == 0
    report = audit_topics(spark, broker, topic)
    assert {each.key for each in report.topics[0].largest} == {"<script>alert(1)</script>", "\\xff\\xfe"}
    page = page_of(report)
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_records_are_the_same_in_both(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """Checksums are those of the manifest, whoever computes them."""
    fill_topic(broker, topic, 3, 90)
    summary = archive_topics(spark, broker, tmp_path, topic)
    report = audit_topics(spark, broker, topic)
    assert {each.partition: each.checksum for each in report.topics[0].partitions} == {
        partition: row.checksum for partition, row in summary.partitions[topic].items()
    }
    assert len(records_of(read_batch(spark, broker.bootstrap, topic))) == 90
