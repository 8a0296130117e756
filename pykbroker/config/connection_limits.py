"""Limits of connections: how many there may be, and how many more in a second, of a broker, a listener, an address.

The keys are `max.connections`, `max.connection.creation.rate`, both also for one listener
(`listener.name.internal.max.connections`), `max.connections.per.ip` and `max.connections.per.ip.overrides`. All of them
may change while the broker runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from .broker_keys import broker_keys
from .keys import ConfigurationError, InvalidValue

MOST: Final = "max.connections"
CREATION_RATE: Final = "max.connection.creation.rate"
MOST_PER_ADDRESS: Final = "max.connections.per.ip"
OVERRIDES: Final = "max.connections.per.ip.overrides"

_OF_A_LISTENER: Final = (MOST, CREATION_RATE)
_LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]+\.(.+)")
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]+")
_UNLIMITED: Final = 2**31 - 1


class Texts(Protocol):
    """`BrokerConfig`, as far as it is asked here."""

    listener_keys: dict[str, str]

    def text(self, name: str, dynamic: Mapping[str, str] | None = None) -> str | None: ...


@dataclass(frozen=True, slots=True)
class ConnectionCounts:
    """The limits in force.

    most_of_host: by address or name, in place of most_per_address. By their names, listeners have limits of their own
    beside those of the broker.
    """

    most: int = _UNLIMITED
    creation_rate: int = _UNLIMITED
    most_per_address: int = _UNLIMITED
    most_of_host: Mapping[str, int] = field(default_factory=dict)
    most_of_listener: Mapping[str, int] = field(default_factory=dict)
    creation_rate_of_listener: Mapping[str, int] = field(default_factory=dict)


def connection_counts(
    config: Texts, listeners: Iterable[str], dynamic: Mapping[str, str] | None = None
) -> ConnectionCounts:
    """The limits of the file, or those that were set at run time in their place. Raises ConfigurationError."""
    names = list(listeners)
    given = {**config.listener_keys, **(dynamic or {})}
    counts = ConnectionCounts(
        most=_number(MOST, config.text(MOST, dynamic)),
        creation_rate=_number(CREATION_RATE, config.text(CREATION_RATE, dynamic)),
        most_per_address=_number(MOST_PER_ADDRESS, config.text(MOST_PER_ADDRESS, dynamic)),
        most_of_host=parse_overrides(config.text(OVERRIDES, dynamic) or ""),
        most_of_listener=_of_listeners(MOST, names, given),
        creation_rate_of_listener=_of_listeners(CREATION_RATE, names, given),
    )
    if not counts.most_per_address and not counts.most_of_host:
        raise InvalidValue(MOST_PER_ADDRESS, 0, f"zero only where {OVERRIDES} is set")
    return counts


def parse_overrides(text: str) -> dict[str, int]:
    """The limits by host, of `host:count` pairs. Raises InvalidValue."""
    limits: dict[str, int] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        host, colon, count = (part.strip() for part in pair.rpartition(":"))
        if not colon or _HOST.fullmatch(host) is None or not count.isascii() or not count.isdigit():
            raise InvalidValue(OVERRIDES, text, f"'{pair}' is not address:count")
        limits[host] = int(count)
    return limits


def check_listener_limits(values: Mapping[str, str]) -> None:
    """Check those keys for one listener that are among the given ones, as Kafka does where they change at run time.

    Raises ConfigurationError.
    """
    for name, text in values.items():
        match = _LISTENER_KEY.fullmatch(name)
        if match is not None and match[1] in _OF_A_LISTENER and not _number(match[1], text):
            raise ConfigurationError(f"Invalid {match[1]} 0")


def _number(name: str, text: str | None) -> int:
    value = broker_keys()[name].parse(text)
    return value if isinstance(value, int) else _UNLIMITED


def _of_listeners(key: str, names: Iterable[str], given: Mapping[str, str]) -> dict[str, int]:
    keys = {name: f"listener.name.{name.lower()}.{key}" for name in names}
    found = {}
    for name, own in keys.items():
        if own in given:
            try:
                found[name] = _number(key, given[own])
            except InvalidValue as error:
                raise InvalidValue(own, given[own], error.reason) from None
    return found
