"""Share groups in whatever order things happen.

Epochs only grow, a coordinator that reads the log has the same group, and members that go on end with every partition
of their topics.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pykbroker.groups.common.requests import (
    AlterShareOffsets,
    BeginShareStateDeletion,
    DeleteGroup,
    EndShareStateDeletion,
)
from pykbroker.groups.offsets.forgotten_topics import DeletedTopics
from pykbroker.groups.share.share_group import ShareGroup

from .share_talk import GROUP, ShareTalk

MEMBERS = ("a", "b", "c", "d")
NAMES = ("events", "orders", "third")
SESSION_MS = 45_000


class ShareGroupsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.talk = ShareTalk(topics={}, share_initialize_retry_interval_ms=30_000)
        self.epochs = (1, 1)
        self.topics_made = 0

    @property
    def group(self) -> ShareGroup | None:
        group = self.talk.shard.groups.get(GROUP)
        assert group is None or isinstance(group, ShareGroup)
        return group

    @rule(member_id=st.sampled_from(MEMBERS), names=st.sets(st.sampled_from(NAMES), min_size=1))
    def join(self, member_id: str, names: set[str]) -> None:
        response = self.talk.join(member_id, *sorted(names))
        assert not response.error_code
        assert response.assignment is not None

    @rule(member_id=st.sampled_from(MEMBERS), behind=st.booleans())
    def beat(self, member_id: str, behind: bool) -> None:
        member = None if self.group is None else self.group.members.get(member_id)
        if member is None:
            assert self.talk.beat(member_id, 1).error_code
            return
        epoch = member.previous_member_epoch if behind and member.previous_member_epoch > 0 else member.member_epoch
        assert not self.talk.beat(member_id, epoch).error_code

    @rule(member_id=st.sampled_from(MEMBERS))
    def leave(self, member_id: str) -> None:
        is_member = self.group is not None and member_id in self.group.members
        assert bool(self.talk.beat(member_id, -1).error_code) is not is_member

    @rule(ms=st.sampled_from((500, 10_000, SESSION_MS)))
    def wait(self, ms: int) -> None:
        self.talk.advance(ms)

    @rule(is_done=st.booleans())
    def hear_of_initializations(self, is_done: bool) -> None:
        self.talk.initialize(is_done=is_done)

    @rule()
    def lose_initializations(self) -> None:
        self.talk.effects.clear()

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 4))
    def make_or_enlarge_topic(self, name: str, count: int) -> None:
        known = self.talk.topics.get(name)
        self.topics_made += 1
        topic = (self.topics_made.to_bytes(16, "big"), count) if known is None else (known[0], known[1] + count)
        self.talk.change_topics(**{**self.talk.topics, name: topic})

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name: str) -> None:
        if name not in self.talk.topics:
            return
        topics = dict(self.talk.topics)
        deleted = DeletedTopics({topics.pop(name)[0]: name})
        self.talk.change_topics(**topics)
        if self.talk.shard.begin_to_forget(deleted):
            self.talk.take(self.talk.shard.forget_topics(deleted, self.talk.now_ms, self.talk.now_ms))

    @rule(name=st.sampled_from(NAMES))
    def alter(self, name: str) -> None:
        altered = self.talk.ask(AlterShareOffsets(group_id=GROUP, topics={name: {0: 5}}))
        assert bool(altered.error_code) is (self.group is not None and not self.group.is_empty)

    @rule(name=st.sampled_from(NAMES), ends=st.booleans())
    def delete_offsets(self, name: str, ends: bool) -> None:
        begun = self.talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=[name]))
        if ends:
            self.talk.ask(EndShareStateDeletion(group_id=GROUP, topic_ids=list(begun.topics)))

    @rule()
    def delete_group(self) -> None:
        is_deletable = self.group is not None and self.group.is_empty
        self.talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=None))
        assert (not self.talk.ask(DeleteGroup(group_id=GROUP))) is is_deletable
        if is_deletable:
            self.epochs = (1, 1)
            self.talk.effects.clear()

    @rule()
    def coordinator_moves(self) -> None:
        before = self.group
        self.talk.load()
        after = self.group
        if before is None or after is None:
            assert before is after
            return
        assert (after.members, after.target_assignment) == (before.members, before.target_assignment)
        assert after.state_partitions == before.state_partitions
        assert (after.group_epoch, after.assignment_epoch) == (before.group_epoch, before.assignment_epoch)
        assert after.subscribed_topic_names == before.subscribed_topic_names

    @precondition(lambda self: self.group is not None and not self.group.is_empty)
    @rule()
    def go_on(self) -> None:
        """Members that go on have everything in the end; nobody else answers meanwhile."""
        group = self.group
        assert group is not None
        for _ in range(9):
            for member_id in sorted(group.members):
                assert not self.talk.beat(member_id, group.members[member_id].member_epoch).error_code
                self.talk.initialize()
            self.talk.now_ms += 5_500
        had: dict[bytes, set[int]] = {}
        for member in group.members.values():
            for topic_id, partitions in member.assigned.items():
                had.setdefault(topic_id, set()).update(partitions)
        wanted = {
            self.talk.topics[name][0]: set(range(self.talk.topics[name][1]))
            for name in group.topic_names
            if name in self.talk.topics
        }
        assert {topic_id: partitions for topic_id, partitions in had.items() if partitions} == wanted
        epoch = group.group_epoch
        for member_id in sorted(group.members):
            self.talk.beat(member_id, group.members[member_id].member_epoch)
        assert group.group_epoch == epoch

    @invariant()
    def epochs_grow(self) -> None:
        group = self.group
        if group is None:
            return
        assert (group.group_epoch, group.assignment_epoch) >= self.epochs
        assert group.assignment_epoch >= self.epochs[1]
        self.epochs = group.group_epoch, group.assignment_epoch
        assert group.assignment_epoch <= group.group_epoch
        assert all(0 < member.member_epoch <= group.assignment_epoch for member in group.members.values())

    @invariant()
    def counts_are_those_of_the_members(self) -> None:
        if (group := self.group) is not None:
            names = Counter(name for member in group.members.values() for name in member.subscribed_topic_names)
            assert group.subscribed_topic_names == names
            assert group.target_assignment.keys() <= group.members.keys()

    @invariant()
    def nobody_has_what_has_no_state(self) -> None:
        if (group := self.group) is None:
            return
        existing = {topic_id for topic_id, _ in self.talk.topics.values()}
        for member in group.members.values():
            for topic_id, partitions in member.assigned.items():
                known = group.state_partitions.initialized.get(topic_id)
                assert topic_id not in existing or (known is not None and partitions <= known.partitions)


TestShareGroups = ShareGroupsMachine.TestCase
TestShareGroups.settings = settings(stateful_step_count=40, deadline=None)
