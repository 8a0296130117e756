"""Groups described one after another, for the APIs that describe groups of one type.

`GroupDescriber` describes groups whose coordinator decides what each member gets: all that ConsumerGroupDescribe,
ShareGroupDescribe and StreamsGroupDescribe have in common.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages import consumer_groups, group_admin, share_groups, streams_groups
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker

from .authorization import authorized_operations, denied
from .group_requests import check_group, submit

if TYPE_CHECKING:
    from pykbroker.groups.modern.descriptions import GroupAsOfNow
    from pykbroker.groups.shard import GroupRequest

RIGHTS = names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC))
_STEPS_OF_GROUP = 20
_STEPS_OF_LARGE_MEMBER = 2_000
"""A member whose description takes more is described in a thread."""


DescribedT = TypeVar(
    "DescribedT",
    consumer_groups.DescribedGroup,
    group_admin.DescribedGroup,
    share_groups.DescribedGroup,
    streams_groups.DescribedGroup,
)
FoundT = TypeVar("FoundT", bound="GroupAsOfNow[Any, Any, Any]")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescriber(Generic[DescribedT, FoundT]):
    """The description of groups of one type.

    response, group, member: the structs of the API. is_served: tells whether the cluster has groups of the type.
    request: what the group's coordinator is asked; it answers with a FoundT. topics_of_group, topics_of_member: the
    names of the topics that a description names, in one of the two. words_of_hidden: what a client is told that may not
    describe one of them. looks_at_rights_first: whether a group without an id is refused for missing rights, if there
    are none, and not for its id.
    """

    response: type[Message]
    group: type[DescribedT]
    member: type[Any]
    is_served: Callable[[RequestContext[Broker]], bool]
    request: Callable[[str], GroupRequest]
    words_of_hidden: str
    topics_of_group: Callable[[FoundT], Iterable[str]] = lambda found: ()
    topics_of_member: Callable[[Any], Iterable[str]] = lambda member: ()
    looks_at_rights_first: bool = False

    async def describe(
        self, context: RequestContext[Broker], group_ids: Iterable[str], *, with_operations: bool
    ) -> EncodedStructs:
        """The descriptions, encoded: ten thousand members are too many objects, and would be freed all at once."""
        groups = EncodedArray(self.response, context.header.api_version)

        async def describe(group_id: str) -> DescribedT:
            try:
                described = await self._describe(context, group_id)
            except ApiError as error:
                return self.group(group_id=group_id, error_code=error.code, error_message=error.message)
            if with_operations and not described.error_code:
                described.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
            return described

        await describe_each(context, group_ids, groups, describe, self._beyond)
        return groups.finish()

    def _beyond(self, group_id: str) -> DescribedT:
        return self.group(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)

    async def _describe(self, context: RequestContext[Broker], group_id: str) -> DescribedT:
        """Raises ApiError."""
        if not self.is_served(context):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if self.looks_at_rights_first:
            check_group(context, Operation.DESCRIBE, group_id)
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        if not self.looks_at_rights_first:
            check_group(context, Operation.DESCRIBE, group_id)
        found: FoundT = await submit(context, group_id, self.request(group_id))
        await self._check_topics(context, self.topics_of_group(found))
        described: DescribedT = found.group
        described.members = await self._members(context, found)
        return described

    async def _members(self, context: RequestContext[Broker], found: FoundT) -> Any:
        """The members, encoded. Raises ApiError."""
        members = EncodedArray(self.response, context.header.api_version)
        for member_id in await context.turn.through(found.member_ids()):
            steps = found.steps_of(member_id)
            beside = found.for_thread() if steps > _STEPS_OF_LARGE_MEMBER else None
            if beside is not None:
                await self._add_large(context, beside, member_id, members)
                steps = _STEPS_OF_GROUP
            else:
                member = found.describe_member(member_id)
                await self._check_topics(context, self.topics_of_member(member))
                members.add([member])
            await context.turn.took(steps)
        return members.finish().of(self.member)

    async def _add_large(
        self, context: RequestContext[Broker], found: FoundT, member_id: str, members: EncodedArray
    ) -> None:
        """Describe a member that has very many partitions in a thread, where it is encoded, and freed, as well. Raises
        ApiError."""
        in_thread = context.node.groups.in_thread
        described = [await in_thread(found.describe_member, member_id)]
        await self._check_topics(context, self.topics_of_member(described[0]))
        await in_thread(_move, described, members)

    async def _check_topics(self, context: RequestContext[Broker], topics: Iterable[str]) -> None:
        """Raises ApiError where one is a topic that the client may not describe."""
        if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, topics):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.words_of_hidden)


def _move(described: list[Any], members: EncodedArray) -> None:
    members.add(described)
    described.clear()
