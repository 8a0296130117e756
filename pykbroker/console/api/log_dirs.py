"""The log directories of all brokers: what is in them, and the space that their volumes have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.errors import check, code_of
from pykbroker.client.metadata import Node
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

from .every_broker import Answers, ask_every

_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class LogDirRow:
    """A directory. size_bytes: of its replicas; total_bytes, usable_bytes: of its volume, None where nobody tells."""

    broker: int
    path: str
    replicas: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None
    error: str | None


async def log_dirs(cluster: Cluster, nodes: Mapping[int, Node]) -> Answers[Sequence[LogDirRow]]:
    """Return the directories by broker; a user without the right to describe the cluster has an error of each."""
    return await ask_every(cluster, nodes.values(), _ask)


async def _ask(node: Node, connection: Connection) -> Sequence[LogDirRow]:
    response = await connection.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    check(response.error_code)
    return [_row(node.node_id, each) for each in response.results]


def _row(broker: int, found: DescribeLogDirsResult) -> LogDirRow:
    return LogDirRow(
        broker=broker,
        path=found.log_dir,
        replicas=sum(len(topic.partitions) for topic in found.topics),
        size_bytes=sum(each.partition_size for topic in found.topics for each in topic.partitions),
        total_bytes=None if found.total_bytes == _UNKNOWN else found.total_bytes,
        usable_bytes=None if found.usable_bytes == _UNKNOWN else found.usable_bytes,
        error=None if found.error_code == ErrorCode.NONE else code_of(found.error_code).name,
    )
