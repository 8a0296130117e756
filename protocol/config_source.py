"""The numbers of DescribeConfigs that say where the value of a configuration comes from."""

from __future__ import annotations

from enum import IntEnum


class ConfigSource(IntEnum):
    """Kafka's `DescribeConfigsResponse.ConfigSource`; the names are those that Kafka's tools print."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8
