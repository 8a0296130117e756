"""Settings of groups that the broker bounds, and the rules among them: sessions, heartbeats, assignments, locks.

A group's own value (`share.session.timeout.ms`) lies between two keys of the broker, and so does the broker's value
for groups without one of their own (`group.share.session.timeout.ms`). The model is `validateValues` of Kafka's
`GroupConfig`, and the constructors of `GroupCoordinatorConfig` and `ShareGroupConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from .keys import ConfigurationError, InvalidValue

KINDS: Final = ("consumer", "share", "streams")
"""Kinds of groups that have settings of their own, as their keys begin."""

SHARE_ASSIGNORS: Final = "group.share.assignors"
SHARE_ASSIGNOR_NAMES: Final = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
"""The assignor of share groups as it may be written, short or by Kafka's class."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Bounds of a group's key. default, least and most are keys of the broker.

    least, most: empty where the key's own validity is all that there is.
    """

    name: str
    default: str
    least: str
    most: str


def _bounds_of(kind: str, *names: str) -> tuple[Bound, ...]:
    return tuple(
        Bound(f"{kind}.{name}", f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
        for name in names
    )


BOUNDS: Final = (
    *_bounds_of("consumer", "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    *_bounds_of("share", "heartbeat.interval.ms", "session.timeout.ms", "record.lock.duration.ms"),
    *_bounds_of("share", "delivery.count.limit", "partition.max.record.locks", "assignment.interval.ms"),
    *_bounds_of("streams", "heartbeat.interval.ms", "session.timeout.ms"),
    Bound(
        "streams.num.standby.replicas", "group.streams.num.standby.replicas", "", "group.streams.max.standby.replicas"
    ),
    *_bounds_of("streams", "assignment.interval.ms"),
    Bound(
        "streams.task.offset.interval.ms",
        "group.streams.task.offset.interval.ms",
        "group.streams.min.task.offset.interval.ms",
        "",
    ),
    Bound("streams.num.warmup.replicas", "group.streams.num.warmup.replicas", "", "group.streams.max.warmup.replicas"),
)
"""In the order in which Kafka looks at them, so that the same one is complained about."""

BOUND_OF: Final = {bound.name: bound for bound in BOUNDS}


def keys_of(bound: Bound) -> set[str]:
    """Return the broker's keys of a bounded setting: its default and what bounds it."""
    return {bound.default, bound.least, bound.most} - {""}


def check_group_bounds(number: Callable[[str], int], share_assignors: list[str]) -> None:
    """Raises InvalidValue where the broker's settings of groups do not fit each other. number: gives a key's value."""
    for bound in BOUNDS:
        key, least, most = bound.default, bound.least, bound.most
        if least and most and number(most) < number(least):
            raise InvalidValue(most, number(most), f"at least {least} ({number(least)})")
        if least and number(key) < number(least):
            raise InvalidValue(key, number(key), f"at least {least} ({number(least)})")
        if most and number(key) > number(most):
            raise InvalidValue(key, number(key), f"at most {most} ({number(most)})")
    for kind in KINDS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if number(heartbeat) >= number(session):
            raise InvalidValue(heartbeat, number(heartbeat), f"less than {session} ({number(session)})")
    sessions, size = "group.share.max.share.sessions", "group.share.max.size"
    if number(sessions) < number(size):
        raise InvalidValue(sessions, number(sessions), f"at least {size} ({number(size)})")
    _check_share_assignors(share_assignors)


def check_bounds_of_group(values: Mapping[str, int], broker: Mapping[str, int], *, is_of_4_4: bool = False) -> None:
    """Raises ConfigurationError where numbers of a group are out of the broker's bounds, in Kafka's words.

    values: of the bounded keys that the group has itself. broker: values of the broker's keys in `keys_of`. is_of_4_4:
    whether the words are those of Kafka 4.4, which names the bounds by their values, else those of 4.3.
    """
    for bound in BOUNDS:
        if bound.name not in values:
            continue
        is_below = bound.least != "" and values[bound.name] < broker[bound.least]
        is_above = bound.most != "" and values[bound.name] > broker[bound.most]
        if not (is_below or is_above):
            continue
        if is_of_4_4 and bound.least and bound.most:
            range_of_group = f"{broker[bound.least]} to {broker[bound.most]}"
            raise ConfigurationError(f"{bound.name} must be in the range {range_of_group} inclusive.")
        which, key = ("greater", bound.least) if is_below else ("less", bound.most)
        raise ConfigurationError(f"{bound.name} must be {which} than or equal to {broker[key] if is_of_4_4 else key}")


def check_sessions_of_group(values: Mapping[str, int], broker: Mapping[str, int]) -> None:
    """Raises ConfigurationError where a heartbeat is not shorter than a session, in Kafka's words."""
    for kind in KINDS:
        heartbeat, session = (BOUND_OF[f"{kind}.{each}"] for each in ("heartbeat.interval.ms", "session.timeout.ms"))
        if _effective(session, values, broker) <= _effective(heartbeat, values, broker):
            raise ConfigurationError(f"{session.name} must be greater than {heartbeat.name}")


def clamped(name: str, value: int, number: Callable[[str], int]) -> int:
    """Return a group's value within the bounds that the broker has now, which may be others than when it was set.

    number: gives the value of a broker's key. A key without bounds keeps its value.
    """
    bound = BOUND_OF.get(name)
    if bound is None:
        return value
    value = min(value, number(bound.most)) if bound.most else value
    return max(value, number(bound.least)) if bound.least else value


def _effective(bound: Bound, values: Mapping[str, int], broker: Mapping[str, int]) -> int:
    return values[bound.name] if bound.name in values else broker[bound.default]


def _check_share_assignors(names: list[str]) -> None:
    if len(names) != 1:
        raise InvalidValue(SHARE_ASSIGNORS, ",".join(names), f"exactly one assignor, and not {len(names)}")
    if names[0] not in SHARE_ASSIGNOR_NAMES:
        raise InvalidValue(SHARE_ASSIGNORS, names[0], "simple; assignors of one's own are not offered")
