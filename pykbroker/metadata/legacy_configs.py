"""Whole configurations are replaced (AlterConfigs, KIP-133): what is not named goes back to its default.

The same rules as for single keys hold (`configs`): a replacement is all of them set or deleted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.long_work import LongWork
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.schema import Message

from .configs import DELETE, SET, STEPS_PER_RESOURCE, incremental_alter_configs
from .controller_state import ControllerState

if TYPE_CHECKING:
    from .policy_check import PolicyCheck


def alter_configs(
    state: ControllerState, request: AlterConfigsRequest, policies: PolicyCheck | None = None
) -> LongWork[tuple[list[Message], AlterConfigsResponse]]:
    resources = []
    for each in request.resources:
        resources.append(_as_changes(state, each))
        yield STEPS_PER_RESOURCE
    changes = IncrementalAlterConfigsRequest(resources=resources, validate_only=request.validate_only)
    records, response = yield from incremental_alter_configs(state, changes, policies, tells_deletions=False)
    return records, AlterConfigsResponse(responses=response.responses)


def _as_changes(
    state: ControllerState, resource: AlterConfigsRequestAlterConfigsResource
) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    current = state.image.configs.get((resource.resource_type, resource.resource_name), {})
    named = {config.name for config in resource.configs}
    set_ = [
        IncrementalAlterConfigsRequestAlterableConfig(name=config.name, config_operation=SET, value=config.value)
        for config in resource.configs
    ]
    deleted = [
        IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=DELETE, value=None)
        for name in current
        if name not in named
    ]
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=[*set_, *deleted]
    )
