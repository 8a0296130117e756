"""What a test asks of a cluster: topics, groups, and waits."""

from __future__ import annotations

import pickle
import time

import pytest
import trio
from confluent_kafka import Consumer

from pykbroker.client import consumer as client
from pykbroker.client.cluster import Cluster
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.testing import BadInput, Broker, ConditionNotMet, KafkaError, UnknownTopic, operations
from pykbroker.testing.external_kafka import ExternalKafka


def test_a_topic_is_its_name(broker: Broker) -> None:
    topic = broker.create_topic("names", partitions=2, configs={"retention.ms": 1000, "cleanup.policy": ["compact"]})
    assert topic == "names"
    assert {topic: 1}["names"] == 1
    assert type(pickle.loads(pickle.dumps(topic))) is str
    assert topic.configs()["retention.ms"] == "1000"
    topic.alter_configs({"retention.ms": None, "cleanup.policy": "delete"})
    assert topic.configs()["retention.ms"] == "604800000"
    topic.add_partitions(5)
    assert topic.partition_count() == 5
    topic.delete()
    assert "names" not in broker.topics()


def test_records_are_read_as_they_were_written(broker: Broker) -> None:
    topic = broker.create_topic("reads", partitions=3)
    assert topic.produce("a", b"b", None, key="k", partition=1, headers=[("h", b"1")]) == [(1, 0), (1, 1), (1, 2)]
    topic.produce_all([("k1", "c"), (None, "d")])
    records = topic.records(partition=1)[:3]
    assert [(record.key, record.value, record.headers) for record in records] == [
        (b"k", value, (("h", b"1"),)) for value in (b"a", b"b", None)
    ]
    assert len(topic.records()) == 5
    assert sum(topic.end_offsets().values()) == 5
    assert topic.start_offsets() == {0: 0, 1: 0, 2: 0}
    with pytest.raises(BadInput, match="more than 4 records"):
        topic.records(most=4)
    with pytest.raises(BadInput, match="no partition 7"):
        topic.records(partition=7)
    with pytest.raises(UnknownTopic):
        broker.topic("nowhere").records()


def test_a_read_ends_where_the_log_has_lost_its_end_meanwhile(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a crash, or where a topic of the same name has taken its place."""
    broker.create_topic("again").produce("a", "b")
    real, polls = client.Consumer.poll, []

    async def poll(consumer: client.Consumer, max_records: int | None = None) -> list[ConsumedRecord]:
        polls.append(max_records)
        if len(polls) == 1:
            await operations.delete(consumer._cluster, "again")
            await operations.create(consumer._cluster, "again", 1, 1, {})
        return await real(consumer, max_records)

    async def read(cluster: Cluster) -> list[ConsumedRecord]:
        with trio.fail_after(30):
            return await operations.records_of(cluster, "again", {})

    monkeypatch.setattr(client.Consumer, "poll", poll)
    assert broker.call(read) == []


def test_a_group_is_followed_from_its_first_member_to_its_end(broker: Broker) -> None:
    topic = broker.create_topic("followed", partitions=2)
    topic.produce(*map(str, range(10)))
    group = broker.group("followers")
    with pytest.raises(KafkaError, match="not found"):
        group.state()
    broker.wait_for(group="followers", state="dead")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    read = len(consumer.consume(10, 30))
    while read < 10:
        read += len(consumer.consume(10 - read, 30))
    broker.wait_for(group=group, state="stable", members=1)
    assert [member.client_id for member in group.members()] == ["rdkafka"]
    with pytest.raises(ConditionNotMet, match="no committed offset"):
        broker.wait_for(group=group, lag=0, timeout=0.1)
    with pytest.raises(ConditionNotMet, match="its lag is 10"):
        broker.wait_for(group=group, topic=topic, lag=0, timeout=0.1)
    consumer.commit(asynchronous=False)
    broker.wait_for(group=group, lag=0)
    assert sum(group.offsets().values()) == 10
    consumer.close()
    broker.wait_for(group=group, state="empty")
    topic.produce("more")
    assert group.lag() == 1
    group.commit({("followed", 0): 0, ("followed", 1): 0})
    assert group.lag(topic) == group.lag() == 11
    group.delete()
    broker.wait_for(group=group, state="Dead")
    assert group not in broker.groups()


def test_a_wait_ends_at_its_time_and_says_what_there_was(broker: Broker) -> None:
    topic = broker.create_topic("waited")
    began = time.monotonic()
    with pytest.raises(ConditionNotMet, match=r"waited 0.2 s for 3 records in topic waited; there are 0"):
        broker.wait_for(topic=topic, records=3, timeout=0.2)
    assert time.monotonic() - began >= 0.2
    with pytest.raises(ConditionNotMet, match="2 partitions; it has 1 partition"):
        broker.wait_for(topic=topic, partitions=2, timeout=0.05)
    with pytest.raises(ConditionNotMet, match="waited 0 s for topic nowhere; it does not exist"):
        broker.wait_for(topic="nowhere", records=1, timeout=0)
    broker.wait_for(topic=topic, timeout=0)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "nothing to wait for"),
        ({"records": 3}, "name it, too"),
        ({"state": "stable"}, "a group"),
        ({"group": "g", "state": "stabel"}, "did you mean Stable"),
        ({"group": "g", "state": "asleep"}, "there are Stable, Empty"),
        ({"group": "g", "lag": -1}, "cannot be -1"),
        ({"group": "g", "colour": "red"}, "by 'colour'"),
    ],
)
def test_a_wait_that_means_nothing_is_an_error(broker: Broker, wanted: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        broker.wait_for(**wanted)  # type: ignore[arg-type]


def test_a_running_cluster_is_asked_in_the_same_way(broker: Broker) -> None:
    with ExternalKafka(broker.bootstrap_servers) as kafka:
        topic = kafka.create_topic("external")
        topic.produce("x")
        kafka.wait_for(topic=topic, records=1)
        assert broker.topic("external").values() == [b"x"]
