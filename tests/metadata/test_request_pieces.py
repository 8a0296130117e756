"""Large requests to the controller: in pieces they bring about what they would as a whole, up to Kafka's limits."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

from pykbroker.long_work import whole
from pykbroker.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.metadata.request_pieces import merged, pieces_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message

from .cluster import Cluster, one_node

TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."


def creatable(name: str, partitions: int = 1) -> CreatableTopic:
    configs = [CreatableTopicConfig(name="retention.ms", value="5000")] if name.endswith("7") else []
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)


def create(names: list[str]) -> Message:
    return CreateTopicsRequest(topics=[creatable(name) for name in names])


def delete_by_name(names: list[str]) -> Message:
    return DeleteTopicsRequest(topic_names=names)


def delete(names: list[str]) -> Message:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])


def grow(names: list[str]) -> Message:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names]
    )


def alter(names: list[str]) -> Message:
    config = AlterConfigsRequestAlterableConfig(name="retention.ms", value="6000")
    return AlterConfigsRequest(
        resources=[
            AlterConfigsRequestAlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config])
            for name in names
        ]
    )


def alter_incrementally(names: list[str], type_: int = TOPIC_RESOURCE, key: str = "retention.ms") -> Message:
    config = IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value="50000")
    return IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=type_, resource_name=name, configs=[config]
            )
            for name in names
        ]
    )


REQUESTS = (create, delete_by_name, delete, grow, alter, alter_incrementally)


def cluster_with(topics: int) -> Cluster:
    cluster = one_node()
    for start in range(0, topics, 100):
        cluster.ask(create([f"there-{number}" for number in range(start, min(start + 100, topics))]))
    return cluster


def rows(response: Any) -> list[tuple[Any, ...]]:
    (field,) = (each.name for each in type(response).__schema__.fields if each.is_array)
    told = ("name", "resource_name", "error_code", "error_message")
    return sorted(tuple(getattr(row, each, None) for each in told) for row in getattr(response, field))


def content(cluster: Cluster) -> Any:
    topics = {name: len(topic.partitions) for name, topic in cluster.image.topics.items()}
    return topics, dict(cluster.image.configs)


def ask_in_pieces(cluster: Cluster, request: Message) -> tuple[Any, int]:
    error = whole(cluster.controller.policy_violation(request))
    assert error is None
    pieces = whole(pieces_of(request))
    return merged(request, [cluster.ask(piece) for piece in pieces]), len(pieces)


@pytest.mark.parametrize("build", REQUESTS)
def test_in_pieces_a_request_does_what_it_does_as_a_whole(build: Any) -> None:
    """Names that are there and others, wrong ones, and some of them twice."""
    chance = random.Random(3)
    names = [f"there-{number}" for number in range(300)] + [f"new-{number}" for number in range(300)] + ["no/name"]
    names += chance.sample(names, 40)
    chance.shuffle(names)
    whole, pieces = cluster_with(350), cluster_with(350)
    expected = whole.ask(build(list(names)))
    answer, count = ask_in_pieces(pieces, build(list(names)))
    assert count > 1
    assert rows(answer) == rows(expected)
    assert content(pieces) == content(whole)


@pytest.mark.parametrize("build", REQUESTS)
def test_a_small_request_stays_as_it_is(build: Any) -> None:
    request = build(["a", "b"])
    assert whole(pieces_of(request)) == [request]


def test_a_request_that_deletes_by_name_and_by_id_stays_whole() -> None:
    """A name and an id may mean the same topic, which is an error of both."""
    topics = [DeleteTopicState(name=f"t{number}") for number in range(2000)]
    topics.append(DeleteTopicState(name=None, topic_id=bytes(15) + b"x"))
    assert len(whole(pieces_of(DeleteTopicsRequest(topics=topics)))) == 1


def refusal(cluster: Cluster, request: Message) -> str | None:
    """Why the controller refuses the request as a whole."""
    before = content(cluster)
    response = cluster.ask(request)
    told = rows(response)
    if {row[2] for row in told} != {ErrorCode.POLICY_VIOLATION}:
        return None
    assert content(cluster) == before
    (message,) = {row[3] for row in told}
    assert isinstance(message, str)
    return message


@pytest.mark.parametrize(
    ("topics", "partitions", "said"),
    [
        (1, 9_999, None),
        (1, 10_000, TOO_MANY_RECORDS),
        (1, 10_001, TOO_MANY_PARTITIONS),
        (5_001, 1, TOO_MANY_RECORDS),
        (10_001, 1, TOO_MANY_PARTITIONS),
    ],
)
def test_one_request_creates_so_much_and_no_more(topics: int, partitions: int, said: str | None) -> None:
    """As Apache Kafka 4.3.1 was seen to answer."""
    request = CreateTopicsRequest(topics=[creatable(f"x{number}x", partitions) for number in range(topics)])
    assert refusal(cluster_with(0), request) == said


def test_one_request_grows_and_configures_so_many_and_no_more() -> None:
    cluster = cluster_with(0)
    names = [f"g{number}" for number in range(10_001)]
    assert refusal(cluster, grow(names)) == TOO_MANY_RECORDS
    groups = alter_incrementally(names, GROUP_RESOURCE, "consumer.session.timeout.ms")
    assert refusal(cluster, groups) == TOO_MANY_RECORDS
    assert refusal(cluster, alter_incrementally(names)) is None, "topics that are not there are no records"
    assert refusal(cluster, delete(names)) is None


def test_a_refused_request_is_freed_with_its_answer() -> None:
    """Nobody waits for the collector of cycles: it comes after minutes."""
    cluster = one_node()
    request = create([f"topic-{number}" for number in range(10_001)])
    gc.collect()
    gc.disable()
    try:
        response = cluster.ask(request)
        assert {row.error_code for row in response.topics} == {ErrorCode.POLICY_VIOLATION}
        del request, response
        assert gc.collect() < 1000
    finally:
        gc.enable()
