"""The coordinator of the groups in one partition of `__consumer_offsets`; the door to this package.

`handle` and `expire` change the state at once and give the records that make the change last; `replay` builds the same
state from records read back. The records of a `Result` are already applied to the shard that made them: they are
replayed by the next one, after a restart or a failed append. The driver holds answers back until the records are
committed, so nobody sees a state that could still be lost. A step whose records may be refused is made as a trial, and
taken back where they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import TypeAlias

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest
from pykbroker.state_machine import Result, Token

from .administration import Administration
from .classic.classic_group import STABLE, ClassicGroup
from .classic.heartbeats import Heartbeats
from .classic.joins import Joins
from .classic.leaves import Leaves
from .classic.rebalance import Rebalance, refused_join
from .classic.syncs import Syncs
from .common.config import ConsumerGroupConfig, GroupConfig
from .common.context import GroupRequestContext, Step
from .common.deadlines import (
    Deadlines,
    InitialDelay,
    MemberRejoinTimeout,
    MemberSyncTimeout,
    RebalanceTimeout,
    RevocationTimeout,
    SessionTimeout,
    SyncTimeout,
    Timeout,
)
from .common.records import NO_TIMESTAMP, CoordinatorRecord, RecordKey, RecordValue
from .common.refusal import Refusal
from .common.topics import NO_TOPICS, MetadataHash, TopicsView
from .consumer.assignment_tasks import AssignmentOffload, ComputedAssignment
from .consumer.classic_members import ClassicMembers
from .consumer.consumer_descriptions import ConsumerDescriptions
from .consumer.consumer_group import ConsumerGroup
from .consumer.consumer_heartbeats import ConsumerHeartbeats, refused_heartbeat
from .consumer.consumer_member import UNREVOKED_PARTITIONS
from .consumer.consumer_membership import ConsumerMembership
from .consumer.consumer_records import ConsumerRecords
from .consumer.group_types import Group, find_classic, find_consumer
from .consumer.member_progress import MemberProgress
from .consumer.migration import Migration
from .consumer.regular_expressions import RegularExpressions, TopicRegexes
from .consumer.target_assignment import TargetAssignments
from .consumer.topic_changes import TopicChanges
from .deletions import GroupDeletions
from .offsets.deleted_topics import DeletedTopics, ForgottenTopics
from .offsets.offset_cleanup import OffsetCleanup
from .offsets.offset_commits import OffsetCommits
from .offsets.offset_requests import OffsetRequests
from .offsets.offsets import CommittedOffsets
from .offsets.pending_offsets import PendingOffsets
from .requests import DeleteGroup, DescribeConsumerGroup, FetchAllOffsets, ListSomeGroups

MOST_TIMEOUTS = 100
MOST_OFFSETS = 2_000
MOST_EXPIRED = 500
MOST_SESSIONS = 1_000
"""What is done in one step, so that a thousand sessions that end together do not keep others waiting."""

MOST_CHANGED_TOPICS = 200
"""Topics that a shard is told by name: there are many shards."""

GroupRequest: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | ConsumerGroupHeartbeatRequest
    | DescribeConsumerGroup
    | LeaveGroupRequest
    | OffsetCommitRequest
    | TxnOffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | FetchAllOffsets
    | ListSomeGroups
    | DescribeGroupsRequest
    | DeleteGroup
)


class GroupShard:
    """groups and offsets may be read from outside; they change through `handle`, `expire` and `replay` only."""

    def __init__(
        self,
        config: GroupConfig,
        rng: Random,
        topics: TopicsView = NO_TOPICS,
        consumer_config_of: Callable[[str], ConsumerGroupConfig] = lambda group_id: ConsumerGroupConfig(),
        regexes: TopicRegexes | None = None,
        assignments: AssignmentOffload | None = None,
        metadata_hash: MetadataHash | None = None,
    ) -> None:
        """consumer_config_of: settings of a consumer group by its id, where groups have their own. regexes: who looks
        for topics that match; assignments: who computes large assignments; None where that is to be done at once.
        metadata_hash: where shards share one."""
        self.config = config
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self.pending_offsets = PendingOffsets(self.offsets)
        self._consumer_records = ConsumerRecords(self.groups)
        self._deadlines = Deadlines()
        self._rebalance = Rebalance(config, self._deadlines)
        self._syncs = Syncs(self.groups, self._rebalance)
        self._heartbeats = Heartbeats(self.groups, self._rebalance)
        self._leaves = Leaves(self.groups, self._rebalance)
        self._offset_commits = OffsetCommits(config, self.groups, self._rebalance, topics)
        self._offset_requests = OffsetRequests(self.groups, self.offsets, self.pending_offsets)
        self._cleanup = OffsetCleanup(config, self.offsets, self.pending_offsets)
        self._forgotten_topics = ForgottenTopics(self.offsets, self.pending_offsets)
        self._administration = Administration(self.groups, self._rebalance, self._consumer_records)
        self._deletions = GroupDeletions(self.groups, self._cleanup, self._administration)
        self._metadata_hash = metadata_hash or MetadataHash(topics)
        self._topic_changes = TopicChanges()
        self._consumer_config_of = consumer_config_of
        self._migration = Migration(
            config,
            self.groups,
            self._consumer_records,
            self._deadlines,
            self._rebalance,
            topics,
            self._metadata_hash,
        )
        self._membership = ConsumerMembership(
            self._consumer_records, self._deadlines, self._metadata_hash, self._migration
        )
        self._targets = TargetAssignments(config, self._consumer_records, topics, assignments)
        self._regular_expressions = RegularExpressions(
            config.consumer_regex_refresh_interval_ms, topics, self._consumer_records, regexes
        )
        progress = MemberProgress(
            self._consumer_records,
            self._membership,
            self._targets,
            topics,
            self._metadata_hash,
            self._topic_changes,
            self._regular_expressions,
            self._consumer_config_of,
        )
        self._classic_members = ClassicMembers(config, self._membership, progress, self._migration, topics, rng)
        self._joins = Joins(
            config,
            self.groups,
            self._deadlines,
            self._rebalance,
            self._consumer_records,
            self._classic_members.join,
            rng,
        )
        self._consumer_heartbeats = ConsumerHeartbeats(
            config,
            self.groups,
            self._membership,
            progress,
            self._migration,
            self._regular_expressions,
            self._consumer_config_of,
            rng,
        )
        self._consumer_descriptions = ConsumerDescriptions(self.groups, self._targets, topics)
        self._was_turn_of_deletions = False
        self._are_sessions_begun = False
        self._too_large: list[str] = []
        self._next_cleanup_ms: int | None = None
        self._to_clean_up: deque[str] = deque()
        self._kept = KeptEntries(self.groups.get, lambda group: group.copy())
        self._untaken: list[Step] = []
        """Steps of a trial whose offsets are not in the table yet."""
        self._kept_next_cleanup_ms: int | None = None

    def handle(
        self, request: GroupRequest, token: Token, now_ms: int, context: GroupRequestContext, timestamp_ms: int
    ) -> Result[CoordinatorRecord]:
        """now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written. A join or a sync that has
        to wait is answered by the result of a later step, under the same token."""
        step = Step(now_ms, timestamp_ms)
        if self._kept.is_keeping:
            self._keep_groups_of(request)
        match request:
            case JoinGroupRequest() if request.group_id in self._deletions:
                step.answer(token, refused_join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, request.member_id))
            case ConsumerGroupHeartbeatRequest() if request.group_id in self._deletions:
                words = f"Group {request.group_id} is being deleted."
                step.answer(token, refused_heartbeat(Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, words)))
            case JoinGroupRequest():
                self._joins.join(request, token, context, step)
            case SyncGroupRequest():
                if (mixed := self._group_with_consumers(request.group_id)) is not None:
                    step.answer(token, self._classic_members.sync(mixed, request, context, step))
                else:
                    self._syncs.sync(request, token, context, step)
            case ConsumerGroupHeartbeatRequest():
                self._consumer_heartbeats.heartbeat(request, token, context, step)
            case DescribeConsumerGroup():
                self._consumer_descriptions.describe(request, token, step)
            case HeartbeatRequest():
                if (mixed := self._group_with_consumers(request.group_id)) is not None:
                    step.answer(token, self._classic_members.heartbeat(mixed, request, step))
                else:
                    self._heartbeats.heartbeat(request, token, step)
            case LeaveGroupRequest():
                if (mixed := self._group_with_consumers(request.group_id)) is not None:
                    step.answer(token, self._classic_members.leave(mixed, request, step))
                else:
                    self._leaves.leave(request, token, step)
            case OffsetCommitRequest():
                self._offset_commits.commit(request, token, context, step)
            case TxnOffsetCommitRequest():
                self._offset_commits.commit_in_transaction(request, token, step)
            case OffsetFetchRequest():
                self._offset_requests.fetch(request, token, step)
            case OffsetDeleteRequest():
                self._offset_requests.delete(request, token, step)
            case FetchAllOffsets():
                self._offset_requests.fetch_all(request, token, step)
            case ListSomeGroups():
                self._administration.list(request, token, step)
            case DescribeGroupsRequest():
                self._administration.describe(request, token, context, step)
            case DeleteGroup():
                self._deletions.begin(request, token, step)
        return self._finish(step)

    def _keep_groups_of(self, request: GroupRequest) -> None:
        """Those that the request may change; the others are looked at only."""
        match request:
            case JoinGroupRequest() | SyncGroupRequest() | LeaveGroupRequest() | ConsumerGroupHeartbeatRequest():
                self._kept.keep(request.group_id)
            case DeleteGroup():
                self._kept.keep(request.group_id)
            case HeartbeatRequest() if self._group_with_consumers(request.group_id) is not None:
                self._kept.keep(request.group_id)
            case _:
                pass  # offsets change by their records alone

    def _group_with_consumers(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of that id, if it has members; theirs may be requests of the classic protocol."""
        group = find_consumer(self.groups, group_id)
        return None if group is None or group.is_empty else group

    def next_deadline_ms(self) -> int | None:
        going_on = None if self._deletions.next_group is None else 0
        deadlines = [going_on, self._deadlines.next_ms(), self._next_cleanup_ms]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """What is due by now, in the order in which it became due. Of very much the rest is still due afterwards."""
        step = Step(now_ms, timestamp_ms)
        group_id = self._deletions.next_group
        if group_id is not None and self._is_turn_of_deletions(now_ms):
            self._kept.keep(group_id)
            self._deletions.go_on(group_id, step)
            return self._finish(step)
        for _ in range(MOST_TIMEOUTS):
            timeout = self._deadlines.pop_due(now_ms)
            if timeout is None:
                break
            self._expire(timeout, step)
        if self._next_cleanup_ms is not None and self._next_cleanup_ms <= now_ms:
            self._clean_up(step)
        return self._finish(step)

    def _is_turn_of_deletions(self, now_ms: int) -> bool:
        """Every other time, where something else is due: sessions end in time however large a group is."""
        deadlines = [self._deadlines.next_ms(), self._next_cleanup_ms]
        is_other_due = any(deadline_ms is not None and deadline_ms <= now_ms for deadline_ms in deadlines)
        self._was_turn_of_deletions = not (is_other_due and self._was_turn_of_deletions)
        return self._was_turn_of_deletions

    def _expire(self, timeout: Timeout, step: Step) -> None:
        self._kept.keep(timeout.group_id)
        group = self.groups.get(timeout.group_id)
        if isinstance(group, ConsumerGroup):
            self._expire_in_consumer_group(group, timeout, step)
        elif group is not None:
            self._expire_in_classic_group(group, timeout, step)

    def _expire_in_consumer_group(self, group: ConsumerGroup, timeout: Timeout, step: Step) -> None:
        """Timeouts of what the group was before mean nothing any more."""
        match timeout:
            case SessionTimeout():
                self._membership.expire_session(group, timeout.member_id, step)
            case RevocationTimeout():
                self._membership.expire_revocation(group, timeout, step)
            case MemberRejoinTimeout():
                self._membership.expire_classic_member(group, timeout.member_id, "JoinGroup", step)
            case MemberSyncTimeout():
                self._membership.expire_classic_member(group, timeout.member_id, "SyncGroup", step)
            case InitialDelay() | RebalanceTimeout() | SyncTimeout():
                pass

    def _expire_in_classic_group(self, group: ClassicGroup, timeout: Timeout, step: Step) -> None:
        match timeout:
            case SessionTimeout():
                self._rebalance.expire_session(group, timeout.member_id, step)
            case InitialDelay():
                self._rebalance.expire_initial_delay(group, timeout, step)
            case RebalanceTimeout():
                self._rebalance.expire_join(group, step)
            case SyncTimeout():
                self._rebalance.expire_sync(group, timeout, step)
            case RevocationTimeout() | MemberRejoinTimeout() | MemberSyncTimeout():
                pass

    def _clean_up(self, step: Step) -> None:
        """Some groups at a time, until all of them were looked at."""
        if not self._to_clean_up:
            self._to_clean_up.extend(self.groups)
        offsets_left = MOST_OFFSETS
        while self._to_clean_up and offsets_left > 0 and len(step.records) < MOST_EXPIRED:
            group = self.groups.get(self._to_clean_up.popleft())
            if group is not None:
                offsets_left -= 1 + self._expire_offsets(group, step)
        if not self._to_clean_up:
            self._next_cleanup_ms = step.now_ms + self.config.offsets_retention_check_interval_ms

    def _expire_offsets(self, group: Group, step: Step) -> int:
        """How many were looked at. Of a group with very many there are some left, which are looked at in the next
        step; when they are few the group may go with them."""
        count = self.offsets.count(group.group_id)
        if count > MOST_EXPIRED:
            looked_at = self._cleanup.expire_some(group, MOST_EXPIRED, step)
            if looked_at:
                self._to_clean_up.appendleft(group.group_id)
            return looked_at
        self._expire_all_offsets(group, step)
        return count

    def _expire_all_offsets(self, group: Group, step: Step) -> None:
        is_bare = self._cleanup.expire(group, step)
        is_awaited = isinstance(group, ClassicGroup) and group.pending_join_members
        if is_bare and group.is_empty and not is_awaited:
            self._kept.keep(group.group_id)
            self._administration.forget(group, "it has neither members nor offsets", step)

    def begin_to_forget(self, deleted: DeletedTopics) -> bool:
        """To be called when topics are deleted, in front of `forget_topics`: what was committed until now is of them.
        Whether there is anything to forget."""
        return self._forgotten_topics.begin(deleted)

    def forget_topics(self, deleted: DeletedTopics, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """What was committed for topics that were deleted goes, a part of it in each step."""
        step = Step(now_ms, timestamp_ms)
        step.is_unfinished = not self._forgotten_topics.forget(deleted, step)
        return self._finish(step)

    def on_topics_changed(self, names: Collection[str]) -> None:
        """They are new, have more partitions, or are gone: groups look at them again in the next heartbeat. Where they
        are very many nobody asks which they are."""
        if len(names) > MOST_CHANGED_TOPICS:
            self._metadata_hash.forget_all()
            self._regular_expressions.on_all_topics_changed()
            self._topic_changes.note_all()
            return
        for name in names:
            self._metadata_hash.forget(name)
        self._regular_expressions.on_topics_changed(names)
        self._topic_changes.note(names)

    def _finish(self, step: Step) -> Result[CoordinatorRecord]:
        if self._kept.is_keeping:
            self._untaken.append(step)
        else:
            self._take_offsets(step)
        return step.result()

    def _take_offsets(self, step: Step) -> None:
        """Offsets, and the groups that exist for their sake, change by their records alone."""
        for record in step.records:
            if isinstance(record.key, OffsetCommitKey):
                assert record.value is None or isinstance(record.value, OffsetCommitValue)
                producer_id = None if step.producer is None else step.producer[0]
                self._replay_offset(producer_id, record.key, record.value, step.timestamp_ms)

    def put_assignment(self, computed: ComputedAssignment, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """A target assignment is there that was computed beside the event loop; members hear of it one by one."""
        step = Step(now_ms, timestamp_ms)
        group_id = computed.task.group_id
        self._kept.keep(group_id)
        self._targets.put_awaited(find_consumer(self.groups, group_id), computed, step)
        return self._finish(step)

    # Trials

    def begin_trial(self) -> None:
        """The next step may be taken back."""
        self._kept.begin()
        self._deadlines.begin_trial()
        self._targets.begin_trial()
        self._deletions.begin_trial()
        self._forgotten_topics.begin_trial()
        self._kept_next_cleanup_ms = self._next_cleanup_ms

    def end_trial(self, *, is_kept: bool) -> None:
        """is_kept: whether the step did happen; else all is as it was before it."""
        self._deadlines.end_trial(is_kept=is_kept)
        self._targets.end_trial(is_kept=is_kept)
        self._deletions.end_trial(is_kept=is_kept)
        self._forgotten_topics.end_trial(is_kept=is_kept)
        steps, self._untaken = self._untaken, []
        kept = self._kept.end()
        if is_kept:
            for step in steps:
                self._take_offsets(step)
            return
        self._next_cleanup_ms = self._kept_next_cleanup_ms
        self._to_clean_up.clear()
        self._cleanup.begin_anew()
        for group_id, group in kept.items():
            if group is not None:
                self.groups[group_id] = group
            else:
                self.groups.pop(group_id, None)

    # Loading

    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        """Applies one record that was read back. Raises BadRecord, and is then as it was before."""
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue() | None:
                self._replay_offset(None, key, value, -1)
            case GroupMetadataKey(), GroupMetadataValue():
                self.groups[key.group] = ClassicGroup.from_record(key.group, value)
            case GroupMetadataKey(), None:
                if find_classic(self.groups, key.group) is not None:
                    del self.groups[key.group]
            case _:
                self._consumer_records.replay(key, value)

    def replay_pending(self, producer_id: int, key: RecordKey, value: RecordValue | None) -> None:
        """Applies one record of a transaction that has not ended. Only offsets wait for its end. Raises BadRecord."""
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._replay_offset(producer_id, key, value, -1)
        else:
            self.replay(key, value)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """The marker of the producer's transaction is in the log."""
        self.pending_offsets.end(producer_id, is_commit=is_commit)

    def tidy_up(self) -> bool:
        """Does a part of what large transactions leave to be done, which changes nothing for anybody who asks. Whether
        there is more."""
        return self.pending_offsets.move_some()

    def _replay_offset(
        self, producer_id: int | None, key: OffsetCommitKey, value: OffsetCommitValue | None, timestamp_ms: int
    ) -> None:
        if value is None:
            self.offsets.replay(key, None)
            self.pending_offsets.drop(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, timestamp_ms, "created by committing an offset")
        if producer_id is None:
            self.offsets.replay(key, value)
        else:
            self.pending_offsets.add(producer_id, key, value)

    def prepare_timers(self, now_ms: int) -> Iterator[None]:
        """To be gone through when every record is replayed, before anybody asks for anything: members have a full
        session timeout to show themselves. Yields where others may have their turn."""
        for number, _ in enumerate(self._begin_sessions(Step(now_ms, NO_TIMESTAMP)), 1):
            if number % MOST_SESSIONS == 0:
                yield
        self._are_sessions_begun = True

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """To be called once behind that; where nobody did, sessions begin now."""
        step = Step(now_ms, timestamp_ms)
        self._next_cleanup_ms = now_ms + self.config.offsets_retention_check_interval_ms
        if not self._are_sessions_begun:
            for _ in self._begin_sessions(step):
                pass
        for group_id in self._too_large:
            group = find_classic(self.groups, group_id)
            if group is not None and self._is_too_large(group):
                self._rebalance.start(group, f"more than group.max.size ({self.config.max_size}) members", step)
        return step.result()

    def _is_too_large(self, group: ClassicGroup) -> bool:
        return group.state is STABLE and len(group.members) > self.config.max_size

    def _begin_sessions(self, step: Step) -> Iterator[None]:
        """Yields behind each group and each member."""
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                yield from self._begin_sessions_in(group, step)
                continue
            for member in group.members.values():
                self._rebalance.keep_session(group, member, step)
                yield
            if self._is_too_large(group):
                self._too_large.append(group.group_id)
            yield

    def _begin_sessions_in(self, group: ConsumerGroup, step: Step) -> Iterator[None]:
        session_timeout_ms = self._consumer_config_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            timeout_ms = session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
            self._membership.keep_session(group, member.member_id, timeout_ms, step)
            if member.state is UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
                self._membership.await_revocation(group, member, step)
            yield
