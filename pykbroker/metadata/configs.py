"""Changing configurations one key at a time (KIP-339): Kafka's `ConfigurationControlManager` and the checks that its
broker makes before (`DynamicBrokerConfig`).

Resources are topics, groups, subscriptions of client metrics, one broker, and "" for all brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pykbroker.config import (
    ConfigKey,
    ConfigurationError,
    check_group_configs,
    check_served,
    check_topic_configs,
    group_keys,
    is_of_a_listener,
    key_of_listener,
    node_keys,
    topic_keys,
)
from pykbroker.config.broker_keys import OF_A_LISTENER_OF_ALL_BROKERS
from pykbroker.config.client_metrics_keys import RefusedSubscription, check_client_metrics
from pykbroker.config.connection_limits import OVERRIDES, check_listener_limits, parse_overrides
from pykbroker.config.group_keys import broker_keys_of_groups, known_group_keys
from pykbroker.config.listener_keys import tails
from pykbroker.long_work import LongWork, counted
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.protocol.schema import Message

from . import min_isr
from .controller_state import ControllerState
from .features import KAFKA_4_4_SINCE, feature_level
from .image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, METADATA_VERSION, TOPIC_RESOURCE
from .topic_names import invalid_reason

if TYPE_CHECKING:  # most controllers have no policies
    from pykbroker.policies import AlterConfigRequest

    from .policy_check import PolicyCheck

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
STEPS_PER_RESOURCE: Final = 4
"""Of work (`long_work`), besides one for each key."""
_STEPS_OF_PATTERNS: Final = 500
"""Of a subscription of client metrics, whose patterns are compiled to be checked."""
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
SSL_STORES: Final = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
"""The keys of stores, which may be replaced while a node runs."""
_LIST_OPERATIONS: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def incremental_alter_configs(
    state: ControllerState,
    request: IncrementalAlterConfigsRequest,
    policies: PolicyCheck | None = None,
    *,
    tells_deletions: bool = True,
) -> LongWork[tuple[list[Message], IncrementalAlterConfigsResponse]]:
    """A resource changes as a whole or not at all. tells_deletions: policies are told what is deleted."""
    times = yield from counted((resource.resource_type, resource.resource_name) for resource in request.resources)
    records: list[Message] = []
    responses = []
    for resource in request.resources:
        row = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            check_named_once(times[resource.resource_type, resource.resource_name])
            altered = _alter(state, resource)
            min_isr.check(state, altered)
            if policies is not None:
                policies.check(_as_policies_see_it(altered, resource, tells_deletions=tells_deletions))
            records += altered
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        responses.append(row)
        yield _steps(resource)
    records = [] if request.validate_only else min_isr.with_cleared_elr(state, records)
    return records, IncrementalAlterConfigsResponse(responses=responses)


def _as_policies_see_it(
    altered: Sequence[ConfigRecord],
    resource: IncrementalAlterConfigsRequestAlterConfigsResource,
    *,
    tells_deletions: bool,
) -> AlterConfigRequest:
    from pykbroker.policies import AlterConfigRequest

    from .policy_check import RESOURCE_TYPES

    configs = {each.name: each.value for each in altered if tells_deletions or each.value is not None}
    return AlterConfigRequest(RESOURCE_TYPES[resource.resource_type], resource.resource_name, configs)


def _steps(resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> int:
    steps = STEPS_PER_RESOURCE + len(resource.configs)
    return steps if resource.resource_type != CLIENT_METRICS_RESOURCE else steps + _STEPS_OF_PATTERNS


def _alter(state: ControllerState, resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> list[ConfigRecord]:
    check_keys([(config.name, config.config_operation, config.value) for config in resource.configs])
    match resource.resource_type:
        case 2:
            return _alter_topic(state, resource)
        case 4:
            return _alter_broker(state, resource)
        case 16:
            return _alter_client_metrics(state, resource)
        case 32:
            return _alter_group(state, resource)
        case other:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {other}")


def check_named_once(times: int) -> None:
    """Raises ApiError where a request names a resource more than once."""
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def check_keys(changes: Sequence[tuple[str, int, str | None]]) -> None:
    """Name, operation and value of each key of a resource. Raises ApiError."""
    if len({name for name, _, _ in changes}) != len(changes):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    without_value = [name for name, operation, value in changes if value is None and operation != DELETE]
    if without_value:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(without_value)}")


def _alter_topic(
    state: ControllerState, resource: IncrementalAlterConfigsRequestAlterConfigsResource
) -> list[ConfigRecord]:
    name = resource.resource_name
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    reason = invalid_reason(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    current, defaults = state.image.topic_config(name), state.topic_defaults()
    changes = changed_keys(resource, topic_keys(), current, defaults)
    try:
        check_topic_configs(_changed(current, changes), defaults)
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if state.image.topic(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return _records(TOPIC_RESOURCE, name, current, changes)


def _alter_broker(
    state: ControllerState, resource: IncrementalAlterConfigsRequestAlterConfigsResource
) -> list[ConfigRecord]:
    name = resource.resource_name
    if name != "" and not name.isdecimal():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    current = state.image.configs.get((BROKER_RESOURCE, name), {})
    defaults = {
        config.name: state.config.text(config.name) or "" for config in resource.configs if config.name in node_keys()
    }
    changes = changed_keys(resource, node_keys(), current, defaults)
    values = {key: value for key, value in changes.items() if value is not None}
    check_broker_configs(values, [config.name for config in resource.configs], cluster_wide=name == "")
    return _records(BROKER_RESOURCE, name, current, changes)


def _alter_group(
    state: ControllerState, resource: IncrementalAlterConfigsRequestAlterConfigsResource
) -> list[ConfigRecord]:
    """The group need not be there yet."""
    name = resource.resource_name
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    current = state.image.group_config(name)
    changes = changed_keys(resource, group_keys(), current, {})
    dynamic = state.dynamic_broker_config()
    broker_values = {key: state.config.text(key, dynamic) or "" for key in broker_keys_of_groups()}
    # What another version set for a group stays, and is nobody's business here.
    is_of_4_4 = feature_level(state.image, METADATA_VERSION) >= KAFKA_4_4_SINCE
    known = {key: value for key, value in current.items() if key in known_group_keys(is_of_4_4=is_of_4_4)}
    try:
        check_group_configs(_changed(known, changes), broker_values, is_of_4_4=is_of_4_4)
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return _records(GROUP_RESOURCE, name, current, changes)


def _alter_client_metrics(
    state: ControllerState, resource: IncrementalAlterConfigsRequestAlterConfigsResource
) -> list[ConfigRecord]:
    """The keys are no lists for APPEND and SUBTRACT, as in Kafka, which does not know their types there."""
    name = resource.resource_name
    if name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    current = state.image.client_metrics_config(name)
    changes = changed_keys(resource, {}, current, {})
    try:
        check_client_metrics(_changed(current, changes))
    except RefusedSubscription as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return _records(CLIENT_METRICS_RESOURCE, name, current, changes)


def check_broker_configs(values: Mapping[str, str], names: Sequence[str], *, cluster_wide: bool) -> None:
    """Check that brokers would take these values.

    Raises ApiError. values: the new ones; names: of all keys that are to change.
    """
    _check_dynamic(names, cluster_wide=cluster_wide)
    _check_security_keys(values)
    _check_served(values)
    try:
        for name, value in values.items():
            key = key_of_listener(name) if is_of_a_listener(name) else node_keys().get(name)
            if key is not None:
                key.parse(value)
        check_listener_limits(values)
        parse_overrides(values.get(OVERRIDES, ""))
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _check_security_keys(values: Mapping[str, str]) -> None:
    """Stores are those of one listener. Other keys of `ssl.*` are stored, and have no effect on listeners that run."""
    stores = [name for name in values if name in node_keys() and name.startswith(SSL_STORES)]
    if stores:
        reason = "These security configs can be dynamically updated only per-listener using the listener prefix: "
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{reason}[{', '.join(stores)}]")


def _check_dynamic(names: Sequence[str], *, cluster_wide: bool) -> None:
    """Keys that nobody knows are let through: they may be a plugin's."""
    known = [node_keys()[name] for name in names if name in node_keys()]
    for keys, problem in (
        ([key.name for key in known if key.read_only], "Cannot update these configs dynamically: "),
        (
            [name for name in names if _is_of_one_broker(name)] if cluster_wide else [],
            "Cannot update these configs at default cluster level, broker id must be specified: ",
        ),
    ):
        if keys:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{problem}[{', '.join(keys)}]")


def _is_of_one_broker(name: str) -> bool:
    """Tell whether a key may not be set for all brokers.

    Of stores without a listener something else is wrong, too, which is said in place of this.
    """
    if is_of_a_listener(name):
        return next(tails(name), "") not in OF_A_LISTENER_OF_ALL_BROKERS
    known = node_keys().get(name)
    return known is not None and known.update == "broker" and not name.startswith(SSL_STORES)


def _check_served(values: Mapping[str, str]) -> None:
    try:
        check_served(values, at_run_time=True)
    except ConfigurationError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def changed_keys(
    resource: IncrementalAlterConfigsRequestAlterConfigsResource,
    keys: Mapping[str, ConfigKey],
    current: Mapping[str, str],
    defaults: Mapping[str, str],
) -> dict[str, str | None]:
    """The new value of each key that the request names; None is no value of its own any more."""
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        match config.config_operation:
            case 0:
                changes[config.name] = config.value
            case 1:
                changes[config.name] = None
            case 2 | 3:
                before = current.get(config.name, defaults.get(config.name, ""))
                changes[config.name] = _edit_list(config, keys.get(config.name), before)
            case other:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operation {other} for key {config.name}")
    return changes


def _edit_list(config: IncrementalAlterConfigsRequestAlterableConfig, key: ConfigKey | None, before: str) -> str:
    operation = _LIST_OPERATIONS[config.config_operation]
    if key is None or key.type != "list":
        reason = f"Can't {operation} to key {config.name} because its type is not LIST."
        raise ApiError(ErrorCode.INVALID_CONFIG, reason)
    values = [each.strip() for each in before.split(",")] if before.strip() else []
    named = [each.strip() for each in (config.value or "").split(",")]
    if config.config_operation == APPEND:
        known = set(values)
        values += [each for each in dict.fromkeys(named) if each not in known]
    else:
        values = _without(values, Counter(named))
    return ",".join(values)


def _without(values: Iterable[str], taken: Counter[str]) -> list[str]:
    """Take a value out as often as it is named, the first of equal ones first."""
    left = []
    for each in values:
        if taken[each]:
            taken[each] -= 1
        else:
            left.append(each)
    return left


def _changed(current: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**current, **changes}.items() if value is not None}


def _records(
    type_: int, resource_name: str, current: Mapping[str, str], changes: Mapping[str, str | None]
) -> list[ConfigRecord]:
    """Return the records of a change.

    An unchanged value is recorded again for brokers, which then read key stores anew.
    """
    return [
        ConfigRecord(resource_type=type_, resource_name=resource_name, name=name, value=value)
        for name, value in changes.items()
        if current.get(name) != value or type_ == BROKER_RESOURCE
    ]
