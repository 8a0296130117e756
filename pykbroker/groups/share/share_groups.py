"""The share groups of a shard (KIP-932): the rules of this package put together; the door to it.

The model is the share half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from pykbroker.state_machine import CoordinatorContext

from ..common.config import GroupConfig, ShareGroupConfig
from ..common.context import Step
from ..common.deadlines import Deadlines, SessionTimeout, Timeout
from ..common.group import Group
from ..common.requests import (
    AlterShareOffsets,
    BeginShareStateDeletion,
    DescribeShareGroup,
    EndShareInitialization,
    EndShareStateDeletion,
    FindSharePartitions,
)
from ..common.topic_changes import TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.assignment_tasks import AssignmentOffload
from .heartbeats import ShareHeartbeats
from .share_descriptions import share_group_as_of_now
from .share_group import ShareGroup, find_share
from .share_replay import ShareReplay
from .share_targets import ShareTargets
from .state_changes import StateChanges

ShareRequest: TypeAlias = (
    ShareGroupHeartbeatRequest
    | DescribeShareGroup
    | FindSharePartitions
    | EndShareInitialization
    | AlterShareOffsets
    | BeginShareStateDeletion
    | EndShareStateDeletion
)


class ShareGroups:
    """The share groups of one shard.

    groups: the shard's groups of all types, shared with it. config_of: the settings of a group by its id. The other
    parameters are those of `GroupShard`.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        deadlines: Deadlines,
        topics: TopicsView,
        config_of: Callable[[str], ShareGroupConfig],
        assignments: AssignmentOffload | None,
        metadata_hash: MetadataHash,
    ) -> None:
        self._groups: Mapping[str, Group] = groups
        self._topics = topics
        self._config_of = config_of
        self._topic_changes = TopicChanges()
        records = ShareReplay(groups)
        self._targets = ShareTargets(config, records, topics, assignments)
        self.states = StateChanges(config, groups, topics, records)
        self._heartbeats = ShareHeartbeats(
            config,
            groups,
            deadlines,
            topics,
            metadata_hash,
            self._topic_changes,
            records,
            self._targets,
            self.states,
            config_of,
        )
        self.preparation = self._heartbeats.preparation
        self.replay = records.replay
        self.put_assignment = self._targets.put_awaited

    def answer(self, request: ShareRequest, context: CoordinatorContext, step: Step) -> object:
        match request:
            case ShareGroupHeartbeatRequest():
                return self._heartbeats.heartbeat(request, context, step)
            case DescribeShareGroup():
                return share_group_as_of_now(self._groups.get(request.group_id), request.group_id, self._topics)
            case FindSharePartitions():
                return self._partitions(request.group_id)
            case EndShareInitialization():
                self.states.end_initialization(request, step)
                return None
            case AlterShareOffsets():
                return self.states.alter(request, step)
            case BeginShareStateDeletion():
                return self.states.begin_deletion(request, step)
            case EndShareStateDeletion():
                self.states.end_deletion(request, step)
                return None

    def _partitions(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """The partitions whose state is initialized, by topic id; none of a group that is not there."""
        group = find_share(self._groups, group_id)
        topics = {} if group is None else group.state_partitions.initialized
        return {topic_id: topic.partitions for topic_id, topic in topics.items()}

    def initializing(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """The partitions, by topic id, whose state is being created; none of a group that is not there."""
        group = find_share(self._groups, group_id)
        topics = {} if group is None else group.state_partitions.initializing
        return {topic_id: topic.partitions for topic_id, topic in topics.items()}

    # Topics and assignments

    def on_topics_changed(self, names: Collection[str]) -> None:
        """Groups look at their topics again in their next heartbeats. The shared hash forgets them elsewhere."""
        self._topic_changes.note(names)

    # Timers

    def expire(self, group: Group, timeout: Timeout, step: Step) -> None:
        """Act on a timeout of the group; a share group has sessions only."""
        assert isinstance(group, ShareGroup)
        if isinstance(timeout, SessionTimeout):
            self._heartbeats.expire_session(group, timeout.member_id, step)

    def begin_sessions(self, group: Group, step: Step) -> Iterator[None]:
        """Give each member of a group that was read back a full session timeout. Yields after each member.

        What another coordinator has begun to initialize the next heartbeat begins again.
        """
        assert isinstance(group, ShareGroup)
        session_timeout_ms = self._config_of(group.group_id).session_timeout_ms
        group.is_initialization_inherited = bool(group.state_partitions.initializing)
        for member_id in group.members:
            self._heartbeats.keep_session(group, member_id, session_timeout_ms, step)
            yield

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._targets.begin_trial()
        self.states.begin_trial()

    def end_trial(self, *, is_kept: bool) -> None:
        self._targets.end_trial(is_kept=is_kept)
        self.states.end_trial(is_kept=is_kept)
