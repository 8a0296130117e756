"""DescribeConfigs (key 32): every key of a topic, a group, a broker or a subscription of client metrics, with its value
and where that comes from.

Served are versions 1 to 4: 1 can list synonyms (KIP-226), 3 types and documentation (KIP-569), which is in the words of
`pykbroker.config.texts`. A value that may be a secret is null.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from pykbroker.config import group_keys, node_keys, topic_keys
from pykbroker.config.client_metrics_keys import client_metrics_keys
from pykbroker.config.given_settings import with_origin
from pykbroker.config.keys import WIRE_TYPES
from pykbroker.config.texts import Kind, text_of
from pykbroker.config.topic_keys import INTERNAL_TOPIC_KEYS
from pykbroker.long_work import LongWork, each_of
from pykbroker.metadata.effective_configs import (
    BrokerLayers,
    EffectiveConfig,
    broker_configs,
    client_metrics_configs,
    cluster_broker_configs,
    group_configs,
    topic_configs,
)
from pykbroker.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from pykbroker.metadata.topic_names import invalid_reason
from pykbroker.protocol.compile import encode_structs
from pykbroker.protocol.encoded_array import LARGEST_ANSWER_BYTES
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes
from pykbroker.server.runtime.turns import portions

from .broker_loggers import described_loggers
from .config_resources import check_resource

_STEPS_OF_RESOURCE: Final = 5
_STEPS_OF_ROW: Final = 12
_LONGEST_BROKER_ID: Final = 10
_DESCRIBED: Final = frozenset(
    {TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE}
)
_KINDS: Final[Mapping[int, Kind]] = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client-metrics",
    GROUP_RESOURCE: "group",
}


@handles_on_all_nodes(
    DescribeConfigsRequest,
    needs=names(
        (Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
        (Operation.DESCRIBE_CONFIGS, ResourceType.GROUP),
        (Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    ),
)
async def describe_configs(
    context: RequestContext[ClusterNode], request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """A resource that is named twice is described twice, as in Kafka, out of the same bytes."""
    unknown = next((each.resource_type for each in request.resources if each.resource_type not in _DESCRIBED), None)
    if unknown is not None:
        return await context.turn.through(_refused(request, f"there are no configurations of resource type {unknown}"))
    description = _Description(context, request)
    results = []
    for resource in request.resources:
        results.append(await description.of(resource))
    return DescribeConfigsResponse(results=results)


def _refused(request: DescribeConfigsRequest, reason: str) -> LongWork[DescribeConfigsResponse]:
    """One resource of an unknown type spoils all of the request, as in Kafka's `ConfigHelper`."""
    results = yield from each_of(
        request.resources,
        lambda each: DescribeConfigsResult(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=reason,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        ),
    )
    return DescribeConfigsResponse(results=results)


class _Description:
    """The answers of one request. What is the same for many resources is found, encoded and kept once."""

    def __init__(self, context: RequestContext[ClusterNode], request: DescribeConfigsRequest) -> None:
        self._context = context
        self._node = context.node
        self._turn = context.turn
        self._version = context.header.api_version
        self._include_synonyms = request.include_synonyms
        self._include_documentation = request.include_documentation
        self._layers = BrokerLayers(self._node.config, self._node.image, self._node.node_id)
        self._rows: dict[Hashable, EncodedStructs] = {}
        self._size = 0

    async def of(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=""
        )
        try:
            check_resource(self._context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
            rows = await self._found(resource)
            self._size += sum(map(len, rows.parts))
            if self._size > LARGEST_ANSWER_BYTES:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the answer would be too large: ask for less at a time")
            result.configs = rows.of(DescribeConfigsResourceResult)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message or ""
        await self._turn.took(_STEPS_OF_RESOURCE)
        return result

    async def _found(self, resource: DescribeConfigsResource) -> EncodedStructs:
        """The rows of any resource. Raises ApiError."""
        if resource.resource_type == BROKER_LOGGER_RESOURCE:
            return await self._loggers(resource)
        _check(self._node, resource)
        return await self._rows_of(resource)

    async def _loggers(self, resource: DescribeConfigsResource) -> EncodedStructs:
        rows = described_loggers(self._node.node_id, resource.resource_name)
        if resource.configuration_keys:
            wanted = set(resource.configuration_keys)
            rows = [each for each in rows if each.name in wanted]
        await self._turn.took(len(rows) * _STEPS_OF_ROW)
        return self._rows_as_bytes(rows)

    async def _rows_of(self, resource: DescribeConfigsResource) -> EncodedStructs:
        keys = await self._known_keys(resource.configuration_keys or ())
        overrides = self._overrides(resource)
        is_broker = resource.resource_type == BROKER_RESOURCE
        described = resource.resource_type, is_broker and resource.resource_name, tuple(overrides.items()), keys
        rows = self._rows.get(described)
        if rows is None:
            found = self._configs(resource, overrides)
            # No keys at all, and an empty list of keys, stand for every key.
            wanted = [each for each in found if each.key.name in keys] if resource.configuration_keys else found
            rows = self._rows[described] = self._encoded(wanted, resource.resource_type)
            await self._turn.took(len(found) * _STEPS_OF_ROW)
        return rows

    async def _known_keys(self, names: Sequence[str]) -> frozenset[str]:
        """A key that nobody has names no row, however many such keys there are."""
        known: set[str] = set()
        for portion in portions(names):
            known.update(name for name in portion if self._is_key(name))
            await self._turn.took(len(portion) // 2)
        return frozenset(known)

    def _is_key(self, name: str) -> bool:
        layers = self._layers
        return (
            name in node_keys()
            or name in topic_keys()
            or name in INTERNAL_TOPIC_KEYS
            or name in group_keys()
            or name in client_metrics_keys()
            or name in layers.merged
            or name in layers.config.given
        )

    def _overrides(self, resource: DescribeConfigsResource) -> Mapping[str, str]:
        image = self._node.image
        match resource.resource_type:
            case 2:
                return image.topic_config(resource.resource_name)
            case 16:
                return image.client_metrics_config(resource.resource_name)
            case 32:
                return image.group_config(resource.resource_name)
        return {}

    def _configs(self, resource: DescribeConfigsResource, overrides: Mapping[str, str]) -> list[EffectiveConfig]:
        match resource.resource_type:
            case 2:
                return topic_configs(self._layers, overrides)
            case 16:
                return client_metrics_configs(overrides)
            case 32:
                return group_configs(self._layers, overrides)
        return broker_configs(self._layers) if resource.resource_name else cluster_broker_configs(self._layers)

    def _encoded(self, configs: Sequence[EffectiveConfig], resource_type: int) -> EncodedStructs:
        rows = [_row(each, include_synonyms=self._include_synonyms) for each in configs]
        if self._include_documentation:
            origins, of_broker = self._node.config.origins, resource_type == BROKER_RESOURCE
            for row in rows:
                text = text_of(row.name, _KINDS[resource_type])
                row.documentation = with_origin(text, origins.get(row.name) if of_broker else None)
        return self._rows_as_bytes(rows)

    def _rows_as_bytes(self, rows: Sequence[DescribeConfigsResourceResult]) -> EncodedStructs:
        encoded = encode_structs(DescribeConfigsResponse, rows, self._version)
        return EncodedStructs(len(rows), encoded, self._version)


def _check(node: ClusterNode, resource: DescribeConfigsResource) -> None:
    """Return whether there is such a resource. Raises ApiError."""
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        reason = invalid_reason(name)
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if node.image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif resource.resource_type == GROUP_RESOURCE:
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    elif resource.resource_type == CLIENT_METRICS_RESOURCE:
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    elif resource.resource_type != BROKER_RESOURCE:
        reason = f"this broker has no configurations of resource type {resource.resource_type}"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    elif name != "":
        _check_broker(node, name)


def _check_broker(node: ClusterNode, name: str) -> None:
    if not name.isdecimal() or len(name) > _LONGEST_BROKER_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node.node_id:
        reason = f"Unexpected broker id, expected {node.node_id} or empty string, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)


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
