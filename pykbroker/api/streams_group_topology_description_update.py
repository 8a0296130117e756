"""StreamsGroupTopologyDescriptionUpdate (key 93): a member brings the description of its topology (KIP-1331)."""

from __future__ import annotations

from typing import Final

from pykbroker.config.streams_groups import TOPOLOGY_PLUGIN
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_topology_descriptions import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .group_requests import check_group, has_streams_groups, submit

MOST_ENTRIES: Final = 10_000
"""Nodes of the topology, with the names in them: what is checked and kept in one turn of the event loop."""


@handles(
    StreamsGroupTopologyDescriptionUpdateRequest,
    needs=names((Operation.READ, ResourceType.GROUP)),
    most_entries=MOST_ENTRIES,
)
async def streams_group_topology_description_update(
    context: RequestContext[Broker], request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    if not has_streams_groups(context):
        return StreamsGroupTopologyDescriptionUpdateResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        check_group(context, Operation.READ, request.group_id)
        _check(request, is_kept=bool(context.node.config.text(TOPOLOGY_PLUGIN)))
        response: StreamsGroupTopologyDescriptionUpdateResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        return StreamsGroupTopologyDescriptionUpdateResponse(error_code=error.code, error_message=error.message)
    return response


def _check(request: StreamsGroupTopologyDescriptionUpdateRequest, *, is_kept: bool) -> None:
    """Raises ApiError for what no coordinator needs to be asked for. is_kept: whether something keeps descriptions."""
    if not is_kept:
        words = "The broker has no streams group topology description plugin configured."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, words)
    if not request.member_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if not request.group_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
