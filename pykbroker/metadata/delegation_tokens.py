"""Delegation tokens are created, renewed, expired and swept away (KIP-48, KIP-373): `DelegationTokenControlManager`.

A token lives until its expiry, which whoever may renew it can move, and never longer than its maximum lifetime. What is
recorded is everything but the HMAC, which follows from the id and the secret of the cluster. Expired tokens stay until
the next sweep (`TokenSweep`), and are good for nothing. The order of checks and the error codes are Kafka's. Who may
ask at all is decided before (`api.delegation_token_requests`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pykbroker.protocol.messages.metadata_records import RemoveDelegationTokenRecord
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.reckoning import Reckoning, by_the_clock
from pykbroker.security.tokens.delegation_token import USER_TYPE, DelegationToken

from .controller_state import ControllerState
from .delegation_token_records import token_record
from .features import feature_level
from .image import METADATA_VERSION
from .request_context import ControllerRequestContext

TOKENS_SINCE: Final = 14
"""The level of metadata.version that brought the records: 3.6-IV2."""

ERROR_TIMESTAMP: Final = -1
"""Kafka's value of the times of a token that there is not, where its brokers say so."""

MOST_RENEWER_BYTES: Final = 64 * 1024
"""Of the names of all renewers together: each record of a token repeats them, and so does each description."""

_MAX_TIMESTAMP: Final = (1 << 63) - 1
_AT_ONCE_MS: Final = -1
_MOST_SWEPT: Final = 1000
"""Tokens in one step; Kafka's `MAX_RECORDS_PER_EXPIRATION`."""


def type_and_name(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> tuple[str, str] | None:
    """Return type and name of the token's owner, who is the requester unless another one is named (KIP-373).

    None where the name has no type. requester: a principal.
    """
    if not request.owner_principal_name:
        return type_and_name(requester)
    if request.owner_principal_type is None:
        return None
    return request.owner_principal_type, request.owner_principal_name


def create_delegation_token(
    state: ControllerState, request: CreateDelegationTokenRequest, context: ControllerRequestContext
) -> LongWork[tuple[list[Message], CreateDelegationTokenResponse]]:
    """A token for the requester, or for the owner that the request names."""
    requester = type_and_name(context.principal)
    owner = owner_of(request, context.principal)
    assert owner is not None, "the handler has refused an owner without a type"
    response = CreateDelegationTokenResponse(
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
    )
    secret = state.known_tokens.secret
    if secret is None or _is_too_old(state):
        response.error_code = _UNAVAILABLE[secret is None]
        return [], response
    response.error_code = yield from _error_of_renewers(request)
    if response.error_code:
        return [], response
    now = context.wall_ms
    lifetime = _least_positive(state.config.int("delegation.token.max.lifetime.ms"), request.max_lifetime_ms)
    latest = _sum(now, lifetime)
    token = DelegationToken(
        uuid_to_text(random_uuid(state.rng)),
        ":".join(owner),
        context.principal,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=now,
        max_timestamp=latest,
        expiry_timestamp=min(latest, _sum(now, state.config.int("delegation.token.expiry.time.ms"))),
    )
    response.issue_timestamp_ms, response.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
    response.expiry_timestamp_ms = token.expiry_timestamp
    response.token_id, response.hmac = token.token_id, secret.hmac(token.token_id)
    return [token_record(token)], response


def renew_delegation_token(
    state: ControllerState, request: RenewDelegationTokenRequest, context: ControllerRequestContext
) -> tuple[list[Message], RenewDelegationTokenResponse]:
    """The token of the HMAC lives on for the period, if that is positive and not longer than the default."""
    token = _find(state, request.hmac)
    if isinstance(token, ErrorCode):
        return [], RenewDelegationTokenResponse(error_code=token)
    now = context.wall_ms
    if token.is_expired(now):
        return [], RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.is_renewed_by(context.principal):
        return [], RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    period = _least_positive(state.config.int("delegation.token.expiry.time.ms"), request.renew_period_ms)
    expiry = min(token.max_timestamp, _sum(now, period))
    renewed = replace(token, expiry_timestamp=expiry)
    return [token_record(renewed)], RenewDelegationTokenResponse(expiry_timestamp_ms=expiry)


def expire_delegation_token(
    state: ControllerState, request: ExpireDelegationTokenRequest, context: ControllerRequestContext
) -> tuple[list[Message], ExpireDelegationTokenResponse]:
    """The token of the HMAC expires when the period is over, or is removed at once where that is negative."""
    token = _find(state, request.hmac)
    if isinstance(token, ErrorCode):
        return [], ExpireDelegationTokenResponse(error_code=token)
    if not token.is_renewed_by(context.principal):
        return [], ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    now = context.wall_ms
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        return [removal], ExpireDelegationTokenResponse(expiry_timestamp_ms=now)
    if token.is_expired(now):
        return [], ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
    expiry = min(token.max_timestamp, _sum(now, request.expiry_time_period_ms))
    expiring = replace(token, expiry_timestamp=expiry)
    return [token_record(expiring)], ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry)


class TokenSweep:
    """The sweep removes expired tokens (`delegation.token.expiry.check.interval.ms`); without tokens it is not due.

    reckon: how late it is for a token, by what it lives.
    """

    def __init__(self, state: ControllerState, reckon: Reckoning = by_the_clock) -> None:
        self._state = state
        self._reckon = reckon
        self._renewed_for_ms = state.config.int("delegation.token.expiry.time.ms")
        self._interval_ms = state.config.int("delegation.token.expiry.check.interval.ms")
        self._due_ms: int | None = None

    def stop(self) -> None:
        self._due_ms = None

    def hurry(self) -> None:
        """Have the next sweep begin at once, with the first token."""
        if self._state.image.delegation_tokens:
            self._due_ms = _AT_ONCE_MS

    @property
    def is_hurried(self) -> bool:
        return self._due_ms == _AT_ONCE_MS

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """Return when a sweep is due. now_ms: when the controller was last asked for something."""
        if not self._state.image.delegation_tokens:
            self._due_ms = None
        elif self._due_ms is None:
            self._due_ms = now_ms + self._interval_ms
        return self._due_ms

    def run(self, now_ms: int, wall_ms: int) -> LongWork[Sequence[Message]]:
        """The records of one sweep, if one is due. Where there are many, another one follows at once."""
        if self._due_ms is None or self._due_ms > now_ms:
            return []
        records: list[Message] = []
        for portion in portions(self._state.image.delegation_tokens.values()):
            expired = (each.token_id for each in portion if self._is_expired(each, wall_ms))
            records += (RemoveDelegationTokenRecord(token_id=each) for each in expired)
            yield len(portion) // 4
            if len(records) >= _MOST_SWEPT:
                return records[:_MOST_SWEPT]
        self._due_ms = now_ms + self._interval_ms
        return records

    def _is_expired(self, token: DelegationToken, wall_ms: int) -> bool:
        """No record says when a token was renewed last: for the default period, if it was for another one."""
        since_ms = max(token.issue_timestamp, token.expiry_timestamp - self._renewed_for_ms)
        return token.is_expired(self._reckon(wall_ms, token.expiry_timestamp - since_ms))


_UNAVAILABLE: Final = {
    True: ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    False: ErrorCode.UNSUPPORTED_VERSION,
}
"""The error of a cluster without a secret, and of one whose metadata.version has no tokens."""


def _is_too_old(state: ControllerState) -> bool:
    return feature_level(state.image, METADATA_VERSION) < TOKENS_SINCE


def _find(state: ControllerState, hmac: bytes) -> DelegationToken | ErrorCode:
    known = state.known_tokens
    if known.secret is None or _is_too_old(state):
        return _UNAVAILABLE[known.secret is None]
    return known.find(state.image, bytes(hmac)) or ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _error_of_renewers(request: CreateDelegationTokenRequest) -> LongWork[ErrorCode]:
    size_bytes = 0
    for portion in portions(request.renewers):
        if any(each.principal_type != USER_TYPE for each in portion):
            return ErrorCode.INVALID_PRINCIPAL_TYPE
        size_bytes += sum(len(USER_TYPE) + 1 + len(each.principal_name) for each in portion)
        yield len(portion) // 4
    return ErrorCode.INVALID_REQUEST if size_bytes > MOST_RENEWER_BYTES else ErrorCode.NONE


def _least_positive(limit: int, asked: int) -> int:
    """Return what was asked for within the limit; the limit where nothing positive was."""
    return min(limit, asked) if asked > 0 else limit


def _sum(time_ms: int, period_ms: int) -> int:
    """Return the time after the period, or the latest that a record has room for."""
    return min(time_ms + period_ms, _MAX_TIMESTAMP)
