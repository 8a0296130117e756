"""Requests that no client sends, answered as by Apache Kafka: each was found by `compat_tests/differential`."""

from __future__ import annotations

from typing import Any

from pykbroker.api.describe_configs import describe_configs
from pykbroker.api.describe_producers import describe_producers
from pykbroker.api.describe_topic_partitions import describe_topic_partitions
from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from pykbroker.protocol.messages.metadata import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.transaction_admin import DescribeProducersRequest
from pykbroker.protocol.messages.transaction_admin import TopicRequest as ProducersOfTopic
from tests.api.api_node import ApiNode, batch, in_virtual_time

MAGIC_AT = 16


def ask(node: ApiNode, handler: Any, request: Any, version: int) -> Any:
    return in_virtual_time(lambda: node.call(handler, request, version))


def producing(*topics: tuple[str, list[tuple[int, bytes]]], acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=index, records=data) for index, data in rows]
            )
            for name, rows in topics
        ],
    )


def test_a_topic_that_a_produce_names_twice_has_one_row_and_one_without_partitions_none(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    request = producing(("apples", [(0, batch(b"a"))]), ("pears", []), ("apples", [(1, batch(b"b"))]))
    [row] = ask(node, produce, request, 9).responses
    assert [each.index for each in row.partition_responses] == [0, 1]


def test_a_batch_of_an_unknown_format_spoils_all_of_a_produce(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    broken = bytearray(batch(b"a"))
    broken[MAGIC_AT] = 7
    request = producing(("apples", [(0, bytes(broken)), (1, batch(b"b"))]))
    [row] = ask(node, produce, request, 9).responses
    assert [each.error_code for each in row.partition_responses] == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert node.partition("apples", 1).log.log_end_offset == 0


def test_unknown_acks_are_refused_after_what_is_wrong_with_each_partition(node: ApiNode) -> None:
    node.create_topic("apples")
    request = producing(("apples", [(0, batch(b"a")), (7, batch(b"b"))]), acks=2)
    [row] = ask(node, produce, request, 9).responses
    expected = [ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [each.error_code for each in row.partition_responses] == expected
    assert [each.log_start_offset for each in row.partition_responses] == [-1, -1]


def test_one_resource_of_an_unknown_type_spoils_all_of_describe_configs(node: ApiNode) -> None:
    node.create_topic("apples")
    resources = [DescribeConfigsResource(resource_type=kind, resource_name="apples") for kind in (2, 77)]
    answer = ask(node, describe_configs, DescribeConfigsRequest(resources=resources), 4)
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_describe_producers_has_a_text_for_topics_alone(node: ApiNode) -> None:
    node.create_topic("apples")
    topics = [ProducersOfTopic(name=name, partition_indexes=[7]) for name in ("apples", "pears", "a b")]
    rows = ask(node, describe_producers, DescribeProducersRequest(topics=topics), 0).topics
    found = [(each.partitions[0].error_code, each.partitions[0].error_message is None) for each in rows]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [(unknown, True), (unknown, False), (ErrorCode.INVALID_TOPIC_EXCEPTION, False)]


def test_a_bad_cursor_is_refused_for_each_topic_as_often_as_it_is_named(node: ApiNode) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="apples")] * 2, cursor=Cursor(topic_name="apples", partition_index=-1)
    )
    rows = ask(node, describe_topic_partitions, request, 0).topics
    assert [each.error_code for each in rows] == [ErrorCode.INVALID_REQUEST] * 2
