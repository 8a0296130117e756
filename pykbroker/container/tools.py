"""Kafka's tools by their names, as health checks, init containers and scripts call them: the command for each.

A tool takes the flags that the command takes, which are Kafka's. Flags of former releases that such scripts still
have are translated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TOOLS: Final = {
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "apis",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consume",
    "kafka-console-producer": "produce",
    "kafka-consumer-groups": "groups",
    "kafka-consumer-perf-test": "perf consume",
    "kafka-delegation-tokens": "tokens",
    "kafka-delete-records": "delete-records",
    "kafka-e2e-latency": "perf latency",
    "kafka-features": "features",
    "kafka-get-offsets": "offsets",
    "kafka-leader-election": "elect-leaders",
    "kafka-log-dirs": "log-dirs",
    "kafka-metadata-quorum": "quorum",
    "kafka-producer-perf-test": "perf produce",
    "kafka-reassign-partitions": "reassign",
    "kafka-server-start": "start",
    "kafka-storage": "format",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
}
"""The command of each tool; `kafka-topics.sh` is `kafka-topics`."""

_OLD_FLAGS: Final = {
    "--broker-list": "--bootstrap-server",
    "--consumer.config": "--command-config",
    "--producer.config": "--command-config",
}


class UnknownTool(Exception):
    """A tool for which there is no command, or something that it cannot do, in one line."""


def command_of(tool: str, arguments: Sequence[str]) -> list[str]:
    """The command with its arguments that does what a tool of Kafka's does. Raises UnknownTool."""
    name = tool.removesuffix(".sh")
    if name not in TOOLS:
        raise UnknownTool(f"{tool} has no command here; there are {', '.join(TOOLS)}")
    told = [_translated(each) for each in arguments]
    if any(each == "--zookeeper" or each.startswith("--zookeeper=") for each in told):
        raise UnknownTool(f"{tool}: --zookeeper is gone since Kafka 3; use --bootstrap-server")
    if name == "kafka-storage":
        told = _of_storage(told)
    elif name == "kafka-server-start":
        told = [each for each in told if each != "-daemon"]
    return [*TOOLS[name].split(), *told]


def _translated(argument: str) -> str:
    flag, equals, value = argument.partition("=")
    return f"{_OLD_FLAGS.get(flag, flag)}{equals}{value}"


def _of_storage(arguments: list[str]) -> list[str]:
    action, *rest = arguments or [""]
    if action == "random-uuid":
        return ["--random-uuid"]
    if action == "format":
        return rest
    raise UnknownTool("kafka-storage: format and random-uuid are served")
