"""DescribeDelegationToken (key 41): tokens with their HMACs, for those who may see them (KIP-48, KIP-373).

Served are versions 1 to 3; 3 tells who asked for a token. A node answers from its own image. A token is seen by its
owner, its requester and its renewers, and by whoever may DESCRIBE the token or DESCRIBE_TOKENS of its owner. Where
owners are named, a token counts as theirs if they are any of the three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.metadata.delegation_tokens import type_and_name
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.security.tokens.delegation_token import DelegationToken
from pykbroker.security.tokens.secret import TokenSecret, token_secret
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .authorization import is_allowed
from .delegation_token_requests import allows_token_requests

_REQUESTER_SINCE: Final = 3
_STEPS_OF_TOKEN: Final = 12
"""Two decisions of the authorizer at most."""

_STEPS_OF_ROW: Final = 30
_RENEWERS_PER_STEP: Final = 4


@handles_on_all_nodes(
    DescribeDelegationTokenRequest,
    needs=names((Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN), (Operation.DESCRIBE_TOKENS, ResourceType.USER)),
)
async def describe_delegation_token(
    context: RequestContext[ClusterNode], request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    if not allows_token_requests(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret = token_secret(context.node.config)
    if secret is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None if request.owners is None else await context.turn.through(_principals(request.owners))
    if owners is not None and not owners:
        return DescribeDelegationTokenResponse()
    version = context.header.api_version
    rows = EncodedArray(DescribeDelegationTokenResponse, version)
    for token in context.node.image.view().delegation_tokens.values():
        steps = _STEPS_OF_TOKEN + len(token.renewers) // _RENEWERS_PER_STEP
        if (owners is None or token.concerns(owners)) and _may_see(context, token):
            rows.add([_row(token, secret, version)])
            if rows.is_too_large:
                return DescribeDelegationTokenResponse(error_code=ErrorCode.INVALID_REQUEST)
            steps += _STEPS_OF_ROW + len(token.renewers)
        await context.turn.took(steps)
    return DescribeDelegationTokenResponse(tokens=rows.finish().of(DescribedDelegationToken))


def _principals(owners: Sequence[DescribeDelegationTokenOwner]) -> LongWork[set[str]]:
    principals: set[str] = set()
    for portion in portions(owners):
        principals.update(f"{each.principal_type}:{each.principal_name}" for each in portion)
        yield len(portion) // 2
    return principals


def _may_see(context: RequestContext[ClusterNode], token: DelegationToken) -> bool:
    """Tell whether the client sees the token. Nobody has asked for this very one, so that no line is logged."""
    return (
        token.concerns((context.principal,))
        or is_allowed(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, is_logged=False)
        or is_allowed(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, is_logged=False)
    )


def _row(token: DelegationToken, secret: TokenSecret, version: int) -> DescribedDelegationToken:
    owner, requester = type_and_name(token.owner), type_and_name(token.requester)
    row = DescribedDelegationToken(
        principal_type=owner[0],
        principal_name=owner[1],
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiry_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret.hmac(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in map(type_and_name, token.renewers)
        ],
    )
    if version >= _REQUESTER_SINCE:
        row.token_requester_principal_type, row.token_requester_principal_name = requester
    return row
