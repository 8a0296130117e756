"""`pykbroker.spark.mirror`: topics of one cluster in another, record by record, with the offsets of their groups."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import ConfigResource, NewPartitions

from compat_tests.topics import create_topic, fill_topic
from compat_tests.waiting import until
from pykbroker.spark import Listener, MirroredPartition, Progress
from pykbroker.spark.errors import BadOptions, ClusterUnavailable, RecordsLost, TopicChanged, WriteFailed
from pykbroker.spark.mirroring.positions import PREFIX as GROUP_PREFIX
from spark_compat.mirrors import (
    PREFIX,
    admin_of,
    assert_copied,
    commit,
    committed,
    copied_fields,
    delete_records,
    delete_topic,
    mirror_topics,
    next_values,
    produce,
)
from spark_compat.pipelines import run_command
from spark_compat.streams import write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker

SECOND_MS = 1000


def own_configs(broker: Broker, topic: str) -> dict[str, str]:
    admin = admin_of(broker)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    rows = admin.describe_configs([resource])[resource].result().values()
    return {row.name: row.value for row in rows if row.source == 1}


def mirror_groups(broker: Broker, topic: str) -> list[str]:
    admin = admin_of(broker)
    names = [each.group_id for each in admin.list_consumer_groups().result().valid]
    return [name for name in names if name.startswith(f"{GROUP_PREFIX}{PREFIX}{topic}-")]


def write_all_kinds(broker: Broker, topic: str) -> None:
    """Null, empty, binary and large fields, headers in order with duplicates, times of all kinds."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 2_000_000})
    now_ms = time.time_ns() // 1_000_000
    some = [None, b"", b"\x00\xff\xfe", "ключ".encode()]
    headers = [None, [("a", b"1"), ("a", b"2"), ("", None), ("b", b"")], [("ü", b"\xff")]]
    for i in range(90):
        producer.produce(
            topic,
            key=some[i % 4],
            value=some[i // 4 % 4],
            headers=headers[i % 3],
            timestamp=now_ms - i * SECOND_MS,
            partition=i % 3,
        )
    producer.produce(topic, b"x" * 1_500_000, partition=1)
    producer.produce(topic, b"first of all times", partition=2, timestamp=1)
    assert producer.flush(30) == 0


@pytest.mark.flaky(reruns=0)
@pytest.mark.parametrize("ways", [("apache-kafka", "pykbroker"), ("pykbroker", "apache-kafka")], ids="-to-".join)
def test_from_one_broker_to_the_other(
    spark: SparkSession,
    shared_brokers: Callable[[str], Broker],
    unique: Callable[[str], str],
    ways: tuple[str, str],
) -> None:
    """And a group goes on in the target with the record that it would have read next."""
    source, target = map(shared_brokers, ways)
    topic, group = unique("topic"), unique("group")
    configs = {
        "max.message.bytes": "2000000",
        "retention.ms": "-1",
        "min.insync.replicas": "1",
        "segment.ms": "9999999",
    }
    create_topic(source, topic, 3, configs)
    write_all_kinds(source, topic)
    commit(source, group, topic, [0, 17, 31])
    said: list[str] = []
    summary = mirror_topics(
        spark, source, target, topic, listener=Listener(said.append), prefix="", groups_matching=group
    )
    assert (summary.records, summary.left, summary.topics_created, summary.group_offsets) == (92, 0, [topic], 3)
    assert f"Created {topic}" in said
    assert_copied(spark, source, target, topic, prefix="")
    assert own_configs(target, topic) == {name: configs[name] for name in configs if name != "min.insync.replicas"}
    assert committed(target, group, topic, 3) == [0, 17, 31]
    assert next_values(target, group, topic, 3) == next_values(source, group, topic, 3)
    produce(source, topic, b"later", partition=1)
    assert mirror_topics(spark, source, target, topic, prefix="").records == 1
    assert_copied(spark, source, target, topic, prefix="")
    with pytest.raises(BadOptions, match="go around in circles"):
        mirror_topics(spark, target, source, topic, prefix="")


def test_a_run_goes_on_where_the_last_one_ended(spark: SparkSession, broker: Broker, topic: str) -> None:
    """In many batches, with partitions that come later, and with what transactions leave in the logs."""
    create_topic(broker, topic, 2)
    write_numbers(spark, broker.bootstrap, topic, range(100))
    first = mirror_topics(spark, broker, broker, topic, max_batch_records=30)
    assert (first.records, first.left) == (100, 0)
    assert first.batches >= 4
    assert mirror_topics(spark, broker, broker, topic).records == 0
    admin = admin_of(broker)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    until(lambda: len(admin.list_topics(topic).topics[topic].partitions) == 3, "the topic has grown")
    produce(broker, topic, b"in the new one", partition=2)
    produce(broker, topic, b"a", b"b", partition=0, transactional_id=f"{topic}-committed")
    second = mirror_topics(spark, broker, broker, topic)
    assert (second.records, second.left) == (3, 0)
    third = mirror_topics(spark, broker, broker, topic)
    assert (third.records, third.left, third.batches) == (0, 0, 0)
    assert_copied(spark, broker, broker, topic)
    assert [name.startswith(GROUP_PREFIX) for name in mirror_groups(broker, topic)] == [True]


def test_a_run_that_follows(spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]) -> None:
    """Until it is interrupted: new records, and the offsets of groups behind them."""
    create_topic(broker, topic, 1)
    produce(broker, topic, b"0")
    group = unique("group")
    commit(broker, group, topic, [0])
    moved: list[int] = []

    def progress(now: Progress) -> None:
        if committed(broker, group, PREFIX + topic, 1) != [-1001]:
            moved.append(now.records)
        if now.records == 5:
            raise KeyboardInterrupt
        produce(broker, topic, b"%d" % now.records)

    summary = mirror_topics(
        spark,
        broker,
        broker,
        topic,
        listener=Listener(progress=progress),
        follow=True,
        poll_interval_s=0.1,
        groups_matching=group,
        groups_interval_s=0.1,
    )
    assert (summary.records, summary.batches, summary.group_offsets) == (5, 5, 1)
    assert moved == [2, 3, 4, 5]
    assert_copied(spark, broker, broker, topic)


def test_until_a_time(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    now_ms = time.time_ns() // 1_000_000
    for i in range(10):
        producer.produce(topic, b"%d" % i, timestamp=now_ms - 10_000 + i * SECOND_MS)
    assert producer.flush(30) == 0
    assert mirror_topics(spark, broker, broker, topic, until=now_ms - 10_000 + 4 * SECOND_MS).records == 4
    assert mirror_topics(spark, broker, broker, topic).records == 6
    assert_copied(spark, broker, broker, topic)


def test_offsets_of_groups(spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]) -> None:
    """They are exact where the source has no gaps; they never go back, and leave members alone."""
    groups = [unique("group") for _ in range(3)]
    create_topic(broker, topic, 1)
    produce(broker, topic, *(b"%d" % i for i in range(50)))
    mirror_topics(spark, broker, broker, topic, max_batch_records=10)
    produce(broker, topic, *(b"%d" % i for i in range(50, 60)))
    for group, offset in zip(groups, (0, 37, 60), strict=True):
        commit(broker, group, topic, [offset])
    pattern = "|".join(groups)
    summary = mirror_topics(spark, broker, broker, topic, groups_matching=pattern)
    assert summary.group_offsets == 3
    copy = PREFIX + topic
    for group in groups:
        assert next_values(broker, group, copy, 1) == next_values(broker, group, topic, 1)
    ends = committed(broker, groups[2], copy, 1)
    commit(broker, groups[2], topic, [5])
    assert mirror_topics(spark, broker, broker, topic, groups_matching=pattern).group_offsets == 0
    assert committed(broker, groups[2], copy, 1) == ends
    commit(broker, groups[0], topic, [55])
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": groups[0], "enable.auto.commit": False})
    member.subscribe([copy])
    try:
        assert member.poll(30) is not None
        assert mirror_topics(spark, broker, broker, topic, groups_matching=pattern).group_offsets == 0
    finally:
        member.close()
    assert committed(broker, groups[0], copy, 1) == [0]
    assert mirror_topics(spark, broker, broker, topic, groups_matching=pattern).group_offsets == 1
    assert next_values(broker, groups[0], copy, 1) == [b"55"]


def test_groups_of_a_source_with_gaps(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]
) -> None:
    """Of aborted records and of markers: nobody leaves out a record."""
    create_topic(broker, topic, 1)
    for number in range(8):
        produce(broker, topic, *(b"%d.%d" % (number, i) for i in range(3)), transactional_id=f"{topic}-{number}")
    groups = {offset: unique("group") for offset in (0, 3, 5, 11, 20, 32)}
    for offset, group in groups.items():
        commit(broker, group, topic, [offset])
    mirror_topics(spark, broker, broker, topic, max_batch_records=9, groups_matching="|".join(groups.values()))
    originals = [value for _, _, value, _ in copied_fields(spark, broker, topic)[0]]
    assert len(originals) == 24
    for offset, group in groups.items():
        (wanted,), (found,) = (next_values(broker, group, name, 1) for name in (topic, PREFIX + topic))
        index = originals.index(wanted) if wanted is not None else len(originals)
        assert found is None or originals.index(found) <= index
        if offset in (0, 32):
            assert found == wanted


def test_a_pattern_that_copies_match_too(spark: SparkSession, broker: Broker, topic: str) -> None:
    """No copies of copies are made, on the same cluster or by a mirror in the other direction."""
    fill_topic(broker, topic, 1, 3)
    pattern = rf"(copy\.)*{re.escape(topic)}"
    for records in (3, 0):
        assert mirror_topics(spark, broker, broker, topics_matching=pattern).records == records
    names = [name for name in admin_of(broker).list_topics().topics if name.endswith(topic)]
    assert sorted(names) == [PREFIX + topic, topic]
    assert mirror_topics(spark, broker, broker, PREFIX + topic).records == 3


def test_new_leader_epochs_while_a_run_follows(spark: SparkSession, fresh_broker: FreshBroker, topic: str) -> None:
    """What was read is not taken for what an unclean election has cut off."""
    broker = fresh_broker()
    create_topic(broker, topic, 1)
    produce(broker, topic, b"0")

    def progress(now: Progress) -> None:
        if now.records == 3:
            raise KeyboardInterrupt
        broker.kill()
        broker.start()
        produce(broker, topic, b"%d" % now.records)

    said: list[str] = []
    listener = Listener(said.append, progress)
    summary = mirror_topics(spark, broker, broker, topic, listener=listener, follow=True, poll_interval_s=0.1)
    assert (summary.records, len(said)) == (3, 2)
    assert mirror_topics(spark, broker, broker, topic).records == 0
    assert_copied(spark, broker, broker, topic)


def test_a_topic_that_is_created_again_while_a_run_follows(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    produce(broker, topic, b"0")

    def progress(now: Progress) -> None:
        delete_topic(broker, topic)
        create_topic(broker, topic, 1)
        produce(broker, topic, b"1", b"2")

    with pytest.raises((BadOptions, TopicChanged), match=r"that no mirror of|deleted and created again"):
        mirror_topics(
            spark, broker, broker, topic, listener=Listener(progress=progress), follow=True, poll_interval_s=0.1
        )
    assert [value for _, _, value, _ in copied_fields(spark, broker, PREFIX + topic)[0]] == [b"0"]


def test_positions_that_have_expired(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Brokers forget a group's offsets a week after its last commit; the journal has them still."""
    create_topic(broker, topic, 2)
    write_numbers(spark, broker.bootstrap, topic, range(60))
    mirror_topics(spark, broker, broker, topic)
    (group,) = mirror_groups(broker, topic)
    admin = admin_of(broker)
    admin.delete_consumer_groups([group])[group].result()
    write_numbers(spark, broker.bootstrap, topic, range(60, 70))
    assert mirror_topics(spark, broker, broker, topic).records == 10
    assert_copied(spark, broker, broker, topic)


def test_topics_that_were_created_again(spark: SparkSession, broker: Broker, topic: str) -> None:
    """The target is filled again; behind records of an earlier source nothing is written but on request."""
    create_topic(broker, topic, 1)
    produce(broker, topic, b"1", b"2")
    mirror_topics(spark, broker, broker, topic)
    delete_topic(broker, PREFIX + topic)
    assert mirror_topics(spark, broker, broker, topic).records == 2
    assert_copied(spark, broker, broker, topic)
    delete_topic(broker, topic)
    create_topic(broker, topic, 1)
    produce(broker, topic, b"3")
    with pytest.raises(BadOptions, match=r"has records up to offset . that no mirror of .* has written"):
        mirror_topics(spark, broker, broker, topic)
    assert mirror_topics(spark, broker, broker, topic, append=True).records == 1
    values = [value for _, _, value, _ in copied_fields(spark, broker, PREFIX + topic)[0]]
    assert values == [b"1", b"2", b"3"]


def test_records_that_were_deleted_before_they_were_read(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    produce(broker, topic, *(b"%d" % i for i in range(10)))
    mirror_topics(spark, broker, broker, topic)
    produce(broker, topic, *(b"%d" % i for i in range(10, 20)))
    delete_records(broker, topic, 15)
    with pytest.raises(RecordsLost, match="begins at offset 15, and the mirror ends at 10"):
        mirror_topics(spark, broker, broker, topic)
    said: list[str] = []
    summary = mirror_topics(spark, broker, broker, topic, listener=Listener(said.append), accept_loss=True)
    assert summary.records == 5
    assert f"WARN: offsets 10 to 14 of {topic}-0 were deleted before they were read" in said


def test_what_is_refused(spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]) -> None:
    fill_topic(broker, topic, 1, 3)
    for words, error, options in (
        ("are the same topic", BadOptions, {"prefix": ""}),
        ("bootstrap.servers is not to be chosen", BadOptions, {"producer_properties": {"bootstrap.servers": "x"}}),
        ("The producers cannot begin", BadOptions, {"producer_properties": {"no.such": "x"}}),
        ("'\\(' is no regular expression", BadOptions, {"groups_matching": "("}),
        ("cannot be created", ClusterUnavailable, {"replication_factor": 7}),
    ):
        with pytest.raises(error, match=words):
            mirror_topics(spark, broker, broker, topic, **options)
    with pytest.raises(BadOptions, match="does not exist"):
        mirror_topics(spark, broker, broker, unique("nowhere"))
    other = unique("other")
    fill_topic(broker, other, 1, 3)
    fill_topic(broker, PREFIX + other, 1, 3)
    with pytest.raises(BadOptions, match="that no mirror of"):
        mirror_topics(spark, broker, broker, other)
    large = unique("large")
    create_topic(broker, large, 1)
    create_topic(broker, PREFIX + large, 1, {"max.message.bytes": "1000"})
    produce(broker, large, bytes(range(256)) * 100)
    said: list[str] = []
    with pytest.raises(WriteFailed, match=r"too large|size"):
        mirror_topics(
            spark,
            broker,
            broker,
            large,
            listener=Listener(said.append),
            producer_properties={"compression.type": "none"},
        )
    assert any(line.startswith(f"WARN: {PREFIX}{large} has max.message.bytes=1000") for line in said)


def test_the_command(spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str]) -> None:
    fill_topic(broker, topic, 2, 10)
    group = unique("group")
    commit(broker, group, topic, [5, 2])
    options = ("--target-bootstrap-server", broker.bootstrap, "--topic", topic, "--prefix", PREFIX)
    dry = run_command(spark, broker, "mirror", *options, "--dry-run")
    assert dry.returncode == 0
    assert f"Would create {PREFIX}{topic}" in dry.stderr
    assert f"Would copy {topic}: 10 offsets (partitions: 2)" in dry.stderr
    assert PREFIX + topic not in admin_of(broker).list_topics().topics
    done = run_command(spark, broker, "mirror", *options, "--groups-matching", group, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["records"], summary["left"], summary["group_offsets"]) == (10, 0, 2)
    assert summary["partitions"][topic]["1"] == {"next_offset": 5, "target_offset": 5}
    again = run_command(spark, broker, "mirror", *options, "--no-groups")
    assert again.returncode == 0
    assert "Copied 0 records, 0 B, in 0 batches. 0 offsets are left" in again.stdout
    assert_copied(spark, broker, broker, topic)
    missing = run_command(spark, broker, "mirror", *options[:2], "--topic", unique("nowhere"))
    assert missing.returncode == 1
    assert "does not exist" in missing.stderr
    assert len(missing.stderr.splitlines()) == 1


def test_a_summary_says_where_each_partition_is(spark: SparkSession, broker: Broker, topic: str) -> None:
    fill_topic(broker, topic, 2, 6)
    summary = mirror_topics(spark, broker, broker, topic)
    assert summary.partitions == {topic: {0: MirroredPartition(3, 3), 1: MirroredPartition(3, 3)}}
