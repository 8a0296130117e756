"""`GET /api/overview`: the cluster at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import trio

from pykbroker.client.errors import ClientError, check
from pykbroker.client.metadata import Node
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListGroupsRequest, ListGroupsResponse
from pykbroker.protocol.messages.metadata import MetadataResponse

from .quorum import describe_quorum
from .topic_rows import TopicRow, all_metadata, leaders_by_broker, rows_of

LONGEST_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. error: Kafka's name of the reason why its groups cannot be counted, None where it answers."""

    id: int
    host: str
    port: int
    rack: str | None
    leaders: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """The cluster. controller, groups: None where the user may not know, or nobody says."""

    cluster_id: str | None
    controller: int | None
    brokers: Sequence[BrokerRow]
    topics: int
    internal_topics: int
    partitions: int
    under_replicated: int
    offline: int
    groups: int | None


@dataclass(slots=True)
class _Asked:
    controller: int | None = None
    groups: int = 0
    errors: dict[int, str] = field(default_factory=dict)


async def overview(asking: Asking, given: Arguments) -> Overview:
    """Raises ClientError."""
    response = await all_metadata(asking.cluster)
    asked = _Asked()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_ask_controller, asking, asked)
        for each in response.brokers:
            nursery.start_soon(_count_groups, asking, Node(each.node_id, each.host, each.port), asked)
    rows, leaders = await asking.threads.run(_counted, response)
    return Overview(
        cluster_id=response.cluster_id,
        controller=asked.controller,
        brokers=[
            BrokerRow(
                each.node_id,
                each.host,
                each.port,
                each.rack,
                leaders.get(each.node_id, 0),
                asked.errors.get(each.node_id),
            )
            for each in sorted(response.brokers, key=lambda each: each.node_id)
        ],
        topics=sum(not row.is_internal for row in rows),
        internal_topics=sum(row.is_internal for row in rows),
        partitions=sum(row.partitions for row in rows),
        under_replicated=sum(row.under_replicated for row in rows),
        offline=sum(row.offline for row in rows),
        groups=None if len(asked.errors) == len(response.brokers) else asked.groups,
    )


def _counted(response: MetadataResponse) -> tuple[list[TopicRow], dict[int, int]]:
    return rows_of(response.topics), leaders_by_broker(response)


async def _ask_controller(asking: Asking, asked: _Asked) -> None:
    with trio.move_on_after(LONGEST_S):
        try:
            asked.controller = (await describe_quorum(asking.cluster)).leader
        except ClientError:  # the user may not know, or nobody leads the quorum at the moment
            return


async def _count_groups(asking: Asking, node: Node, asked: _Asked) -> None:
    asked.errors[node.node_id] = ErrorCode.REQUEST_TIMED_OUT.name
    with trio.move_on_after(LONGEST_S):
        try:
            connection = await asking.cluster.node_connection(node)
            response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
            check(response.error_code)
        except ClientError as error:
            asked.errors[node.node_id] = name_of(error)
            return
        asked.groups += len(response.groups)
        del asked.errors[node.node_id]
