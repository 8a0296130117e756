"""`pykbroker.spark.replay`: records of an archive come back as they were, those that the target does not have."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from pyspark.sql.functions import expr

from compat_tests.topics import create_topic, fill_topic
from compat_tests.waiting import until
from pykbroker.spark import AuditOptions, Listener, Selection, Source, audit, read_archive
from pykbroker.spark.auditing.page import page_of
from pykbroker.spark.errors import ArchiveMismatch, BadOptions, ClusterUnavailable, TaskLost, WriteFailed
from pykbroker.spark.identities import HEADER, Origin
from pykbroker.spark.replaying.positions import positions
from pykbroker.spark.session import pipeline_session
from pykbroker.spark.writing.driver import TopicWriter
from spark_compat.pipelines import archive_topics, audit_replay, records_of, replay_topic, run_command
from spark_compat.streams import numbers, read_batch, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

DAY_MS = 86_400_000

NewTopic = Callable[..., str]


@pytest.fixture
def new_topic(broker: Broker, unique: Callable[[str], str]) -> NewTopic:
    """A function of the number of partitions and of configs, which creates a topic to write to."""

    def create(partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        name = unique("back")
        create_topic(broker, name, partitions, configs)
        return name

    return create


def origin_of(path: Path, topic: str) -> Origin:
    commit = json.loads(next(path.glob("_pykbroker/commits/*1.json")).read_text())
    return Origin(commit["cluster_id"], topic, commit["topic_ids"][topic])


def copies_of(spark: SparkSession, broker: Broker, topic: str, origin: Origin) -> list[tuple[Any, ...]]:
    """Records as the archive has them, but for the type of their timestamps, by partition and offset of the source."""
    found = []
    committed = {"kafka.isolation.level": "read_committed"}
    for _, _, _, timestamp, _, key, value, headers in records_of(
        read_batch(spark, broker.bootstrap, topic, **committed)
    ):
        *others, (name, identity) = headers
        assert name == HEADER
        assert identity.startswith(origin.prefix.encode())
        partition, offset = map(int, identity.decode().removeprefix(origin.prefix).split(":"))
        found.append((partition, offset, timestamp, key, value, others or None))
    return sorted(found, key=lambda record: record[:2])


def originals_of(spark: SparkSession, path: Path, topic: str) -> list[tuple[Any, ...]]:
    return [(*record[1:4], *record[5:]) for record in records_of(read_archive(spark, str(path), [topic]))]


@pytest.mark.parametrize("exactly_once", [False, True])
def test_every_field_comes_back(
    spark: SparkSession,
    broker: Broker,
    unique: Callable[[str], str],
    new_topic: NewTopic,
    tmp_path: Path,
    exactly_once: bool,
) -> None:
    sent, back = unique("sent"), new_topic(3, {"max.message.bytes": "2000000"})
    create_topic(broker, sent, 3, {"max.message.bytes": "2000000"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 2_000_000})
    now_ms = time.time_ns() // 1_000_000
    some = [None, b"", b"\x00\xff\xfe", "ключ".encode()]
    headers = [None, [("a", b"1"), ("a", b"2"), ("", None), ("b", b"")], [("ü", b"\xff")]]
    for i in range(90):
        producer.produce(
            sent,
            key=some[i % 4],
            value=some[i // 4 % 4],
            headers=headers[i % 3],
            timestamp=now_ms - i * DAY_MS // 20,
            partition=i % 3,
        )
    producer.produce(sent, b"x" * 1_500_000, partition=1)
    assert producer.flush(30) == 0
    with_times = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for timestamp_ms in (0, 1, -1):
        with_times.send(sent, b"%d" % timestamp_ms, partition=2, timestamp_ms=timestamp_ms)
    with_times.close()
    archive_topics(spark, broker, tmp_path, sent)
    said: list[str] = []
    summary = replay_topic(
        spark, broker, tmp_path, sent, back, Listener(said.append), exactly_once=exactly_once, max_batch_records=40
    )
    assert (summary.selected, summary.there, summary.records) == (94, 0, 94)
    assert summary.batches >= 3
    copies = copies_of(spark, broker, back, origin_of(tmp_path, sent))
    originals = originals_of(spark, tmp_path, sent)
    (zero,) = (i for i, record in enumerate(originals) if record[4] == b"0")
    assert "WARN: 1 records have the timestamp 0, which librdkafka cannot send: it becomes 1 ms" in said
    assert copies[zero][2].timestamp() == 0.001
    assert copies[:zero] + copies[zero + 1 :] == originals[:zero] + originals[zero + 1 :]
    again = replay_topic(spark, broker, tmp_path, sent, back, exactly_once=exactly_once)
    assert (again.there, again.records, again.batches) == (94, 0, 0)


def test_what_is_there_is_not_written_again(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Whatever part of it, and wherever the holes are."""
    fill_topic(broker, topic, 2, 200)
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic(2)
    said: list[str] = []

    def run(**options: Any) -> tuple[int, int]:
        summary = replay_topic(spark, broker, tmp_path, topic, back, Listener(said.append), **options)
        return summary.records, summary.there

    assert run(selection=Selection(offsets={0: (10, 30)})) == (20, 0)
    assert run(selection=Selection(offsets={0: (20, 50), 1: (0, 7)}), exactly_once=True) == (27, 10)
    assert not any("comes after them" in line for line in said)
    assert run(dry_run=True) == (0, 47)
    assert run(max_batch_records=60) == (153, 47)
    assert any(f"{back}-0 has records behind offset 0 of the archive already, and" in line for line in said)
    assert run() == (0, 200)
    assert copies_of(spark, broker, back, origin_of(tmp_path, topic)) == originals_of(spark, tmp_path, topic)
    report = audit_replay(spark, broker, tmp_path, topic, back)
    assert (report.equal, report.missing, report.twice, report.other_records) == (True, 0, 0, 0)
    assert report.steps_back == 1, "the first ten came later"


def test_a_range_of_times(spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path) -> None:
    create_topic(broker, topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    begun_ms = time.time_ns() // 1_000_000 - DAY_MS
    times = [begun_ms + random.Random(7).randrange(10_000) for _ in range(300)]
    for i, at_ms in enumerate(times):
        producer.produce(topic, b"%d" % i, timestamp=at_ms, partition=i % 2)
    assert producer.flush(30) == 0
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic(2)
    selection = Selection(begun_ms + 2000, begun_ms + 5000)
    expected = [i for i, at_ms in enumerate(times) if begun_ms + 2000 <= at_ms < begun_ms + 5000]
    summary = replay_topic(spark, broker, tmp_path, topic, back, selection=selection, max_batch_records=50)
    assert summary.records == summary.selected == len(expected)
    assert numbers(read_batch(spark, broker.bootstrap, back)) == expected
    assert audit_replay(spark, broker, tmp_path, topic, back, selection).problems == []
    assert audit_replay(spark, broker, tmp_path, topic, back).missing == 300 - len(expected)


def test_other_partitions_are_those_of_the_keys(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """As Java's producer, on which Spark's sink is built, has them; the order of each key is kept."""
    create_topic(broker, topic, 3)
    write_numbers(spark, broker.bootstrap, topic, range(300))
    archive_topics(spark, broker, tmp_path, topic)
    back, alike = new_topic(5), new_topic(5)
    write_numbers(spark, broker.bootstrap, alike, range(300))
    replay_topic(spark, broker, tmp_path, topic, back, same_partitions=False, exactly_once=True)

    def by_key(name: str) -> dict[tuple[int, bytes], list[bytes]]:
        found = defaultdict(list)
        for record in records_of(read_batch(spark, broker.bootstrap, name)):
            found[record[1], record[5]].append(record[6])
        return found

    assert by_key(back) == by_key(alike)
    report = audit_replay(spark, broker, tmp_path, topic, back)
    assert (report.problems, report.equal) == ([], True)


def test_a_topic_that_was_created_again_has_other_identities(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], new_topic: NewTopic, tmp_path: Path
) -> None:
    """Its offsets begin at 0 again; what the target has of the first one is nothing of the second."""
    topic, back = unique("source"), new_topic()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for life in range(2):
        fill_topic(broker, topic, 1, 10)
        archive_topics(spark, broker, tmp_path / str(life), topic)
        assert replay_topic(spark, broker, tmp_path / str(life), topic, back).records == 10
        admin.delete_topics([topic])[topic].result()
        until(lambda: topic not in admin.list_topics(timeout=10).topics, "the topic is gone")
    for life in range(2):
        report = audit_replay(spark, broker, tmp_path / str(life), topic, back)
        assert (report.problems, report.other_records) == ([], 10)
    # The topic itself, from its archive.
    create_topic(broker, topic, 1)
    assert replay_topic(spark, broker, tmp_path / "1", topic, topic).records == 10
    with pytest.raises(ArchiveMismatch, match="deleted and created again"):
        audit(AuditOptions(Source(broker.bootstrap), topics=[topic], archive=str(tmp_path / "1")), spark=spark)
    assert audit_replay(spark, broker, tmp_path / "1", topic, topic).problems == []
    # A copy of a copy: both identities are headers, the last one is that of the copy's source.
    archive_topics(spark, broker, tmp_path / "copy", topic)
    further = new_topic()
    assert replay_topic(spark, broker, tmp_path / "copy", topic, further).records == 10
    assert audit_replay(spark, broker, tmp_path / "copy", topic, further).problems == []
    rows = records_of(read_batch(spark, broker.bootstrap, further))
    assert all([name for name, _ in row[7]] == [HEADER, HEADER] for row in rows)


def test_transactions_of_the_target(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], new_topic: NewTopic, tmp_path: Path
) -> None:
    """Records of a transaction that was aborted are not there; behind an open one nobody knows."""
    fill_topic(broker, topic, 1, 10)
    archive_topics(spark, broker, tmp_path, topic)
    prefix = origin_of(tmp_path, topic).prefix
    back = new_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": unique("id")})
    producer.init_transactions()

    def send(offsets: range) -> None:
        producer.begin_transaction()
        for offset in offsets:
            producer.produce(back, b"%d" % offset, headers=[(HEADER, f"{prefix}0:{offset}".encode())])
        assert producer.flush(30) == 0

    send(range(4))
    producer.abort_transaction()
    send(range(6))
    ended = threading.Event()

    def say(line: str) -> None:
        if line.startswith(f"Waiting for the end of transactions that are open in {back}-0 at offset 5"):
            producer.commit_transaction()
            ended.set()

    summary = replay_topic(spark, broker, tmp_path, topic, back, Listener(say))
    assert ended.is_set()
    assert (summary.there, summary.records) == (6, 4)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_transaction_that_stays_open_ends_the_run(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    unique: Callable[[str], str],
    new_topic: NewTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykbroker.spark.open_transactions._PATIENCE_S", 1.0)
    fill_topic(broker, topic, 1, 10)
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": unique("id")})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(back, b"open")
    assert producer.flush(30) == 0
    with pytest.raises(ClusterUnavailable, match=f"Transactions are open in {back}-0 at offset 0"):
        replay_topic(spark, broker, tmp_path, topic, back)
    producer.abort_transaction()


def test_an_audit_finds_what_is_wrong(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Missing, changed, twice, in another order: in a partition each. And what comes from elsewhere."""
    whole = list(range(100))
    sent = {
        0: whole,
        1: [each for each in whole if each not in (40, 41)],
        2: whole,
        3: [*whole, 99, 99],
        4: [*range(50, 100), *range(50)],
    }
    fill_topic(broker, topic, len(sent), 100 * len(sent))
    archive_topics(spark, broker, tmp_path, topic)
    prefix = origin_of(tmp_path, topic).prefix
    rows = {record[:2]: record for record in originals_of(spark, tmp_path, topic)}
    back = new_topic(len(sent))
    where, what = f"{back} ({broker.bootstrap})", f"{topic} in file:{tmp_path}"
    assert audit_replay(spark, broker, tmp_path, topic, back).problems == [f"{where} has 500 records less than {what}"]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, offsets in sent.items():
        for offset in offsets:
            _, _, timestamp, key, value, _ = rows[partition, offset]
            producer.produce(
                back,
                b"changed" if (partition, offset) == (2, 77) else value,
                key,
                partition=partition,
                timestamp=round(timestamp.timestamp() * 1000),
                headers=[(HEADER, f"{prefix}{partition}:{offset}".encode())],
            )
    foreign = (b"elsewhere", prefix.encode(), f"{prefix}0:".encode(), f"{prefix}x:5".encode(), b"\xff")
    for identity in foreign:
        producer.produce(back, b"foreign", headers=[(HEADER, identity)])
    producer.produce(back, b"without headers")
    assert producer.flush(30) == 0
    report = audit_replay(spark, broker, tmp_path, topic, back)
    assert report.problems == [
        f"{where} has 2 records less than {what}",
        f"2 records of {what} are in {where} more than once",
        f"{where} has records of {what} in another order: 1 steps back",
    ]
    assert [(each.partition, each.replayed, each.twice, each.equal) for each in report.partitions] == [
        (0, 100, 0, True),
        (1, 98, 0, False),
        (2, 100, 0, False),
        (3, 100, 2, True),
        (4, 100, 0, True),
    ]
    assert [tuple(asdict(each).values()) for each in report.differences] == [(1, 32, 47, 14, 16), (2, 64, 79, 16, 16)]
    assert report.other_records == len(foreign) + 1


def test_a_value_that_was_changed(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """And nothing else, on the page, too."""
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    now_ms = time.time_ns() // 1_000_000
    producer.produce(topic, b"value", timestamp=now_ms)
    assert producer.flush(30) == 0
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic()
    identity = (HEADER, f"{origin_of(tmp_path, topic).prefix}0:0".encode())
    producer.produce(back, b"valve", timestamp=now_ms, headers=[identity])
    assert producer.flush(30) == 0
    options = AuditOptions(Source(broker.bootstrap), topics=[back], archive=str(tmp_path), replayed_from=topic)
    report = audit(options, spark=spark)
    line = f"{back} ({broker.bootstrap}) has other records than {topic} in file:{tmp_path}"
    assert report.problems == [line]
    page = page_of(report)
    assert line in page
    assert f"{back} at {broker.bootstrap} beside {topic} in file:{tmp_path}" in page


def test_what_the_target_does_to_records_is_told(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"old", timestamp=time.time_ns() // 1_000_000 - 8 * DAY_MS)
    producer.produce(topic, b"new")
    assert producer.flush(30) == 0
    archive_topics(spark, broker, tmp_path, topic)

    def warnings(**configs: str) -> list[str]:
        back = new_topic(1, {name.replace("_", "."): value for name, value in configs.items()})
        said: list[str] = []
        assert replay_topic(spark, broker, tmp_path, topic, back, Listener(said.append)).records == 2
        return [line.removeprefix(f"WARN: {back} ") for line in said if line.startswith("WARN: ")]

    late = "has retention.ms=604800000, and records are older than that: the brokers delete them soon"
    assert warnings(retention_ms="604800000") == [late]
    assert warnings(retention_ms="-1") == []
    assert warnings(retention_ms="864000000") == []
    own = "has message.timestamp.type=LogAppendTime: records get new timestamps"
    assert warnings(message_timestamp_type="LogAppendTime") == [own]
    compacted = new_topic(1, {"cleanup.policy": "compact"})
    said: list[str] = []
    with pytest.raises(
        WriteFailed, match=r"Records cannot be written: .*failed to validate record"
    ):  # they have no keys
        replay_topic(spark, broker, tmp_path, topic, compacted, Listener(said.append))
    assert any("is compacted" in line for line in said)


def test_timestamps_of_the_target_are_not_compared(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 20)
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic(1, {"message.timestamp.type": "LogAppendTime"})
    replay_topic(spark, broker, tmp_path, topic, back)
    report = audit_replay(spark, broker, tmp_path, topic, back)
    assert (report.problems, report.timestamps_compared) == ([], False)
    with pytest.raises(BadOptions, match="has timestamps of its own"):
        audit_replay(spark, broker, tmp_path, topic, back, Selection(from_ms=1))


def test_what_is_refused(spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path) -> None:
    fill_topic(broker, topic, 3, 30)
    archive_topics(spark, broker, tmp_path, topic)
    small = new_topic(2)

    def refused(to_topic: str, match: str, error: type[Exception] = BadOptions, **options: Any) -> None:
        with pytest.raises(error, match=match):
            replay_topic(spark, broker, tmp_path, topic, to_topic, **options)

    refused(f"{topic}-not", "does not exist")
    refused(topic, "is the topic that was archived")
    refused(small, "has 2 partitions, and the archive has partition 2")
    refused(small, "has no partition 7", selection=Selection(offsets={7: (0, 1)}))
    refused(small, "Offsets 5 to 5 of partition 0 are no range", selection=Selection(offsets={0: (5, 5)}))
    refused(small, "The range of times is empty", selection=Selection(5, 5))
    refused(small, "rate is", rate=-1.0)
    refused(small, "max_batch_records is 1 at least", max_batch_records=0)
    chosen = {"selection": Selection(offsets={0: (0, 5)})}
    refused(small, "No such configuration property", producer_properties={"no.such": "1"}, **chosen)
    refused(small, "enable.idempotence is not to be chosen", producer_properties={"enable.idempotence": "no"}, **chosen)
    with pytest.raises(ArchiveMismatch, match="has no topic 'other'"):
        replay_topic(spark, broker, tmp_path, "other", small)
    with pytest.raises(ArchiveMismatch, match="is no archive"):
        replay_topic(spark, broker, tmp_path / "nothing", topic, small)
    assert replay_topic(spark, broker, tmp_path, topic, small, **chosen).records == 5
    narrow = new_topic(3, {"max.message.bytes": "100"})
    for exactly_once in (False, True):
        refused(narrow, f"{narrow}-.: .*too large", WriteFailed, exactly_once=exactly_once)


def test_records_are_written_at_the_rate_that_was_chosen(
    spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Not faster, by the times at which the broker appended them."""
    fill_topic(broker, topic, 3, 300)
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic(3, {"message.timestamp.type": "LogAppendTime"})
    summary = replay_topic(spark, broker, tmp_path, topic, back, rate=60.0, max_batch_records=150)
    assert (summary.records, summary.batches) == (300, 2)
    times = [record[3].timestamp() for record in records_of(read_batch(spark, broker.bootstrap, back))]
    assert max(times) - min(times) >= 300 / 60 / 1.25 * 0.9


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_task_that_is_lost_is_not_simply_repeated(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    new_topic: NewTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target is asked what it has; a run gives up when that happens again and again."""
    fill_topic(broker, topic, 2, 100)
    archive_topics(spark, broker, tmp_path, topic)
    back = new_topic(2)
    write = TopicWriter.write
    losses = 2

    def lost_behind_it(self: TopicWriter, *arguments: Any) -> Any:
        nonlocal losses
        written = write(self, *arguments)
        if losses:
            losses -= 1
            raise TaskLost("A task was lost")
        return written

    monkeypatch.setattr(TopicWriter, "write", lost_behind_it)
    said: list[str] = []
    replay_topic(spark, broker, tmp_path, topic, back, Listener(said.append), max_batch_records=20)
    assert sum(line.startswith("A task was lost; looking at what") for line in said) == 2
    assert audit_replay(spark, broker, tmp_path, topic, back).problems == []
    losses = 100
    further = new_topic(2)
    with pytest.raises(TaskLost):
        replay_topic(spark, broker, tmp_path, topic, further, max_batch_records=20)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_the_command(spark: SparkSession, broker: Broker, topic: str, new_topic: NewTopic, tmp_path: Path) -> None:
    fill_topic(broker, topic, 2, 40)
    path = tmp_path / "an archive"
    archive_topics(spark, broker, path, topic)
    back = new_topic(2)

    def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        return run_command(spark, broker, name, "--archive", str(path), *options)

    to_back = ("--topic", topic, "--to-topic", back, "--offsets", "0:5:10")
    dry = run("replay", *to_back, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"Would write 5 records of {topic} in file:{path} to {back} at {broker.bootstrap}" in dry.stderr
    done = run("replay", *to_back, "--json", "--exactly-once", "--producer-property", "compression.type=none")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == 5
    audited = run(
        "audit", "--topic", back, "--replayed-from", topic, "--offsets", "0:5:10", "--html", str(tmp_path / "p")
    )
    assert audited.returncode == 0, audited.stderr
    assert "equal, 5 of 5 records are there, 0 of them again, 0 steps back" in audited.stdout
    assert "Partition of the archive" in (tmp_path / "p").read_text()
    wrong = run("replay", "--topic", topic, "--offsets", "0:x:1")
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "Error: --offsets expects PARTITION:FIRST:END, three numbers, not '0:x:1'\n",
    )


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(3))
def test_positions_of_any_records(spark: SparkSession, seed: int, kind: str) -> None:
    """Beside what Python says of the same offsets."""
    rng = random.Random(seed)
    archived, there = [], []
    for partition in range(12):
        offsets = sorted(rng.sample(range(400), rng.choice([1, 2, 65, 300])))
        archived += [(partition, offset) for offset in offsets]
        share = rng.choice([0.0, 0.5, 0.98, 1.0])
        there += [(partition, offset) for offset in offsets if rng.random() < share]
        there += [(partition, 1000), (99, 5)]
    there += there[: len(there) // 4]
    with pipeline_session(spark=spark) as session:
        rows = session.createDataFrame(archived, "partition INT, offset BIGINT")
        others = session.createDataFrame(there, "source_partition INT, source_offset BIGINT")
        found = positions(rows.withColumn("timestamp", expr("timestamp_millis(1000 + offset)")), others)
    expected = {}
    for partition in range(12):
        mine = [offset for each, offset in archived if each == partition]
        missing = [offset for offset in mine if (partition, offset) not in set(there)]
        present = [offset for offset in mine if (partition, offset) in set(there)]
        if missing:
            holes = bool(present) and max(present) > missing[0]
            expected[partition] = (len(mine), len(missing), missing[0], missing[-1], holes)
        else:
            expected[partition] = (len(mine), 0, 0, 0, False)
    assert {partition: tuple(at[:5]) for partition, at in found.items()} == expected
    assert all(1000 <= at.oldest_ms <= 1000 + at.first for at in found.values() if at.missing)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
@pytest.mark.parametrize("count", [1, 3, 40])
def test_each_task_has_the_partitions_that_it_is_given(spark: SparkSession, count: int, kind: str) -> None:
    with pipeline_session(spark=spark) as session:
        writer = TopicWriter(session)
        tasks = writer.tasks_of({partition: 1 + partition % 7 for partition in range(count)}, at_once=False)
        assert sorted(tasks) == list(range(count))
        assert len(set(tasks.values())) == min(count, 8)
        assert len(set(writer.tasks_of(dict.fromkeys(range(count), 1), at_once=True).values())) == min(count, 2)
        rows = session.range(count * 5).selectExpr(f"CAST(id % {count} AS INT) AS route", "id AS offset")
        placed = writer.placed(rows, tasks).selectExpr("route", "spark_partition_id() AS task", "offset").collect()
    assert {(row["route"], row["task"]) for row in placed} == set(tasks.items())
    assert len(placed) == count * 5
