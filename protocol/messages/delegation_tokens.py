"""Delegation tokens (KIP-48)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+", listeners="broker controller"):
    """The request creates a token.

    v3 can create it for another owner (KIP-373).
    """

    owner_principal_type: str | None = field("string", "3+", nullable="3+")
    owner_principal_name: str | None = field("string", "3+", nullable="3+")
    renewers: list[CreatableRenewers] = field("[]struct")
    max_lifetime_ms: int = field("int64")


class CreatableRenewers(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    """The token with its secret."""

    error_code: int = field("int16")
    principal_type: str = field("string")
    principal_name: str = field("string")
    token_requester_principal_type: str = field("string", "3+")
    token_requester_principal_name: str = field("string", "3+")
    issue_timestamp_ms: int = field("int64")
    expiry_timestamp_ms: int = field("int64")
    max_timestamp_ms: int = field("int64")
    token_id: str = field("string")
    hmac: bytes = field("bytes")
    throttle_time_ms: int = field("int32")


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible="2+", listeners="broker controller"):
    """The request moves a token's expiry."""

    hmac: bytes = field("bytes")
    renew_period_ms: int = field("int64")


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    """The new expiry."""

    error_code: int = field("int16")
    expiry_timestamp_ms: int = field("int64")
    throttle_time_ms: int = field("int32")


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+", listeners="broker controller"):
    """The request lets a token expire earlier, or at once."""

    hmac: bytes = field("bytes")
    expiry_time_period_ms: int = field("int64")


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    """The new expiry."""

    error_code: int = field("int16")
    expiry_timestamp_ms: int = field("int64")
    throttle_time_ms: int = field("int32")


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+", listeners="broker controller"):
    """The request asks for the tokens of owners."""

    owners: list[DescribeDelegationTokenOwner] | None = field("[]struct", nullable="0+")


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    """Tokens with owner, renewers and times.

    v3 adds who asked for them (KIP-373).
    """

    error_code: int = field("int16")
    tokens: list[DescribedDelegationToken] = field("[]struct")
    throttle_time_ms: int = field("int32")


class DescribedDelegationToken(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")
    token_requester_principal_type: str = field("string", "3+")
    token_requester_principal_name: str = field("string", "3+")
    issue_timestamp: int = field("int64")
    expiry_timestamp: int = field("int64")
    max_timestamp: int = field("int64")
    token_id: str = field("string")
    hmac: bytes = field("bytes")
    renewers: list[DescribedDelegationTokenRenewer] = field("[]struct")


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field("string")
    principal_name: str = field("string")
