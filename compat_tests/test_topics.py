"""Topics through the administration clients: created, described, grown, deleted, refused."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from confluent_kafka.admin import NewPartitions as ConfluentNewPartitions
from confluent_kafka.admin import NewTopic as ConfluentNewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource as KafkaPythonConfigResource
from kafka.admin import ConfigResourceType, NewTopic
from kafka.errors import for_code

from .answers import TestAnswers
from .brokers import Broker
from .topics import wait_for_leaders
from .waiting import DEADLINE_S, until
from .wire import Wire

Unique = Callable[[str], str]


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def confluent_admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def error_names(result: dict[str, Any]) -> dict[str, str]:
    return {topic["name"]: for_code(topic["error_code"]).__name__ for topic in result["topics"]}


def outcome(future: Any) -> str:
    """The name of the error that a confluent-kafka call ends with, or "ok"."""
    try:
        future.result(DEADLINE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return "ok"


def test_a_created_topic_is_described_as_it_was_asked_for(
    broker: Broker, admin: KafkaAdminClient, topic: str, answers: TestAnswers
) -> None:
    configs = {"cleanup.policy": "compact", "retention.ms": "12345"}
    created = admin.create_topics([NewTopic(topic, 3, 1, topic_configs=configs)])["topics"][0]
    answers.expect(
        "created", (created["num_partitions"], created["replication_factor"], created["error_code"]), (3, 1, 0)
    )
    answers.expect("configs given back", {name: created["configs"][name]["value"] for name in configs}, configs)
    answers.same("all configs given back", comparable(created["configs"]))
    wait_for_leaders(broker, topic, 3)
    (described,) = admin.describe_topics([topic])
    partitions = [
        (each["partition_index"], each["leader_id"], each["replica_nodes"], each["isr_nodes"], each["error_code"])
        for each in described["partitions"]
    ]
    assert sorted(partitions) == [(index, 1, [1], [1], 0) for index in range(3)]
    assert described["topic_id"] == created["topic_id"]
    assert not described["is_internal"]
    assert topic in admin.list_topics()


def comparable(configs: dict[str, Any]) -> dict[str, Any]:
    """Without documentation."""
    shown = {name: dict(each) for name, each in sorted(configs.items())}
    for each in shown.values():
        each.pop("documentation", None)
    return shown


def test_every_topic_config_is_described_with_its_source_and_synonyms(
    admin: KafkaAdminClient, topic: str, answers: TestAnswers
) -> None:
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "12345"})])
    resource = KafkaPythonConfigResource(ConfigResourceType.TOPIC, topic)
    described: dict[str, Any] = {}

    def is_described() -> bool:
        found = admin.describe_configs([resource], include_synonyms=True, config_filter="all")
        described.update(found["topic"][topic])
        return bool(described)

    until(is_described, "the topic has configs")
    found = described
    answers.expect("how many", len(found), 33)
    assert found["retention.ms"]["value"] == "12345"
    assert found["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    for name, shown in comparable(found).items():
        answers.same(name, shown)


def test_broker_configs_are_described(admin: KafkaAdminClient, broker: Broker) -> None:
    resource = KafkaPythonConfigResource(ConfigResourceType.BROKER, "1")
    found = admin.describe_configs([resource], config_filter="all")["broker"]["1"]
    shown = {name: found[name]["value"] for name in ("node.id", "num.partitions", "group.initial.rebalance.delay.ms")}
    assert shown == {"node.id": "1", "num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    assert found["group.initial.rebalance.delay.ms"]["config_source"] == "STATIC_BROKER_CONFIG"
    assert found["num.partitions"]["config_source"] == "DEFAULT_CONFIG"


def test_configs_of_an_unknown_topic_are_an_error(confluent_admin: AdminClient, topic: str) -> None:
    (future,) = confluent_admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    assert outcome(future) == "UNKNOWN_TOPIC_OR_PART"


def test_librdkafka_creates_grows_and_deletes(confluent_admin: AdminClient, topic: str) -> None:
    def partition_count() -> int:
        found = confluent_admin.list_topics(topic, timeout=DEADLINE_S).topics[topic]
        return len(found.partitions)

    (created,) = confluent_admin.create_topics([ConfluentNewTopic(topic, 2, 1)]).values()
    assert outcome(created) == "ok"
    until(lambda: partition_count() == 2, "two partitions")
    (grown,) = confluent_admin.create_partitions([ConfluentNewPartitions(topic, 5)]).values()
    assert outcome(grown) == "ok"
    until(lambda: partition_count() == 5, "five partitions")
    (shrunk,) = confluent_admin.create_partitions([ConfluentNewPartitions(topic, 3)]).values()
    assert outcome(shrunk) == "INVALID_PARTITIONS"
    (deleted,) = confluent_admin.delete_topics([topic]).values()
    assert outcome(deleted) == "ok"
    until(lambda: topic not in confluent_admin.list_topics(timeout=DEADLINE_S).topics, "the topic is gone")
    (again,) = confluent_admin.delete_topics([topic]).values()
    assert outcome(again) == "UNKNOWN_TOPIC_OR_PART"


def test_a_deleted_topic_can_be_created_anew_and_is_empty(broker: Broker, admin: KafkaAdminClient, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1)])
    assert producer.send(topic, b"old", partition=0).get(DEADLINE_S).offset == 0
    producer.close()
    first = admin.describe_topics([topic])[0]["topic_id"]
    admin.delete_topics([topic])
    until(lambda: topic not in admin.list_topics(), "the topic is gone")
    admin.create_topics([NewTopic(topic, 1, 1)])
    assert admin.describe_topics([topic])[0]["topic_id"] != first
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    assert producer.send(topic, b"new", partition=0).get(DEADLINE_S).offset == 0
    producer.close()


def test_validate_only_creates_nothing(admin: KafkaAdminClient, topic: str) -> None:
    result = admin.create_topics([NewTopic(topic, 4, 1)], validate_only=True, wait_for_metadata=False)
    assert error_names(result) == {topic: "NoError"}
    assert topic not in admin.list_topics()


def test_create_partitions_answers_a_row_for_each_topic(
    admin: KafkaAdminClient, unique: Unique, answers: TestAnswers
) -> None:
    good, same, smaller, unknown = (unique(noun) for noun in ("good", "same", "smaller", "unknown"))
    admin.create_topics([NewTopic(name, 2, 1) for name in (good, same, smaller)])
    wanted = {good: 3, same: 2, smaller: 1, unknown: 5}
    result = admin.create_partitions(wanted, raise_errors=False)
    rows = result.results if hasattr(result, "results") else result["results"]
    found = {_field(row, "name"): for_code(_field(row, "error_code")).__name__ for row in rows}
    answers.expect(
        "rows",
        [found[good], found[same], found[smaller], found[unknown]],
        ["NoError", "InvalidPartitionsError", "InvalidPartitionsError", "UnknownTopicOrPartitionError"],
    )


def _field(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, dict) else getattr(row, name)


def test_new_partitions_are_written_and_read(broker: Broker, admin: KafkaAdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.create_partitions({topic: 3})
    until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3, "three partitions")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    offsets = [producer.send(topic, b"x", partition=partition).get(DEADLINE_S).offset for partition in range(3)]
    producer.close()
    assert offsets == [0, 0, 0]


def test_replicas_may_be_assigned_by_hand(confluent_admin: AdminClient, unique: Unique) -> None:
    good, nowhere, holes = unique("good"), unique("nowhere"), unique("twice")
    assignments = {good: [[1], [1]], nowhere: [[7]], holes: [[1, 1]]}
    futures = confluent_admin.create_topics(
        [ConfluentNewTopic(name, len(rows), replica_assignment=rows) for name, rows in assignments.items()]
    )
    found = {name: outcome(future) for name, future in futures.items()}
    assert found == {good: "ok", nowhere: "INVALID_REPLICA_ASSIGNMENT", holes: "INVALID_REPLICA_ASSIGNMENT"}


def test_errors_say_what_is_wrong(admin: KafkaAdminClient, unique: Unique, answers: TestAnswers) -> None:
    """The texts are our own; that there is one is what a user needs."""
    there, invalid = unique("there"), "no spaces"
    admin.create_topics([NewTopic(there, 1, 1)])
    topics = [NewTopic(there, 1, 1), NewTopic(invalid, 1, 1), NewTopic(unique("replicas"), 1, 9)]
    result = admin.create_topics(topics, raise_errors=False, wait_for_metadata=False)
    assert all(topic["error_message"] for topic in result["topics"])
    answers.expect(
        "errors",
        [for_code(topic["error_code"]).__name__ for topic in result["topics"]],
        ["TopicAlreadyExistsError", "InvalidTopicError", "InvalidReplicationFactorError"],
    )


def test_a_producer_creates_the_topic_it_writes_to(broker: Broker, admin: KafkaAdminClient, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    assert producer.send(topic, b"x").get(DEADLINE_S).offset == 0
    producer.close()
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 1


def test_a_consumer_may_forbid_that_its_topic_is_created(broker: Broker, admin: KafkaAdminClient, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "allow.auto.create.topics": False})
    consumer.subscribe([topic])
    message = consumer.poll(DEADLINE_S)
    consumer.close()
    assert message is not None
    assert message.error().name() == "UNKNOWN_TOPIC_OR_PART"
    assert topic not in admin.list_topics()


def test_without_auto_creation_an_unknown_topic_stays_unknown(fresh_broker: Callable[..., Broker], topic: str) -> None:
    broker = fresh_broker({"auto.create.topics.enable": "false"})
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    assert not consumer.partitions_for_topic(topic)
    assert topic not in consumer.topics()
    consumer.close()


def test_defaults_of_new_topics_come_from_the_broker_s_properties(
    fresh_broker: Callable[..., Broker], topic: str, answers: TestAnswers
) -> None:
    broker = fresh_broker({"num.partitions": "4", "log.retention.hours": "2", "compression.type": "zstd"})
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    created = admin.create_topics([NewTopic(topic)])["topics"][0]
    admin.close()
    answers.expect("partitions", (created["num_partitions"], created["replication_factor"]), (4, 1))
    shown = {name: created["configs"][name] for name in ("retention.ms", "compression.type", "segment.bytes")}
    answers.expect("values", [each["value"] for each in shown.values()], ["7200000", "zstd", "1073741824"])
    answers.same("sources", [shown[name]["config_source"] for name in ("compression.type", "segment.bytes")])


def test_the_cluster_is_described(broker: Broker, admin: KafkaAdminClient, confluent_admin: AdminClient) -> None:
    described = confluent_admin.describe_cluster().result(DEADLINE_S)
    assert [(node.id, node.host, node.port) for node in described.nodes] == [(1, *broker.address)]
    assert described.controller.id == 1
    found = admin.describe_cluster()
    assert found["cluster_id"] == described.cluster_id
    assert len(described.cluster_id) == 22


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_topic_is_writable_on_every_connection_once_it_was_created(
    broker: Broker, admin: KafkaAdminClient, unique: Unique
) -> None:
    """Apache Kafka answers CreateTopics a moment before its partition leads; tests that create topics stumble on it."""
    from .hostile.record_cases import batch
    from .hostile.scene import Scene

    scene = Scene(broker)
    for number in range(30):
        name = unique(f"topic-{number}")
        admin.create_topics([NewTopic(name, 3, 1)], wait_for_metadata=False)
        assert scene.produce(batch(), name, partition=2) == "NONE"


def test_metadata_of_all_topics_and_of_none(broker: Broker, topic: str, admin: KafkaAdminClient) -> None:
    from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse

    admin.create_topics([NewTopic(topic, 1, 1)])
    with Wire(broker.address) as wire:
        every = wire.call(MetadataRequest(topics=None), 12)
        none = wire.call(MetadataRequest(topics=[]), 12)
        oldest = wire.call(MetadataRequest(topics=[]), 0)
    assert isinstance(every, MetadataResponse)
    assert isinstance(none, MetadataResponse)
    assert isinstance(oldest, MetadataResponse)
    assert topic in {each.name for each in every.topics}
    assert none.topics == []
    assert topic in {each.name for each in oldest.topics}, "version 0 knows no null: an empty list asks for all"
    assert [(node.node_id, node.host, node.port) for node in none.brokers] == [(1, *broker.address)]
    assert none.controller_id == 1
