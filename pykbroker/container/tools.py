"""Kafka's tools by their names, as health checks, init containers and scripts call them: the command for each.

A tool takes the flags that the command takes, which are Kafka's. Flags of former releases that such scripts still
have are translated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

TOOLS: Final = {
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "apis",
    "kafka-client-metrics": "client-metrics",
    "kafka-cluster": "brokers",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consume",
    "kafka-console-producer": "produce",
    "kafka-consumer-groups": "groups",
    "kafka-consumer-perf-test": "perf consume",
    "kafka-delegation-tokens": "tokens",
    "kafka-delete-records": "delete-records",
    "kafka-dump-log": "dump",
    "kafka-e2e-latency": "perf latency",
    "kafka-features": "features",
    "kafka-get-offsets": "offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "elect-leaders",
    "kafka-log-dirs": "log-dirs",
    "kafka-metadata-quorum": "quorum",
    "kafka-producer-perf-test": "perf produce",
    "kafka-reassign-partitions": "reassign",
    "kafka-server-start": "start",
    "kafka-share-groups": "share-groups",
    "kafka-storage": "format",
    "kafka-streams-groups": "streams-groups",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
}
"""The command of each tool; `kafka-topics.sh` is `kafka-topics`."""

_OLD_FLAGS: Final = {
    "--consumer.config": "--command-config",
    "--producer.config": "--command-config",
}
_ID: Final = ("--id", "-i")
_WITH_BROKER_LIST: Final = ("kafka-log-dirs", "kafka-reassign-partitions")
"""Tools whose `--broker-list` are ids of brokers. Elsewhere the former name of `--bootstrap-server` is meant."""


class UnknownTool(Exception):
    """A tool for which there is no command, or something that it cannot do, in one line."""


def command_of(tool: str, arguments: Sequence[str]) -> list[str]:
    """The command with its arguments that does what a tool of Kafka's does. Raises UnknownTool."""
    name = tool.removesuffix(".sh")
    if name not in TOOLS:
        raise UnknownTool(f"{tool} has no command here; there are {', '.join(TOOLS)}")
    old = _OLD_FLAGS if name in _WITH_BROKER_LIST else _OLD_FLAGS | {"--broker-list": "--bootstrap-server"}
    told = [_translated(each, old) for each in arguments]
    if any(each == "--zookeeper" or each.startswith("--zookeeper=") for each in told):
        raise UnknownTool(f"{tool}: --zookeeper is gone since Kafka 3; use --bootstrap-server")
    if name == "kafka-storage":
        told = _of_storage(told)
    elif name == "kafka-cluster":
        told = _of_cluster(told)
    elif name == "kafka-groups":
        told = ["--all-types", *told]
    elif name == "kafka-server-start":
        told = [each for each in told if each != "-daemon"]
    return [*TOOLS[name].split(), *told]


def _translated(argument: str, names: Mapping[str, str]) -> str:
    flag, equals, value = argument.partition("=")
    return f"{names.get(flag, flag)}{equals}{value}"


def _of_cluster(arguments: list[str]) -> list[str]:
    """Kafka names the broker that is unregistered by a flag, and does not ask."""
    action, *rest = arguments or [""]
    if action == "cluster-id":
        return [action, *rest]
    if action == "list-endpoints":
        return ["list", *rest]
    if action == "unregister":
        return [action, *(each.removeprefix("--id=").removeprefix("-i=") for each in rest if each not in _ID), "--yes"]
    raise UnknownTool("kafka-cluster: cluster-id, list-endpoints and unregister are served")


def _of_storage(arguments: list[str]) -> list[str]:
    action, *rest = arguments or [""]
    if action == "random-uuid":
        return ["--random-uuid"]
    if action == "format":
        return rest
    raise UnknownTool("kafka-storage: format and random-uuid are served")
