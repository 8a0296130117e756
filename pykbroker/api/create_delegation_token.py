"""CreateDelegationToken (key 38): a token that speaks for the requester, or for another owner (KIP-48, KIP-373).

Served are versions 1 to 3; 3 can name an owner, and tells who asked. Whoever asks for another owner needs CREATE_TOKENS
on that user. The rules are the controller's (`metadata.delegation_tokens`).
"""

from __future__ import annotations

from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.metadata.delegation_tokens import ERROR_TIMESTAMP, owner_of, type_and_name
from pykbroker.metadata.error_responses import no_token
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.security.tokens.delegation_token import USER_TYPE
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .authorization import is_allowed
from .controller_requests import submit
from .delegation_token_requests import allows_token_requests

_REQUESTER_SINCE: Final = 3


@handles_on_all_nodes(CreateDelegationTokenRequest, needs=names((Operation.CREATE_TOKENS, ResourceType.USER)))
async def create_delegation_token(
    context: RequestContext[ClusterNode], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    response = await _response(context, request)
    if context.header.api_version < _REQUESTER_SINCE:
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response


async def _response(
    context: RequestContext[ClusterNode], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    owner = owner_of(request, context.principal)
    if owner is None:
        return no_token(ErrorCode.UNKNOWN_SERVER_ERROR)
    requester = type_and_name(context.principal)
    error = ErrorCode.NONE
    if not allows_token_requests(context):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != requester and not _may_create_for(context, owner):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif context.listener.kind == "broker" and (await context.turn.through(_has_other_renewers(request))):
        error = ErrorCode.INVALID_PRINCIPAL_TYPE
    if error:
        return CreateDelegationTokenResponse(
            error_code=error,
            principal_type=owner[0],
            principal_name=owner[1],
            token_requester_principal_type=requester[0],
            token_requester_principal_name=requester[1],
            issue_timestamp_ms=ERROR_TIMESTAMP,
            expiry_timestamp_ms=ERROR_TIMESTAMP,
            max_timestamp_ms=ERROR_TIMESTAMP,
        )
    response: CreateDelegationTokenResponse = await submit(context, request)
    return response


def _may_create_for(context: RequestContext[ClusterNode], owner: tuple[str, str]) -> bool:
    return is_allowed(context, Operation.CREATE_TOKENS, ResourceType.USER, ":".join(owner))


def _has_other_renewers(request: CreateDelegationTokenRequest) -> LongWork[bool]:
    """Tell whether a renewer is no user. A broker says so before the controller is asked."""
    for portion in portions(request.renewers):
        if any(each.principal_type != USER_TYPE for each in portion):
            return True
        yield len(portion) // 8
    return False
