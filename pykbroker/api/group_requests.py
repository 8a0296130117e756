"""What the handlers of group requests share: the way to the coordinator."""

from __future__ import annotations

from typing import Any

from pykbroker.groups.context import GroupRequestContext
from pykbroker.groups.shard import GroupRequest
from pykbroker.server.dispatch import RequestContext


async def submit(context: RequestContext, group_id: str, request: GroupRequest) -> Any:
    """The group's coordinator's response. Raises CoordinatorRefused."""
    return await context.broker.groups.submit(group_id, request, group_context(context))


def group_context(context: RequestContext) -> GroupRequestContext:
    return GroupRequestContext(
        api_version=context.header.api_version,
        client_id=context.header.client_id or "",
        # Java writes an address as host/address, and the host is not known here either.
        client_host=f"/{context.client_address}",
    )
