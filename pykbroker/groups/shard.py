"""The coordinator of the groups in one partition of `__consumer_offsets`; the door to this package.

`handle` and `expire` change the state at once and give the records that make the change last; `replay` builds the same
state from records that are read back. The records of a `Result` are already applied to the shard that made them: they
are replayed by the next shard, after a restart or a failed append. The driver holds answers back until the records are
committed, so that no client sees a state that could still be lost. A step whose records may be refused is made as a
trial, and taken back where they are.

The rules live in packages: `classic`, `consumer`, `share` and `streams` for the types of groups, `offsets` for what is
committed. The shard decides which of them a request, a record or a timeout is for. The model is Kafka's
`GroupCoordinatorShard`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from pykbroker.protocol.messages.streams_topology_descriptions import StreamsGroupTopologyDescriptionUpdateRequest
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest
from pykbroker.state_machine import CauseKind, CoordinatorContext, Result, Token

from .classic.classic_group import ClassicGroup
from .classic.classic_groups import ClassicGroups
from .classic.rebalance import refused_join
from .common.config import ConsumerGroupConfig, GroupConfig, ShareGroupConfig, StreamsGroupConfig
from .common.context import Call, Step
from .common.deadlines import Deadlines, Timeout
from .common.group import Group, GroupType
from .common.records import (
    NO_TIMESTAMP,
    SHARE_GROUP_NUMBERS,
    STREAMS_GROUP_NUMBERS,
    CoordinatorRecord,
    RecordKey,
    RecordValue,
)
from .common.requests import (
    AlterShareOffsets,
    BeginShareStateDeletion,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    EndShareInitialization,
    EndShareStateDeletion,
    FetchAllOffsets,
    FindSharePartitions,
    ListSomeGroups,
    StreamsHeartbeatAnswer,
)
from .common.topics import NO_TOPICS, MetadataHash, TopicsView
from .consumer.consumer_group import ConsumerGroup
from .consumer.consumer_groups import ConsumerGroups
from .consumer.heartbeats import refused_heartbeat
from .consumer.regular_expressions import TopicRegexes
from .deletions import GroupDeletions
from .listing import list_groups
from .modern.assignment_tasks import AssignmentOffload, ComputedAssignment
from .modern.preparations import Preparation
from .offsets.forgotten_topics import DeletedTopics
from .offsets.offsets import Offsets

if TYPE_CHECKING:
    from .share.share_groups import ShareGroups
    from .streams.streams_groups import StreamsGroups
    from .streams.topology_descriptions import TopologyDescriptions

MOST_TIMEOUTS = 100
MOST_SESSIONS = 1_000
"""Limits for one step, so that a thousand sessions that end together do not keep other clients waiting."""

AnsweredAtOnce: TypeAlias = (
    HeartbeatRequest
    | ConsumerGroupHeartbeatRequest
    | StreamsGroupHeartbeatRequest
    | OffsetCommitRequest
    | TxnOffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | FetchAllOffsets
    | ListSomeGroups
    | DescribeGroupsRequest
    | DescribeConsumerGroup
    | DescribeStreamsGroup
    | StreamsGroupTopologyDescriptionUpdateRequest
    | ShareGroupHeartbeatRequest
    | DescribeShareGroup
    | FindSharePartitions
    | EndShareInitialization
    | AlterShareOffsets
    | BeginShareStateDeletion
    | EndShareStateDeletion
)
GroupRequest: TypeAlias = JoinGroupRequest | SyncGroupRequest | LeaveGroupRequest | DeleteGroup | AnsweredAtOnce


class GroupShard:
    """The groups and offsets of one partition of `__consumer_offsets`.

    groups and offsets may be read from outside; they change through the methods of this class only.
    """

    def __init__(
        self,
        config: GroupConfig,
        rng: Random,
        topics: TopicsView = NO_TOPICS,
        consumer_config_of: Callable[[str], ConsumerGroupConfig] = lambda group_id: ConsumerGroupConfig(),
        regexes: TopicRegexes | None = None,
        assignments: AssignmentOffload | None = None,
        metadata_hash: MetadataHash | None = None,
        share_config_of: Callable[[str], ShareGroupConfig] = lambda group_id: ShareGroupConfig(),
        streams_config_of: Callable[[str], StreamsGroupConfig] = lambda group_id: StreamsGroupConfig(),
        descriptions: TopologyDescriptions | None = None,
    ) -> None:
        """Build a shard without groups.

        consumer_config_of, share_config_of, streams_config_of: the settings of a group of the type by its id. regexes:
        looks for the topics that regular expressions match; assignments: computes large assignments; where they are
        None, both is done at once. metadata_hash: given where shards share one. descriptions: keeps those of topologies
        of streams groups, of all shards; None where nothing does.
        """
        self.config = config
        metadata_hash = metadata_hash or MetadataHash(topics)
        self.groups: dict[str, Group] = {}
        self._topics = topics
        self._deadlines = Deadlines()
        self._assignments = assignments
        self._metadata_hash = metadata_hash = metadata_hash or MetadataHash(topics)
        self._share_config_of = share_config_of
        self._share: ShareGroups | None = None
        self._streams_config_of = streams_config_of
        self._streams: StreamsGroups | None = None
        self._descriptions = descriptions
        self._rng = rng
        self.classic = ClassicGroups(config, self.groups, self._deadlines, rng)
        self.consumer = ConsumerGroups(
            config,
            self.groups,
            self._deadlines,
            self.classic.rebalance,
            rng,
            topics,
            consumer_config_of,
            regexes,
            assignments,
            metadata_hash,
        )
        self.offsets = Offsets(config, self.groups, topics, self.classic.on_offset_commit)
        self._deletions = GroupDeletions(self.groups, self.offsets, self._delete_group)
        self._are_sessions_begun = False
        self._kept = KeptEntries(self.groups.get, lambda group: group.copy())
        self._untaken: list[Step] = []
        """Steps of a trial whose offsets are not replayed yet."""

    @property
    def share(self) -> ShareGroups:
        """The share groups, whose rules are loaded with the first of them."""
        if self._share is None:
            from .share.share_groups import ShareGroups

            self._share = ShareGroups(
                self.config,
                self.groups,
                self._deadlines,
                self._topics,
                self._share_config_of,
                self._assignments,
                self._metadata_hash,
            )
            if self._kept.is_keeping:
                self._share.begin_trial()
        return self._share

    @property
    def streams(self) -> StreamsGroups:
        """The streams groups, whose rules are loaded with the first of them."""
        if self._streams is None:
            from .streams.streams_groups import StreamsGroups

            self._streams = StreamsGroups(
                self.config,
                self.groups,
                self._deadlines,
                self._topics,
                self._streams_config_of,
                self._assignments,
                self._metadata_hash,
                self._make_room_for_streams,
                self._descriptions,
                self._rng,
            )
            if self._kept.is_keeping:
                self._streams.begin_trial()
        return self._streams

    # Requests

    def handle(
        self, request: GroupRequest, token: Token, now_ms: int, context: CoordinatorContext, timestamp_ms: int
    ) -> Result[CoordinatorRecord]:
        """Carry out one request.

        now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written.

        A join or a sync that has to wait, and a deletion of several steps, is answered by the result of a later step,
        under the same token.
        """
        step = Step(now_ms, timestamp_ms, may_describe=context.may_describe)
        if self._kept.is_keeping:
            self._keep_group_of(request)
        match request:
            case JoinGroupRequest():
                self._join(request, Call(token, context, step))
            case SyncGroupRequest():
                self._sync(request, Call(token, context, step))
            case LeaveGroupRequest():
                self._leave(request, Call(token, context, step))
            case DeleteGroup():
                self._deletions.begin(request, token, step)
            case _:
                step.answer(token, self._answer_at_once(request, context, step))
        return self._finish(step)

    def preparation(self, request: GroupRequest, api_version: int) -> Preparation | None:
        """Return what may be computed in a thread before the request is carried out, whose result goes into its
        context; None where that is little."""
        match request:
            case ConsumerGroupHeartbeatRequest():
                return self.consumer.preparation(request, api_version)
            case ShareGroupHeartbeatRequest():
                return self.share.preparation(request, api_version)
            case _:
                return None

    def _answer_at_once(self, request: AnsweredAtOnce, context: CoordinatorContext, step: Step) -> object:
        match request:
            case HeartbeatRequest():
                group = self.consumer.find_with_members(request.group_id)
                if group is not None:
                    return self.consumer.classic_members.heartbeat(group, request, step)
                return self.classic.heartbeat(request, step)
            case ConsumerGroupHeartbeatRequest():
                return self._consumer_heartbeat(request, context, step)
            case StreamsGroupHeartbeatRequest():
                return self._streams_heartbeat(request, context, step)
            case OffsetCommitRequest():
                return self.offsets.commit(request, context, step)
            case TxnOffsetCommitRequest():
                return self.offsets.commit_in_transaction(request, context, step)
            case OffsetFetchRequest():
                return self.offsets.fetch(request)
            case FetchAllOffsets():
                return self.offsets.fetch_all(request)
            case OffsetDeleteRequest():
                return self.offsets.delete(request, step)
            case ListSomeGroups():
                return list_groups(self.groups, request)
            case DescribeGroupsRequest():
                return self.classic.describe(request, context)
            case DescribeConsumerGroup():
                return self.consumer.describe(request.group_id)
            case DescribeStreamsGroup():
                return self.streams.describe(request.group_id, with_description=request.with_description)
            case StreamsGroupTopologyDescriptionUpdateRequest():
                return self.streams.update_description(request, step)
            case _:
                return self.share.answer(request, context, step)

    def _join(self, request: JoinGroupRequest, call: Call) -> None:
        if request.group_id in self._deletions:
            call.answer(refused_join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, request.member_id))
        elif self.is_share(request.group_id):
            call.answer(refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        elif (group := self.consumer.find_with_members(request.group_id)) is not None:
            self.consumer.classic_members.join(group, request, call)
        else:
            self.classic.join(request, call)

    def is_share(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        return group is not None and group.type is GroupType.SHARE

    def _sync(self, request: SyncGroupRequest, call: Call) -> None:
        group = self.consumer.find_with_members(request.group_id)
        if group is not None:
            call.answer(self.consumer.classic_members.sync(group, request, call.step))
        else:
            self.classic.sync(request, call)

    def _leave(self, request: LeaveGroupRequest, call: Call) -> None:
        group = self.consumer.find_with_members(request.group_id)
        if group is not None:
            call.answer(self.consumer.classic_members.leave(group, request, call.step))
        else:
            self.classic.leave(request, call)

    def _consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> ConsumerGroupHeartbeatResponse:
        if request.group_id in self._deletions:
            words = f"Group {request.group_id} is being deleted."
            return refused_heartbeat(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, words))
        return self.consumer.heartbeat(request, context, step)

    def _streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> StreamsHeartbeatAnswer:
        if request.group_id in self._deletions:
            words = f"Group {request.group_id} is being deleted."
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return StreamsHeartbeatAnswer(StreamsGroupHeartbeatResponse(error_code=code, error_message=words))
        return self.streams.heartbeat(request, context, step)

    def _make_room_for_streams(self, group: ClassicGroup, step: Step) -> None:
        """Take an empty classic group away, whose offsets stay, for a streams group of the same id."""
        cause = "it was an empty classic group, and is a streams group now"
        self.classic.close(group, cause, step)
        for tombstone in group.tombstones():
            step.append(tombstone)
        step.because(group.group_id, cause)

    def _delete_group(self, group: Group, cause: str, step: Step) -> None:
        """Delete an empty group. The tombstones of its offsets, if it had any, are in the step already."""
        if isinstance(group, ClassicGroup):
            self.classic.close(group, cause, step)
        elif group.type is GroupType.STREAMS:
            self.streams.forget(group.group_id)
        for tombstone in group.tombstones():
            step.append(tombstone)
        del self.groups[group.group_id]
        step.because(group.group_id, f"gone: {cause}", CauseKind.END)

    # Topics and assignments

    def on_topics_changed(self, names: Collection[str]) -> None:
        """Note topics that were created, have more partitions, or were deleted.

        No group is looked at: each learns it in its next heartbeat (`common.topic_changes`).
        """
        self.consumer.on_topics_changed(names)
        if self._share is not None:
            self._share.on_topics_changed(names)
        if self._streams is not None:
            self._streams.on_topics_changed(names)

    def begin_to_forget(self, deleted: DeletedTopics) -> bool:
        """Note that topics are deleted: offsets that were committed until now are theirs. Whether there is an offset
        that may have to go. The caller calls it before `forget_topics`."""
        has_share_groups = self._share is not None and self._share.states.begin_to_forget(deleted)
        return self.offsets.forgotten_topics.begin(deleted) or has_share_groups

    def forget_topics(self, deleted: DeletedTopics, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """Delete offsets of deleted topics, a part of them in each step; then share groups forget the topics."""
        step = Step(now_ms, timestamp_ms)
        is_finished = self.offsets.forgotten_topics.forget(deleted, step)
        if is_finished and self._share is not None:
            is_finished = self._share.states.forget_some(deleted, deleted.names.keys(), step, self._kept.keep)
        step.is_unfinished = not is_finished
        return self._finish(step)

    def put_assignment(
        self, computed: ComputedAssignment[Any, Any], now_ms: int, timestamp_ms: int
    ) -> Result[CoordinatorRecord]:
        """Take a target assignment that was computed beside the event loop."""
        step = Step(now_ms, timestamp_ms)
        self._kept.keep(computed.task.group_id)
        match computed.task.type:
            case GroupType.SHARE:
                self.share.put_assignment(computed, step)
            case GroupType.STREAMS:
                self.streams.put_assignment(computed, step)
            case _:
                self.consumer.put_assignment(computed, step)
        return self._finish(step)

    # Timers

    def due_ms(self, timeout: Timeout) -> int | None:
        """Return when a timeout is due, for who asks; None where it does not run."""
        return self._deadlines.due_ms(timeout)

    def next_deadline_ms(self) -> int | None:
        deletion_ms = None if self._deletions.next_group is None else 0
        deadlines = [deletion_ms, self._deadlines.next_ms(), self.offsets.expiration.next_ms]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """Do what is due by now, in the order in which it became due. Where very much is due, a part stays due."""
        step = Step(now_ms, timestamp_ms)
        group_id = self._deletions.next_group
        if group_id is not None and self._deletions.takes_turn(is_other_due=self._is_timeout_due(now_ms)):
            self._kept.keep(group_id)
            self._deletions.go_on(group_id, step)
            return self._finish(step)
        for _ in range(MOST_TIMEOUTS):
            timeout = self._deadlines.pop_due(now_ms)
            if timeout is None:
                break
            self._expire(timeout, step)
        for group in self.offsets.expiration.expire_if_due(step):
            self._delete_if_unused(group, step)
        return self._finish(step)

    def look_now(self) -> None:
        self.offsets.expiration.look_now()

    def _is_timeout_due(self, now_ms: int) -> bool:
        deadlines = [self._deadlines.next_ms(), self.offsets.expiration.next_ms]
        return any(deadline_ms is not None and deadline_ms <= now_ms for deadline_ms in deadlines)

    def _expire(self, timeout: Timeout, step: Step) -> None:
        self._kept.keep(timeout.group_id)
        group = self.groups.get(timeout.group_id)
        if isinstance(group, ConsumerGroup):
            self.consumer.expire(group, timeout, step)
        elif isinstance(group, ClassicGroup):
            self.classic.expire(group, timeout, step)
        elif group is not None and group.type is GroupType.STREAMS:
            self.streams.expire(group, timeout, step)
        elif group is not None:
            self.share.expire(group, timeout, step)

    def _delete_if_unused(self, group: Group, step: Step) -> None:
        """Delete the group if nobody uses it. A share group stays until an administrator deletes it."""
        if group.is_empty and not group.has_pending_members and group.type is not GroupType.SHARE:
            self._kept.keep(group.group_id)
            self._delete_group(group, "it has neither members nor offsets", step)

    def prepare_timers(self, now_ms: int) -> Iterator[None]:
        """Begin the sessions of all members, which have a full session timeout to send their first request.

        To be exhausted when every record is replayed, before the first request. Yields where other tasks may run.
        """
        for number, _ in enumerate(self._begin_sessions(Step(now_ms, NO_TIMESTAMP)), 1):
            if number % MOST_SESSIONS == 0:
                yield
        self._are_sessions_begun = True

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """Start what time brings about. To be called once, after `prepare_timers`; without that, sessions begin
        now."""
        step = Step(now_ms, timestamp_ms)
        self.offsets.expiration.start(now_ms)
        if not self._are_sessions_begun:
            for _ in self._begin_sessions(step):
                pass
        self.classic.rebalance_too_large(step)
        return step.result()

    def _begin_sessions(self, step: Step) -> Iterator[None]:
        """Begin the sessions of all members. Yields after each member and each group."""
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                yield from self.consumer.begin_sessions(group, step)
            elif isinstance(group, ClassicGroup):
                yield from self.classic.begin_sessions(group, step)
            elif group.type is GroupType.STREAMS:
                yield from self.streams.begin_sessions(group, step)
            else:
                yield from self.share.begin_sessions(group, step)
            yield

    # Replay

    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        """Apply one record that was read back. Raises BadRecord, and changes nothing then."""
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue() | None:
                self._replay_offset(None, key, value, NO_TIMESTAMP)
            case GroupMetadataKey(), GroupMetadataValue() | None:
                self.classic.replay(key, value)
            case _ if type(key).__schema__.api_key in SHARE_GROUP_NUMBERS:
                self.share.replay(key, value)
            case _ if type(key).__schema__.api_key in STREAMS_GROUP_NUMBERS:
                self.streams.replay(key, value)
            case _:
                self.consumer.replay(key, value)

    def replay_pending(self, producer_id: int, key: RecordKey, value: RecordValue | None) -> None:
        """Apply one record of a transaction that has not ended. Only offsets wait for its end. Raises BadRecord."""
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._replay_offset(producer_id, key, value, NO_TIMESTAMP)
        else:
            self.replay(key, value)

    def _replay_offset(
        self, producer_id: int | None, key: OffsetCommitKey, value: OffsetCommitValue | None, timestamp_ms: int
    ) -> None:
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, timestamp_ms, "created by committing an offset")
        self.offsets.replay(producer_id, key, value)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """End the producer's transaction, whose marker is in the log."""
        self.offsets.pending.end(producer_id, is_commit=is_commit)

    def tidy_up(self) -> bool:
        """Do a part of the work that large transactions leave, which no request can tell. Whether there is more."""
        return self.offsets.pending.move_some()

    def _finish(self, step: Step) -> Result[CoordinatorRecord]:
        if self._kept.is_keeping:
            self._untaken.append(step)
        else:
            self._take_offsets(step)
        return step.result()

    def _take_offsets(self, step: Step) -> None:
        """Replay the offsets of a step: they, and the groups that exist for their sake, change by records only."""
        for record in step.records:
            if isinstance(record.key, OffsetCommitKey):
                assert record.value is None or isinstance(record.value, OffsetCommitValue)
                producer_id = None if step.producer is None else step.producer[0]
                self._replay_offset(producer_id, record.key, record.value, step.timestamp_ms)

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: the next step may be taken back."""
        self._kept.begin()
        self._deadlines.begin_trial()
        self.consumer.begin_trial()
        self.offsets.begin_trial()
        self._deletions.begin_trial()
        if self._share is not None:
            self._share.begin_trial()
        if self._streams is not None:
            self._streams.begin_trial()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else all is as it was before it."""
        self._deadlines.end_trial(is_kept=is_kept)
        self.consumer.end_trial(is_kept=is_kept)
        self.offsets.end_trial(is_kept=is_kept)
        self._deletions.end_trial(is_kept=is_kept)
        if self._share is not None:
            self._share.end_trial(is_kept=is_kept)
        if self._streams is not None:
            self._streams.end_trial(is_kept=is_kept)
        steps, self._untaken = self._untaken, []
        kept = self._kept.end()
        for step in steps if is_kept else ():
            self._take_offsets(step)
        for group_id, group in kept.items() if not is_kept else ():
            if group is not None:
                self.groups[group_id] = group
            else:
                self.groups.pop(group_id, None)

    def _keep_group_of(self, request: GroupRequest) -> None:
        """Keep the group that the request may change, for `end_trial`."""
        match request:
            case JoinGroupRequest() | SyncGroupRequest() | LeaveGroupRequest() | ConsumerGroupHeartbeatRequest():
                self._kept.keep(request.group_id)
            case ShareGroupHeartbeatRequest() | EndShareInitialization() | AlterShareOffsets():
                self._kept.keep(request.group_id)
            case StreamsGroupHeartbeatRequest() | StreamsGroupTopologyDescriptionUpdateRequest():
                self._kept.keep(request.group_id)
            case DeleteGroup() | BeginShareStateDeletion() | EndShareStateDeletion():
                self._kept.keep(request.group_id)
            case HeartbeatRequest() if self.consumer.find_with_members(request.group_id) is not None:
                self._kept.keep(request.group_id)
            case _:
                pass  # offsets change by their records alone
