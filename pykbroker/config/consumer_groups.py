"""Rules among the broker's settings of consumer groups (KIP-848), and the names of the assignors.

The model is Kafka's `GroupCoordinatorConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

BOUNDED: Final = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
"""Behind `group.consumer.`; each has bounds, which are the broker's."""


def bound_keys(name: str) -> tuple[str, str]:
    """Return the keys of the least and of the greatest value of a bounded setting."""
    return f"group.consumer.min.{name}", f"group.consumer.max.{name}"


def check_consumer_groups(number: Callable[[str], int], assignors: Sequence[str]) -> None:
    """Raises InvalidValue. number: gives the value of a key."""
    for name in BOUNDED:
        key, (least, most) = f"group.consumer.{name}", bound_keys(name)
        if number(most) < number(least):
            raise InvalidValue(most, number(most), f"at least {least} ({number(least)})")
        if number(key) < number(least):
            raise InvalidValue(key, number(key), f"at least {least} ({number(least)})")
        if number(key) > number(most):
            raise InvalidValue(key, number(key), f"at most {most} ({number(most)})")
    heartbeat, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if number(heartbeat) >= number(session):
        raise InvalidValue(heartbeat, number(heartbeat), f"less than {session} ({number(session)})")
    _check_assignors(assignors)


def check_rebalance_protocols(names: Sequence[str]) -> None:
    """Raises InvalidValue: everybody may be without the consumer protocol, and nobody without the classic one."""
    if "classic" not in names:
        reason = "Disabling the 'classic' protocol is not supported."
        raise InvalidValue(REBALANCE_PROTOCOLS, ",".join(names), reason)


def _check_assignors(assignors: Sequence[str]) -> None:
    for name in assignors:
        if name not in ASSIGNOR_NAMES:
            raise InvalidValue(ASSIGNORS, name, "uniform or range; assignors of one's own are not offered")
    if not assignors or len({ASSIGNOR_NAMES[name] for name in assignors}) < len(assignors):
        raise InvalidValue(ASSIGNORS, ",".join(assignors), "at least one assignor, and none of them twice")
