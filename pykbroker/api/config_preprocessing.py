"""The checks that a broker makes before it forwards changes of configurations to the controller.

Kafka's `ConfigAdminManager.preprocess` does the same: a controller leaves the checks of brokers' keys, of keys that are
named twice and of keys without a value to brokers, so a broker makes them whichever node is the controller. Loggers,
which are no configuration of the cluster, come here in AlterConfigs alone (`broker_loggers` takes the others).
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from pykbroker.metadata.configs import (
    APPEND,
    CORDONED_LOG_DIRS,
    DELETE,
    SET,
    check_broker_configs,
    check_keys,
    check_named_once,
)
from pykbroker.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker, ClusterNode

_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)

_Resource: TypeAlias = AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource
_Changes: TypeAlias = Sequence[tuple[str, int, str | None]]
"""Key, operation and value of each change."""

_TYPES_OF_THE_CLUSTER: Final = {TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE}


def refused_here(
    context: RequestContext[ClusterNode], resources: list[_ResourceT]
) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` that this node refuses by itself, and return their rows of the response."""
    if context.listener.kind == "broker":
        broker = cast(Broker, context.node)  # as on each such listener
        return preprocess(
            resources,
            broker.node_id,
            broker.partitions.log_directories(),
        )
    node = context.node
    if context.is_forwarded or node.controller is None or not node.controller.is_active:
        return []
    return _refused(resources, lambda resource, changes: _check_uncordoning(node.image, resource, changes))


def preprocess(
    resources: list[_ResourceT],
    node_id: int,
    log_directories: Collection[str],
) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` that are not to be forwarded, and return their rows of the response.

    log_directories: those of this node, by absolute path.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def check(resource: _Resource, changes: _Changes) -> None:
        check_named_once(times[resource.resource_type, resource.resource_name])
        check_keys(changes)
        if resource.resource_type not in _TYPES_OF_THE_CLUSTER:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
        if resource.resource_type == BROKER_RESOURCE:
            _check_broker(resource.resource_name, changes, node_id)
            _check_cordoned(changes, log_directories)

    return _refused(resources, check)


def _refused(
    resources: list[_ResourceT], check: Callable[[_Resource, _Changes], None]
) -> list[AlterConfigsResourceResponse]:
    """Take out the resources for which `check` raises ApiError, and return their rows of the response."""
    rows: list[AlterConfigsResourceResponse] = []
    passed_on = []
    for resource in resources:
        try:
            check(resource, _changes(resource))
            passed_on.append(resource)
        except ApiError as error:
            rows.append(
                AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
    resources[:] = passed_on
    return rows


def _changes(resource: _Resource) -> _Changes:
    if isinstance(resource, AlterConfigsRequestAlterConfigsResource):
        return [(config.name, SET, config.value) for config in resource.configs]
    return [(config.name, config.config_operation, config.value) for config in resource.configs]


def _check_broker(name: str, changes: _Changes, node_id: int) -> None:
    if name.isdecimal() and int(name) != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    set_values = {key: value for key, operation, value in changes if operation == SET and value is not None}
    unset = [key for key, operation, _ in changes if operation == DELETE]
    check_broker_configs(set_values, [*set_values, *unset], cluster_wide=name == "")


def _check_uncordoning(image: MetadataImage, resource: _Resource, changes: _Changes) -> None:
    """Check that a request which no broker has checked cordons nothing: its sender asked a controller for it."""
    if resource.resource_type != BROKER_RESOURCE:
        return
    current = set(_names(image.configs.get((BROKER_RESOURCE, resource.resource_name), {}).get(CORDONED_LOG_DIRS, "")))
    for named in _newly_cordoned(changes):
        if not current.issuperset(named):
            reason = (
                f"When updating {CORDONED_LOG_DIRS} via controllers,  the new value must be a subset of the current"
            )
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{reason} configuration value.")


def _newly_cordoned(changes: _Changes) -> Iterator[list[str]]:
    """Yield what each change of `cordoned.log.dirs` sets, or appends to it."""
    for key, operation, value in changes:
        if key == CORDONED_LOG_DIRS and operation in (SET, APPEND):
            yield _names(value)


def _names(value: str | None) -> list[str]:
    return [each.strip() for each in (value or "").split(",") if each.strip()]


def _check_cordoned(changes: _Changes, log_directories: Collection[str]) -> None:
    """Check that nothing but a log directory is cordoned (KIP-1066): the controller does not know their paths."""
    for named in _newly_cordoned(changes):
        if named == ["*"]:
            continue
        if "*" in named:
            reason = f"When {CORDONED_LOG_DIRS} is set to *, it must not contain other values"
            raise ApiError(ErrorCode.INVALID_REQUEST, f"requirement failed: {reason}")
        missing = [each for each in named if posixpath.abspath(each) not in log_directories]
        if missing:
            reason = f"All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. Missing entries : "
            raise ApiError(ErrorCode.INVALID_REQUEST, f"requirement failed: {reason}{', '.join(missing)}")
