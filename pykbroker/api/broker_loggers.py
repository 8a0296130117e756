"""Loggers of this node as a resource of configurations (KIP-412): what is described, and what is altered at once.

A logger is changed by the node that gets the request, and by no other: the change is neither forwarded nor kept. The
rules are those of Kafka's `RuntimeLoggerManager`: a logger that does not exist is refused, and the root logger keeps
a level. Where Kafka's loggers are classes, packages of modules can be named here as well.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from pykbroker.metadata.configs import APPEND, DELETE, SET, SUBTRACT, check_keys, check_named_once
from pykbroker.metadata.image import BROKER_LOGGER_RESOURCE
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsResourceResponse,
    DescribeConfigsResourceResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.runtime import loggers

from .authorization import is_allowed_on_cluster

_LONGEST_NODE_ID: Final = 10
_OF_LISTS: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_STEPS_OF_CHANGE: Final = 20
"""A change of a level makes each logger of the process forget what it is enabled for."""


def described_loggers(node_id: int, name: str) -> list[DescribeConfigsResourceResult]:
    """Return a row for each logger of this node. Raises ApiError where the name is not this node's id."""
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    number = _node_id(name)
    if number is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != node_id:
        reason = f"Unexpected broker id, expected {node_id} but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    return [_row(each) for each in loggers.logger_names()]


async def altered_loggers(
    context: RequestContext[ClusterNode], request: IncrementalAlterConfigsRequest
) -> list[AlterConfigsResourceResponse]:
    """Change the loggers that the request names, take them out of it, and return their rows of the response."""
    named = [each for each in request.resources if each.resource_type == BROKER_LOGGER_RESOURCE]
    if not named or context.is_forwarded:
        return []
    times = Counter(each.resource_name for each in named)
    rows = []
    for resource in named:
        row = AlterConfigsResourceResponse(
            resource_type=BROKER_LOGGER_RESOURCE, resource_name=resource.resource_name, error_message=None
        )
        try:
            check_named_once(times[resource.resource_name])
            await _alter(context, resource, only_validate=request.validate_only)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        rows.append(row)
    request.resources[:] = [each for each in request.resources if each.resource_type != BROKER_LOGGER_RESOURCE]
    return rows


async def _alter(
    context: RequestContext[ClusterNode],
    resource: IncrementalAlterConfigsRequestAlterConfigsResource,
    *,
    only_validate: bool,
) -> None:
    """Make all changes of a resource, or none. Raises ApiError."""
    changes = resource.configs
    check_keys([(each.name, each.config_operation, each.value) for each in changes])
    if not is_allowed_on_cluster(context, Operation.ALTER_CONFIGS):
        denial = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise ApiError(denial, denial.description)
    _check_node_id(context.node.node_id, resource.resource_name)
    for change in changes:
        _check(change)
    if only_validate:
        return
    for change in changes:
        loggers.set_level(change.name, change.value if change.config_operation == SET else None)
        await context.turn.took(_STEPS_OF_CHANGE)


def _check_node_id(node_id: int, name: str) -> None:
    number = _node_id(name)
    if number is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if number != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")


def _check(change: IncrementalAlterConfigsRequestAlterableConfig) -> None:
    """Raises ApiError where the change cannot be made."""
    name, operation = change.name, change.config_operation
    if operation in _OF_LISTS:
        reason = f"{_OF_LISTS[operation]} operation is not allowed for the BROKER_LOGGER resource"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    if operation not in (SET, DELETE):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if not loggers.has_logger(name):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE and name == loggers.ROOT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if operation == SET and change.value not in loggers.LEVELS:
        valid = ", ".join(sorted(loggers.LEVELS))
        reason = f"it is not a supported log level. Valid log levels are {valid}"
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Cannot set the log level of {name} to {change.value} as {reason}")


def _node_id(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NODE_ID else None


def _row(name: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=loggers.level_of(name),
        config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
        documentation="",
    )
