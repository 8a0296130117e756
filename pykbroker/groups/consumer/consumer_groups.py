"""The consumer groups of a shard (KIP-848): the rules of this package put together; the door to it.

`heartbeat` serves members of the consumer protocol, `classic_members` those of the classic protocol in groups that have
members. The model is the consumer half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from random import Random

from ..classic.rebalance import Rebalance
from ..common.config import ConsumerGroupConfig, GroupConfig
from ..common.context import Step
from ..common.deadlines import (
    Deadlines,
    InitialDelay,
    MemberRejoinTimeout,
    MemberSyncTimeout,
    RebalanceTimeout,
    RevocationTimeout,
    SessionTimeout,
    StreamsInitialDelay,
    SyncTimeout,
    Timeout,
)
from ..common.group import Group
from ..common.topic_changes import MOST_NOTED_AT_ONCE, TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.assignment_tasks import AssignmentOffload
from .classic_protocol_members import ClassicProtocolMembers
from .consumer_group import ConsumerGroup, find_consumer
from .consumer_group_member import UNREVOKED_PARTITIONS
from .consumer_replay import ConsumerReplay
from .descriptions import ConsumerGroupAsOfNow, group_as_of_now
from .heartbeats import ConsumerHeartbeats
from .member_progress import MemberProgress
from .membership import ConsumerMembership
from .migration import Migration
from .regular_expressions import RegularExpressions, TopicRegexes
from .target_assignment import ConsumerTargetAssignments


class ConsumerGroups:
    """The consumer groups of one shard.

    groups: the shard's groups of all types, shared with it. The other parameters are those of `GroupShard`.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        deadlines: Deadlines,
        rebalance: Rebalance,
        rng: Random,
        topics: TopicsView,
        config_of: Callable[[str], ConsumerGroupConfig],
        regexes: TopicRegexes | None,
        assignments: AssignmentOffload | None,
        metadata_hash: MetadataHash,
    ) -> None:
        self._groups: Mapping[str, Group] = groups
        self._topics = topics
        self._config_of = config_of
        self._metadata_hash = metadata_hash
        self._topic_changes = TopicChanges()
        self._records = records = ConsumerReplay(groups)
        self._targets = ConsumerTargetAssignments(config, records, topics, assignments)
        self._regexes = RegularExpressions(config.consumer_regex_refresh_interval_ms, topics, records, regexes)
        migration = Migration(config, groups, records, deadlines, rebalance, topics, metadata_hash)
        self._membership = membership = ConsumerMembership(records, deadlines, metadata_hash, migration)
        progress = MemberProgress(
            records,
            membership,
            self._targets,
            topics,
            metadata_hash,
            self._topic_changes,
            self._regexes,
            config_of,
            config.max_record_bytes,
        )
        self.classic_members = ClassicProtocolMembers(config, membership, progress, migration, topics, rng)
        heartbeats = ConsumerHeartbeats(config, groups, membership, progress, migration, config_of, rng)
        self.heartbeat = heartbeats.heartbeat
        self.preparation = heartbeats.preparation
        self.replay = records.replay
        self.put_assignment = self._targets.put_awaited

    def find_with_members(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of that id, if it has members. Classic requests may be those of its members."""
        group = find_consumer(self._groups, group_id)
        return None if group is None or group.is_empty else group

    def describe(self, group_id: str) -> ConsumerGroupAsOfNow:
        return group_as_of_now(self._groups.get(group_id), group_id, self._targets.assignor_of, self._topics)

    # Topics and assignments

    def on_topics_changed(self, names: Collection[str]) -> None:
        """Topics were created, have more partitions, or were deleted: groups look at them again in their next
        heartbeats. Where there are very many, every topic counts as changed."""
        self._topic_changes.note(names)
        if len(names) > MOST_NOTED_AT_ONCE:
            self._metadata_hash.forget_all()
            self._regexes.on_all_topics_changed()
            return
        for name in names:
            self._metadata_hash.forget(name)
        self._regexes.on_topics_changed(names)

    # Timers

    def expire(self, group: ConsumerGroup, timeout: Timeout, step: Step) -> None:
        """Act on a timeout of the group. Those of rebalances are left over from before a migration."""
        match timeout:
            case SessionTimeout():
                self._membership.expire_session(group, timeout.member_id, step)
            case RevocationTimeout():
                self._membership.expire_revocation(group, timeout, step)
            case MemberRejoinTimeout():
                self._membership.expire_classic_member(group, timeout.member_id, "JoinGroup", step)
            case MemberSyncTimeout():
                self._membership.expire_classic_member(group, timeout.member_id, "SyncGroup", step)
            case InitialDelay() | RebalanceTimeout() | SyncTimeout() | StreamsInitialDelay():
                pass

    def begin_sessions(self, group: ConsumerGroup, step: Step) -> Iterator[None]:
        """Give each member of a group that was read back a full session timeout. Yields after each member."""
        session_timeout_ms = self._config_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            timeout_ms = session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
            self._membership.keep_session(group, member.member_id, timeout_ms, step)
            if member.state is UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
                self._membership.await_revocation(group, member, step)
            yield

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._targets.begin_trial()

    def end_trial(self, *, is_kept: bool) -> None:
        self._targets.end_trial(is_kept=is_kept)
