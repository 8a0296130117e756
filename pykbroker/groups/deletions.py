"""Groups go on request: the group, and everything that was committed for it.

A group with very many offsets goes in several steps, first its offsets and with the last of them the group. Nobody
joins it meanwhile, so that what was begun is not refused in the middle because the group has members again. Whoever
asked is answered at the end; the deletion goes on where nobody waits for that any more.
"""

from __future__ import annotations

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.errors import ErrorCode
from pykbroker.state_machine import Token

from .administration import Administration
from .common.context import Step
from .consumer.group_types import Group
from .offsets.offset_cleanup import OffsetCleanup
from .requests import DeleteGroup

MOST_OFFSETS = 500
"""That are deleted in one step."""


class GroupDeletions:
    def __init__(self, groups: dict[str, Group], cleanup: OffsetCleanup, administration: Administration) -> None:
        self._groups = groups
        self._cleanup = cleanup
        self._administration = administration
        self._under_way: dict[str, tuple[Token, ...]] = {}
        """By group: who waits for it."""
        self._kept: KeptEntries[str, tuple[Token, ...]] = KeptEntries(self._under_way.get, lambda tokens: tokens)

    @property
    def next_group(self) -> str | None:
        """One that is to go on going."""
        return next(iter(self._under_way), None)

    def __contains__(self, group_id: str) -> bool:
        """Whether the group is going: nobody can join it."""
        return group_id in self._under_way

    def begin_trial(self) -> None:
        """What changes from here on may be taken back by `end_trial`."""
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
        """A part of a group that is going."""
        self._kept.keep(group_id)
        group = self._groups.get(group_id)
        if group is not None and not self._cleanup.delete_some(group_id, MOST_OFFSETS, step):
            step.because(f"group {group_id}: it is being deleted")
            return
        if group is not None:
            self._administration.forget(group, "deleted by request", step)
        for token in self._under_way.pop(group_id):
            step.answer(token, ErrorCode.NONE)
