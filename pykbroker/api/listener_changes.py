"""Changes of a broker's settings are tried before they are forwarded, by the broker whose they are: numbers of threads,
a listener's stores and log-ins.

Kafka's `DynamicBrokerConfig.validate` does the same, of stores, which are files of this broker, so that the controller
cannot read them. Kafka stores any JAAS line and makes no use of it; here it takes effect at once, and so it is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar, cast

from pykbroker.config import (
    BrokerConfig,
    ConfigurationError,
    InvalidValue,
    broker_keys,
    is_of_a_listener,
    key_of_listener,
)
from pykbroker.config.dynamic_rules import Number, check_cleaner_memory, check_thread_counts
from pykbroker.metadata.configs import changed_keys
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.security.tls.refusals import kafka_text
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker, ClusterNode

_INVALID: Final = "Invalid value org.apache.kafka.common.config.ConfigException: "
_OF_DYNAMIC: Final = " for configuration Invalid dynamic configuration"

_Resource: TypeAlias = AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource
_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)


async def refused_of_listeners(
    context: RequestContext[ClusterNode], resources: list[_ResourceT]
) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` with which this broker could not go on, and return their rows.

    At most one is this broker's, and one of all brokers: those that are named twice have been taken out.
    """
    node = context.node
    if context.listener.kind != "broker":
        return []
    rows = []
    for resource in resources.copy():
        name = resource.resource_name
        if resource.resource_type != BROKER_RESOURCE or name not in ("", str(node.node_id)):
            continue
        try:
            changes = _changes(node, resource)
        except ApiError:
            continue  # the controller says the same
        before, after = _before_and_after(node, name, changes)
        reason = _refused_numbers(node.config, before, after)
        if reason is None and name:
            reason = await _refused_addresses(cast(Broker, node), before, after) or await _refusal(node, changes, after)
        if reason is not None:
            resources.remove(resource)
            rows.append(_row(resource, reason))
    return rows


def _before_and_after(
    node: ClusterNode, name: str, changes: Mapping[str, str | None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what is set for this broker at run time, and what would be. name: of what resource changes."""
    configs = node.image.configs
    of_all, own = (dict(configs.get((BROKER_RESOURCE, each), {})) for each in ("", str(node.node_id)))
    before = {**of_all, **own}
    target = own if name else of_all
    target.update({key: text for key, text in changes.items() if text is not None})
    for key in [key for key, text in changes.items() if text is None]:
        target.pop(key, None)
    return before, {**of_all, **own}


async def _refused_addresses(node: Broker, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """Return why the broker could not listen where it is to; None where it could."""
    if node.listeners is None:
        return None
    try:
        await node.listeners.check(before, after)
    except InvalidValue as error:
        return str(error)
    except ConfigurationError as error:
        return f"{_INVALID}{error}{_OF_DYNAMIC}"
    return None


def _refused_numbers(config: BrokerConfig, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """Return why the broker would not go on with so many threads, or so little memory for them; None where it would."""
    listeners = [each.name for each in config.listeners.client]
    numbers, new_numbers = _numbers(config, before), _numbers(config, after)
    try:
        check_cleaner_memory(numbers, new_numbers)
    except ConfigurationError as error:
        return str(error)
    try:
        check_thread_counts(numbers, new_numbers, listeners)
    except ConfigurationError as error:
        return f"{_INVALID}{error}{_OF_DYNAMIC}"
    return None


def _numbers(config: BrokerConfig, dynamic: Mapping[str, str]) -> Number:
    """The numbers in force where these texts are set at run time. One that is none counts as the file has it."""

    def number(name: str) -> int:
        if not is_of_a_listener(name):
            return _number(config.text(name, dynamic), config.int(name))
        text = dynamic.get(name, config.listener_keys.get(name))
        key = key_of_listener(name)
        assert key is not None
        return number(key.name) if text is None else _number(text, config.int(key.name))

    return number


def _number(text: str | None, otherwise: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        return otherwise


async def _refusal(node: ClusterNode, changes: dict[str, str | None], after: Mapping[str, str]) -> str | None:
    """Return why stores and log-ins cannot change so; None where they can. after: all that would be set then."""
    listeners = cast(Broker, node).listeners
    going = frozenset[str]() if listeners is None else listeners.going(after)
    if node.tls is not None and any(map(is_of_a_listener, changes)):
        try:
            await node.threads.run(node.tls.check_changes, node.image, changes, going)
        except ConfigurationError as error:
            problem = f"Validation of dynamic config update of SSLFactory failed: {kafka_text(error)}"
            return f"{_INVALID}{problem}{_OF_DYNAMIC}"
    if node.sasl is None:
        return None
    from pykbroker.server.node.node_sasl import changes_sasl

    if changes_sasl(changes):
        known = node.config.listeners.known_names
        if listeners is not None:
            known |= listeners.names_after(after)
        try:
            await node.threads.run(node.sasl.check_changes, node.image, changes, known, going)
        except ConfigurationError as error:
            return str(error)
    return None


def _changes(node: ClusterNode, resource: _Resource) -> dict[str, str | None]:
    """The new value of each key that changes, None where it is deleted. Raises ApiError."""
    current = node.image.configs.get((BROKER_RESOURCE, resource.resource_name), {})
    if isinstance(resource, AlterConfigsRequestAlterConfigsResource):
        kept = {config.name: config.value for config in resource.configs}
        return {**dict.fromkeys(current), **kept}
    defaults = {each.name: node.config.text(each.name) or "" for each in resource.configs if each.name in broker_keys()}
    return changed_keys(resource, broker_keys(), current, defaults)


def _row(resource: _Resource, reason: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
