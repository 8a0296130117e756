"""The reasons why a group is as it is: its members, what it waits for, its last rebalances and why, its lag."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.common.group import Group
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.shard import GroupShard
from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.groups.streams.streams_group import StreamsGroup
from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC
from pykbroker.server.coordinators.cause_history import Transition
from pykbroker.server.coordinators.group_topics import ImageTopics
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.log_lines import printable

from .answers import Awaited, GroupAnswer, Lag, Member, SharedPartition
from .members import GroupMembers
from .rights import denials_of_group
from .shared_partitions import SharedPartitions, facts_of
from .sources import NoCoordinator, Sources, Turns
from .steps import step_of
from .wording import client, counted, duration, moment

MOST_MEMBERS: Final = 100
MOST_PARTITIONS: Final = 300
_MOST_TOLD: Final = 10
"""Partitions of a share group of which facts tell."""
_NOT_READY: Final = "NotReady"
_IN_A_REBALANCE: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


async def why_group(sources: Sources, group_id: str) -> GroupAnswer:
    """Say why the group is as it is."""
    denials = tuple(denials_of_group(sources, group_id))
    found = sources.coordinator_of(group_id)
    if isinstance(found, NoCoordinator):
        verdict = f"Nothing is known of group {printable(group_id)}: {found.words}."
        return GroupAnswer(verdict=verdict, reason=found.reason, facts=denials, group=group_id)
    broker, shard = found
    group = shard.groups.get(group_id)
    if group is None:
        verdict = f"There is no group {printable(group_id)}: it has neither members nor committed offsets."
        return GroupAnswer(
            verdict=verdict, reason="no-such-group", facts=denials, group=group_id, coordinator=broker.node_id
        )
    return await _Look(sources, broker, shard, group).answer(denials)


class _Look:
    def __init__(self, sources: Sources, broker: Broker, shard: GroupShard, group: Group) -> None:
        self._sources = sources
        self._broker = broker
        self._shard = shard
        self._group = group
        self._id = group.group_id
        self._now_ms = broker.clock.now_ms()
        self._turns = Turns()
        self._steps = broker.groups.history.transitions(self._id)
        self._rebalances = broker.groups.history.rebalances(self._id)

    async def answer(self, denials: Sequence[str]) -> GroupAnswer:
        group, broker = self._group, self._broker
        members, awaited, owners = await self._members()
        shared: list[SharedPartition] = []
        partitions: list[Lag] = []
        if isinstance(group, ShareGroup):
            shared, count, lag = await self._shared(group)
        else:
            partitions, count, lag = await self._lag(owners)
        reason, verdict = self._verdict(awaited)
        index = broker.groups.partition_for(self._id)
        since_ms = None if index is None else broker.groups.loaded_timestamp_ms(index)
        facts = [*self._facts(awaited, since_ms), *self._facts_of_type(shared), *denials]
        return GroupAnswer(
            verdict=verdict,
            reason=reason,
            facts=tuple(facts),
            group=self._id,
            type=group.type.value,
            state=_state(group),
            epoch=_epoch(group),
            coordinator=broker.node_id,
            coordinator_since_timestamp_ms=since_ms,
            members=tuple(members),
            member_count=_member_count(group),
            awaited=tuple(awaited[:MOST_MEMBERS]),
            rebalances=tuple(step_of(each) for each in reversed(self._rebalances)),
            history=tuple(step_of(each) for each in reversed(self._steps)),
            partitions=tuple(partitions),
            shared=tuple(shared),
            partition_count=count,
            lag=lag,
            missing_topics=tuple(_missing_topics(group, broker)),
        )

    async def _members(self) -> tuple[list[Member], list[Awaited], dict[tuple[str, int], str]]:
        """The members, those that are waited for, and who has which partition."""
        self._all = GroupMembers(self._broker, self._shard, self._group)
        members: list[Member] = []
        owners: dict[tuple[str, int], str] = {}
        async for member in self._all.each(self._turns):
            if len(members) < MOST_MEMBERS:
                members.append(member)
            for topic, indexes in member.assignment.items():
                owners.update(dict.fromkeys(((topic, index) for index in indexes), member.member_id))
        since_ms = self._rebalances[-1].timestamp_ms if self._rebalances else None
        return members, list(islice(self._all.awaited(since_ms), MOST_MEMBERS + 1)), owners

    async def _lag(self, owners: dict[tuple[str, int], str]) -> tuple[list[Lag], int, int | None]:
        """The partitions, those that lag most first; how many there are; and the lag of all whose leader was asked."""
        pending = self._shard.offsets.pending
        places = dict.fromkeys(owners)
        for topic, indexes in [(each, list(of)) for each, of in self._shard.offsets.committed.of_group(self._id)]:
            places.update(dict.fromkeys((topic, index) for index in indexes))
            await self._turns.took(len(indexes) // 10)
        lags: list[Lag] = []
        for topic, index in places:
            committed = pending.committed_offset(self._id, topic, index)
            led = self._sources.led(topic, index)
            end_offset = None if led is None else led.high_watermark
            is_known = committed is not None and end_offset is not None
            lags.append(
                Lag(
                    topic=topic,
                    partition=index,
                    committed=None if committed is None else committed.offset,
                    committed_timestamp_ms=None if committed is None else committed.commit_timestamp_ms,
                    end_offset=end_offset,
                    lag=max(end_offset - committed.offset, 0) if is_known else None,  # type: ignore[operator,union-attr]
                    member_id=owners.get((topic, index)),
                )
            )
            await self._turns.took(2)
        known = [each.lag for each in lags if each.lag is not None]
        shown = heapq.nsmallest(MOST_PARTITIONS, lags, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
        return shown, len(lags), sum(known) if known else None

    async def _shared(self, group: ShareGroup) -> tuple[list[SharedPartition], int, int | None]:
        """The partitions of a share group as `_lag` has those of others."""
        look = SharedPartitions(self._sources, group)
        found: list[SharedPartition] = []
        for (topic, index), state in (await look.places(self._turns)).items():
            found.append(look.look(topic, index, state))
            await self._turns.took(20 + look.runs_counted // 5)
        known = [each.lag for each in found if each.lag is not None]
        shown = heapq.nsmallest(MOST_PARTITIONS, found, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
        return shown, len(found), sum(known) if known else None

    def _facts_of_type(self, shared: Sequence[SharedPartition]) -> list[str]:
        """Say what only share groups, and only streams groups, have."""
        group, facts = self._group, []
        if isinstance(group, ShareGroup):
            for each in shared[:_MOST_TOLD]:
                facts += facts_of(each, self._broker.clock.now_ms())
            waiting = sum(each.state == "initializing" for each in shared)
            if waiting:
                facts.append(
                    f"{counted(waiting, 'partition')} of {len(shared)} wait for the share coordinator "
                    f"({SHARE_STATE_TOPIC}) to have a state of them: until then no member gets them."
                )
        elif isinstance(group, StreamsGroup):
            if group.shutdown_requested_by is not None:
                facts.append(f"{printable(group.shutdown_requested_by)} has asked all members to shut down.")
            problem = None if group.is_empty else _problem(group, self._broker)
            if problem is not None:
                facts.append(": ".join(problem) + ".")
        return facts

    def _verdict(self, awaited: Sequence[Awaited]) -> tuple[str, str]:
        """The word for programs, and the sentence."""
        group, name = self._group, printable(self._id)
        state = _state(group)
        if group.is_empty:
            if isinstance(group, ClassicGroup) and group.is_simple:
                return "no-members", f"Group {name} has committed offsets alone: nobody has joined it."
            return "no-members", f"Group {name} has no members{self._since_it_is_empty()}."
        members = counted(_member_count(group), "member")
        if state == _NOT_READY:
            problem = _problem(group, self._broker)
            words = "the next heartbeat finds its topics there" if problem is None else problem[1]
            return "not-ready", f"Group {name}, with {members}, is not ready: {words}."
        if state in _IN_A_REBALANCE:
            return "rebalancing", f"Group {name} rebalances{self._because()}{self._waits(awaited)}."
        epoch = "generation" if isinstance(group, ClassicGroup) else "epoch"
        return "stable", f"Group {name} is stable at {epoch} {_epoch(group)} with {members}{self._last()}."

    def _because(self) -> str:
        if not self._rebalances:
            return ""
        last = self._rebalances[-1]
        return f" since {duration(self._now_ms - last.timestamp_ms)}, because {_why(last)}"

    def _last(self) -> str:
        if not self._rebalances:
            return ", and has not rebalanced since its coordinator has read it"
        last = self._rebalances[-1]
        return f"; its last rebalance began {duration(self._now_ms - last.timestamp_ms)} ago, because {_why(last)}"

    def _since_it_is_empty(self) -> str:
        if not self._steps:
            return ", and had none when its coordinator read it"
        last = self._steps[-1]
        words = last.causes[0] if isinstance(self._group, ClassicGroup) else _why(last) or last.causes[0]
        return f" since {duration(self._now_ms - last.timestamp_ms)}: {printable(words)}"

    def _waits(self, awaited: Sequence[Awaited]) -> str:
        delay_ms = self._all.initial_delay_ms
        if delay_ms is not None:
            of_type = ".streams" if isinstance(self._group, StreamsGroup) else ""
            key = f"group{of_type}.initial.rebalance.delay.ms"
            return f", and waits for more members for {duration(delay_ms)} more ({key})"
        if not awaited:
            return ""
        first = awaited[0]
        number = min(len(awaited), MOST_MEMBERS) - 1
        others = f" and {counted(number, 'other member')}" if number else ""
        if len(awaited) > MOST_MEMBERS:
            others = f" and more than {number} others"
        due = "" if first.due_in_ms is None else f", for {duration(first.due_in_ms)} more"
        return f", and waits for {first.what} of {printable(first.member_id)}{others}{due}"

    def _facts(self, awaited: Sequence[Awaited], since_ms: int | None) -> list[str]:
        facts = []
        for each in awaited[:MOST_MEMBERS]:
            since = "" if each.since_timestamp_ms is None else f" since {moment(each.since_timestamp_ms)}"
            whose = f" ({client(each.client_id, each.host)})" if each.client_id else ""
            facts.append(f"It waits for {each.what} of {printable(each.member_id)}{whose}{since}.")
        if since_ms is not None:
            what = f"Broker {self._broker.node_id} coordinates the group since {moment(since_ms)}"
            facts.append(f"{what}; what was before is not known.")
        return facts


def _why(step: Transition) -> str:
    return printable(step.rebalance)


def _state(group: Group) -> str:
    return str(group.state.value)


def _epoch(group: Group) -> int | None:
    if isinstance(group, ClassicGroup):
        return group.generation_id
    return group.group_epoch if isinstance(group, ConsumerGroup | ShareGroup | StreamsGroup) else None


def _problem(group: Group, broker: Broker) -> tuple[str, str] | None:
    """Return what keeps a streams group from its tasks: Kafka's name of it, and the words; None where nothing does."""
    if not isinstance(group, StreamsGroup) or group.topology is None:
        return None
    configured = group.configured
    if configured is None:  # the group has not looked since its first member came, or its coordinator read it
        from pykbroker.groups.streams.configured_topology import configure

        configured = configure(group.topology, ImageTopics(lambda: broker.image))
    if configured.problem is None:
        return None
    code, words = configured.problem
    return code.name, printable(words.rstrip("."))


def _missing_topics(group: Group, broker: Broker) -> list[str]:
    """Return the topics of a streams group's topology that are not there, up to a bound."""
    if not isinstance(group, StreamsGroup) or group.is_empty:
        return []
    return sorted(name for name in group.topic_names if broker.image.topic(name) is None)[:MOST_MEMBERS]


def _member_count(group: Any) -> int:
    return len(group.members)
