"""The keys of a subscription of client metrics (KIP-714): what clients push, how often, and which clients do.

The model is Kafka's `ClientMetricsConfigs`. Patterns are RE2's; Kafka takes Java's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

from pykbroker.linear_expressions import full_match

from .keys import ConfigKey, ConfigurationError

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
SHORTEST_INTERVAL_MS: Final = 100
LONGEST_INTERVAL_MS: Final = 3_600_000

CLIENT_INSTANCE_ID: Final = "client_instance_id"
CLIENT_ID: Final = "client_id"
CLIENT_SOFTWARE_NAME: Final = "client_software_name"
CLIENT_SOFTWARE_VERSION: Final = "client_software_version"
CLIENT_SOURCE_ADDRESS: Final = "client_source_address"
CLIENT_SOURCE_PORT: Final = "client_source_port"
_MATCHED: Final = frozenset(
    {
        CLIENT_INSTANCE_ID,
        CLIENT_ID,
        CLIENT_SOFTWARE_NAME,
        CLIENT_SOFTWARE_VERSION,
        CLIENT_SOURCE_ADDRESS,
        CLIENT_SOURCE_PORT,
    }
)

_MOST_PATTERNS: Final = 32
"""Of one subscription: there are six things to match, and of two patterns for the same one the last one counts."""
_SHOWN: Final = 1_000
_LONGEST_PATTERN: Final = 4_096
_MOST_PROGRAM_BYTES: Final = 1 << 16
"""What compiles in a millisecond."""

Patterns: TypeAlias = Mapping[str, Callable[[str], bool]]
"""What has to match, by what of the client it is."""


class RefusedSubscription(ConfigurationError):
    """A value that Kafka calls an invalid request, where it calls others invalid configurations."""


@cache
def client_metrics_keys() -> dict[str, ConfigKey]:
    keys = (
        ConfigKey(METRICS, "list", "", "", "client-metrics"),
        ConfigKey(INTERVAL_MS, "int", str(DEFAULT_INTERVAL_MS), "", "client-metrics"),
        ConfigKey(MATCH, "list", "", "", "client-metrics"),
    )
    return {key.name: key for key in keys}


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Raises ConfigurationError if a subscription may not have these values."""
    keys = client_metrics_keys()
    for name in configs:
        if name not in keys:
            raise RefusedSubscription(f"Unknown client metrics configuration: {name}")
    for name, key in keys.items():
        if name in configs:
            key.parse(configs[name])
    interval_ms = interval_of(configs)
    if not SHORTEST_INTERVAL_MS <= interval_ms <= LONGEST_INTERVAL_MS:
        reason = f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)"
        raise RefusedSubscription(reason)
    parse_patterns(list_of(configs, MATCH))


def list_of(configs: Mapping[str, str], name: str) -> list[str]:
    value = client_metrics_keys()[name].parse(configs.get(name, ""))
    assert isinstance(value, list)
    return value


def interval_of(configs: Mapping[str, str]) -> int:
    value = client_metrics_keys()[INTERVAL_MS].parse(configs.get(INTERVAL_MS, str(DEFAULT_INTERVAL_MS)))
    assert isinstance(value, int)
    return value


def parse_patterns(texts: Sequence[str]) -> Patterns:
    """Raises ConfigurationError."""
    if len(texts) > _MOST_PATTERNS:
        raise ConfigurationError(f"More than {_MOST_PATTERNS} client matching patterns")
    return dict(map(_pattern, texts))


def _pattern(text: str) -> tuple[str, Callable[[str], bool]]:
    parts = text.rstrip("=").split("=")  # as Java's split, which drops what is empty at the end
    name = parts[0].strip()
    if len(parts) == 2 and name in _MATCHED:
        try:
            expression = parts[1].strip()
            return name, full_match(expression, longest=_LONGEST_PATTERN, most_program_bytes=_MOST_PROGRAM_BYTES)
        except ValueError:
            pass
    raise ConfigurationError(f"Illegal client matching pattern: {text[:_SHOWN]}")
