"""The journal of a broker, with the clients that users have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from pykbroker.control.journal.exchange import Exchange
from pykbroker.testing import (
    Broker,
    Cluster,
    JournalForgot,
    KafkaUnderTest,
    NoJournal,
    RecordedRequest,
    UnknownApi,
    UnknownError,
    read_journal,
)

GROUP = "billing"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def mark(broker: Broker) -> int:
    return broker.journal.position


def librdkafka(broker: KafkaUnderTest, topic: str, client_id: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": client_id})
    producer.produce(topic, b"one book")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": client_id,
            "group.id": client_id,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"one book"
    consumer.close()


def kafka_python(broker: KafkaUnderTest, topic: str, client_id: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=client_id)
    producer.send(topic, b"one book").get(30)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        client_id=client_id,
        group_id=client_id,
        auto_offset_reset="earliest",
    )
    assert next(consumer).value == b"one book"
    consumer.close()


def aiokafka(broker: KafkaUnderTest, topic: str, client_id: str) -> None:
    async def main() -> None:
        servers = broker.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers, client_id=client_id) as producer:
            await producer.send_and_wait(topic, b"one book")
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=servers, client_id=client_id, group_id=client_id, auto_offset_reset="earliest"
        ) as consumer:
            assert (await consumer.getone()).value == b"one book"

    asyncio.run(main())


@pytest.mark.parametrize("client", [librdkafka, kafka_python, aiokafka])
def test_what_a_client_does_is_there(broker: Broker, mark: int, client: object) -> None:
    assert callable(client)
    name = client.__name__
    topic = broker.create_topic(f"of-{name}")
    client(broker, topic, name)
    (produced,) = broker.requests("Produce", topic=topic, since=mark)
    (data,) = produced.request["topic_data"]
    assert data["partition_data"][0]["records"][0]["records"][0]["value"] == "one book"
    assert produced.errors == set()
    assert produced.client_id is not None
    assert produced.client_id.startswith(name)
    fetched = broker.requests("Fetch", topic=topic, since=mark)
    assert any("one book" in repr(each.response) for each in fetched), "by topic ids, too"
    joined = broker.requests("JoinGroup", since=mark)
    assert {each.request["group_id"] for each in joined} == {name}
    apis = [each.api for each in broker.requests(since=mark)]
    assert apis.index("CreateTopics") < apis.index("Produce") < apis.index("JoinGroup") < apis.index("Fetch")
    for each in broker.requests(since=mark):
        assert "not_shown" not in each.request, each
        assert each.response is None or "not_shown" not in each.response, each
        assert each.outcome in ("answered", "waiting", "closed")


def test_filters_and_bad_questions(broker: Broker, mark: int) -> None:
    topic = broker.create_topic("filtered")
    topic.produce("x")
    Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "other"}).list_topics("filtered", 30)
    assert broker.requests("metadata", client_id="other", topic="filtered", since=mark)
    assert not broker.requests("Metadata", client_id="another", since=mark)
    assert not broker.requests("Produce", error="UNKNOWN_TOPIC_OR_PARTITION", since=mark)
    assert [each.number for each in broker.journal] == [each.number for each in broker.requests()]
    with pytest.raises(UnknownApi, match=r"did you mean Produce\?"):
        broker.requests("Produces")
    with pytest.raises(UnknownError, match=r"did you mean NOT_COORDINATOR\?"):
        broker.requests(error="NOT_COORDINATORS")


def test_a_deleted_topic_keeps_its_name(broker: Broker, mark: int) -> None:
    topic = broker.create_topic("short-lived")
    topic.produce("x")
    assert topic.values() == [b"x"]
    fetches = broker.requests("Fetch", topic="short-lived", since=mark)
    assert fetches
    topic.delete()
    broker.create_topic("short-lived").produce("y")
    assert len(broker.requests("Fetch", topic="short-lived", since=mark)) == len(fetches)


def test_a_fetch_that_waits_is_answered_because_of_a_produce_request(broker: Broker, mark: int) -> None:
    topic = broker.create_topic("waited-for")
    topic.produce("first")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "waits",
            "group.id": "waits",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20_000,
        }
    )
    consumer.subscribe([topic])
    first = consumer.poll(30)
    assert first is not None

    def waiting() -> list[RecordedRequest]:
        found = broker.requests("Fetch", client_id="waits", since=mark)
        return [each for each in found if each.outcome == "waiting"]

    until(waiting)
    (fetch,) = waiting()
    topic.produce("second")
    second = consumer.poll(30)
    assert second is not None
    assert second.value() == b"second"
    (produced,) = broker.requests("Produce", topic=topic, since=fetch.number)
    (answered,) = [each for each in broker.requests("Fetch", since=mark) if each.number == fetch.number]
    assert answered.caused_by == produced.number
    consumer.close()


def test_members_wait_for_each_other(broker: Broker, mark: int) -> None:
    topic = broker.create_topic("shared", partitions=2)
    consumers = [
        Consumer({"bootstrap.servers": broker.bootstrap_servers, "client.id": f"member-{number}", "group.id": GROUP})
        for number in range(2)
    ]
    is_over = threading.Event()

    def poll(consumer: Consumer) -> None:
        consumer.subscribe([topic])
        while not is_over.is_set():
            consumer.poll(0.05)
        consumer.close()

    threads = [threading.Thread(target=poll, args=(consumer,)) for consumer in consumers]
    for number, thread in enumerate(threads, 1):  # one after the other: the second waits until the first one joins anew
        thread.start()
        broker.wait_for(group=GROUP, state="stable", members=number, timeout=30)
    is_over.set()
    for thread in threads:
        thread.join()
    numbers = {each.number: each for each in broker.requests(since=mark)}
    caused = [each for each in numbers.values() if each.caused_by and each.api in ("JoinGroup", "SyncGroup")]
    assert caused
    for each in caused:
        assert each.caused_by is not None
        assert numbers[each.caused_by].client_id != each.client_id
        assert numbers[each.caused_by].api in ("JoinGroup", "SyncGroup", "LeaveGroup")
    events = broker.journal.events(mark)
    rebalanced = [each for each in events if "rebalance from" in each["text"] and GROUP in each["text"]]
    assert rebalanced
    assert numbers[rebalanced[0]["caused_by"]].api == "JoinGroup"
    assert rebalanced[0]["whose"].startswith("__consumer_offsets-")
    number = rebalanced[0]["caused_by"]
    assert any(f" #{number} " in line and "rebalance from" in line for line in broker.log.lines())


def test_files_and_what_was_cleared(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("orders").produce("x")
        mark = broker.journal.position
        broker.topic("orders").produce("y")
        written = read_journal(broker.journal.json_lines(tmp_path / "all.jsonl"))
        assert len(written.requests("Produce", topic="orders")) == 2
        since = read_journal(broker.journal.json_lines(tmp_path / "since.jsonl", since=mark))
        assert len(since.requests("Produce", topic="orders")) == 1
        assert broker.journal.pcap(tmp_path / "all.pcap").read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"
        broker.journal.clear()
        assert broker.requests() == []
        broker.topic("orders").produce("z")
        assert len(broker.requests("Produce")) == 1
    assert len(broker.requests("Produce")) == 1, "also when it is closed"
    broker.journal.clear()
    assert broker.requests() == []


def test_it_goes_on_through_a_kill() -> None:
    with Broker() as broker:
        topic = broker.create_topic("orders")
        topic.produce("before")
        assert topic.values() == [b"before"]
        broker.kill()
        assert broker.requests("Fetch", topic="orders")
        broker.start()
        topic.produce("after")
        assert len(broker.requests("Produce", topic="orders")) == 2
        numbers = [each.number for each in broker.requests()]
        assert numbers == sorted(set(numbers))
        first, last = broker.requests("Produce")
        assert first.connection != last.connection


def test_a_cluster_has_one() -> None:
    with Cluster(brokers=2) as cluster:
        topic = cluster.create_topic("orders", partitions=2)
        topic.produce("x", partition=0)
        topic.produce("y", partition=1)
        produced = cluster.requests("Produce", topic="orders")
        assert {each.node for each in produced} == {1, 2}
        followers = [
            each for each in cluster.requests("Fetch", topic="orders") if each.client_id != "pykbroker-testing"
        ]
        assert followers
        by_number = {each.number: each for each in cluster.requests()}
        assert any(by_number[each.caused_by].api == "Fetch" for each in produced if each.caused_by), (
            "a producer with acks=all waits for a follower"
        )


def test_without_a_journal() -> None:
    with Broker(journal=False) as broker:
        broker.create_topic("t").produce("x")
        with pytest.raises(NoJournal, match="journal=False"):
            broker.requests()


def test_a_broker_elsewhere_has_none(broker: Broker) -> None:
    from pykbroker.testing.external_kafka import ExternalKafka

    with ExternalKafka(broker.bootstrap_servers) as elsewhere, pytest.raises(NoJournal, match="in this process"):
        elsewhere.requests("Produce")


def test_what_is_forgotten_is_a_warning() -> None:
    with Broker(journal=64 * 1024) as broker:
        topic = broker.create_topic("t")
        mark = broker.journal.position
        for _ in range(80):
            topic.produce("x" * 1_000)
        with pytest.warns(JournalForgot, match="entries of the journal are forgotten") as warned:
            produced = broker.requests("Produce", since=mark)
        assert warned[0].filename == __file__
        assert 0 < len(produced) < 80
        assert broker.journal.forgotten
        broker.requests(since=broker.journal.position - 1)


@pytest.mark.parametrize("size", [1, -5, 64 * 1024 - 1, "16m"])
def test_a_size_that_is_none(size: int) -> None:
    with pytest.raises(ValueError, match="65536 or more, or False"):
        Broker(journal=size)


@pytest.mark.parametrize("run", [asyncio.run, lambda main: trio.run(lambda: main)])
def test_coroutines_ask_the_same(run: object, tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker() as broker:
            topic = await broker.create_topic("orders")
            mark = broker.journal.position
            await topic.produce("x")
            (produced,) = await broker.requests("Produce", topic="orders", since=mark)
            assert produced.outcome == "answered"
            assert [each.number async for each in broker.journal] == [each.number for each in await broker.requests()]
            path = await broker.journal.json_lines(tmp_path / "j.jsonl")
            assert read_journal(path).requests("Produce")
            assert (await broker.journal.pcap(tmp_path / "j.pcap")).exists()
            assert await broker.journal.events() == []
            await broker.journal.clear()
            assert await broker.requests() == []
            assert broker.journal.forgotten == 0

    assert callable(run)
    run(main())


SECRET = "open-sesame-77"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="{SECRET}"'


def test_no_password_is_in_it(tmp_path: Path) -> None:
    config = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{JAAS} user_admin="{SECRET}";',
    }
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{JAAS};"}
    salt = b"some-salt-of-a-user"
    with Broker(config, client_properties=client) as broker:
        admin = AdminClient(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": SECRET,
            }
        )
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        upsertion = UserScramCredentialUpsertion("alice", info, SECRET.encode(), salt)
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(30)
        resource = ConfigResource(
            ConfigResource.Type.BROKER,
            "1",
            incremental_configs=[
                ConfigEntry(
                    "listener.name.sasl_plaintext.ssl.keystore.password",
                    SECRET,
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        for future in admin.incremental_alter_configs([resource]).values():
            future.exception(30)
        broker.create_topic("orders")
        (altered,) = broker.requests("AlterUserScramCredentials")
        (upserted,) = altered.request["upsertions"]
        assert (upserted["name"], upserted["salt"], upserted["salted_password"]) == ("alice", "(hidden)", "(hidden)")
        assert altered.principal == "User:admin"
        (changed,) = broker.requests("IncrementalAlterConfigs")
        (config,) = changed.request["resources"][0]["configs"]
        assert config["name"] == "listener.name.sasl_plaintext.ssl.keystore.password"
        assert config["value"] == "*" * len(SECRET)
        files = [broker.journal.json_lines(tmp_path / "j.jsonl"), broker.journal.pcap(tmp_path / "j.pcap")]
        frames = [each.request + each.response for each in kept_frames(broker)]
    assert frames
    for data in (*frames, *(path.read_bytes() for path in files)):
        assert SECRET.encode() not in data
        assert salt not in data


def kept_frames(broker: Broker) -> list[Exchange]:
    entries = [entry for journal in broker.journal._journals for entry in journal.entries()]
    return [entry for entry in entries if isinstance(entry, Exchange)]


def until(condition: object) -> None:
    """Ask again and again; half a minute at most."""
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it has not come about")
