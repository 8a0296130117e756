"""The keys that pykbroker has and Kafka has not: where a node shows itself over HTTP.

They are set at the start alone, and shown by DescribeConfigs where the file has them, as Kafka's internal keys are.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from .broker_keys import broker_keys
from .keys import ConfigKey

CONSOLE_LISTENER: Final = "console.listener"
"""`HOST:PORT` of the console, with the metrics and the health beside it; empty for none."""
METRICS_LISTENER: Final = "metrics.listener"
"""`HOST:PORT` of one more address, which has the metrics and the health alone; empty for none."""
CONSOLE_HOSTS: Final = "console.hosts"
"""Names of the host by which browsers and scrapers call both, beside those that the node knows."""
MOST_PARTITIONS_SHOWN: Final = "metrics.partitions.max"
"""A node with more partitions than this shows sums of topics, and no partition by itself."""
MOST_CLIENT_SERIES: Final = "metrics.client.series.max"
"""Of what clients push of themselves, so many series are kept and shown."""
CONSOLE_READ_ONLY: Final = "console.read.only"
"""The console shows, and changes nothing."""
CONSOLE_CLIENT_LISTENER: Final = "console.client.listener"
"""The name of the listener by which the console is a client of its broker; empty: one with users, if there is one."""
CHANGES_WITHOUT_LOGIN: Final = "console.allow.changes.without.login"
"""Everybody who reaches the console from other machines may change everything, on a broker without users."""
CONSOLE_CLIENT: Final = "console.client."
"""The prefix of clients' properties for the console's connections to brokers."""
CONSOLE_SECURITY_PROTOCOL: Final = "console.security.protocol"
METRICS_SECURITY_PROTOCOL: Final = "metrics.security.protocol"
"""SSL: the listener speaks HTTPS, with the stores of `console.ssl.…` or `metrics.ssl.…`, or else of `ssl.…`."""
_OF_WEB_TLS: Final = ("console.ssl.", "metrics.ssl.")

OF_WEB_LISTENERS: Final = frozenset(
    (CONSOLE_LISTENER, METRICS_LISTENER, CONSOLE_HOSTS, CONSOLE_SECURITY_PROTOCOL, METRICS_SECURITY_PROTOCOL)
)


@cache
def own_keys() -> dict[str, ConfigKey]:
    keys = (
        ConfigKey(CONSOLE_LISTENER, "string", "127.0.0.1:9480", "", "internal"),
        ConfigKey(METRICS_LISTENER, "string", "", "", "internal"),
        ConfigKey(CONSOLE_SECURITY_PROTOCOL, "string", "PLAINTEXT", "PLAINTEXT|SSL", "internal"),
        ConfigKey(METRICS_SECURITY_PROTOCOL, "string", "PLAINTEXT", "PLAINTEXT|SSL", "internal"),
        ConfigKey(CONSOLE_HOSTS, "list", "", "", "internal"),
        ConfigKey(CONSOLE_READ_ONLY, "boolean", "false", "", "internal"),
        ConfigKey(CONSOLE_CLIENT_LISTENER, "string", "", "", "internal"),
        ConfigKey(CHANGES_WITHOUT_LOGIN, "boolean", "false", "", "internal"),
        ConfigKey(MOST_PARTITIONS_SHOWN, "int", "10000", "0..", "internal"),
        ConfigKey(MOST_CLIENT_SERIES, "int", "10000", "0..1000000", "internal"),
    )
    return {key.name: key for key in keys}


@cache
def node_keys() -> dict[str, ConfigKey]:
    """Return all keys of a node, Kafka's and our own."""
    return {**broker_keys(), **own_keys()}


def is_of_web_tls(name: str) -> bool:
    """Tell whether this is a key of TLS for one web listener: `console.ssl.keystore.location`."""
    return name.startswith(_OF_WEB_TLS) and name.partition(".")[2] in broker_keys()
