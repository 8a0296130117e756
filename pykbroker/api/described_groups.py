"""Groups described one after another, for the APIs that describe groups of one type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.messages import consumer_groups, group_admin, share_groups, streams_groups
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker

_STEPS_OF_GROUP = 20


DescribedT = TypeVar(
    "DescribedT",
    consumer_groups.DescribedGroup,
    group_admin.DescribedGroup,
    share_groups.DescribedGroup,
    streams_groups.DescribedGroup,
)


async def describe_each(
    context: RequestContext[Broker],
    group_ids: Iterable[str],
    groups: EncodedArray,
    describe: Callable[[str], Awaitable[DescribedT]],
    beyond: Callable[[str], DescribedT],
) -> None:
    """Add each to `groups`, in turns. A group that is named twice is described twice, out of the same bytes.

    beyond: what is said of a group for which the answer has no room.
    """
    described: dict[str, Sequence[bytes]] = {}
    for group_id in group_ids:
        if groups.is_too_large:
            groups.add([beyond(group_id)])
        elif group_id in described:
            groups.add_parts(described[group_id])
        else:
            described[group_id] = groups.add([await describe(group_id)])
        await context.turn.took(_STEPS_OF_GROUP)
