"""The metrics of client telemetry (KIP-714): how many clients push, what goes wrong, and what they push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.node.broker import Broker


def read_telemetry(broker: Broker, readings: Readings) -> None:
    """Read what is counted, and take the series of clients as they are now."""
    telemetry = broker.telemetry
    if telemetry is None:
        return
    clients = telemetry.clients
    add, name, counts, metrics = readings.add, "kafka_server_client_metrics_{}", clients.counts, clients.metrics
    add(name.format("instance_count"), len(clients.instances))
    add(name.format("unknown_subscription_request"), counts.unknown_subscriptions)
    add(name.format("throttle"), counts.throttled)
    readings.add_summary(name.format("plugin_export"), counts.exports, counts.export_ns / 1e6)
    add(name.format("plugin_error"), counts.errors)
    add("pykbroker_client_series", metrics.series_count)
    add("pykbroker_client_series_left_out", metrics.left_out)
    add("pykbroker_memory_bytes", metrics.size_bytes, "client telemetry", "client")
    add("pykbroker_memory_limit_bytes", metrics.limit_bytes, "client telemetry", "client")
    readings.clients = list(metrics.clients.values())
