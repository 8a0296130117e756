"""What a broker advertises, and that it serves every version of it."""

import re

import pytest

from pykbroker.protocol.api_keys import ApiKey, request_type
from pykbroker.protocol.messages.acls import DescribeAclsRequest
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.produce import ProduceRequest
from pykbroker.protocol.schema import Message

from .answers import TestAnswers
from .brokers import Broker
from .hostile.scene import Scene
from .referee_versions import as_of_4_3
from .wire import Silent, Wire

REFUSED_PRODUCE_VERSIONS = (0, 1, 2)
"""Advertised, because old versions of librdkafka look for them, and refused since Kafka 4.0."""

SERVED = {
    *(ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_CLUSTER),
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH),
    *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DESCRIBE_CONFIGS),
    *(ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE),
    *(ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.INIT_PRODUCER_ID),
}
OF_KAFKA_ALONE = re.compile("QUOTA|TELEMETRY|SHARE|STREAMS")


def advertised(broker: Broker, version: int = 4) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest(client_software_name="compat", client_software_version="1")
    with Wire(broker.address) as wire:
        answer = wire.call(request, version)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == 0
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_every_version_of_api_versions_tells_the_same(broker: Broker) -> None:
    served = range(advertised(broker)[ApiKey.API_VERSIONS][1] + 1)
    assert len({str(sorted(advertised(broker, version).items())) for version in served}) == 1


def test_what_is_advertised_is_advertised_as_kafka_does(broker: Broker, answers: TestAnswers) -> None:
    found = advertised(broker)
    assert found.keys() >= SERVED, sorted(key.name for key in SERVED - found.keys())
    both = as_of_4_3(found) if broker.kind == "pykbroker" else found
    by_name = {ApiKey(key).name: versions for key, versions in both.items()}
    answers.same("versions", {name: each for name, each in by_name.items() if not OF_KAFKA_ALONE.search(name)})


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_every_advertised_version_is_served(broker: Broker) -> None:
    """A request without content gets an answer that can be decoded, and no closed connection."""
    Scene(broker).group()  # the coordinator is at work
    for api_key, (oldest, newest) in advertised(broker).items():
        for version in range(oldest, newest + 1):
            if api_key == ApiKey.PRODUCE and version in REFUSED_PRODUCE_VERSIONS:
                continue
            try:
                with Wire(broker.address) as wire:
                    wire.call(empty_request(ApiKey(api_key)), version)
            except Silent:
                pytest.fail(f"{ApiKey(api_key).name} {version} was not answered")


def empty_request(api_key: ApiKey) -> Message:
    if api_key == ApiKey.API_VERSIONS:
        return ApiVersionsRequest(client_software_name="compat", client_software_version="1")
    if api_key == ApiKey.PRODUCE:
        return ProduceRequest(acks=1)
    if api_key == ApiKey.DESCRIBE_ACLS:  # of which 0 is what nobody knows, and 1 is anything
        return DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    return request_type(api_key)()
