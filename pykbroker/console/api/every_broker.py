"""One question to every broker at once: the answers of those that answer within seconds, and why the others do not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError
from pykbroker.client.metadata import Node
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode

from .topic_rows import brokers_alone

T = TypeVar("T")

LONGEST_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """The answers by node id, and Kafka's names of the errors of those that gave none."""

    of: dict[int, T] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)


async def nodes_of(cluster: Cluster) -> dict[int, Node]:
    """Return the brokers that are there now, by id. Raises ClientError."""
    brokers = sorted((await brokers_alone(cluster)).brokers, key=lambda each: each.node_id)
    return {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in brokers}


async def ask_every(
    cluster: Cluster, nodes: Iterable[Node], ask: Callable[[Node, Connection], Awaitable[T]]
) -> Answers[T]:
    """Return what `ask` returns for each node."""
    answers: Answers[T] = Answers()
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(_ask, cluster, node, ask, answers)
    return answers


async def _ask(
    cluster: Cluster, node: Node, ask: Callable[[Node, Connection], Awaitable[T]], answers: Answers[T]
) -> None:
    failed = ErrorCode.REQUEST_TIMED_OUT.name
    with trio.move_on_after(LONGEST_S):
        try:
            answers.of[node.node_id] = await ask(node, await cluster.node_connection(node))
        except ClientError as error:
            failed = name_of(error)
    if node.node_id not in answers.of:
        answers.errors[node.node_id] = failed
