"""JoinGroup (key 11): become a member of a group, or start its next generation.

Served are versions 0 to 9: 1 brought the rebalance timeout (KIP-62), 4 the required member id (KIP-394), 5 static
members (KIP-345), 7 the protocol type in the response (KIP-559), 8 reasons (KIP-800), 9 skipping the assignment
(KIP-814).
"""

from __future__ import annotations

from pykbroker.groups.rebalance import refused_join
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupResponse
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import submit

_REBALANCE_TIMEOUT_SINCE = 1
_NULL_PROTOCOL_NAME_SINCE = 7


@handles(JoinGroupRequest, most_entries=20_000)
async def join_group(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    version = context.header.api_version
    if version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    try:
        response: JoinGroupResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refused:
        response = refused_join(refused.error_code, request.member_id)
    if response.protocol_name is None and version < _NULL_PROTOCOL_NAME_SINCE:
        response.protocol_name = ""
    return response
