"""DescribeAcls (key 29): the entries of access control lists that a filter finds (KIP-11), by their resources.

Served are versions 1 to 3: 1 brought patterns (KIP-290), 3 users as resources (KIP-373). A node answers from its own
image: what was committed before the request came may be on its way there.
"""

from __future__ import annotations

from typing import Final

from pykbroker.metadata.acl_search import matching
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from pykbroker.security.acls.entry import EntryFilter
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes
from pykbroker.server.runtime.turns import portions

from .acl_requests import check_known

_STEPS_OF_ENTRY: Final = 3


@handles_on_all_nodes(DescribeAclsRequest, needs=cluster(Operation.DESCRIBE))
async def describe_acls(context: RequestContext[ClusterNode], request: DescribeAclsRequest) -> DescribeAclsResponse:
    await context.turn.through(check_known(request))
    if context.node.authorizer is None:
        reason = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=reason)
    entries = list(context.node.image.acls.items())
    by_pattern: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for portion in portions(await context.turn.through(matching(entries, _filter(request)))):
        for _, entry in portion:
            pattern = entry.resource_type, entry.resource_name, entry.pattern_type
            resource = by_pattern.get(pattern)
            if resource is None:
                resource = by_pattern[pattern] = DescribeAclsResource(
                    resource_type=entry.resource_type,
                    resource_name=entry.resource_name,
                    pattern_type=entry.pattern_type,
                )
            resource.acls.append(
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
        await context.turn.took(len(portion) * _STEPS_OF_ENTRY)
    return DescribeAclsResponse(error_message="", resources=list(by_pattern.values()))


def _filter(request: DescribeAclsRequest) -> EntryFilter:
    return EntryFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
