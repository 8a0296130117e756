"""Delegation tokens (KIP-48): create, renew, expire, describe. Raises KafkaError."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pykbroker.protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

from .cluster import Cluster
from .errors import check

Principal = tuple[str, str]
"""A principal's type and name."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token: who logs in with its id and HMAC as user and password is its owner. Its `repr` shows no HMAC.

    Times are in milliseconds of the wall clock.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


async def create_token(
    cluster: Cluster, renewers: Sequence[Principal], *, max_lifetime_ms: int = -1, owner: Principal | None = None
) -> DelegationToken:
    """Create a token. owner: where it is not the user that asks (KIP-373). max_lifetime_ms: -1 is the cluster's."""
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner[0],
        owner_principal_name=None if owner is None else owner[1],
        renewers=[CreatableRenewers(principal_type=type_, principal_name=name) for type_, name in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )
    token = await cluster.request(
        request, CreateDelegationTokenResponse, verify=lambda answer: check(answer.error_code)
    )
    return DelegationToken(
        token.token_id,
        bytes(token.hmac),
        (token.principal_type, token.principal_name),
        (token.token_requester_principal_type, token.token_requester_principal_name),
        tuple(renewers),
        token.issue_timestamp_ms,
        token.expiry_timestamp_ms,
        token.max_timestamp_ms,
    )


async def renew_token(cluster: Cluster, hmac: bytes, period_ms: int) -> int:
    """Return when the token expires now. period_ms: from now on; -1 is the cluster's."""
    response = await cluster.request(
        RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms),
        RenewDelegationTokenResponse,
        verify=lambda answer: check(answer.error_code),
    )
    return response.expiry_timestamp_ms


async def expire_token(cluster: Cluster, hmac: bytes, period_ms: int) -> int:
    """Return when the token expires now. period_ms: from now on; -1 is at once."""
    response = await cluster.request(
        ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
        ExpireDelegationTokenResponse,
        verify=lambda answer: check(answer.error_code),
    )
    return response.expiry_timestamp_ms


async def describe_tokens(cluster: Cluster, owners: Iterable[Principal] | None = None) -> list[DelegationToken]:
    """The tokens that the user may see, of these owners or of all, the oldest first."""
    asked = None
    if owners is not None:
        asked = [DescribeDelegationTokenOwner(principal_type=type_, principal_name=name) for type_, name in owners]
    response = await cluster.request(
        DescribeDelegationTokenRequest(owners=asked),
        DescribeDelegationTokenResponse,
        verify=lambda answer: check(answer.error_code),
    )
    tokens = [
        DelegationToken(
            token.token_id,
            bytes(token.hmac),
            (token.principal_type, token.principal_name),
            (token.token_requester_principal_type, token.token_requester_principal_name),
            tuple((renewer.principal_type, renewer.principal_name) for renewer in token.renewers),
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
        )
        for token in response.tokens
    ]
    return sorted(tokens, key=lambda token: (token.issued_ms, token.token_id))
