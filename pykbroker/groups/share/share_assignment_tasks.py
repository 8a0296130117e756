"""A target assignment of a share group, as a task that may run in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pykbroker.java_hash import place_in_a_table

from ..assignors.java_tables import JavaTable, buckets_of_copy, hash_of_text
from ..assignors.model import Assignment
from ..assignors.simple_assignor import NAME, SharingMember, assign
from ..common.group import GroupType
from ..common.records import CoordinatorRecord
from ..modern.assignment_tasks import AssignmentTask, ComputedAssignment
from .share_group import NO_ASSIGNMENT
from .share_group_member import ShareGroupMember
from .share_records import RECORDS


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShareAssignmentTask(AssignmentTask[ShareGroupMember, Assignment]):
    """A share group and its topics as they were when the task was made.

    topic_ids: by name, of the topics that a member is subscribed to. assignable: by topic id, the partitions that are
    initialized.
    """

    type: ClassVar[GroupType] = GroupType.SHARE

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
        targets = assign(members, self.assignable, self.is_homogeneous)
        self.keep_equal(targets)
        return ComputedShareAssignment(self, targets, assigned=together(targets.values(), self.assignable))

    def _in_order(self, names: Sequence[str]) -> tuple[bytes, ...]:
        """The ids of the topics that exist, in the order of Kafka's table of names."""
        table = JavaTable(hash_of_text, names, buckets_of_copy(len(names)))
        return tuple(self.topic_ids[name] for name in table if name in self.topic_ids)

    def target_record(self, member_id: str, target: Assignment) -> CoordinatorRecord:
        return RECORDS.target(self.group_id, member_id, target)


@dataclass(frozen=True, slots=True, eq=False)
class ComputedShareAssignment(ComputedAssignment[ShareGroupMember, Assignment]):
    """The result of a task. assigned: by topic id, what all members have together."""

    assigned: Mapping[bytes, frozenset[int]] = field(default_factory=dict)


def together(targets: Iterable[Assignment], assignable: Mapping[bytes, frozenset[int]]) -> dict[bytes, frozenset[int]]:
    """The partitions of the targets by topic id. A set that is equal to the one in `assignable` is that very one, so
    that the two are quickly compared."""
    united: dict[bytes, frozenset[int]] = {}
    for target in targets:
        for topic_id, partitions in target.items():
            known = united.get(topic_id)
            united[topic_id] = partitions if known is None else known | partitions
    for topic_id, partitions in united.items():
        whole = assignable.get(topic_id)
        if whole is not None and partitions == whole:
            united[topic_id] = whole
    return united
