"""SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeUserScramCredentialsRequest(
    Message, api_key=50, versions="0", flexible="0+", listeners="broker controller"
):
    """The request asks which SCRAM credentials users have."""

    users: list[UserName] | None = field("[]struct", nullable="0+")


class UserName(Struct):
    name: str = field("string")


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    """Mechanisms and iterations for each user; the secrets stay where they are."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field("[]struct")


class DescribeUserScramCredentialsResult(Struct):
    user: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    credential_infos: list[CredentialInfo] = field("[]struct")


class CredentialInfo(Struct):
    mechanism: int = field("int8")
    iterations: int = field("int32")


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+", listeners="broker controller"):
    """The request sets and deletes SCRAM credentials."""

    deletions: list[ScramCredentialDeletion] = field("[]struct")
    upsertions: list[ScramCredentialUpsertion] = field("[]struct")


class ScramCredentialDeletion(Struct):
    name: str = field("string")
    mechanism: int = field("int8")


class ScramCredentialUpsertion(Struct):
    name: str = field("string")
    mechanism: int = field("int8")
    iterations: int = field("int32")
    salt: bytes = field("bytes")
    salted_password: bytes = field("bytes")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    """The outcome for each user."""

    throttle_time_ms: int = field("int32")
    results: list[AlterUserScramCredentialsResult] = field("[]struct")


class AlterUserScramCredentialsResult(Struct):
    user: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
