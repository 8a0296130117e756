"""The streams groups of a shard (KIP-1071): the rules of this package put together; the door to it.

The model is the streams part of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from random import Random

from pykbroker.protocol.messages.streams_topology_descriptions import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

from ..common.config import GroupConfig, StreamsGroupConfig
from ..common.context import Step
from ..common.deadlines import Deadlines, RevocationTimeout, SessionTimeout, StreamsInitialDelay, Timeout
from ..common.group import Group
from ..common.topic_changes import TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.assignment_tasks import AssignmentOffload
from .descriptions import StreamsGroupAsOfNow, group_as_of_now
from .heartbeats import OnConversion, StreamsHeartbeats
from .membership import StreamsMembership
from .streams_group import StreamsGroup, find_streams
from .streams_group_member import UNREVOKED_TASKS
from .streams_replay import StreamsReplay
from .target_assignment import StreamsTargetAssignments
from .topology_descriptions import DescriptionStatus, StreamsDescriptions, TopologyDescriptions


class StreamsGroups:
    """The streams groups of one shard.

    groups: the shard's groups of all types, shared with it. The other parameters are those of `GroupShard`.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        deadlines: Deadlines,
        topics: TopicsView,
        config_of: Callable[[str], StreamsGroupConfig],
        assignments: AssignmentOffload | None,
        metadata_hash: MetadataHash,
        on_conversion: OnConversion,
        descriptions: TopologyDescriptions | None,
        rng: Random,
    ) -> None:
        self._groups: Mapping[str, Group] = groups
        self._config_of = config_of
        self._topic_changes = TopicChanges()
        records = StreamsReplay(groups, topics)
        self._descriptions = None if descriptions is None else StreamsDescriptions(groups, records, descriptions, rng)
        self._targets = StreamsTargetAssignments(config, records, assignments)
        self._membership = StreamsMembership(records, deadlines)
        self._heartbeats = StreamsHeartbeats(
            config,
            groups,
            records,
            self._membership,
            self._targets,
            topics,
            metadata_hash,
            self._topic_changes,
            config_of,
            on_conversion,
            self._descriptions,
        )
        self.heartbeat = self._heartbeats.heartbeat
        self.replay = records.replay
        self.put_assignment = self._targets.put_awaited

    def describe(self, group_id: str, *, with_description: bool = False) -> StreamsGroupAsOfNow:
        found = group_as_of_now(self._groups.get(group_id), group_id)
        group = find_streams(self._groups, group_id) if with_description else None
        if group is not None:
            described = found.group
            described.topology_description_status, described.topology_description = (
                (DescriptionStatus.NOT_STORED, None)
                if self._descriptions is None
                else self._descriptions.describe(group)
            )
        return found

    def update_description(
        self, request: StreamsGroupTopologyDescriptionUpdateRequest, step: Step
    ) -> StreamsGroupTopologyDescriptionUpdateResponse:
        """Keep a description of a group's topology (KIP-1331). Handlers ask only where something keeps descriptions."""
        assert self._descriptions is not None
        return self._descriptions.update(request, step)

    def forget(self, group_id: str) -> None:
        """Forget what is kept of an empty group that is being deleted."""
        self._membership.forget(group_id)
        if self._descriptions is not None:
            self._descriptions.forget(group_id)

    # Topics and assignments

    def on_topics_changed(self, names: Collection[str]) -> None:
        """Groups look at their topics again in their next heartbeats. The shared hash forgets them elsewhere."""
        self._topic_changes.note(names)

    # Timers

    def expire(self, group: Group, timeout: Timeout, step: Step) -> None:
        """Act on a timeout of the group. Those of other types are left over from before a conversion."""
        assert isinstance(group, StreamsGroup)
        match timeout:
            case SessionTimeout():
                self._membership.expire_session(group, timeout.member_id, step)
            case RevocationTimeout():
                self._membership.expire_revocation(group, timeout, step)
            case StreamsInitialDelay():
                self._heartbeats.expire_initial_delay(group, step)
            case _:
                pass

    def begin_sessions(self, group: Group, step: Step) -> Iterator[None]:
        """Give each member of a group that was read back a full session timeout. Yields after each member."""
        assert isinstance(group, StreamsGroup)
        session_timeout_ms = self._config_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            self._membership.keep_session(group, member.member_id, session_timeout_ms, step)
            if member.state is UNREVOKED_TASKS:
                self._membership.await_revocation(group, member, step)
            yield

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._targets.begin_trial()

    def end_trial(self, *, is_kept: bool) -> None:
        self._targets.end_trial(is_kept=is_kept)
