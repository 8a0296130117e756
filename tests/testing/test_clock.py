"""Time passes in scopes, as stock clients see it, by Apache Kafka's settings for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from pykbroker.client import delegation_tokens
from pykbroker.client.cluster import Cluster as Client
from pykbroker.client.errors import ClientError
from pykbroker.client.from_properties import cluster_of
from pykbroker.replication.partition import Partition
from pykbroker.server.node.broker import Broker as Node
from pykbroker.testing import Broker, Cluster

NEVER = "2000000000"
BY_ITSELF_NEVER = {
    "log.retention.check.interval.ms": NEVER,
    "log.cleaner.backoff.ms": NEVER,
    "log.initial.task.delay.ms": NEVER,
    "producer.id.expiration.check.interval.ms": NEVER,
    "offsets.retention.check.interval.ms": NEVER,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": NEVER,
    "transaction.remove.expired.transaction.cleanup.interval.ms": NEVER,
    "delegation.token.expiry.check.interval.ms": NEVER,
}
"""Nobody looks for what is due but an advance, which so proves that it does."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(BY_ITSELF_NEVER) as broker:
        yield broker


@contextmanager
def consumer(broker: Broker | Cluster, group: str, topic: str, **settings: Any) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    try:
        yield client
    finally:
        client.close(autocommit=False)


def test_retention_deletes_what_is_there_and_keeps_what_comes(broker: Broker) -> None:
    topic = broker.create_topic("retention", configs={"retention.ms": 7 * 86_400_000})
    topic.produce("old", "older")
    broker.clock.advance("6d", scope="retention")
    assert topic.start_offsets() == {0: 0}
    broker.clock.advance("23h", scope="retention")
    broker.clock.advance("59m", scope="retention")
    assert topic.start_offsets() == {0: 0}
    broker.clock.advance("1m", scope="retention")
    assert topic.start_offsets() == {0: 2}
    topic.produce("new")
    broker.clock.advance("6d", scope="retention")
    assert topic.values() == [b"new"]


def test_timestamps_of_records_stay_the_clocks(broker: Broker) -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    topic = broker.create_topic("stamped", configs=configs)
    broker.clock.advance("30d", scope="all")
    before_ms = int(time.time() * 1000)
    topic.produce("a")
    (record,) = topic.records()
    assert before_ms <= record.timestamp <= int(time.time() * 1000)


def test_an_idle_transaction_is_aborted_with_its_markers(broker: Broker) -> None:
    topic = broker.create_topic("transactions")
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "slow",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transactions", b"undecided")
    producer.flush(30)
    broker.clock.advance("9m", scope="transactions")
    assert len(topic.records(read_uncommitted=True)) == 1
    broker.clock.advance("2m", scope="transactions")
    # The marker of the abort is behind the record, and the last stable offset behind the marker.
    assert topic.end_offsets() == {0: 2}
    assert topic.values() == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    other = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "quick"})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce("transactions", b"decided")
    other.commit_transaction(30)
    assert topic.values() == [b"decided"]


def test_a_transaction_behind_an_advance_has_its_time() -> None:
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"}) as broker:
        topic = broker.create_topic("t")
        broker.clock.advance("1d", scope="transactions")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "a"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"1")
        producer.flush(30)
        time.sleep(0.2)  # ten looks for transactions that take too long
        producer.commit_transaction(30)
        assert topic.values() == [b"1"]


def test_offsets_of_a_group_that_is_gone_expire(broker: Broker) -> None:
    broker.create_topic("offsets")
    broker.topic("offsets").produce("1", "2")
    with consumer(broker, "gone", "offsets") as client:
        next(client)
        client.commit()
        broker.clock.advance("30d", scope="offsets")
        assert broker.group("gone").offsets() == {("offsets", 0): 1}, "the group has members"
    broker.clock.advance("6d", scope="offsets")
    assert broker.group("gone").offsets() == {("offsets", 0): 1}
    broker.clock.advance("1d", scope="offsets")
    assert broker.group("gone").offsets() == {}
    assert "gone" not in broker.groups()
    broker.group("gone").commit({("offsets", 0): 2})
    broker.clock.advance("6d", scope="offsets")
    assert broker.group("gone").offsets() == {("offsets", 0): 2}


def test_a_silent_member_loses_its_partitions(broker: Broker) -> None:
    broker.create_topic("sessions")
    broker.topic("sessions").produce("1")
    silent = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "members",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 600_000,
            "heartbeat.interval.ms": 300_000,
            "max.poll.interval.ms": 600_000,
        }
    )
    silent.subscribe(["sessions"])
    assert silent.poll(30).value() == b"1"
    broker.clock.advance("9m", scope="sessions")
    assert broker.group("members").state() == "Stable"
    broker.clock.advance("2m", scope="sessions")
    assert broker.group("members").members() == ()
    assert broker.group("members").state() == "Empty"
    silent.close()


def test_a_live_member_comes_back(broker: Broker) -> None:
    broker.create_topic("rejoined")
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "rejoining",
            "auto.offset.reset": "earliest",
            "group.protocol": "consumer",
        }
    )
    client.subscribe(["rejoined"])
    broker.topic("rejoined").produce("1")
    assert client.poll(30).value() == b"1"
    client.commit(asynchronous=False)
    broker.clock.advance("1h", scope="sessions")
    assert broker.group("rejoining").members() == ()
    broker.topic("rejoined").produce("2")
    assert client.poll(30).value() == b"2"
    deadline = time.monotonic() + 30
    while not broker.group("rejoining").members() and time.monotonic() < deadline:
        client.poll(0.1)
    assert len(broker.group("rejoining").members()) == 1
    client.close()


def node_of(broker: Broker) -> Node:
    (control,) = broker.controls
    assert control.node is not None
    assert control.node.parts is not None
    assert control.node.parts.broker_role is not None
    return control.node.parts.broker_role.broker


def producers_of(broker: Broker, topic: str) -> int:
    partition = node_of(broker).partitions.get_partition(topic, 0)
    assert isinstance(partition, Partition)
    return len(partition.log.producers.producers)


def test_a_producer_id_is_forgotten_a_day_after_its_last_record(broker: Broker) -> None:
    topic = broker.create_topic("producers")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True) as producer:
        producer.send("producers", b"1").get(30)
        broker.clock.advance("23h", scope="producers")
        assert producers_of(broker, "producers") == 1
        broker.clock.advance("2h", scope="producers")
        assert producers_of(broker, "producers") == 0
        producer.send("producers", b"2").get(30)
    assert producers_of(broker, "producers") == 1
    assert topic.values() == [b"1", b"2"]


def test_a_transactional_id_is_forgotten_a_week_after_its_last_transaction(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "weekly"})
    producer.init_transactions(30)
    coordinator = node_of(broker).transactions.coordinator

    def is_known() -> bool:
        shards = [coordinator.shard(index) for index in coordinator.active_partitions]
        return any("weekly" in shard.transactions for shard in shards if shard is not None)

    broker.clock.advance("6d", scope="producers")
    assert is_known()
    broker.clock.advance("2d", scope="producers")
    assert not is_known()


def test_a_tombstone_goes_a_day_after_it_was_cleaned_first(broker: Broker) -> None:
    topic = broker.create_topic(
        "tombstones",
        configs={"cleanup.policy": "compact", "segment.bytes": 1_048_576, "min.cleanable.dirty.ratio": 0.0001},
    )

    def roll() -> None:
        topic.produce(*[b"x" * 600_000] * 2, key=b"filler")

    topic.produce("1", key=b"a")
    topic.produce(None, key=b"a")
    roll()
    broker.clock.advance("1ms", scope="tombstones")
    kept = [(record.key, record.value) for record in topic.records() if record.key == b"a"]
    assert kept == [(b"a", None)], "the first cleaning removes what the tombstone is for, and says when it may go"
    roll()
    broker.clock.advance("23h", scope="tombstones")
    assert b"a" in [record.key for record in topic.records()]
    roll()
    broker.clock.advance("1h", scope="tombstones")
    assert b"a" not in [record.key for record in topic.records()]


def test_the_lags_of_compaction_are_time_of_tombstones(broker: Broker) -> None:
    topic = broker.create_topic(
        "lags",
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": 1_048_576,
            "min.cleanable.dirty.ratio": 0.0001,
            "min.compaction.lag.ms": 3_600_000,
        },
    )
    topic.produce("1", "2", key=b"a")
    topic.produce(*[b"x" * 600_000] * 2, key=b"filler")
    broker.clock.advance("59m", scope="tombstones")
    assert [record.value for record in topic.records() if record.key == b"a"] == [b"1", b"2"]
    broker.clock.advance("1m", scope="tombstones")
    assert [record.value for record in topic.records() if record.key == b"a"] == [b"2"]


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def with_tokens() -> Broker:
    sasl = "listener.name.users"
    return Broker(
        {
            **BY_ITSELF_NEVER,
            "listeners": "PLAINTEXT://127.0.0.1:0,USERS://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            f"{sasl}.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret";',
            f"{sasl}.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
            "delegation.token.secret.key": "a secret of the cluster",
        }
    )


def test_a_token_expires() -> None:
    with with_tokens() as broker:
        ready = broker.nodes[0].ready
        assert ready is not None
        address = next(str(each.address) for each in ready.listeners if each.name == "USERS")

        def as_user(module: str, name: str, secret: str, mechanism: str, more: str = "") -> Client:
            properties = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f'{module} username="{name}" password="{secret}"{more};',
            }
            return cluster_of(address, properties, client_id="test")

        async def create(_: Client) -> delegation_tokens.DelegationToken:
            async with as_user(PLAIN, "alice", "alice-secret", "PLAIN") as alice:
                return await delegation_tokens.create_token(alice, [])

        async def topics(_: Client, token: delegation_tokens.DelegationToken) -> object:
            from base64 import b64encode

            secret = b64encode(token.hmac).decode()
            more = ' tokenauth="true"'
            async with as_user(SCRAM, token.token_id, secret, "SCRAM-SHA-256", more) as by_token:
                return await by_token.refresh([])

        async def known(_: Client) -> list[str]:
            async with as_user(PLAIN, "alice", "alice-secret", "PLAIN") as alice:
                return [token.token_id for token in await delegation_tokens.describe_tokens(alice)]

        token = broker.call(create)
        broker.clock.advance("23h", scope="tokens")
        assert broker.call(topics, token)
        fresh = broker.call(create)
        assert abs(fresh.issued_ms - time.time() * 1000) < 60_000
        broker.clock.advance("2h", scope="tokens")
        with pytest.raises(ClientError):
            broker.call(topics, token)
        assert broker.call(known) == [fresh.token_id]
        assert broker.call(topics, fresh)


def test_an_advanced_clock_outlives_starts() -> None:
    with Broker(BY_ITSELF_NEVER) as broker:
        topic = broker.create_topic("t")
        topic.produce("old")
        broker.stop()
        broker.clock.advance("8d", scope="retention")
        broker.start()
        broker.kill()
        broker.start()
        assert broker.clock.advanced("retention") == timedelta(days=8)
        assert broker.clock.advanced("offsets") == timedelta()
        assert topic.start_offsets() == {0: 0}
        broker.clock.advance("1ms", scope="retention")
        assert topic.start_offsets() == {0: 1}


def test_a_fork_is_as_late_as_its_source() -> None:
    with Broker(BY_ITSELF_NEVER) as broker:
        topic = broker.create_topic("t")
        topic.produce("old")
        produced = broker.requests("Produce")[-1]
        broker.clock.advance("6d", scope="retention")
        with broker.fork() as fork:
            assert fork.clock.advanced("retention") == timedelta(days=6)
            fork.clock.advance("1d", scope="retention")
            assert fork.topic("t").start_offsets() == {0: 1}
        with broker.fork(at=produced) as fork:
            assert fork.clock.advanced("retention") == timedelta()
            fork.clock.advance("6d", scope="retention")
            assert fork.topic("t").start_offsets() == {0: 0}
        assert broker.clock.advanced("retention") == timedelta(days=6)
        assert topic.start_offsets() == {0: 0}


def test_all_brokers_of_a_cluster_are_ahead_together() -> None:
    with Cluster(brokers=3, config=BY_ITSELF_NEVER) as cluster:
        topic = cluster.create_topic("t", partitions=6)
        for partition in range(6):
            topic.produce("1", partition=partition)
        for number in range(6):
            cluster.group(f"g{number}").commit({("t", 0): 1})
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "slow"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("t", b"undecided", partition=partition)
        producer.flush(30)
        cluster.clock.advance("1d", scope="transactions")
        assert topic.end_offsets() == dict.fromkeys(range(6), 3), "a marker in each partition"
        assert topic.values() == [b"1"] * 6
        cluster.clock.advance("8d", scope="retention")
        assert topic.start_offsets() == dict.fromkeys(range(6), 3)
        cluster.clock.advance("8d", scope="offsets")
        assert cluster.groups() == []


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        ("-1d", "a clock goes forwards only"),
        ("0s", "a clock goes forwards only"),
        (timedelta(days=-1), "a clock goes forwards only"),
        ("7", 'write "7s" for seconds'),
        (7, 'write "7s" for seconds'),
        ("a week", "no duration such as"),
        ("\N{ARABIC-INDIC DIGIT SEVEN}d", "no duration such as"),
        (1.5, "not float"),
        ("1d" * 100_000, "no duration such as"),
        ("6000w", "more than a hundred years"),
        (None, "not NoneType"),
    ],
)
def test_a_bad_duration_is_refused(broker: Broker, duration: Any, said: str) -> None:
    before = broker.clock.advanced("retention")
    with pytest.raises(ValueError, match=said) as refused:
        broker.clock.advance(duration, scope="retention")
    assert len(str(refused.value)) < 200
    assert broker.clock.advanced("retention") == before


@pytest.mark.parametrize(
    "ask",
    [lambda broker, name: broker.clock.advance("1d", scope=name), lambda broker, name: broker.clock.advanced(name)],
)
def test_an_unknown_scope_is_refused(broker: Broker, ask: Callable[[Broker, str], object]) -> None:
    with pytest.raises(ValueError, match=r"there is no scope retenton; did you mean retention\?"):
        ask(broker, "retenton")
    with pytest.raises(ValueError, match=r"there is no scope xyz; there are retention, .* and all"):
        ask(broker, "xyz")


def test_coroutines_advance_a_clock() -> None:
    async def run() -> None:
        async with Broker() as broker:
            topic = await broker.create_topic("t")
            await topic.produce("old")
            await broker.clock.advance(timedelta(days=8), scope="all")
            assert await topic.start_offsets() == {0: 1}
            assert broker.clock.advanced("sessions") == timedelta(days=8)

    asyncio.run(run())
