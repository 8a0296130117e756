"""`max.decompressed.message.bytes`: how large a single record of a compressed batch may be."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.waiting import until
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression

from .asking import call
from .conftest import FreshNode

KEY = "max.decompressed.message.bytes"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
AROUND_A_VALUE = 7


def create(node: BrokerProcess, name: str, **configs: str) -> tuple[int, str | None]:
    given = [CreatableTopicConfig(name=KEY, value=value) for value in configs.values()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=given)
    (made,) = call(node.address, CreateTopicsRequest(topics=[topic]), 7).topics
    return made.error_code, made.error_message


def produced(node: BrokerProcess, topic: str, size: int, codec: Compression = Compression.ZSTD) -> tuple[int, int, Any]:
    """A batch of two records, of which the second one has so many bytes without its length."""
    records = [Record(None, b"x", (), 1000), Record(None, b"v" * (size - AROUND_A_VALUE), (), 1000)]
    batch = PartitionProduceData(index=0, records=encode_batch(records, compression=codec))
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[batch])]
    )
    (answered,) = call(node.address, request, 12).responses[0].partition_responses
    return answered.error_code, answered.base_offset, [each.batch_index for each in answered.record_errors]


def alter(node: BrokerProcess, type_: int, name: str, value: str | None) -> tuple[int, str | None]:
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name=KEY, config_operation=DELETE if value is None else SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=type_, resource_name=name, configs=[change]
    )
    (row,) = call(node.address, IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return row.error_code, row.error_message


def described(node: BrokerProcess, type_: int, name: str) -> list[tuple[str | None, int]]:
    resource = DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=[KEY])
    (found,) = call(node.address, DescribeConfigsRequest(resources=[resource]), 4).results
    return [(each.value, each.config_source) for each in found.configs]


def test_a_topic_takes_records_of_the_size_that_it_says(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node()
    for number, value in enumerate(("0", "-1", "2147483640", "many")):
        answers.same(f"a topic with {value}", create(node, f"refused-{number}", of=value))
    answers.same("a topic with 100", create(node, "small", of="100"))
    answers.same("described", described(node, TOPIC, "small"))
    until(lambda: produced(node, "small", 50)[0] == 0, "the topic is there")
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        for size in (100, 101, 5000):
            error, _, records = produced(node, "small", size, codec)
            answers.same(f"{size} bytes by {codec.name}", (error, records))
    answers.same("without compression", produced(node, "small", 5000, Compression.NONE)[0])
    answers.same("altered", alter(node, TOPIC, "small", "5000"))
    until(lambda: produced(node, "small", 5000)[0] == 0, "the new limit counts")


@pytest.mark.parametrize("broker", ["", "1"])
def test_a_limit_of_brokers_is_that_of_topics_without_their_own(
    fresh_node: FreshNode, answers: TestAnswers, broker: str
) -> None:
    node = fresh_node({KEY: "1000"})
    create(node, "any")
    create(node, "own", of="2000")
    until(lambda: produced(node, "any", 1000)[0] == 0, "the topic is there")
    answers.same("by the file", [produced(node, each, 1001)[0] for each in ("any", "own")])
    answers.same("altered", alter(node, BROKER, broker, "100"))
    until(lambda: produced(node, "any", 101)[0] != 0, "the new limit counts")
    answers.same("described", described(node, BROKER, "1"))
    answers.same("at run time", [produced(node, each, 101)[0] for each in ("any", "own")])
    answers.same("taken back", alter(node, BROKER, broker, None))
    until(lambda: produced(node, "any", 1000)[0] == 0, "the file's limit counts again")
