"""Groups are deleted on request, with everything that was committed for them.

A group with very many offsets is deleted in several steps: first its offsets, and with the last of them the group. No
member can join it meanwhile, so that a deletion that has begun is not refused half-way because the group has members
again. The request is answered at the end; the deletion goes on where the client does not wait for that any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.errors import ErrorCode
from pykbroker.state_machine import Token

from .common.context import Step
from .common.group import Group
from .common.requests import DeleteGroup
from .offsets.offsets import Offsets

MOST_OFFSETS = 500
"""How many offsets are deleted in one step."""


class GroupDeletions:
    """The deletions of groups that have begun.

    delete_group: deletes an empty group that has no offsets any more, for the given cause.
    """

    def __init__(
        self, groups: Mapping[str, Group], offsets: Offsets, delete_group: Callable[[Group, str, Step], None]
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._delete_group = delete_group
        self._under_way: dict[str, tuple[Token, ...]] = {}
        """By group: the requests that wait for its deletion."""
        self._kept: KeptEntries[str, tuple[Token, ...]] = KeptEntries(self._under_way.get, lambda tokens: tokens)
        self._had_last_turn = False

    @property
    def next_group(self) -> str | None:
        """A group whose deletion has to go on."""
        return next(iter(self._under_way), None)

    def __contains__(self, group_id: str) -> bool:
        """Tell whether the group is being deleted: no member can join it."""
        return group_id in self._under_way

    def takes_turn(self, *, is_other_due: bool) -> bool:
        """Tell whether a deletion goes on now.

        Where timeouts are due too it is every other time, so that sessions end in time however large a group is.
        """
        self._had_last_turn = not (is_other_due and self._had_last_turn)
        return self._had_last_turn

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        for group_id, tokens in self._kept.end().items():
            if not is_kept:
                self._under_way.pop(group_id, None)
                if tokens is not None:
                    self._under_way[group_id] = tokens

    def begin(self, request: DeleteGroup, token: Token, step: Step) -> None:
        group = self._groups.get(request.group_id)
        if group is None:
            step.answer(token, ErrorCode.GROUP_ID_NOT_FOUND)
        elif not group.is_empty:
            step.answer(token, ErrorCode.NON_EMPTY_GROUP)
        else:
            self._kept.keep(request.group_id)
            self._under_way[request.group_id] = (*self._under_way.get(request.group_id, ()), token)
            self.go_on(request.group_id, step)

    def go_on(self, group_id: str, step: Step) -> None:
        """Delete a part of the group."""
        self._kept.keep(group_id)
        group = self._groups.get(group_id)
        if group is not None and not self._offsets.delete_some(group_id, MOST_OFFSETS, step):
            step.because(group_id, "it is being deleted")
            return
        if group is not None:
            self._delete_group(group, "deleted by request", step)
        for token in self._under_way.pop(group_id):
            step.answer(token, ErrorCode.NONE)
