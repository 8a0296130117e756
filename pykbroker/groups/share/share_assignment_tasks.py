"""A target assignment of a share group, as a task that may run in a thread: all that the assignor is told, as values.

The group goes on meanwhile, as with `consumer.assignment_tasks`: the assignment is good for the members that are there
afterwards, and a member that has come since waits for the next one, which the group's later epoch asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pykbroker.java_hash import place_in_a_table

from ..assignors.java_tables import JavaTable, buckets_of_copy, hash_of_text
from ..assignors.model import Assignment
from ..assignors.simple_assignor import NAME, SharingMember, assign
from ..common.records import EncodedRecord
from .share_group import NO_ASSIGNMENT, Incarnation
from .share_group_member import ShareGroupMember
from .share_records import target_record


@dataclass(frozen=True, slots=True, eq=False)
class ShareAssignmentTask:
    """A share group and its topics as they were when the task was made; no later change reaches them.

    incarnation: of the group; another group of the same id has another one. before: by member, the last target
    assignment. topic_ids: by name, of the topics that a member is subscribed to. assignable: by topic id, the
    partitions that are initialized.
    """

    group_id: str
    incarnation: Incarnation
    group_epoch: int
    members: Mapping[str, ShareGroupMember]
    before: dict[str, Assignment]
    topic_ids: Mapping[str, bytes]
    assignable: Mapping[bytes, frozenset[int]]
    is_homogeneous: bool

    @property
    def assignor(self) -> str:
        return NAME

    def run(self) -> ComputedShareAssignment:
        members: dict[str, SharingMember] = {}
        known: dict[tuple[str, ...], tuple[bytes, ...]] = {}
        for member_id in sorted(self.members, key=place_in_a_table):
            names = self.members[member_id].subscribed_topic_names
            topic_ids = known.get(names)
            if topic_ids is None:
                topic_ids = known[names] = self._in_order(names)
            members[member_id] = SharingMember(topic_ids, self.before.get(member_id, NO_ASSIGNMENT))
        return ComputedShareAssignment(self, assign(members, self.assignable, self.is_homogeneous))

    def _in_order(self, names: Sequence[str]) -> tuple[bytes, ...]:
        """The ids of the topics that exist, in the order of Kafka's table of names."""
        table = JavaTable(hash_of_text, names, buckets_of_copy(len(names)))
        return tuple(self.topic_ids[name] for name in table if name in self.topic_ids)

    def run_in_thread(
        self, in_batches: Callable[[Sequence[EncodedRecord]], Sequence[bytes]]
    ) -> ComputedShareAssignment:
        """Compute the assignment, and encode the records of the members whose target has changed."""
        computed = self.run()
        changed = [member_id for member_id, each in computed.targets.items() if each != self.before.get(member_id)]
        records = [
            EncodedRecord(target_record(self.group_id, member_id, computed.targets[member_id]).encode())
            for member_id in changed
        ]
        return replace(computed, written=changed, batches=in_batches(records))

    def let_go(self) -> None:
        """Free the former target assignment one value after another. To be called in a thread: there are very many."""
        while self.before:
            self.before.popitem()

    def failed(self) -> ComputedShareAssignment:
        """Return the result of a failed task: the group asks again."""
        return ComputedShareAssignment(self, {}, has_failed=True)


@dataclass(frozen=True, slots=True, eq=False)
class ComputedShareAssignment:
    """The result of a task.

    targets: of every member that the group had. written: the members whose target has changed and whose records are in
    `batches`, which are encoded already.
    """

    task: ShareAssignmentTask
    targets: Mapping[str, Assignment]
    has_failed: bool = False
    written: Sequence[str] = ()
    batches: Sequence[bytes] = ()


class ShareAssignmentOffload(Protocol):
    """A worker that computes large assignments beside the event loop, and has them put into their groups afterwards."""

    @property
    def has_room(self) -> bool:
        """Tell whether another task may begin; where none may, a later heartbeat asks again."""
        ...

    def begin(self, task: ShareAssignmentTask) -> None: ...
