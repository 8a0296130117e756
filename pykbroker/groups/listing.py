"""ListGroups: the groups of both types that an administrator asks for."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from pykbroker.protocol.messages.group_admin import ListedGroup, ListGroupsResponse

from .common.group import Group
from .common.requests import ListSomeGroups

_KAFKAS_FILTERS: Final = {"notready": "not_ready"}
"""The name by which alone Kafka finds a state, where it is not the one that it shows (`StreamsGroupState`)."""


def list_groups(groups: Mapping[str, Group], asked: ListSomeGroups) -> ListGroupsResponse:
    """The groups that pass the filters of the request. Filters are compared without regard to case; an empty filter
    lets every group through."""
    request = asked.request
    states = {state.lower() for state in request.states_filter}
    types = {type_.lower() for type_ in request.types_filter}
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=group.type.value,
        )
        for group in map(groups.get, asked.group_ids)
        if group is not None
        and (not states or _is_in(states, group.state.value.lower()))
        and (not types or group.type.value.lower() in types)
    ]
    return ListGroupsResponse(groups=listed)


def _is_in(states: Container[str], state: str) -> bool:
    return state in states or _KAFKAS_FILTERS.get(state, state) in states
