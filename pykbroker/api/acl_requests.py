"""Rules that the requests for ACLs share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from pykbroker.server.network.handlers import CloseConnection

SECURITY_DISABLED: Final = ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

_UNKNOWN: Final = 0


def check_known(request: CreateAclsRequest | DeleteAclsRequest | DescribeAclsRequest) -> LongWork[None]:
    """Raises CloseConnection for the number that stands for what nobody knows, as Kafka cannot read such a request."""
    for portion in portions(_kinds(request)):
        if any(_UNKNOWN in kinds for kinds in portion):
            raise CloseConnection(f"{type(request).__name__} with a type or an operation of 0, which is unknown")
        yield len(portion)


def _kinds(request: CreateAclsRequest | DeleteAclsRequest | DescribeAclsRequest) -> Iterator[tuple[int, ...]]:
    match request:
        case CreateAclsRequest():
            return map(_kinds_of_creation, request.creations)
        case DeleteAclsRequest():
            return map(_kinds_of_filter, request.filters)
        case _:
            return iter((_kinds_of_filter(request),))


def _kinds_of_creation(creation: AclCreation) -> tuple[int, ...]:
    return (
        creation.resource_type,
        creation.resource_pattern_type,
        creation.operation,
        creation.permission_type,
    )


def _kinds_of_filter(asked: DeleteAclsFilter | DescribeAclsRequest) -> tuple[int, ...]:
    return asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type
