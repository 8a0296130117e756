"""The assignors of consumer groups (KIP-848) and the protocols of groups, as the broker's settings name them.

The model is Kafka's `GroupCoordinatorConfig`; settings that have bounds stand in `group_bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from .keys import InvalidValue

ASSIGNORS: Final = "group.consumer.assignors"
REBALANCE_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
ASSIGNOR_NAMES: Final = MappingProxyType(
    {
        "uniform": "uniform",
        "range": "range",
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
    }
)
"""As they may be written, short or by Kafka's classes, and how members ask for them."""


def check_rebalance_protocols(names: Sequence[str]) -> None:
    """Raises InvalidValue: everybody may be without the others, and nobody without the classic protocol."""
    if "classic" not in names:
        reason = "Disabling the 'classic' protocol is not supported."
        raise InvalidValue(REBALANCE_PROTOCOLS, ",".join(names), reason)


def check_assignors(assignors: Sequence[str]) -> None:
    """Raises InvalidValue where a consumer group could not be assigned by these, or by one of them twice."""
    for name in assignors:
        if name not in ASSIGNOR_NAMES:
            raise InvalidValue(ASSIGNORS, name, "uniform or range; assignors of one's own are not offered")
    if not assignors or len({ASSIGNOR_NAMES[name] for name in assignors}) < len(assignors):
        raise InvalidValue(ASSIGNORS, ",".join(assignors), "at least one assignor, and none of them twice")
