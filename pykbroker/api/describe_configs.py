"""DescribeConfigs (key 32): every key of a topic, a group or a broker, with its value and where that comes from.

Served are versions 1 to 4: 1 can list synonyms (KIP-226), 3 types and documentation (KIP-569; the documentation is
Kafka's own, and null here). A value that may be a secret is null. Loggers and client metrics have no configurations
here.
"""

from __future__ import annotations

from pykbroker.config.keys import WIRE_TYPES
from pykbroker.metadata.effective_configs import (
    BrokerLayers,
    EffectiveConfig,
    broker_configs,
    cluster_broker_configs,
    group_configs,
    topic_configs,
)
from pykbroker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.metadata.refused import Refused
from pykbroker.metadata.topic_names import invalid_reason
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from pykbroker.server.broker import Broker
from pykbroker.server.dispatch import RequestContext, handles


@handles(DescribeConfigsRequest, listeners=frozenset({"broker", "controller"}))
async def describe_configs(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=""
        )
        try:
            result.configs = [
                _row(each, include_synonyms=request.include_synonyms) for each in _wanted(context.broker, resource)
            ]
        except Refused as refused:
            result.error_code, result.error_message = refused.error_code, refused.message or ""
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _wanted(broker: Broker, resource: DescribeConfigsResource) -> list[EffectiveConfig]:
    """No keys at all, and an empty list of keys, stand for every key."""
    found = _configs(broker, resource)
    keys = resource.configuration_keys
    return [each for each in found if each.key.name in keys] if keys else found


def _configs(broker: Broker, resource: DescribeConfigsResource) -> list[EffectiveConfig]:
    layers = BrokerLayers(broker.config, broker.image, broker.node_id)
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        reason = invalid_reason(name)
        if reason is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if broker.image.topic(name) is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic_configs(layers, broker.image.topic_config(name))
    if resource.resource_type == GROUP_RESOURCE:
        if name == "":
            raise Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return group_configs(layers, broker.image.group_config(name))
    if resource.resource_type != BROKER_RESOURCE:
        reason = f"this broker has no configurations of resource type {resource.resource_type}"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)
    if name == "":
        return cluster_broker_configs(layers)
    if not name.isdecimal():
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        reason = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)
    return broker_configs(layers)


def _row(config: EffectiveConfig, *, include_synonyms: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=config.key.name,
        value=config.value,
        read_only=config.key.read_only,
        config_source=config.source,
        is_sensitive=config.key.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in config.synonyms
        ]
        if include_synonyms
        else [],
        config_type=WIRE_TYPES[config.key.type],
        documentation=None,
    )
