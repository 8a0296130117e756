"""A target assignment that is computed beside the event loop: all that the assignor is told, as values (KIP-1263).

A task is made of a group as it is in one epoch, and may run in a thread. The group goes on meanwhile: members join,
leave, and come back under other ids. The assignment is still good for the members that are there afterwards; a member
that has come since waits for the next assignment, which the group's later epoch asks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeAlias

from ..common.group import GroupType
from ..common.records import CoordinatorRecord, EncodedRecord
from .modern_group import Incarnation, TargetT
from .modern_member import MemberT

InBatches: TypeAlias = Callable[[Sequence[EncodedRecord]], Sequence[bytes]]
"""Puts records into batches that the log takes."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AssignmentTask(ABC, Generic[MemberT, TargetT]):
    """A group as it was when the task was made; no later change reaches it.

    incarnation: of the group; another group of the same id has another one. before: by member, the last target
    assignment.
    """

    type: ClassVar[GroupType]

    group_id: str
    incarnation: Incarnation
    group_epoch: int
    members: Mapping[str, MemberT]
    before: dict[str, TargetT]

    @property
    @abstractmethod
    def assignor(self) -> str:
        """The name of the assignor, for log lines."""

    @abstractmethod
    def run(self) -> ComputedAssignment[MemberT, TargetT]:
        """Compute the assignment. A member whose target has not changed keeps the very value that it had."""

    @abstractmethod
    def target_record(self, member_id: str, target: TargetT) -> CoordinatorRecord:
        """The record of a member's target."""

    def keep_equal(self, targets: dict[str, TargetT]) -> None:
        """Put the targets of before in the place of those that are equal to them."""
        for member_id, target in targets.items():
            before = self.before.get(member_id)
            if before is not None and before == target:
                targets[member_id] = before

    def run_in_thread(self, in_batches: InBatches) -> ComputedAssignment[MemberT, TargetT]:
        """Compute the assignment, and encode the records of the members whose target has changed."""
        computed = self.run()
        changed = [member_id for member_id, each in computed.targets.items() if each is not self.before.get(member_id)]
        records = [
            EncodedRecord(self.target_record(member_id, computed.targets[member_id]).encode()) for member_id in changed
        ]
        return replace(computed, written=changed, batches=in_batches(records))

    def let_go(self) -> None:
        """Free the former target assignment one value after another. To be called in a thread: there are very many."""
        while self.before:
            self.before.popitem()

    def failed(self) -> ComputedAssignment[MemberT, TargetT]:
        """Return the result of a failed task: the group asks again."""
        return ComputedAssignment(self, {}, has_failed=True)


@dataclass(frozen=True, slots=True, eq=False)
class ComputedAssignment(Generic[MemberT, TargetT]):
    """The result of a task.

    targets: of every member that the group had. written: the members whose target has changed and whose records are in
    `batches`, which are encoded already.
    """

    task: AssignmentTask[MemberT, TargetT]
    targets: Mapping[str, TargetT]
    has_failed: bool = False
    written: Sequence[str] = ()
    batches: Sequence[bytes] = ()

    def target_of(self, member: MemberT) -> TargetT | None:
        """The target of the member; None where it came later."""
        return self.targets.get(member.member_id)


class AssignmentOffload(Protocol):
    """A worker that computes large assignments beside the event loop, and has them put into their groups afterwards."""

    @property
    def has_room(self) -> bool:
        """Tell whether another task may begin; where none may, a later heartbeat asks again."""
        ...

    def begin(self, task: AssignmentTask[Any, Any]) -> None: ...
