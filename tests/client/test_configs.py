"""Configs of many topics come in few requests."""

from __future__ import annotations

import pytest

from pykbroker.client.configs import describe_topic_configs
from pykbroker.client.errors import KafkaError
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

from .fake_broker import FakeBroker, with_broker


def described(name: str, *configs: str, error_code: int = ErrorCode.NONE) -> DescribeConfigsResult:
    rows = [DescribeConfigsResourceResult(name=config, value=name) for config in configs]
    return DescribeConfigsResult(error_code=error_code, resource_type=2, resource_name=name, configs=rows)


def test_many_topics_are_asked_for_together_and_their_configs_come_by_name() -> None:
    async def scenario(broker: FakeBroker) -> None:
        def answer(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
            rows = [described(each.resource_name, "segment.ms", "cleanup.policy") for each in request.resources]
            return DescribeConfigsResponse(results=rows[::-1])

        broker.serve(DescribeConfigsRequest, answer)
        names = [f"t{index}" for index in range(1025)]
        async with broker.cluster() as cluster:
            found = await describe_topic_configs(cluster, names)
        assert list(found) == names
        assert all(
            [(row.name, row.value) for row in rows] == [("cleanup.policy", name), ("segment.ms", name)]
            for name, rows in found.items()
        )
        assert len(broker.of_type(DescribeConfigsRequest)) == 11

    with_broker(scenario)


def test_a_topic_that_is_left_out_of_an_answer_has_no_configs() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve(
            DescribeConfigsRequest,
            lambda request, version: DescribeConfigsResponse(results=[described("t1", "segment.ms")]),
        )
        async with broker.cluster() as cluster:
            found = await describe_topic_configs(cluster, ["t0", "t1"])
        assert found["t0"] == []
        assert [row.name for row in found["t1"]] == ["segment.ms"]

    with_broker(scenario)


def test_a_topic_that_is_gone_is_an_error() -> None:
    async def scenario(broker: FakeBroker) -> None:
        gone = described("t1", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        broker.serve(
            DescribeConfigsRequest,
            lambda request, version: DescribeConfigsResponse(results=[described("t0", "segment.ms"), gone]),
        )
        async with broker.cluster() as cluster:
            with pytest.raises(KafkaError) as refused:
                await describe_topic_configs(cluster, ["t0", "t1"])
        assert refused.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_broker(scenario)
