"""The members of groups of all types, in one form, and which of them a group waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import Any, Final

from pykbroker.groups.classic.classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, ClassicGroup
from pykbroker.groups.classic.classic_group_member import ClassicGroupMember
from pykbroker.groups.common.deadlines import (
    InitialDelay,
    RebalanceTimeout,
    RevocationTimeout,
    SessionTimeout,
    StreamsInitialDelay,
    SyncTimeout,
)
from pykbroker.groups.common.group import Group
from pykbroker.groups.common.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import UNREVOKED_PARTITIONS, ConsumerGroupMember, OwnedPartitions
from pykbroker.groups.consumer.embedded_protocol import read_assignment
from pykbroker.groups.modern.committing_group import CommittingGroup, CommittingMember, CommittingMemberT
from pykbroker.groups.shard import GroupShard
from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.groups.share.share_group_member import ShareGroupMember
from pykbroker.groups.streams.streams_group import StreamsGroup
from pykbroker.groups.streams.streams_group_member import UNREVOKED_TASKS, StreamsGroupMember
from pykbroker.groups.streams.tasks import OwnedTasks, in_order
from pykbroker.groups.streams.topology import source_topics
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.server.coordinators.group_topics import ImageTopics
from pykbroker.server.node.broker import Broker

from .answers import Awaited, Member
from .sources import NoCoordinator, Sources, Turns
from .wording import counted

_SHOWN: Final = 20
_LONGEST_READ: Final = 100_000
"""Bytes of a subscription or an assignment that is read here."""


async def members_of(sources: Sources, group_id: str, turns: Turns) -> list[Member]:
    """Return all members of a group; none where nothing is known of it."""
    found = sources.coordinator_of(group_id)
    group = None if isinstance(found, NoCoordinator) else found[1].groups.get(group_id)
    if isinstance(found, NoCoordinator) or group is None:
        return []
    return [member async for member in GroupMembers(*found, group).each(turns)]


class GroupMembers:
    """The members of one group at its coordinator, now."""

    def __init__(self, broker: Broker, shard: GroupShard, group: Group) -> None:
        self._broker = broker
        self._shard = shard
        self._group = group
        self._topics = ImageTopics(lambda: broker.image)
        self._now_ms = broker.clock.monotonic_ms()

    async def each(self, turns: Turns) -> AsyncIterator[Member]:
        """Give the members that there are at the beginning, as they are when their turn comes."""
        group = self._group
        if isinstance(group, ClassicGroup):
            for classic in list(group.members.values()):
                yield self._classic(group, classic)
                await turns.took(5 + len(classic.assignment) // 20)
        elif isinstance(group, ConsumerGroup):
            session_timeout_ms = self._broker.groups.session_timeout_ms(group.group_id)
            for member in list(group.members.values()):
                described = self._consumer(group, member, session_timeout_ms)
                yield described
                await turns.took(5 + sum(map(len, described.assignment.values())) // 2)
        elif isinstance(group, ShareGroup):
            session_timeout_ms = self._broker.groups.share_session_timeout_ms(group.group_id)
            for sharer in list(group.members.values()):
                described = self._sharer(group, sharer, session_timeout_ms)
                yield described
                await turns.took(5 + sum(map(len, described.assignment.values())) // 2)
        elif isinstance(group, StreamsGroup):
            session_timeout_ms = self._broker.groups.streams_config(group.group_id).session_timeout_ms
            for instance in list(group.members.values()):
                described = self._instance(group, instance, session_timeout_ms)
                yield described
                await turns.took(5 + sum(map(len, described.assignment.values())) + len(described.subscription) // 10)

    def _classic(self, group: ClassicGroup, member: ClassicGroupMember) -> Member:
        state = "has its assignment" if group.state.value == "Stable" else group.state.value
        if member.awaiting_join is not None:
            state = "waits for the others to join"
        elif member.awaiting_sync is not None:
            state = "waits for its assignment"
        elif group.state is PREPARING_REBALANCE:
            state = "has not rejoined"
        elif member.member_id in group.pending_sync_members:
            state = "has not asked for its assignment"
        subscription: frozenset[str] | None = None
        if group.protocol_type == CONSUMER_PROTOCOL_TYPE and member.protocols:
            metadata = member.protocols.get(group.protocol_name or "") or next(iter(member.protocols.values()))
            subscription = subscribed_topics(metadata) if len(metadata) <= _LONGEST_READ else None
        return Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            host=member.client_host.lstrip("/"),
            state=state,
            epoch=group.generation_id,
            subscription=tuple(sorted(subscription or ())),
            assignment=self._embedded(group, member.assignment),
            session_timeout_ms=member.session_timeout_ms,
            last_sign_ago_ms=None
            if member.is_new
            else self._last_sign_ago_ms(member.member_id, member.session_timeout_ms),
        )

    def _embedded(self, group: ClassicGroup, assignment: bytes) -> Mapping[str, tuple[int, ...]]:
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE or len(assignment) > _LONGEST_READ:
            return {}
        try:
            by_id, _ = read_assignment(assignment, self._topics)
        except MalformedMessage:
            return {}
        return self._named(by_id)

    def _consumer(self, group: ConsumerGroup, member: ConsumerGroupMember, session_timeout_ms: int) -> Member:
        return Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host.lstrip("/"),
            state=member.state.name if member.member_epoch == group.assignment_epoch else "is behind the group's epoch",
            epoch=member.member_epoch,
            subscription=tuple(sorted(group.subscription_of(member))),
            assignment=self._named(_together(member.assigned, member.pending_revocation)),
            session_timeout_ms=session_timeout_ms,
            last_sign_ago_ms=self._last_sign_ago_ms(member.member_id, session_timeout_ms),
        )

    def _sharer(self, group: ShareGroup, member: ShareGroupMember, session_timeout_ms: int) -> Member:
        is_behind = member.member_epoch != group.assignment_epoch
        return Member(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            host=member.client_host.lstrip("/"),
            state="is behind the group's epoch" if is_behind else "has its assignment",
            epoch=member.member_epoch,
            subscription=member.subscribed_topic_names,
            assignment=self._named(member.assigned),
            session_timeout_ms=session_timeout_ms,
            last_sign_ago_ms=self._last_sign_ago_ms(member.member_id, session_timeout_ms),
        )

    def _instance(self, group: StreamsGroup, member: StreamsGroupMember, session_timeout_ms: int) -> Member:
        """A member of a streams group: it reads the topics of its active tasks, and of those that it is to give up."""
        subtopologies = {} if group.topology is None else group.topology.subtopologies
        read: dict[str, set[int]] = {}
        for tasks in (member.assigned.active, member.pending_revocation.active):
            for subtopology_id, partitions in tasks.items():
                known = subtopologies.get(subtopology_id)
                for topic in () if known is None else source_topics(known):
                    read.setdefault(topic, set()).update(partitions)
        return Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host.lstrip("/"),
            state=member.state.name if member.member_epoch == group.assignment_epoch else "is behind the group's epoch",
            epoch=member.member_epoch,
            subscription=tuple(sorted(() if group.topology is None else group.topology.subtopology_of_source)),
            assignment={topic: self._existing(topic, partitions) for topic, partitions in sorted(read.items())},
            session_timeout_ms=session_timeout_ms,
            last_sign_ago_ms=self._last_sign_ago_ms(member.member_id, session_timeout_ms),
            tasks=_tasks(member.assigned),
        )

    def _existing(self, topic: str, partitions: Collection[int]) -> tuple[int, ...]:
        """The tasks of a subtopology are as many as the partitions of its largest topic: others have fewer."""
        known = self._broker.image.topic(topic)
        return () if known is None else tuple(sorted(index for index in partitions if index in known.partitions))

    def _named(self, by_id: Mapping[bytes, frozenset[int]]) -> dict[str, tuple[int, ...]]:
        named = ((self._topics.topic_name(topic_id), partitions) for topic_id, partitions in by_id.items())
        return {name: tuple(sorted(partitions)) for name, partitions in named if name is not None}

    def _last_sign_ago_ms(self, member_id: str, session_timeout_ms: int) -> int | None:
        """A session begins anew with each sign of life, and when a coordinator has read its log."""
        due_ms = self._shard.due_ms(SessionTimeout(self._group.group_id, member_id))
        return None if due_ms is None else max(self._now_ms - (due_ms - session_timeout_ms), 0)

    # Who is waited for

    def awaited(self, since_timestamp_ms: int | None) -> Iterator[Awaited]:
        """Give the members that the group waits for.

        since_timestamp_ms: when the newest rebalance of a consumer group began.
        """
        group = self._group
        if isinstance(group, ClassicGroup):
            yield from self._awaited_in_classic(group)
        elif isinstance(group, ConsumerGroup):
            yield from self._awaited_in_committing(group, since_timestamp_ms, self._owed_partitions)
        elif isinstance(group, StreamsGroup):
            yield from self._awaited_in_committing(group, since_timestamp_ms, _owed_tasks)

    @property
    def initial_delay_ms(self) -> int | None:
        """The time for which a group that was empty goes on to wait for more members; None where it does not."""
        group = self._group
        if isinstance(group, ClassicGroup) and group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            return self._due_in_ms(self._shard.due_ms(InitialDelay(group.group_id, 0, 0)))
        if isinstance(group, StreamsGroup):
            return self._due_in_ms(self._shard.due_ms(StreamsInitialDelay(group.group_id)))
        return None

    def _awaited_in_classic(self, group: ClassicGroup) -> Iterator[Awaited]:
        since_ms = group.state_timestamp_ms
        if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY:
            due_in_ms = self._due_in_ms(self._shard.due_ms(RebalanceTimeout(group.group_id)))
            for member in group.members.values():
                if member.awaiting_join is None:
                    yield _awaited(member, "JoinGroup", since_ms, due_in_ms)
            for member_id in group.pending_join_members:
                due_ms = self._shard.due_ms(SessionTimeout(group.group_id, member_id))
                yield Awaited(
                    member_id=member_id,
                    client_id="",
                    host="",
                    what="JoinGroup with the member id that it was given",
                    since_timestamp_ms=None,
                    due_in_ms=self._due_in_ms(due_ms),
                )
        elif group.state is COMPLETING_REBALANCE:
            due_in_ms = self._due_in_ms(self._shard.due_ms(SyncTimeout(group.group_id, group.generation_id)))
            for member_id in group.pending_sync_members:
                is_leader = member_id == group.leader_id
                what = "SyncGroup with everybody's assignment, as the leader" if is_leader else "SyncGroup"
                yield _awaited(group.members[member_id], what, since_ms, due_in_ms)

    def _awaited_in_committing(
        self,
        group: CommittingGroup[CommittingMemberT, Any],
        since_ms: int | None,
        owed: Callable[[CommittingMemberT], str | None],
    ) -> Iterator[Awaited]:
        """Give the members that are behind by themselves.

        owed: what a member has to give up; None where there is nothing.
        """
        for member in group.members.values():
            if member.is_reconciled_to(group.assignment_epoch):
                continue
            due_in_ms = None
            what = owed(member)
            if what is not None:
                timeout = RevocationTimeout(group.group_id, member.member_id, member.member_epoch)
                due_in_ms = self._due_in_ms(self._shard.due_ms(timeout))
                what = f"a heartbeat that it has given up {what}"
            elif member.member_epoch != group.assignment_epoch:
                what = "its next heartbeat"
            else:
                continue  # it waits for others
            yield _awaited(member, what, since_ms, due_in_ms)

    def _owed_partitions(self, member: ConsumerGroupMember) -> str | None:
        if member.state is not UNREVOKED_PARTITIONS:
            return None
        owned = self._named({each: frozenset(owned) for each, owned in member.pending_revocation.items()})
        return ", ".join(f"{topic}-{index}" for topic, indexes in owned.items() for index in indexes)

    def _due_in_ms(self, due_ms: int | None) -> int | None:
        return None if due_ms is None else max(due_ms - self._now_ms, 0)


def _owed_tasks(member: StreamsGroupMember) -> str | None:
    if member.state is not UNREVOKED_TASKS:
        return None
    tasks = [task for each in _tasks(member.pending_revocation).values() for task in each]
    return f"{counted(len(tasks), 'task')} ({', '.join(tasks[:_SHOWN])})"


def _tasks(owned: OwnedTasks) -> dict[str, tuple[str, ...]]:
    """Return tasks by their kind, as Kafka Streams names them; no kind of which there is none."""
    kinds = {"active": owned.active, "standby": owned.standby, "warmup": owned.warmup}
    return {
        kind: tuple(f"{name}_{index}" for name, partitions in in_order(tasks) for index in partitions)
        for kind, tasks in kinds.items()
        if tasks
    }


def _awaited(
    member: ClassicGroupMember | CommittingMember,
    what: str,
    since_ms: int | None,
    due_in_ms: int | None,
) -> Awaited:
    return Awaited(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host.lstrip("/"),
        what=what,
        since_timestamp_ms=since_ms,
        due_in_ms=due_in_ms,
    )


def _together(*owned: OwnedPartitions) -> dict[bytes, frozenset[int]]:
    together: dict[bytes, frozenset[int]] = {}
    for each in owned:
        for topic_id, partitions in each.items():
            together[topic_id] = together.get(topic_id, frozenset()) | frozenset(partitions)
    return together
