"""Pushes of clients, and what a broker knows of their telemetry, without a network and without waiting."""

from __future__ import annotations

import random
from typing import Any

from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from pykbroker.long_work import whole
from pykbroker.metadata.image import CLIENT_METRICS_RESOURCE, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from pykbroker.telemetry.client_instances import Client, ClientInstance
from pykbroker.telemetry.client_telemetry import ClientTelemetry
from pykbroker.telemetry.otlp import Pushed, read_push
from pykbroker.telemetry.pushed_metrics import totals
from pykbroker.telemetry.series import SeriesValue

DELTA = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
SOMEBODY = Client("somebody", "test", "1.0", "127.0.0.1", 4711)
INTERVAL_MS = 300_000


class Telemetry:
    """One broker's, whose metadata and time a test has in its hands."""

    def __init__(self, *, most_series: int = 1000, most_instances: int = 100) -> None:
        self.clients = ClientTelemetry(1 << 20, random.Random(1), most_series, most_instances=most_instances)
        self.image = MetadataImage()
        self.now_ms = 1

    def subscribe(self, name: str, **configs: str | None) -> None:
        """Set keys of a subscription, whose points are underscores here; None deletes one."""
        for key, value in configs.items():
            record = ConfigRecord(
                resource_type=CLIENT_METRICS_RESOURCE,
                resource_name=name,
                name=key.replace("_", "."),
                value=value,
            )
            changes = self.image.replay(record, self.image.offset + 1)
            self.clients.subscriptions.apply(self.image, changes)

    def get(self, instance_id: bytes, client: Client = SOMEBODY) -> Any:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        response, _ = whole(self.clients.subscribe(request, client, self.now_ms))
        return response

    def check(
        self, instance_id: bytes, subscription_id: int, *, terminating: bool = False, client: Client = SOMEBODY
    ) -> ClientInstance | ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=instance_id, subscription_id=subscription_id, terminating=terminating, metrics=b""
        )
        found, _ = whole(self.clients.pushes(request, client, self.now_ms))
        return found

    def push(self, instance_id: bytes, data: MetricsData, client: Client = SOMEBODY) -> None:
        """Push what is taken for sure, at the time at which it may be pushed."""
        subscription_id = self.get(instance_id, client).subscription_id
        instance = self.check(instance_id, subscription_id, client=client)
        assert isinstance(instance, ClientInstance), instance
        metrics = self.clients.metrics
        pushed = read_push(data.SerializeToString(), instance.subscribed.wants, metrics.most_of_client)
        metrics.take(instance, totals(pushed, metrics.series_of(instance_id)), self.now_ms)
        self.now_ms += instance.subscribed.interval_ms

    def expire(self) -> None:
        whole(self.clients.expire(self.now_ms))

    def values(self, instance_id: bytes) -> dict[str, float]:
        series = self.clients.metrics.series_of(instance_id)
        return {key.name: value.number for key, value in series.items()}


def pushing(*metrics: Metric) -> MetricsData:
    data = MetricsData()
    data.resource_metrics.add().scope_metrics.add().metrics.extend(metrics)
    return data


def gauge(name: str, value: float, **attributes: str) -> Metric:
    metric = Metric(name=name)
    point = metric.gauge.data_points.add(as_double=value)
    for key, text in attributes.items():
        point.attributes.add(key=key).value.string_value = text
    return metric


def counter(name: str, value: float, *, temporality: int = DELTA, is_monotonic: bool = True) -> Metric:
    metric = Metric(name=name)
    metric.sum.aggregation_temporality = temporality  # type: ignore[assignment]
    metric.sum.is_monotonic = is_monotonic
    metric.sum.data_points.add(as_double=value)
    return metric


def histogram(name: str, bounds: list[float], counts: list[int], total: float) -> Metric:
    metric = Metric(name=name)
    metric.histogram.aggregation_temporality = DELTA
    metric.histogram.data_points.add(explicit_bounds=bounds, bucket_counts=counts, sum=total, count=sum(counts))
    return metric


def read(data: MetricsData, most_series: int = 1000) -> Pushed:
    return read_push(data.SerializeToString(), lambda _: True, most_series)


def values(pushed: Pushed) -> dict[str, SeriesValue]:
    return {key.name: value for key, value in pushed.series.items()}
