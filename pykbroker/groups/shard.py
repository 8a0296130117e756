"""The coordinator of the groups in one partition of `__consumer_offsets`; the door to this package.

`handle` and `expire` change the state at once and give the records that make the change last; `replay` builds the same
state from records read back. The records of a `Result` are already applied to the shard that made them: they are
replayed by the next one, after a restart or a failed append. The driver holds answers back until the records are
committed, so nobody sees a state that could still be lost.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import TypeAlias

from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from pykbroker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.state_machine import Result, Token

from .administration import Administration
from .classic_group import EMPTY, STABLE, ClassicGroup
from .config import GroupConfig
from .context import GroupRequestContext, Step
from .deadlines import Deadlines, InitialDelay, RebalanceTimeout, SessionTimeout, SyncTimeout, Timeout
from .heartbeats import Heartbeats
from .joins import Joins
from .leaves import Leaves
from .offset_cleanup import OffsetCleanup
from .offset_requests import OffsetRequests
from .offsets import CommittedOffsets
from .rebalance import Rebalance
from .records import CoordinatorRecord, RecordKey, RecordValue
from .syncs import Syncs

GroupRequest: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | ListGroupsRequest
    | DescribeGroupsRequest
    | DeleteGroupsRequest
)


class GroupShard:
    """groups and offsets may be read from outside; they change through `handle`, `expire` and `replay` only."""

    def __init__(self, config: GroupConfig, rng: Random) -> None:
        self.config = config
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = CommittedOffsets()
        self._deadlines = Deadlines()
        self._rebalance = Rebalance(config, self._deadlines)
        self._joins = Joins(config, self.groups, self._deadlines, self._rebalance, rng)
        self._syncs = Syncs(self.groups, self._rebalance)
        self._heartbeats = Heartbeats(self.groups, self._rebalance)
        self._leaves = Leaves(self.groups, self._rebalance)
        self._offset_requests = OffsetRequests(config, self.groups, self.offsets, self._rebalance)
        self._cleanup = OffsetCleanup(config, self.offsets)
        self._administration = Administration(self.groups, self.offsets, self._rebalance)
        self._next_cleanup_ms: int | None = None

    def handle(
        self, request: GroupRequest, token: Token, now_ms: int, context: GroupRequestContext, timestamp_ms: int
    ) -> Result[CoordinatorRecord]:
        """now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written. A join or a sync that has
        to wait is answered by the result of a later step, under the same token."""
        step = Step(now_ms, timestamp_ms)
        match request:
            case JoinGroupRequest():
                self._joins.join(request, token, context, step)
            case SyncGroupRequest():
                self._syncs.sync(request, token, context, step)
            case HeartbeatRequest():
                self._heartbeats.heartbeat(request, token, step)
            case LeaveGroupRequest():
                self._leaves.leave(request, token, step)
            case OffsetCommitRequest():
                self._offset_requests.commit(request, token, context, step)
            case OffsetFetchRequest():
                self._offset_requests.fetch(request, token, step)
            case OffsetDeleteRequest():
                self._offset_requests.delete(request, token, step)
            case ListGroupsRequest():
                self._administration.list(request, token, step)
            case DescribeGroupsRequest():
                self._administration.describe(request, token, context, step)
            case DeleteGroupsRequest():
                self._administration.delete(request, token, step)
        return self._finish(step)

    def next_deadline_ms(self) -> int | None:
        deadlines = [self._deadlines.next_ms(), self._next_cleanup_ms]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """Everything that is due by now, in the order in which it became due."""
        step = Step(now_ms, timestamp_ms)
        while (timeout := self._deadlines.pop_due(now_ms)) is not None:
            self._expire(timeout, step)
        if self._next_cleanup_ms is not None and self._next_cleanup_ms <= now_ms:
            self._expire_offsets(step)
            self._next_cleanup_ms = now_ms + self.config.offsets_retention_check_interval_ms
        return self._finish(step)

    def _expire(self, timeout: Timeout, step: Step) -> None:
        group = self.groups.get(timeout.group_id)
        if group is None:
            return
        match timeout:
            case SessionTimeout():
                self._rebalance.expire_session(group, timeout.member_id, step)
            case InitialDelay():
                self._rebalance.expire_initial_delay(group, timeout, step)
            case RebalanceTimeout():
                self._rebalance.expire_join(group, step)
            case SyncTimeout():
                self._rebalance.expire_sync(group, timeout, step)

    def _expire_offsets(self, step: Step) -> None:
        for group in list(self.groups.values()):
            is_bare = self._cleanup.expire(group, step)
            if is_bare and group.state is EMPTY and not group.pending_join_members:
                self._administration.forget(group, "it has neither members nor offsets", step)

    def forget_topics(
        self, topic_ids: Collection[bytes], names: Collection[str], now_ms: int, timestamp_ms: int
    ) -> Result[CoordinatorRecord]:
        """Topics were deleted: what was committed for them means nothing in a new topic of the same name."""
        step = Step(now_ms, timestamp_ms)
        for group in self.groups.values():
            self._cleanup.forget_topics(group, topic_ids, names, step)
        return self._finish(step)

    def _finish(self, step: Step) -> Result[CoordinatorRecord]:
        """Offsets, and the groups that exist for their sake, change by their records alone."""
        for record in step.records:
            if isinstance(record.key, OffsetCommitKey):
                assert record.value is None or isinstance(record.value, OffsetCommitValue)
                self._replay_offset(record.key, record.value, step.timestamp_ms)
        return step.result()

    # Loading

    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        """Applies one record that was read back. Raises BadRecord, and is then as it was before."""
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue() | None:
                self._replay_offset(key, value, -1)
            case GroupMetadataKey(), GroupMetadataValue():
                self.groups[key.group] = ClassicGroup.from_record(key.group, value)
            case GroupMetadataKey(), None:
                self.groups.pop(key.group, None)
            case _:
                raise AssertionError(f"{type(key).__name__} with {type(value).__name__}")

    def _replay_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None, timestamp_ms: int) -> None:
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, timestamp_ms, "created by committing an offset")
        self.offsets.replay(key, value)

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[CoordinatorRecord]:
        """To be called once, when every record is replayed: members have a full session timeout to show themselves."""
        step = Step(now_ms, timestamp_ms)
        self._next_cleanup_ms = now_ms + self.config.offsets_retention_check_interval_ms
        for group in self.groups.values():
            for member in group.members.values():
                self._rebalance.keep_session(group, member, step)
            if group.state is STABLE and len(group.members) > self.config.max_size:
                self._rebalance.start(group, f"more than group.max.size ({self.config.max_size}) members", step)
        return step.result()
