"""ListGroups: the filters of a request."""

from __future__ import annotations

import pytest

from pykbroker.groups.common.group import Group
from pykbroker.groups.common.requests import ListSomeGroups
from pykbroker.groups.common.topics import NO_TOPICS
from pykbroker.groups.listing import list_groups
from pykbroker.groups.streams.streams_group import StreamsGroup, StreamsGroupState
from pykbroker.protocol.messages.group_admin import ListGroupsRequest


class _NotReady(StreamsGroup):
    @property
    def state(self) -> StreamsGroupState:
        return StreamsGroupState.NOT_READY


@pytest.mark.parametrize(
    ("state", "is_listed"),
    [("NotReady", True), ("notready", True), ("not_ready", True), ("NOT_READY", True), ("Ready", False), ("", False)],
)
def test_a_streams_group_that_is_not_ready_is_found_by_the_state_that_is_shown_and_by_kafkas_filter(
    state: str, is_listed: bool
) -> None:
    """Kafka finds it by `not_ready` alone, and shows `NotReady`."""
    groups: dict[str, Group] = {"app": _NotReady("app", NO_TOPICS), "other": StreamsGroup("other", NO_TOPICS)}
    asked = ListSomeGroups(request=ListGroupsRequest(states_filter=[state]), group_ids=list(groups))
    assert [each.group_id for each in list_groups(groups, asked).groups] == ["app"] * is_listed
