"""Users' SCRAM credentials (KIP-554): describe, set, delete. Raises KafkaError.

A password does not leave the client: what is sent is salted and hashed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from pykbroker.security.sasl.scram_credential import MECHANISMS, MECHANISMS_BY_TYPE, new_nonce

from .errors import check

if TYPE_CHECKING:
    from .cluster import Cluster


async def describe_scram_users(cluster: Cluster, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
    """The iterations of each user's mechanisms, by the users' names; all users where none is named.

    Of those that are named, users without a credential are left out.
    """
    return scram_users_of(await ask_scram_users(cluster, names))


async def ask_scram_users(cluster: Cluster, names: Sequence[str] = ()) -> DescribeUserScramCredentialsResponse:
    """Return the answer of which `scram_users_of` makes what `describe_scram_users` returns."""
    return await cluster.request(
        DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None),
        DescribeUserScramCredentialsResponse,
        verify=_check_described,
    )


def scram_users_of(response: DescribeUserScramCredentialsResponse) -> dict[str, dict[str, int]]:
    """Return the users of an answer. A thread is the place for this where there may be many."""
    return {
        result.user: {_mechanism(info.mechanism): info.iterations for info in result.credential_infos}
        for result in sorted(response.results, key=lambda result: result.user)
        if result.error_code == ErrorCode.NONE
    }


async def set_scram_password(cluster: Cluster, user: str, mechanism: str, password: str, iterations: int) -> None:
    """Set one mechanism's credential, with a new salt. mechanism: a key of `MECHANISMS`."""
    salt = new_nonce(secrets.randbits).encode()
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=MECHANISMS[mechanism].type,
        iterations=iterations,
        salt=salt,
        salted_password=MECHANISMS[mechanism].salted_password(password, salt, iterations),
    )
    await _alter(cluster, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


async def delete_scram_credential(cluster: Cluster, user: str, mechanism: str) -> None:
    """Delete one mechanism's credential. Raises KafkaError with RESOURCE_NOT_FOUND where there is none."""
    deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISMS[mechanism].type)
    await _alter(cluster, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    await cluster.request(request, AlterUserScramCredentialsResponse, verify=_check_altered)


def _mechanism(number: int) -> str:
    known: Mapping[int, object] = MECHANISMS_BY_TYPE
    return MECHANISMS_BY_TYPE[number].name if number in known else str(number)


def _check_described(response: DescribeUserScramCredentialsResponse) -> None:
    check(response.error_code, response.error_message)
    for result in response.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, result.error_message)


def _check_altered(response: AlterUserScramCredentialsResponse) -> None:
    for result in response.results:
        check(result.error_code, result.error_message)
