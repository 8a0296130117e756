"""Entries of access control lists (KIP-11): describe, create, delete. Raises KafkaError, for the first that fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter

from .cluster import Cluster
from .errors import check


async def describe_acls(cluster: Cluster, wanted: EntryFilter) -> list[AccessControlEntry]:
    """The entries that the filter finds, in the order of their fields."""
    return entries_of(await ask_acls(cluster, wanted))


async def ask_acls(cluster: Cluster, wanted: EntryFilter) -> DescribeAclsResponse:
    """Return the answer of which `entries_of` makes what `describe_acls` returns."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    return await cluster.request(
        request, DescribeAclsResponse, verify=lambda answer: check(answer.error_code, answer.error_message)
    )


def entries_of(response: DescribeAclsResponse) -> list[AccessControlEntry]:
    """Return the entries of an answer. A thread is the place for this where there may be many."""
    return sorted(
        AccessControlEntry(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    )


async def create_acls(cluster: Cluster, entries: Iterable[AccessControlEntry]) -> None:
    """Entries that are there already stay as they are."""
    creations = [
        AclCreation(
            resource_type=entry.resource_type,
            resource_name=entry.resource_name,
            resource_pattern_type=entry.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
    ]
    await cluster.request(CreateAclsRequest(creations=creations), CreateAclsResponse, verify=_check_created)


async def delete_acls(cluster: Cluster, wanted: Sequence[EntryFilter]) -> int:
    """Delete what the filters find, and return how many entries that were."""
    filters = [
        DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in wanted
    ]
    response = await cluster.request(DeleteAclsRequest(filters=filters), DeleteAclsResponse, verify=_check_deleted)
    return sum(len(result.matching_acls) for result in response.filter_results)


def _check_created(response: CreateAclsResponse) -> None:
    for result in response.results:
        check(result.error_code, result.error_message)


def _check_deleted(response: DeleteAclsResponse) -> None:
    for result in response.filter_results:
        check(result.error_code, result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, acl.error_message)
