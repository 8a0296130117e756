"""Configurations of one broker, which are changed and described by raw requests."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

from .cases import code
from .wire import Wire

SET, DELETE, APPEND = 0, 1, 2
A_BROKER = 4
OF_THIS_BROKER = 2
"""The source of a configuration that was set at run time for one broker."""

Change = tuple[str, int, str | None]
"""Key, operation, value."""


def alter(
    address: tuple[str, int], *changes: Change, broker: str = "1", validate_only: bool = False
) -> tuple[str, str | None]:
    """The error's name, which is NONE where there is none, and what its message says."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=A_BROKER, resource_name=broker, configs=configs
    )
    with Wire(address) as wire:
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        answer: Any = wire.call(request, 1)
    (altered,) = answer.responses
    return code(altered.error_code), altered.error_message


def described(address: tuple[str, int], *keys: str, broker: str = "1") -> dict[str, Any]:
    """The configurations of the broker by key, with their synonyms. keys: none for all of them."""
    resource = DescribeConfigsResource(
        resource_type=A_BROKER, resource_name=broker, configuration_keys=list(keys) or None
    )
    with Wire(address) as wire:
        answer: Any = wire.call(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    return {config.name: config for config in answer.results[0].configs}


def plain(config: Any) -> dict[str, Any]:
    """A described configuration as values that can be recorded."""
    return {
        "value": config.value,
        "source": config.config_source,
        "read only": config.read_only,
        "sensitive": config.is_sensitive,
        "type": config.config_type,
        "synonyms": [[each.name, each.value, each.source] for each in config.synonyms],
    }
