"""Entries of access control lists are created and deleted (KIP-11, KIP-801): Kafka's `AclControlManager`.

Whoever creates an entry that is there already gets no error and no second one. A filter deletes what it finds. The
error codes and texts are those of Apache Kafka 4.3.1, and of 4.4.0 for ranges of addresses. Who may ask for it is
decided before (`api.authorization`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from pykbroker.protocol.messages.metadata_records import RemoveAccessControlEntryRecord
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import random_uuid
from pykbroker.security.acls.address_ranges import LONGEST_TOLD, SLASH, InvalidRange, parse_range
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import CLUSTER_NAME, PatternType, ResourceType

from . import error_responses
from .acl_records import record_of
from .acl_search import AclSearch
from .controller_state import ControllerState
from .features import ADDRESS_RANGES_SINCE, feature_level
from .image import METADATA_VERSION
from .request_pieces import MAX_RECORDS, too_many_records

_STEPS_OF_CREATION: Final = 12
_STEPS_OF_FILTER: Final = 4
_STEPS_OF_FOUND: Final = 4

_MOST_TOLD: Final = 100_000
"""Entries in one answer: filters that find the same ones would fill the memory with them."""

_MOST_SCANNED: Final = 5_000_000
"""Some seconds of the controller's time; a filter that names its resource costs a lookup."""

_IN_FILTERS: Final = (
    ("resource_type", ResourceType.ANY),
    ("resource_pattern_type", PatternType.ANY),
    ("resource_pattern_type", PatternType.MATCH),
    ("operation", Operation.ANY),
    ("permission_type", Permission.ANY),
)
"""What a creation must not have."""


def create_acls(state: ControllerState, request: CreateAclsRequest) -> LongWork[tuple[list[Message], Message]]:
    """Each entry is judged for itself. One that has what only a filter may have spoils all of them, as in Kafka."""
    if any(getattr(each, name) == value for each in request.creations for name, value in _IN_FILTERS):
        error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        refused = AclCreationResult(error_code=error.code, error_message=None)
        return [], CreateAclsResponse(results=[refused] * len(request.creations))
    response = CreateAclsResponse()
    new: dict[AccessControlEntry, Message] = {}
    for creation in request.creations:
        yield _STEPS_OF_CREATION
        row = AclCreationResult(error_message="")
        try:
            _check(creation)
            _check_host(state, creation.host)
            entry = _entry(creation)
            if entry not in state.known_acls and entry not in new:
                new[entry] = record_of(random_uuid(state.rng), entry)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        response.results.append(row)
    if len(new) > MAX_RECORDS:
        return [], (yield from error_responses.error_response(request, too_many_records()))
    return list(new.values()), response


def _entry(creation: AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _check(creation: AclCreation) -> None:
    """Raises ApiError, in Kafka's order of checks."""
    reason = None
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        reason = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not creation.resource_name:
        reason = "Invalid empty resource name"
    elif ResourceType(creation.resource_type) is ResourceType.UNKNOWN:
        reason = "Invalid resourceType UNKNOWN"
    elif PatternType(creation.resource_pattern_type) is PatternType.UNKNOWN:
        reason = "Invalid patternType UNKNOWN"
    elif Operation(creation.operation) is Operation.UNKNOWN:
        reason = "Invalid operation UNKNOWN"
    elif Permission(creation.permission_type) is Permission.UNKNOWN:
        reason = "Invalid permissionType UNKNOWN"
    elif ":" not in creation.principal:
        missing = "no colon is present separating the principal type from the principal name"
        reason = f"Could not parse principal from `{creation.principal}` ({missing})"
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)


def _check_host(state: ControllerState, host: str) -> None:
    """Check a range of addresses (KIP-1276), and that there is a host where ranges are known. Raises ApiError."""
    knows_ranges = feature_level(state.image, METADATA_VERSION) >= ADDRESS_RANGES_SINCE
    if not host and knows_ranges:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty")
    if SLASH not in host:
        return
    if not knows_ranges:
        reason = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, reason)
    try:
        parse_range(host)
    except InvalidRange as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{host[:LONGEST_TOLD]}': {error}") from None


def delete_acls(state: ControllerState, request: DeleteAclsRequest) -> LongWork[tuple[list[Message], Message]]:
    """Every filter finds what is there before the request, also what another one of its filters finds."""
    response = DeleteAclsResponse()
    records: dict[bytes, Message] = {}
    search = AclSearch(state.image.acls)
    told = 0
    for asked in request.filters:
        yield _STEPS_OF_FILTER
        row = DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(row)
        try:
            wanted = _filter(asked)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
            continue
        found = yield from search.find(wanted)
        records.update((acl_id, RemoveAccessControlEntryRecord(id=acl_id)) for acl_id, _ in found[: MAX_RECORDS + 1])
        if len(records) > MAX_RECORDS:
            return [], (yield from error_responses.error_response(request, _too_many_deletions()))
        told += len(found)
        if told > _MOST_TOLD or search.scanned > _MOST_SCANNED:
            return [], (yield from error_responses.error_response(request, too_many_records()))
        row.matching_acls = _matching(entry for _, entry in found)
        yield len(found) * _STEPS_OF_FOUND
    return list(records.values()), response


def _too_many_deletions() -> ApiError:
    reason = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
    return ApiError(ErrorCode.INVALID_REQUEST, reason)


def _filter(asked: DeleteAclsFilter) -> EntryFilter:
    """Raises ApiError."""
    resource, pattern = ResourceType(asked.resource_type_filter), PatternType(asked.pattern_type_filter)
    if resource is ResourceType.UNKNOWN or pattern is PatternType.UNKNOWN:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    operation, permission = Operation(asked.operation), Permission(asked.permission_type)
    if operation is Operation.UNKNOWN or permission is Permission.UNKNOWN:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return EntryFilter(
        resource, asked.resource_name_filter, pattern, asked.principal_filter, asked.host_filter, operation, permission
    )


def _matching(entries: Iterable[AccessControlEntry]) -> list[DeleteAclsMatchingAcl]:
    return [
        DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=entry.resource_type,
            resource_name=entry.resource_name,
            pattern_type=entry.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
    ]
