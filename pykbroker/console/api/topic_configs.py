"""A topic's configs with where their values come from, and changes of them: `/api/topics/{name}/configs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykbroker.client.configs import Resource, ResourceType, alter_configs
from pykbroker.client.errors import BadInput, check
from pykbroker.config.urls import without_secrets
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

_LONGEST_VALUE: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A config. value: None where it is hidden or not set; source: Kafka's name of where the value comes from."""

    name: str
    value: str | None
    source: str
    is_set_here: bool
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None


async def configs(asking: Asking, given: Arguments) -> list[ConfigRow]:
    """Return all configs of the topic, by name. Raises KafkaError, ClientError."""
    asked = DescribeConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name=given.text("name"), configuration_keys=None
    )
    response = await asking.cluster.request(
        DescribeConfigsRequest(resources=[asked], include_documentation=True),
        DescribeConfigsResponse,
        verify=_check,
    )
    here = ConfigSource.DYNAMIC_TOPIC_CONFIG
    found = (config_row(each, here) for result in response.results for each in result.configs)
    return sorted(found, key=lambda row: row.name)


async def alter(asking: Asking, given: Arguments) -> None:
    """Set some configs, and give up others for what holds without them. Raises BadInput, KafkaError, ClientError."""
    await alter_configs(asking.cluster, Resource(ResourceType.TOPIC, given.text("name")), *changes_of(given))


def changes_of(given: Arguments) -> tuple[dict[str, str], list[str]]:
    """Return the configs to set, and those to give up. Raises BadInput."""
    to_set, to_delete = given.mapping("set"), given.texts("delete")
    if not to_set and not to_delete:
        raise BadInput("there is nothing to change: 'set' and 'delete' are empty")
    if any(len(value) > _LONGEST_VALUE for value in to_set.values()):
        raise BadInput(f"a config has {_LONGEST_VALUE} characters at most")
    return to_set, to_delete


def config_row(config: DescribeConfigsResourceResult, here: ConfigSource) -> ConfigRow:
    """Return the row of a config. here: the source of values that are set at the resource itself."""
    return ConfigRow(
        name=config.name,
        value=_value(config),
        source=_source(config.config_source),
        is_set_here=config.config_source == here,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        documentation=config.documentation or None,
    )


def _value(config: DescribeConfigsResourceResult) -> str | None:
    """Return what a browser is shown. A value that is changed there comes back, and is whole."""
    if config.is_sensitive or config.value is None:
        return None
    return without_secrets(config.value) if config.read_only else config.value


def _source(number: int) -> str:
    try:
        return ConfigSource(number).name
    except ValueError:
        return "UNKNOWN"


def _check(response: DescribeConfigsResponse) -> None:
    for result in response.results:
        check(result.error_code, result.error_message)
