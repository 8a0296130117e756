"""One question to the leaders of many partitions, asked again of those that have moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import Final, TypeVar

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .connection import Connection
from .each_node import connection_in_time
from .errors import ClientError, KafkaError, code_of
from .metadata import Node

W = TypeVar("W")
A = TypeVar("A")

_PARTITIONS_AT_ONCE: Final = 5_000
_ROUNDS: Final = 3
_BACKOFF_S: Final = 0.2
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)

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


async def ask_reachable_leaders(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, W],
    ask: Callable[[Connection, Mapping[TopicPartition, W]], Awaitable[Answers[A]]],
    *,
    on_answer: Callable[[int], None] = lambda count: None,
) -> dict[TopicPartition, A | ClientError]:
    """Return for each partition its answer or why there is none; a leader that is down does not hide the others.

    Leaders are those that the cluster's metadata has, and are asked at once, in pieces. Partitions that have moved are
    asked for again, twice at most. on_answer: called with the number of partitions that are settled.
    """
    found: dict[TopicPartition, A | ClientError] = {}
    left: Mapping[TopicPartition, W] = wanted
    for round_ in range(_ROUNDS):
        if round_:
            await trio.sleep(_BACKOFF_S)
            await cluster.refresh({of.topic for of in left})
        outcomes = await _ask_once(cluster, left, ask)
        found |= outcomes
        moved = {of: what for of, what in left.items() if _has_moved(outcomes[of])}
        on_answer(len(left) - len(moved) if round_ < _ROUNDS - 1 else len(left))
        left = moved
        if not left:
            break
    return found


async def _ask_once(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, W],
    ask: Callable[[Connection, Mapping[TopicPartition, W]], Awaitable[Answers[A]]],
) -> dict[TopicPartition, A | ClientError]:
    found: dict[TopicPartition, A | ClientError] = {}

    async def of_one(node: Node, of_node: Mapping[TopicPartition, W]) -> None:
        missing = iter(of_node.items())
        while some := dict(islice(missing, _PARTITIONS_AT_ONCE)):
            try:
                answers = await ask(await connection_in_time(cluster, node), some)
            except ClientError as error:
                found.update(dict.fromkeys(some, error))
                continue
            for partition, error_code, answer in answers:
                found[partition] = KafkaError(code_of(error_code)) if error_code else answer

    by_leader: dict[Node, dict[TopicPartition, W]] = {}
    for partition, what in wanted.items():
        leader = cluster.metadata.leader(partition)
        if leader is None:
            found[partition] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            by_leader.setdefault(leader, {})[partition] = what
    async with trio.open_nursery() as nursery:
        for node, of_node in by_leader.items():
            nursery.start_soon(of_one, node, of_node)
    silent = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader said nothing of it")
    return {partition: found.get(partition, silent) for partition in wanted}


def _has_moved(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and outcome.error_code in _MOVED
