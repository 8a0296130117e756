"""OffsetFetch (key 9): how far groups have read.

Served are versions 1 to 10: 2 brought all topics of a group, 5 leader epochs (KIP-320), 7 stable offsets (KIP-447),
8 several groups (KIP-709), 10 topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import FetchAllOffsets
from pykbroker.long_work import each_of
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.coordinators.leadership import Lead
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import denied, is_allowed
from .group_requests import submit
from .pieces import in_pieces, steps_of, with_topics

if TYPE_CHECKING:
    from pykbroker.groups.offsets.all_offsets import AllOffsets

_ERROR_OF_GROUP_SINCE = 2
_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = -1
_MOST_OFFSETS = 500_000
"""One answer has no more offsets: a request that names one group again and again could ask for any number."""
_STEPS_OF_GROUP = 20
_STEPS_OF_OFFSET = 4
_STEPS_OF_TELLING = 2


@handles(
    OffsetFetchRequest, needs=names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC))
)
async def offset_fetch(context: RequestContext[Broker], request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.header.api_version >= _GROUPS_SINCE:
        led = await _led(context, (group.group_id for group in request.groups))
        groups = await _fetch_all(context, request)
        return OffsetFetchResponse(groups=await _as_the_leader(context, groups, led))
    topics = None
    if request.topics is not None:
        topics = []
        for topic in request.topics:
            topics.append(OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes))
            await context.turn.took()
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    led = await _led(context, [request.group_id])
    (group,) = await _as_the_leader(context, [await _fetch(context, asked, request.require_stable)], led)
    return await _of_one_group(context, asked, group)


async def _led(context: RequestContext[Broker], group_ids: Iterable[str]) -> dict[str, Lead]:
    """Return the leads of the partitions in which these groups' offsets are, from before they are read."""
    led: dict[str, Lead] = {}
    of_partitions: dict[Partition, Lead] = {}
    for group_id in group_ids:
        lead = context.node.groups.lead_of(group_id)
        if lead is not None:
            led[group_id] = of_partitions.setdefault(lead.partition, lead)
        await context.turn.took()
    return led


async def _as_the_leader(
    context: RequestContext[Broker], groups: list[OffsetFetchResponseGroup], led: Mapping[str, Lead]
) -> list[OffsetFetchResponseGroup]:
    """Return what was read of groups that this node coordinated meanwhile, and errors for the others: also for those
    that it has coordinated only since the reads began, of whose lead nobody can be asked.
    """
    told: dict[Lead, None] = {}
    is_late = False
    for group in groups:
        lead = led.get(group.group_id)
        if lead is not None and not group.error_code:
            told[lead] = None
        is_late = is_late or (lead is None and not group.error_code)
        await context.turn.took()
    lost: set[Partition] = set()
    for portion in portions(told):
        lost |= await context.node.leadership.lost(portion)
    if not lost and not is_late:
        return groups
    kept = []
    for group in groups:
        lead = led.get(group.group_id)
        if (lead is None or lead.partition in lost) and not group.error_code:
            group = OffsetFetchResponseGroup(group_id=group.group_id, error_code=ErrorCode.NOT_COORDINATOR)
        kept.append(group)
        await context.turn.took()
    return kept


async def _fetch_all(context: RequestContext[Broker], request: OffsetFetchRequest) -> list[OffsetFetchResponseGroup]:
    """The offsets of a group are asked for once, however often the request names the group."""
    whole: dict[str, OffsetFetchResponseGroup] = {}
    groups = []
    offsets = 0
    for asked in request.groups:
        group = whole.get(asked.group_id) if asked.topics is None else None
        if offsets > _MOST_OFFSETS:
            group = OffsetFetchResponseGroup(group_id=asked.group_id, error_code=ErrorCode.INVALID_REQUEST)
        elif group is None:
            group = await _fetch(context, asked, request.require_stable)
            if asked.topics is None:
                whole[asked.group_id] = group
        offsets += sum(len(topic.partitions) for topic in group.topics)
        groups.append(group)
        await context.turn.took(_STEPS_OF_GROUP + len(group.topics))
    return groups


async def _fetch(
    context: RequestContext[Broker], asked: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    by_id = context.header.api_version >= _TOPIC_IDS_SINCE
    if not is_allowed(context, Operation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        denial = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=denial)
    if asked.topics is None:
        group = await _fetch_all_topics(context, asked, require_stable)
        await _leave_out_hidden(context, group)
        if by_id:
            await _add_ids(context, group)
        return group
    refused: list[OffsetFetchResponseTopics] = []
    if by_id:
        refused += await _resolve_names(context, asked)
    refused += await _take_out_hidden(context, asked)
    group = await _fetch_topics(context, asked, asked.topics, require_stable)
    if not group.error_code:
        group.topics += refused
    return group


async def _leave_out_hidden(context: RequestContext[Broker], group: OffsetFetchResponseGroup) -> None:
    """Leave out the topics that the client has not named and may not describe."""
    names = [topic.name for topic in group.topics]
    hidden = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, names, is_logged=False)
    if hidden:
        group.topics = [topic for topic in group.topics if topic.name not in hidden]


async def _take_out_hidden(
    context: RequestContext[Broker], asked: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Leave in `asked` the topics that the client may describe; return the answers for the others."""
    topics = asked.topics or []
    hidden = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, (topic.name for topic in topics))
    if not hidden:
        return []
    asked.topics = [topic for topic in topics if topic.name not in hidden]
    denial = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [await _refused_topic(context, topic, denial) for topic in topics if topic.name in hidden]


async def _fetch_all_topics(
    context: RequestContext[Broker], asked: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Return the offsets as they were at one time, however long it takes to tell them."""
    request = FetchAllOffsets(group_id=asked.group_id, member_id=asked.member_id, member_epoch=asked.member_epoch)
    group = OffsetFetchResponseGroup(group_id=asked.group_id)
    try:
        found: AllOffsets = await submit(context, asked.group_id, request)
    except ApiError as error:
        group.error_code = error.code
        return group
    from pykbroker.groups.offsets.offsets import told_offset, unstable_offset

    group.error_code = found.error_code
    for name, offsets in (await context.turn.through(found.by_topic())).items():
        answer = OffsetFetchResponseTopics(name=name)
        group.topics.append(answer)
        for portion in portions(offsets.items()):
            answer.partitions += [
                unstable_offset(index) if require_stable and found.is_pending(name, index) else told_offset(index, each)
                for index, each in portion
            ]
            await context.turn.took(2 + len(portion) * _STEPS_OF_TELLING)
    return group


async def _fetch_topics(
    context: RequestContext[Broker],
    asked: OffsetFetchRequestGroup,
    topics: Sequence[OffsetFetchRequestTopics],
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    """Topics are answered in the order asked."""
    answers: list[OffsetFetchResponseTopics] = []
    for portion in portions(topics):
        answers += [OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id) for topic in portion]
        await context.turn.took(len(portion))
    named = zip(answers, (topic.partition_indexes for topic in topics), strict=True)
    for piece in in_pieces(named) if any(topic.partition_indexes for topic in topics) else [[]]:
        wanted = [
            OffsetFetchRequestTopics(name=answer.name, topic_id=answer.topic_id, partition_indexes=list(partitions))
            for answer, partitions in piece
        ]
        group = await _ask(context, asked, wanted, require_stable)
        if group.error_code:
            return group
        for (answer, _), found in zip(piece, group.topics, strict=True):
            answer.partitions += found.partitions
        await context.turn.took(steps_of(piece, _STEPS_OF_OFFSET))
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=answers)


async def _ask(
    context: RequestContext[Broker],
    asked: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopics],
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    request = OffsetFetchRequest(groups=[with_topics(asked, topics)], require_stable=require_stable)
    try:
        response: OffsetFetchResponse = await submit(context, asked.group_id, request)
    except ApiError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)
    (group,) = response.groups
    return group


async def _resolve_names(
    context: RequestContext[Broker], asked: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Leave in `asked` the topics that exist, with their names; the answers for the others."""
    known, unknown = [], []
    for topic in asked.topics or []:
        found = context.node.image.topic_by_id(topic.topic_id)
        if found is None:
            unknown.append(await _refused_topic(context, topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = found.name
            known.append(topic)
        await context.turn.took(2 + len(topic.partition_indexes) // 2)
    asked.topics = known
    return unknown


async def _refused_topic(
    context: RequestContext[Broker], topic: OffsetFetchRequestTopics, error_code: ErrorCode
) -> OffsetFetchResponseTopics:
    refused = each_of(
        topic.partition_indexes,
        lambda index: OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error_code
        ),
    )
    partitions = await context.turn.through(refused)
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


async def _add_ids(context: RequestContext[Broker], group: OffsetFetchResponseGroup) -> None:
    """Offsets of topics that were deleted cannot be named by an id, and are left out."""
    topics = []
    for topic in group.topics:
        known = context.node.image.topic(topic.name)
        if known is not None:
            topic.topic_id = known.topic_id
            topics.append(topic)
        await context.turn.took()
    group.topics = topics


async def _of_one_group(
    context: RequestContext[Broker], asked: OffsetFetchRequestGroup, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    """The response of versions 1 to 7; version 1 has no place for the group's error but its partitions."""
    response = OffsetFetchResponse()
    if group.error_code and context.header.api_version < _ERROR_OF_GROUP_SINCE:
        for each in asked.topics or []:
            refused = each_of(each.partition_indexes, partial(_refused_partition, group.error_code))
            partitions = await context.turn.through(refused)
            response.topics.append(OffsetFetchResponseTopic(name=each.name, partitions=partitions))
            await context.turn.took(2)
        return response
    for topic in group.topics:
        answer = OffsetFetchResponseTopic(name=topic.name)
        response.topics.append(answer)
        for portion in portions(topic.partitions):
            answer.partitions += map(_of_old_version, portion)
            await context.turn.took(2 + len(portion))
    response.error_code = group.error_code
    return response


def _of_old_version(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _refused_partition(error_code: int, index: int) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error_code
    )
