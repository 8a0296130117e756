"""Topics, metadata, configurations and the cluster."""

from typing import Any

from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from pykbroker.protocol.messages.metadata import (
    Cursor,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

from .interview import Interview


def test_creating_topics(interview: Interview) -> None:
    def creating(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> CreateTopicsRequest:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **fields)
        return CreateTopicsRequest(topics=[topic])

    def assigned(*rows: tuple[int, list[int]]) -> list[CreatableReplicaAssignment]:
        return [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in rows]

    def config(name: str, value: str | None) -> list[CreatableTopicConfig]:
        return [CreatableTopicConfig(name=name, value=value)]

    topic, ask = interview.topic, interview.ask
    ask("a new topic, then again", creating(topic, 2))
    ask("defaults", creating(f"{topic}-defaults", -1, -1))
    ask("no topics", CreateTopicsRequest(topics=[]))
    ask("partitions and an assignment", creating(f"{topic}-a", 2, 1, assignments=assigned((0, [1]))))
    ask("an assignment with a gap", creating(f"{topic}-b", -1, -1, assignments=assigned((0, [1]), (2, [1]))))
    ask("an assignment that begins with 1", creating(f"{topic}-c", -1, -1, assignments=assigned((1, [1]))))
    ask("an assignment twice", creating(f"{topic}-d", -1, -1, assignments=assigned((0, [1]), (0, [1]))))
    ask("an assignment to nobody", creating(f"{topic}-e", -1, -1, assignments=assigned((0, []))))
    ask("an assignment to two brokers", creating(f"{topic}-f", -1, -1, assignments=assigned((0, [1, 2]))))
    ask("-2 replicas", creating(f"{topic}-g", 1, -2))
    for name, value in [
        ("retention.ms", "-1"),
        ("retention.ms", "-2"),
        ("retention.ms", "1e3"),
        ("retention.ms", ""),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("compression.type", "ZSTD"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("message.timestamp.type", "logappendtime"),
        ("unclean.leader.election.enable", "yes"),
        ("unclean.leader.election.enable", "TRUE"),
        ("max.message.bytes", "-1"),
        ("segment.bytes", "13"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("remote.storage.enable", "true"),
        ("leader.replication.throttled.replicas", "0:1"),
        ("leader.replication.throttled.replicas", "nonsense"),
    ]:
        ask(f"{name}={value!r}", creating(f"{topic}-{name}-{len(value)}-{value[:1]}x", configs=config(name, value)), 5)
    validated = creating(f"{topic}-validated")
    validated.validate_only = True
    ask("only validated", validated)


def test_growing_and_deleting_topics(interview: Interview) -> None:
    def growing(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsRequest:
        rows = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
        return CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=rows)], timeout_ms=10_000
        )

    topic, ask = interview.topic, interview.ask
    topic_id = interview.create(topic)
    ask("to 2, then to as many as there are", growing(topic, 2))
    ask("with assignments", growing(topic, 3, [[1]]), 3)
    ask("with too many assignments", growing(topic, 4, [[1], [1]]))
    ask("with an assignment to an unknown broker", growing(topic, 4, [[9]]))
    ask("with an assignment to nobody", growing(topic, 4, [[]]))
    ask("to none", growing(topic, 0))
    ask("to -1", growing(topic, -1))
    ask("an unknown topic", growing(f"{topic}-unknown", 2))
    twice = growing(topic, 7)
    twice.topics = twice.topics * 2
    ask("a topic twice", twice)
    by_id = [DeleteTopicState(name=None, topic_id=topic_id)]
    ask(
        "by an unknown id",
        DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=b"x" * 16)], timeout_ms=10_000),
    )
    ask("by no id", DeleteTopicsRequest(topics=[DeleteTopicState(name=None)], timeout_ms=10_000), 6)
    both = [DeleteTopicState(name=topic, topic_id=topic_id)]
    ask("by name and id", DeleteTopicsRequest(topics=both, timeout_ms=10_000), 6)
    ask("by id twice", DeleteTopicsRequest(topics=by_id * 2, timeout_ms=10_000), 6)
    ask("unknown names", DeleteTopicsRequest(topic_names=[f"{topic}-unknown", f"{topic}-unknown-2"], timeout_ms=10_000))
    ask("by id, then again", DeleteTopicsRequest(topics=by_id, timeout_ms=10_000), 6, 6)
    ask("no topics", DeleteTopicsRequest(timeout_ms=10_000))


def test_metadata(interview: Interview) -> None:
    topic, ask = interview.topic, interview.ask
    topic_id = interview.create(topic, 2)
    known = MetadataRequestTopic(name=topic)
    ask("a topic", MetadataRequest(topics=[known], allow_auto_topic_creation=True))
    ask("a topic twice", MetadataRequest(topics=[known, known]))
    ask("with operations", MetadataRequest(topics=[known], include_topic_authorized_operations=True))
    ask("with the cluster's operations", MetadataRequest(topics=[], include_cluster_authorized_operations=True))
    unknown = MetadataRequestTopic(name=f"{topic}-unknown")
    ask("an unknown topic", MetadataRequest(topics=[unknown], allow_auto_topic_creation=False))
    created = MetadataRequestTopic(name=f"{topic}-created")
    ask("a topic that is created on the way", MetadataRequest(topics=[created], allow_auto_topic_creation=True), 13)
    by_id = MetadataRequestTopic(name=None, topic_id=topic_id)
    ask("by id", MetadataRequest(topics=[by_id]), 12, 13)
    ask("by an unknown id", MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"x" * 16)]), 12, 13)
    ask("by name and id", MetadataRequest(topics=[MetadataRequestTopic(name=topic, topic_id=topic_id)]), 12, 13)
    for limit in (0, 1, 2000, -1):
        wanted = [TopicRequest(name=topic), TopicRequest(name=f"{topic}-unknown")]
        ask(f"limit {limit}", DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=limit))
    for cursor in (Cursor(topic_name=topic, partition_index=1), Cursor(topic_name=topic, partition_index=-1)):
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)], cursor=cursor)
        ask(f"from partition {cursor.partition_index}", request)
    for endpoint_type in (0, 1, 2, 3):
        request = DescribeClusterRequest(endpoint_type=endpoint_type, include_cluster_authorized_operations=True)
        if endpoint_type != 2:  # the controllers' host and port: Kafka's are static voters
            ask(f"endpoints of type {endpoint_type}", request)


def test_configurations(interview: Interview) -> None:
    topic, ask = interview.topic, interview.ask
    interview.create(topic, 1, retention_ms="5000")

    def describing(kind: int, name: str, keys: list[str] | None = None, **fields: Any) -> DescribeConfigsRequest:
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        return DescribeConfigsRequest(resources=[resource], **fields)

    a_topic, a_broker = 2, 4
    chosen = ["retention.ms", "segment.bytes", "cleanup.policy", "no.such.key"]
    ask("of a topic", describing(a_topic, topic, chosen, include_synonyms=True))
    ask("of a topic, none", describing(a_topic, topic, []))
    ask("of an unknown topic", describing(a_topic, f"{topic}-unknown", chosen))
    ask("of an invalid topic", describing(a_topic, "a b", chosen))
    ask("of a topic without a name", describing(a_topic, "", chosen))
    ask(
        "of a broker",
        describing(
            a_broker,
            "1",
            ["num.partitions", "log.retention.ms", "group.initial.rebalance.delay.ms"],
            include_synonyms=True,
        ),
    )
    derived = ["log.dir", "log.retention.hours", "log.roll.hours", "log.roll.ms", "leader.replication.throttled.rate"]
    ask("of a broker's derived keys", describing(a_broker, "1", derived, include_synonyms=True))
    ask("of another broker", describing(a_broker, "7", ["num.partitions"]))
    ask("of a broker that is no number", describing(a_broker, "x", ["num.partitions"]))
    ask("of no kind", describing(0, "x", chosen))
    ask("of an unknown kind", describing(77, "x", chosen))
    twice = describing(a_topic, topic, ["retention.ms"])
    twice.resources = twice.resources * 2
    ask("of a topic twice", twice)
    ask("of nothing", DescribeConfigsRequest(resources=[]))
