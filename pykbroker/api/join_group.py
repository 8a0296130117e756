"""JoinGroup (key 11): become a member of a group, or start its next generation.

Served are versions 0 to 9: 1 brought the rebalance timeout (KIP-62), 4 the required member id (KIP-394), 5 static
members (KIP-345), 7 the protocol type in the response (KIP-559), 8 reasons (KIP-800), 9 skipping the assignment
(KIP-814).
"""

from __future__ import annotations

from dataclasses import replace

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.large_requests import COPIED_AT_ONCE_BYTES, FEW_ENTRIES, LARGE_FRAME_BYTES
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .group_requests import check_group, group_context

_REBALANCE_TIMEOUT_SINCE = 1
_NULL_PROTOCOL_NAME_SINCE = 7


@handles(JoinGroupRequest, needs=names((Operation.READ, ResourceType.GROUP)), most_entries=FEW_ENTRIES)
async def join_group(context: RequestContext[Broker], request: JoinGroupRequest) -> JoinGroupResponse:
    version = context.header.api_version
    if version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    try:
        response = await _join(context, request)
    except ApiError as error:
        from pykbroker.groups.classic.rebalance import refused_join

        is_denied = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED  # tells no member, as `JoinGroupRequest`
        response = refused_join(error.code, "" if is_denied else request.member_id)
    if not response.protocol_name:  # none, and one that is empty, are one to Kafka's `JoinGroupResponse`
        response.protocol_name = None if version >= _NULL_PROTOCOL_NAME_SINCE else ""
    if sum(len(member.metadata) for member in response.members) > COPIED_AT_ONCE_BYTES:
        await context.turn.next()  # so that the answer is packed in a thread
    return response


async def _join(context: RequestContext[Broker], request: JoinGroupRequest) -> JoinGroupResponse:
    """Raises ApiError."""
    from pykbroker.groups.classic.joins import look_if_all_loadable, metadata_bytes, offers_too_much

    check_group(context, Operation.READ, request.group_id)
    groups = context.node.groups
    of_group = group_context(context)
    size = 0 if offers_too_much(request) else metadata_bytes(request)
    if size > LARGE_FRAME_BYTES:
        is_loadable = await context.turn.through(look_if_all_loadable(request))
        of_group = replace(of_group, is_loadable=is_loadable)
    if not groups.waiting_members.has_room(size):
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with groups.waiting_members.holding(size):
        response: JoinGroupResponse = await groups.submit(request.group_id, request, of_group)
    return response
