"""AlterUserScramCredentials and DescribeUserScramCredentials: users' SCRAM credentials in the metadata (KIP-554).

The model is Kafka's `ScramControlManager` and `ScramImage`. A client sends salted passwords; what is recorded are the
keys that follow from them, with which nobody can log in.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import RemoveUserScramCredentialRecord
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from pykbroker.protocol.schema import Message
from pykbroker.security.sasl.scram_credential import MAX_ITERATIONS, MECHANISMS_BY_TYPE, MIN_ITERATIONS

from .controller_state import ControllerState
from .features import feature_level
from .image import METADATA_VERSION, MetadataImage
from .scram_records import scram_record

SCRAM_SINCE: Final = 11
"""The level of metadata.version that brought the records: 3.5-IV2."""

_TWICE: Final = "A user credential cannot be altered twice in the same request"
_STEPS_PER_ENTRY: Final = 40
"""A credential takes three hashes."""

_Altered = dict[str, ApiError | Message]
"""The outcome for each user: its record, or why it has none."""


def alter_user_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest
) -> LongWork[tuple[list[Message], AlterUserScramCredentialsResponse]]:
    """Each user is decided alone, and one that is named twice is left as it is, whatever was asked."""
    altered: _Altered = {}
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for change in changes:
        yield _STEPS_PER_ENTRY
        before = altered.get(change.name)
        if isinstance(before, ApiError):
            continue
        if before is not None:
            altered[change.name] = ApiError(ErrorCode.DUPLICATE_RESOURCE, _TWICE)
            continue
        try:
            altered[change.name] = _record(state.image, change)
        except ApiError as error:
            altered[change.name] = error
    records = [outcome for outcome in altered.values() if not isinstance(outcome, ApiError)]
    return records, AlterUserScramCredentialsResponse(results=[_result(*each) for each in altered.items()])


def altered_users(request: AlterUserScramCredentialsRequest) -> Iterable[str]:
    """The names in the request, each once."""
    deleted, upserted = (each.name for each in request.deletions), (each.name for each in request.upsertions)
    return dict.fromkeys(chain(deleted, upserted))


def refused(request: AlterUserScramCredentialsRequest, error: ApiError) -> AlterUserScramCredentialsResponse:
    """The response that has the error for each user."""
    return AlterUserScramCredentialsResponse(results=[_result(name, error) for name in altered_users(request)])


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> LongWork[DescribeUserScramCredentialsResponse]:
    """Tell which mechanisms users have, and how many iterations; all users where none is named."""
    times: dict[str, int] = {}
    for user in request.users or ():
        times[user.name] = times.get(user.name, 0) + 1
        yield 1
    results = []
    for name in times or dict.fromkeys(name for _, name in image.scram_credentials):
        results.append(_described(image, name, is_named_twice=times.get(name, 0) > 1))
        yield len(MECHANISMS_BY_TYPE)
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _record(image: MetadataImage, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Message:
    """The record that makes the change. Raises ApiError."""
    if feature_level(image, METADATA_VERSION) < SCRAM_SINCE:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not change.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISMS_BY_TYPE.get(change.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram_credentials:
            reason = "Attempt to delete a user credential that does not exist"
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, reason)
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if change.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:  # Java has no HMAC with an empty key
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    credential = mechanism.credential(bytes(change.salted_password), bytes(change.salt), change.iterations)
    return scram_record(change.name, change.mechanism, credential)


def _result(name: str, outcome: ApiError | Message) -> AlterUserScramCredentialsResult:
    if isinstance(outcome, ApiError):
        return AlterUserScramCredentialsResult(user=name, error_code=outcome.code, error_message=outcome.message)
    return AlterUserScramCredentialsResult(user=name, error_message=None)


def _described(image: MetadataImage, name: str, *, is_named_twice: bool) -> DescribeUserScramCredentialsResult:
    if is_named_twice:
        reason = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=reason
        )
    infos = [
        CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        for mechanism in MECHANISMS_BY_TYPE
        if (credential := image.scram_credentials.get((mechanism, name))) is not None
    ]
    if not infos:
        reason = f"Attempt to describe a user credential that does not exist: {name}"
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=reason
        )
    return DescribeUserScramCredentialsResult(user=name, error_message="", credential_infos=infos)
