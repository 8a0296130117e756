"""DescribeProducers: what a replica's own log knows of its producers."""

from __future__ import annotations

from pykbroker.api.describe_producers import describe_producers
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from tests.api.api_node import ApiNode, batch, in_virtual_time


def describe(node: ApiNode, topic: str) -> PartitionResponse:
    message = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    response: DescribeProducersResponse = in_virtual_time(lambda: node.call(describe_producers, message, 0))
    return response.topics[0].partitions[0]


def test_a_follower_answers_too(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=2)
    partition = node.partition("apples")
    partition.append_as_follower(
        batch(b"a", producer_id=7, producer_epoch=3, base_sequence=5, partition_leader_epoch=0)
    )
    described = describe(node, "apples")
    assert described.error_code == ErrorCode.NONE
    [producer] = described.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 5)


def test_a_broker_without_a_replica_does_not_answer(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[2], leader=2)
    assert describe(node, "apples").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert describe(node, "pears").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
