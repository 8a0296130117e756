"""`GET /api/groups`: a page of the groups of all brokers, with members and lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.connection import Connection
from pykbroker.client.errors import check
from pykbroker.client.metadata import Node
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from pykbroker.protocol.messages.group_admin import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from pykbroker.protocol.messages.share_groups import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from pykbroker.protocol.messages.streams_groups import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

from .every_broker import ask_every, nodes_of
from .group_lags import MOST_PARTITIONS, Committed, committed_offsets, offsets_at, share_lags, total_lag
from .pages import Page, PageAsked, page_of

AT_ONCE: Final = 50
_CONSUMER: Final = "consumer"
_SHARE: Final = "share"
_STREAMS: Final = "streams"

Listed = tuple[int, ListedGroup]
"""The coordinator's id with what it tells of the group."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. members, lag: None where nobody tells."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    coordinator: int
    members: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class Groups:
    """One page of groups. states, types: those that there are. errors: of brokers whose groups are missing."""

    groups: Page[GroupRow]
    states: Sequence[str]
    types: Sequence[str]
    errors: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Details:
    """The answers of one coordinator, by group."""

    members: Mapping[str, int]
    committed: Mapping[str, Committed]
    share_lags: Mapping[str, int | None]


async def groups(asking: Asking, given: Arguments) -> Groups:
    """Return a page. Raises BadInput, ClientError."""
    asked = PageAsked.of(given)
    text = given.text("filter", "", longest=1024).lower()
    state, kind = given.text("state", ""), given.text("type", "")
    descending = given.flag("descending")
    nodes = await nodes_of(asking.cluster)
    listed = await ask_every(asking.cluster, nodes.values(), _list)

    def chosen(found: Mapping[int, Sequence[ListedGroup]]) -> tuple[list[Listed], list[str], list[str]]:
        rows = {row.group_id: (node_id, row) for node_id, of_node in found.items() for row in of_node}
        wanted = [
            (node_id, row)
            for node_id, row in rows.values()
            if text in row.group_id.lower() and state in ("", row.group_state) and kind in ("", row.group_type)
        ]
        wanted.sort(key=lambda each: each[1].group_id, reverse=descending)
        states = sorted({row.group_state for _, row in rows.values()})
        return wanted, states, sorted({row.group_type for _, row in rows.values()})

    wanted, states, types = await asking.threads.run(chosen, listed.of)
    page = page_of(wanted, asked)
    members, lags = await _details(asking, nodes, page.rows)
    rows = [
        GroupRow(
            group_id=row.group_id,
            type=row.group_type,
            state=row.group_state,
            protocol_type=row.protocol_type,
            coordinator=node_id,
            members=members.get(row.group_id),
            lag=lags.get(row.group_id),
        )
        for node_id, row in page.rows
    ]
    return Groups(Page(rows, page.page, page.pages, page.total), states, types, listed.errors)


async def _list(node: Node, connection: Connection) -> list[ListedGroup]:
    response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
    check(response.error_code)
    return response.groups


async def _details(
    asking: Asking, nodes: Mapping[int, Node], rows: Sequence[Listed]
) -> tuple[dict[str, int], dict[str, int | None]]:
    """Return the number of members and the lag by group, as the coordinators tell them."""
    by_node: dict[int, list[ListedGroup]] = {}
    for node_id, row in rows:
        by_node.setdefault(node_id, []).append(row)

    async def ask(node: Node, connection: Connection) -> _Details:
        of_node = by_node[node.node_id]
        shared = [each.group_id for each in of_node if each.group_type == _SHARE]
        others = [each.group_id for each in of_node if each.group_type != _SHARE]
        return _Details(
            await _members(connection, of_node),
            await committed_offsets(connection, others, MOST_PARTITIONS),
            await share_lags(connection, shared, MOST_PARTITIONS),
        )

    answers = await ask_every(asking.cluster, [nodes[each] for each in by_node], ask)
    members = {name: count for of_node in answers.of.values() for name, count in of_node.members.items()}
    committed = _bounded({name: each for of_node in answers.of.values() for name, each in of_node.committed.items()})
    ends = await offsets_at(asking.cluster, {at for each in committed.values() for at in each})
    lags = await asking.threads.run(lambda: {name: total_lag(each, ends.offsets) for name, each in committed.items()})
    for of_node in answers.of.values():
        lags |= of_node.share_lags
    return members, lags


def _bounded(committed: Mapping[str, Committed]) -> dict[str, Committed]:
    """Return the first groups whose partitions, together, are not too many."""
    found: dict[str, Committed] = {}
    count = 0
    for name, offsets in committed.items():
        count += len(offsets)
        if count > MOST_PARTITIONS:
            break
        found[name] = offsets
    return found


async def _members(connection: Connection, rows: Sequence[ListedGroup]) -> dict[str, int]:
    """Return the number of members of the groups that are told of. Raises ClientError."""
    found: dict[str, int] = {}
    by_type: dict[str, list[str]] = {}
    for row in rows:
        by_type.setdefault(row.group_type, []).append(row.group_id)
    for kind, names in by_type.items():
        for first in range(0, len(names), AT_ONCE):
            found |= await _members_of(connection, kind, names[first : first + AT_ONCE])
    return found


async def _members_of(connection: Connection, kind: str, names: list[str]) -> dict[str, int]:
    answer: ConsumerGroupDescribeResponse | ShareGroupDescribeResponse | StreamsGroupDescribeResponse
    if kind == _CONSUMER:
        answer = await connection.request(ConsumerGroupDescribeRequest(group_ids=names), ConsumerGroupDescribeResponse)
    elif kind == _SHARE:
        answer = await connection.request(ShareGroupDescribeRequest(group_ids=names), ShareGroupDescribeResponse)
    elif kind == _STREAMS:
        answer = await connection.request(StreamsGroupDescribeRequest(group_ids=names), StreamsGroupDescribeResponse)
    else:
        older = await connection.request(DescribeGroupsRequest(groups=names), DescribeGroupsResponse)
        return {row.group_id: len(row.members) for row in older.groups if row.error_code == ErrorCode.NONE}
    return {row.group_id: len(row.members) for row in answer.groups if row.error_code == ErrorCode.NONE}
