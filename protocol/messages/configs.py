"""Configurations of topics, brokers, groups and other resources."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+", listeners="broker controller"):
    """The request asks for configurations; null keys stand for all of them.

    v1 can include synonyms (KIP-226), v3 documentation (KIP-569).
    """

    resources: list[DescribeConfigsResource] = field("[]struct")
    include_synonyms: bool = field("bool", "1+")
    include_documentation: bool = field("bool", "3+")


class DescribeConfigsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configuration_keys: list[str] | None = field("[]string", nullable="0+")


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    """Values with their source.

    v1 replaces is_default by the source and adds synonyms (KIP-226), v3 types and documentation (KIP-569).
    """

    throttle_time_ms: int = field("int32")
    results: list[DescribeConfigsResult] = field("[]struct")


class DescribeConfigsResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    resource_type: int = field("int8")
    resource_name: str = field("string")
    configs: list[DescribeConfigsResourceResult] = field("[]struct")


class DescribeConfigsResourceResult(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable="0+")
    read_only: bool = field("bool")
    config_source: int = field("int8", "1+", default=-1, ignorable=True)
    is_sensitive: bool = field("bool")
    synonyms: list[DescribeConfigsSynonym] = field("[]struct", "1+", ignorable=True)
    config_type: int = field("int8", "3+", ignorable=True)
    documentation: str | None = field("string", "3+", nullable="0+", ignorable=True)


class DescribeConfigsSynonym(Struct):
    name: str = field("string", "1+")
    value: str | None = field("string", "1+", nullable="0+")
    source: int = field("int8", "1+")


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+", listeners="broker controller"):
    """The request replaces the whole configuration of resources (KIP-133); IncrementalAlterConfigs does not."""

    resources: list[AlterConfigsRequestAlterConfigsResource] = field("[]struct")
    validate_only: bool = field("bool")


class AlterConfigsRequestAlterConfigsResource(Struct):
    resource_type: int = field("int8", map_key=True)
    resource_name: str = field("string", map_key=True)
    configs: list[AlterConfigsRequestAlterableConfig] = field("[]struct")


class AlterConfigsRequestAlterableConfig(Struct):
    name: str = field("string", map_key=True)
    value: str | None = field("string", nullable="0+")


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    """The outcome for each resource."""

    throttle_time_ms: int = field("int32")
    responses: list[AlterConfigsResourceResponse] = field("[]struct")


class AlterConfigsResourceResponse(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    resource_type: int = field("int8")
    resource_name: str = field("string")


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+", listeners="broker controller"):
    """Changes single configurations: set, delete, append to or subtract from a list (KIP-339)."""

    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = field("[]struct")
    validate_only: bool = field("bool")


class IncrementalAlterConfigsRequestAlterConfigsResource(Struct):
    resource_type: int = field("int8", map_key=True)
    resource_name: str = field("string", map_key=True)
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = field("[]struct")


class IncrementalAlterConfigsRequestAlterableConfig(Struct):
    name: str = field("string", map_key=True)
    config_operation: int = field("int8", map_key=True)
    value: str | None = field("string", nullable="0+")


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    """The outcome for each resource."""

    throttle_time_ms: int = field("int32")
    responses: list[AlterConfigsResourceResponse] = field("[]struct")


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+", listeners="broker"):
    """Lists resources that have a configuration.

    v0 knows client metrics subscriptions only (KIP-1000), v1 takes resource types (KIP-1142).
    """

    resource_types: list[int] = field("[]int8", "1+")


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    """Names of resources, from v1 on with their types (KIP-1142)."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    config_resources: list[ConfigResource] = field("[]struct")


class ConfigResource(Struct):
    resource_name: str = field("string")
    resource_type: int = field("int8", "1+", default=16, ignorable=True)
