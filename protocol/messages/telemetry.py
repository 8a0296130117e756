"""Metrics that clients push to brokers (KIP-714)."""

from __future__ import annotations

from ..schema import Message, field


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible="0+", listeners="broker"):
    """The request asks which metrics the cluster wants from this client."""

    client_instance_id: bytes = field("uuid")


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible="0+"):
    """Names of metrics, and how often to push them."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    client_instance_id: bytes = field("uuid")
    subscription_id: int = field("int32")
    accepted_compression_types: list[int] = field("[]int8")
    push_interval_ms: int = field("int32")
    telemetry_max_bytes: int = field("int32")
    delta_temporality: bool = field("bool")
    requested_metrics: list[str] = field("[]string")


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+", listeners="broker"):
    """Metrics in OpenTelemetry's form."""

    client_instance_id: bytes = field("uuid")
    subscription_id: int = field("int32")
    terminating: bool = field("bool")
    compression_type: int = field("int8")
    metrics: bytes = field("bytes")


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    """The response says whether they were taken."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
