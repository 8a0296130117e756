"""The controller's own listener: what a client sees that asks for controllers instead of brokers (KIP-919)."""

from collections.abc import Callable

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest

from .brokers import BrokerProcess
from .wire import Closed, Wire

CONTROLLERS = 2


def _describe(port: int, endpoint_type: int = CONTROLLERS) -> DescribeClusterResponse:
    with Wire(("127.0.0.1", port)) as wire:
        answer = wire.call(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert isinstance(answer, DescribeClusterResponse)
    return answer


def test_a_controller_is_listed_where_it_listens_also_after_a_restart(
    fresh_process: Callable[..., BrokerProcess],
) -> None:
    broker = fresh_process()
    for _ in range(2):
        answer = _describe(broker.controller_port)
        assert answer.error_code == ErrorCode.NONE
        assert answer.endpoint_type == CONTROLLERS
        assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
            (answer.controller_id, "127.0.0.1", broker.controller_port)
        ]
        broker.stop()
        broker.start()


def test_each_listener_tells_of_its_own_kind_of_nodes_alone(fresh_process: Callable[..., BrokerProcess]) -> None:
    broker = fresh_process()
    assert _describe(broker.port).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert _describe(broker.controller_port, endpoint_type=1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert _describe(broker.controller_port, endpoint_type=3).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_the_controllers_listener_advertises_what_it_serves(fresh_process: Callable[..., BrokerProcess]) -> None:
    broker = fresh_process()
    with Wire(("127.0.0.1", broker.controller_port)) as wire:
        answer = wire.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
        assert isinstance(answer, ApiVersionsResponse)
        offered = {each.api_key for each in answer.api_keys}
        assert {18, 19, 60} <= offered
        assert not offered & {0, 3}, "Produce and Metadata belong to brokers"
        with pytest.raises(Closed):
            wire.call(MetadataRequest(), 12)
