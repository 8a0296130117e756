"""A client that says of its telemetry what a test wants, on one connection."""

from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, MetricsData

from compat_tests.wire import Wire
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest

CLIENT_METRICS = 16
SET, DELETE = 0, 1
NO_ID = bytes(16)


class PushingClient:
    """A context manager. software: as ApiVersions says; None does not ask for that."""

    def __init__(
        self, address: tuple[str, int], *, client_id: str | None = "pushing", software: str | None = "test"
    ) -> None:
        self._wire = Wire(address)
        self._client_id = client_id
        if software is not None:
            request = ApiVersionsRequest(client_software_name=software, client_software_version="1.0")
            self._wire.call(request, 4, client_id=client_id)

    def __enter__(self) -> "PushingClient":
        return self

    def __exit__(self, *error: object) -> None:
        self._wire.__exit__(None, None, None)

    def get(self, instance_id: bytes = NO_ID) -> Any:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        return self._wire.call(request, 0, client_id=self._client_id)

    def push(
        self,
        instance_id: bytes,
        subscription_id: int,
        metrics: bytes = b"",
        *,
        compression: int = 0,
        terminating: bool = False,
    ) -> int:
        """The error code."""
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=subscription_id,
            terminating=terminating,
            compression_type=compression,
            metrics=metrics,
        )
        answer: Any = self._wire.call(request, 0, client_id=self._client_id)
        return int(answer.error_code)


def alter_subscription(address: tuple[str, int], name: str, **configs: str | None) -> tuple[int, str | None]:
    """Set keys of a subscription, whose points are underscores here; None deletes one."""
    rows = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key.replace("_", "."), config_operation=DELETE if value is None else SET, value=value
        )
        for key, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=name, configs=rows
    )
    with Wire(address) as wire:
        answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    [row] = answer.responses
    return row.error_code, row.error_message


def gauges(values: Iterable[tuple[str, float, dict[str, str]]]) -> MetricsData:
    """Gauges by name, value and attributes."""
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    for name, value, attributes in values:
        metric = scope.metrics.add(name=name)
        point = metric.gauge.data_points.add(as_double=value)
        for key, text in attributes.items():
            point.attributes.add(key=key).value.string_value = text
    return data


def counter(name: str, value: int) -> MetricsData:
    """What has come to a sum since the last push."""
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_DELTA
    metric.sum.is_monotonic = True
    metric.sum.data_points.add(as_int=value)
    return data


SOME = gauges([("org.apache.kafka.producer.some", 1.5, {})]).SerializeToString()
