"""Questions about topics and records."""

from __future__ import annotations

from compat_tests.same_answers.interview import batch
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListConfigResourcesRequest,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from pykbroker.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.messages.transaction_admin import DescribeProducersRequest
from pykbroker.protocol.messages.transaction_admin import TopicRequest as ProducersTopic

from .scene import AUTO, GROUP, MISSING, TOPIC, TRANSACTIONAL_ID, VICTIM, Catalogue, Scene

UNKNOWN_ID = b"x" * 16
A_TOPIC, A_BROKER, A_GROUP, CLIENT_METRICS = 2, 4, 32, 16

catalogue = Catalogue()
asks = catalogue.asks


def _produced(name: str, topic_id: bytes, records: bytes) -> TopicProduceData:
    return TopicProduceData(
        name=name, topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=records)]
    )


@asks("produce", 3, 8, 12, 13)
def produce(scene: Scene) -> ProduceRequest:
    topics = [_produced(TOPIC, scene.topic_id, batch(b"v")), _produced(MISSING, UNKNOWN_ID, batch(b"v"))]
    return ProduceRequest(acks=1, timeout_ms=5000, topic_data=topics)


@asks("produce in a transaction", 3, 11, 13)
def produce_transactionally(scene: Scene) -> ProduceRequest:
    records = batch(b"v", producer_id=4242, producer_epoch=0, base_sequence=0, is_transactional=True)
    return ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        transactional_id=TRANSACTIONAL_ID,
        topic_data=[_produced(TOPIC, scene.topic_id, records)],
    )


def _fetched(name: str, topic_id: bytes) -> FetchTopic:
    return FetchTopic(
        topic=name,
        topic_id=topic_id,
        partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1, log_start_offset=-1)],
    )


@asks("fetch", 4, 7, 12, 13, 18)
def fetch(scene: Scene) -> FetchRequest:
    topics = [_fetched(TOPIC, scene.topic_id), _fetched(MISSING, UNKNOWN_ID)]
    return FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=-1, topics=topics)


@asks("fetch as a follower", 4, 12, 13)
def fetch_as_follower(scene: Scene) -> FetchRequest:
    topics = [_fetched(MISSING, UNKNOWN_ID)]
    return FetchRequest(replica_id=77, max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=-1, topics=topics)


@asks("fetch as a follower with an epoch", 15, 18)
def fetch_as_follower_with_epoch(scene: Scene) -> FetchRequest:
    topics = [_fetched(MISSING, UNKNOWN_ID)]
    return FetchRequest(
        replica_state=ReplicaState(replica_id=77, replica_epoch=1),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        session_epoch=-1,
        topics=topics,
    )


@asks("list offsets", 1, 4, 11)
def list_offsets(scene: Scene) -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
        for name in (TOPIC, MISSING)
    ]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


@asks("metadata", 4, 8, 10, 13)
def metadata(scene: Scene) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in (TOPIC, MISSING)],
        allow_auto_topic_creation=False,
    )


@asks("old metadata", 0, 1)
def old_metadata(scene: Scene) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])


@asks("metadata with operations of topics", 13)
def metadata_with_operations_of_topics(scene: Scene) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in (TOPIC, MISSING)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


@asks("metadata with operations", 8, 10)
def metadata_with_operations(scene: Scene) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in (TOPIC, MISSING)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


@asks("metadata by topic id", 12, 13)
def metadata_by_id(scene: Scene) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=None, topic_id=each) for each in (scene.topic_id, UNKNOWN_ID)]
    return MetadataRequest(topics=topics, include_topic_authorized_operations=True)


@asks("metadata of all topics", 8, 13)
def metadata_of_all(scene: Scene) -> MetadataRequest:
    return MetadataRequest(topics=None, include_topic_authorized_operations=True)


@asks("describe topic partitions")
def describe_topic_partitions(scene: Scene) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in (TOPIC, MISSING)])


@asks("create topics", 2, 4, 5, 7)
def create_topics(scene: Scene) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (MISSING, TOPIC)]
    return CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=True)


@asks("create topics twice and the metadata log", 7)
def create_topics_badly(scene: Scene) -> CreateTopicsRequest:
    names = (MISSING, MISSING, "__cluster_metadata", AUTO + "new")
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=True)


@asks("delete topics by name", 1, 5, repairs=True)
def delete_topics(scene: Scene) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=[VICTIM, MISSING], timeout_ms=5000)


@asks("delete topics by name or id", 6, repairs=True)
def delete_topics_by_id(scene: Scene) -> DeleteTopicsRequest:
    topics = [
        DeleteTopicState(name=None, topic_id=scene.victim_id),
        DeleteTopicState(name=None, topic_id=UNKNOWN_ID),
        DeleteTopicState(name=MISSING),
    ]
    return DeleteTopicsRequest(topics=topics, timeout_ms=5000)


@asks("delete records")
def delete_records(scene: Scene) -> DeleteRecordsRequest:
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])
        for name in (TOPIC, MISSING)
    ]
    return DeleteRecordsRequest(topics=topics, timeout_ms=5000)


@asks("create partitions")
def create_partitions(scene: Scene) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in (TOPIC, MISSING, MISSING)]
    return CreatePartitionsRequest(topics=topics[:2], timeout_ms=5000, validate_only=True)


@asks("offsets for leader epochs")
def offset_for_leader_epoch(scene: Scene) -> OffsetForLeaderEpochRequest:
    topics = [
        OffsetForLeaderTopic(
            topic=name,
            partitions=[OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=99)],
        )
        for name in (TOPIC, MISSING)
    ]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


@asks("describe producers")
def describe_producers(scene: Scene) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[ProducersTopic(name=name, partition_indexes=[0]) for name in (TOPIC, MISSING)]
    )


@asks("describe configs")
def describe_configs(scene: Scene) -> DescribeConfigsRequest:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
        for kind, name, key in (
            (A_TOPIC, TOPIC, "retention.ms"),
            (A_TOPIC, MISSING, "retention.ms"),
            (A_BROKER, "", "num.partitions"),
            (A_GROUP, GROUP, "consumer.session.timeout.ms"),
        )
    ]
    return DescribeConfigsRequest(resources=resources)


@asks("alter configs")
def alter_configs(scene: Scene) -> AlterConfigsRequest:
    resources = [
        AlterConfigsRequestAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterConfigsRequestAlterableConfig(name=key, value="70000")],
        )
        for kind, name, key in _ALTERED
    ]
    return AlterConfigsRequest(resources=resources, validate_only=True)


@asks("alter single configs")
def incremental_alter_configs(scene: Scene) -> IncrementalAlterConfigsRequest:
    resources = [
        IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[IncrementalAlterConfigsRequestAlterableConfig(name=key, value="50000")],
        )
        for kind, name, key in _ALTERED
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=True)


_ALTERED = (
    (A_TOPIC, TOPIC, "retention.ms"),
    (A_TOPIC, MISSING, "retention.ms"),
    (A_BROKER, "", "log.retention.ms"),
    (A_GROUP, GROUP, "consumer.session.timeout.ms"),
)


@asks("list client metrics", 0)
def list_client_metrics(scene: Scene) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest()


@asks("list config resources", 1)
def list_config_resources(scene: Scene) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=[A_BROKER])
