"""Whatever is asked of the controller, there is an answer that refuses each part of it."""

from __future__ import annotations

import pytest

from pykbroker.long_work import PORTION, whole
from pykbroker.metadata.error_responses import error_response
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, TopicPartitions
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message

ID = bytes(range(16))

REQUESTS: list[tuple[Message, str]] = [
    (CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")]), "topics"),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=ID), DeleteTopicState(name="a")]), "responses"),
    (DeleteTopicsRequest(topic_names=["a", "b"]), "responses"),
    (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a"), CreatePartitionsTopic(name="b")]), "results"),
    (
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name=name)
                for name in ("a", "b")
            ]
        ),
        "responses",
    ),
    (AllocateProducerIdsRequest(), ""),
    (BrokerHeartbeatRequest(), ""),
    (BrokerRegistrationRequest(), ""),
    (ControllerRegistrationRequest(), ""),
]


@pytest.mark.parametrize(("request_", "parts"), REQUESTS, ids=lambda each: type(each).__name__)
def test_every_part_has_the_error(request_: Message, parts: str) -> None:
    answer = whole(error_response(request_, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")))
    api_key = request_.__schema__.api_key
    assert api_key is not None
    versions = response_type(api_key).__schema__.stable_versions
    decoded = decode(response_type(api_key), versions[-1], encode(answer, versions[-1]))[0]
    refused = getattr(decoded, parts) if parts else [decoded]
    assert [each.error_code for each in refused] == [ErrorCode.KAFKA_STORAGE_ERROR] * (2 if parts else 1)


def test_what_the_controller_has_no_rule_for_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        whole(error_response(MetadataRequest(), ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")))


def _many(count: int) -> list[Message]:
    names = [f"t{number}" for number in range(count)]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource
    return [
        CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names]),
        DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names]),
        DeleteTopicsRequest(topic_names=names),
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name) for name in names]),
        IncrementalAlterConfigsRequest(resources=[resource(resource_type=2, resource_name=name) for name in names]),
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=list(range(count)))]),
    ]


@pytest.mark.parametrize("request_", _many(5 * PORTION), ids=lambda each: type(each).__name__)
def test_very_many_parts_are_refused_some_at_a_time(request_: Message) -> None:
    turns = sum(1 for _ in error_response(request_, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")))
    assert turns >= 5
