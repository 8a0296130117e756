"""Configs of a broker, or the defaults of all of them: `/api/configs`. Sensitive values stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.config_source import ConfigSource

from .every_broker import nodes_of
from .topic_configs import ConfigRow, changes_of, config_row

DEFAULTS: Final = "default"
"""In the place of a broker's id: what holds for all brokers that have no value of their own."""


@dataclass(frozen=True, slots=True)
class BrokerConfigs:
    """The configs, by name. broker: the id as text, or `default`; brokers: the ids of those that are there."""

    broker: str
    brokers: Sequence[int]
    configs: Sequence[ConfigRow]


async def configs(asking: Asking, given: Arguments) -> BrokerConfigs:
    """Raises KafkaError, NoBrokerReachable, ClientError."""
    ids = list(await nodes_of(asking.cluster))
    broker = given.text("broker", str(ids[0]) if ids else DEFAULTS, longest=20)
    found = await describe_configs(asking.cluster, _resource(broker))
    here = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG if broker == DEFAULTS else ConfigSource.DYNAMIC_BROKER_CONFIG
    return BrokerConfigs(broker, ids, [config_row(each, here) for each in found])


async def alter(asking: Asking, given: Arguments) -> None:
    """Set some configs, and give up others for what holds without them. Raises BadInput, KafkaError, ClientError."""
    await alter_configs(asking.cluster, _resource(given.text("broker", longest=20)), *changes_of(given))


def _resource(broker: str) -> Resource:
    return Resource(ResourceType.BROKER, "" if broker == DEFAULTS else broker)
