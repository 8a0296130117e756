"""Settings of streams groups that are names: assignors, tags of clients, and what keeps descriptions of topologies.

The model is Kafka's `GroupCoordinatorConfig`; settings that have bounds stand in `group_bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .keys import ConfigurationError, InvalidValue

STREAMS_ASSIGNORS: Final = "group.streams.assignors"
STICKY: Final = "sticky"
STREAMS_ASSIGNOR_NAMES: Final = (STICKY, "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor")
"""The assignor of streams groups as it may be written, short or by Kafka's class."""

STREAMS_RACK_AWARE_TAGS: Final = "group.streams.rack.aware.assignment.tags"

TOPOLOGY_PLUGIN: Final = "group.streams.topology.description.plugin.class"
TOPOLOGY_PLUGINS: Final = ("memory", "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin")
"""What keeps descriptions of topologies (KIP-1331), by its name or by Kafka's class; without one nothing does."""


def streams_assignors(names: Iterable[str]) -> list[str]:
    """Return the short names of assignors of streams groups, as `group.streams.assignors` has them. Raises InvalidValue
    for one that is not offered, and where one is there twice."""
    assignors = [name.strip() for name in names]
    for name in assignors:
        if name not in STREAMS_ASSIGNOR_NAMES:
            raise InvalidValue(STREAMS_ASSIGNORS, name, "sticky; assignors of one's own are not offered")
    if len(assignors) != 1:
        raise InvalidValue(STREAMS_ASSIGNORS, ",".join(assignors), "sticky, once")
    return [STICKY]


def check_rack_aware_tags(name: str, text: str | None) -> None:
    """Raises ConfigurationError where a list of tags of clients has one of them twice. text: None for no list."""
    tags = re.split(r"\s*,\s*", text.strip()) if text and text.strip() else []
    if len(set(tags)) < len(tags):
        raise ConfigurationError(f"{name} must not contain duplicate tag keys.")


def check_topology_plugin(name: str | None) -> None:
    """Raises InvalidValue where descriptions of topologies are to be kept by something that is not offered."""
    if name and name not in TOPOLOGY_PLUGINS:
        raise InvalidValue(TOPOLOGY_PLUGIN, name, "memory; plugins of one's own are not offered")
