"""One question to the leaders of many partitions, asked again of those that have moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .connection import Connection
from .errors import ClientError, KafkaError, code_of
from .metadata import Node

W = TypeVar("W")
A = TypeVar("A")

Answers = Iterable[tuple[TopicPartition, int, A]]
"""Partition, error code, answer."""


async def ask_leaders(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, W],
    ask: Callable[[Connection, Mapping[TopicPartition, W]], Awaitable[Answers[A]]],
) -> dict[TopicPartition, A]:
    """The answers for all partitions. `ask` sends one request for those of a leader.

    Raises UnknownTopic, KafkaError.
    """
    found: dict[TopicPartition, A] = {}

    async def attempt() -> None:
        missing = {partition: what for partition, what in wanted.items() if partition not in found}
        try:
            by_leader: dict[Node, dict[TopicPartition, W]] = {}
            for partition, what in missing.items():
                by_leader.setdefault(await cluster.leader(partition), {})[partition] = what
            for node, of_node in by_leader.items():
                for partition, error, answer in await ask(await cluster.node_connection(node), of_node):
                    if error != ErrorCode.NONE:
                        error_code = code_of(error)
                        raise KafkaError(error_code, f"Partition {partition}: {error_code.description}")
                    found[partition] = answer
        except ClientError as error:
            if error.retriable:
                await cluster.refresh({partition.topic for partition in missing})
            raise

    await cluster.retrying(attempt)
    return found
