"""Access control lists."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeAclsRequest(Message, api_key=29, versions="1-3", flexible="2+", listeners="broker controller"):
    """The request finds entries by a filter.

    v1 adds pattern types (KIP-290), v3 users as resources (KIP-373).
    """

    resource_type_filter: int = field("int8")
    resource_name_filter: str | None = field("string", nullable="0+")
    pattern_type_filter: int = field("int8", "1+", default=3)
    principal_filter: str | None = field("string", nullable="0+")
    host_filter: str | None = field("string", nullable="0+")
    operation: int = field("int8")
    permission_type: int = field("int8")


class DescribeAclsResponse(Message, api_key=29, versions="1-3", flexible="2+"):
    """Entries grouped by resource."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    resources: list[DescribeAclsResource] = field("[]struct")


class DescribeAclsResource(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    pattern_type: int = field("int8", "1+", default=3)
    acls: list[AclDescription] = field("[]struct")


class AclDescription(Struct):
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible="2+", listeners="broker controller"):
    """The request creates entries.

    v1 adds pattern types (KIP-290), v3 users as resources (KIP-373).
    """

    creations: list[AclCreation] = field("[]struct")


class AclCreation(Struct):
    resource_type: int = field("int8")
    resource_name: str = field("string")
    resource_pattern_type: int = field("int8", "1+", default=3)
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    """The outcome for each entry."""

    throttle_time_ms: int = field("int32")
    results: list[AclCreationResult] = field("[]struct")


class AclCreationResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class DeleteAclsRequest(Message, api_key=31, versions="1-3", flexible="2+", listeners="broker controller"):
    """The request deletes the entries that match filters.

    v1 adds pattern types (KIP-290), v3 users as resources (KIP-373).
    """

    filters: list[DeleteAclsFilter] = field("[]struct")


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field("int8")
    resource_name_filter: str | None = field("string", nullable="0+")
    pattern_type_filter: int = field("int8", "1+", default=3)
    principal_filter: str | None = field("string", nullable="0+")
    host_filter: str | None = field("string", nullable="0+")
    operation: int = field("int8")
    permission_type: int = field("int8")


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible="2+"):
    """The response names the entries that were deleted, for each filter."""

    throttle_time_ms: int = field("int32")
    filter_results: list[DeleteAclsFilterResult] = field("[]struct")


class DeleteAclsFilterResult(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = field("[]struct")


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    resource_type: int = field("int8")
    resource_name: str = field("string")
    pattern_type: int = field("int8", "1+", default=3)
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")
