"""Groups at two moments: their states, what they have committed, and where their partitions end; of share groups what
they have not settled, of streams groups which topics they miss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, KafkaError
from pykbroker.client.group_offsets import fetch_offsets_of_groups
from pykbroker.client.groups import list_groups
from pykbroker.client.offsets import LATEST_TIMESTAMP, list_offsets
from pykbroker.client.share_groups import SHARE, describe_share_group, fetch_share_offsets
from pykbroker.client.streams_groups import STREAMS, describe_streams_group
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .facts import Facts, Group, GroupLook, ShareGroup, ShareLook, StreamsGroup

MOST_PARTITIONS: Final = 20_000
_NOT_READY: Final = "NotReady"
_MOST_MISSING: Final = 100

States = Mapping[str, str]


async def watch_groups(cluster: Cluster, facts: Facts, most: int, watch_s: float) -> None:
    """Add up to `most` groups as they are now, and as they are `watch_s` later. Raises ClientError."""
    types = await _types(cluster)
    chosen = sorted(types)[:most]
    if len(types) > most:
        facts.unknown.append(f"{len(types) - most} of {len(types)} groups were not looked at (--max-groups)")
    if not chosen:
        return
    shared = [each for each in chosen if types[each][0] == SHARE]
    streams = [each for each in chosen if types[each][0] == STREAMS]
    consumers = [each for each in chosen if types[each][0] != SHARE]
    first = await _look(cluster, facts, consumers, _states(types))
    first_shared = await _look_at_shared(cluster, facts, shared)
    began = trio.current_time()
    await trio.sleep(watch_s)
    later = await _types(cluster)
    last = await _look(cluster, facts, consumers, _states(later))
    last_shared = await _look_at_shared(cluster, facts, [each for each in shared if each in later])
    facts.watched_s = round(trio.current_time() - began, 1)
    facts.groups = [Group(each, first[each], last[each]) for each in consumers if each in first and each in last]
    offline = await _offline(cluster, {of for each in last_shared.values() for of in each.partitions})
    for each in shared:
        if each in first_shared and each in last_shared:
            gone = tuple(of for of in sorted(last_shared[each].partitions) if of in offline)
            facts.share_groups.append(ShareGroup(each, first_shared[each].look, last_shared[each].look, gone))
    for each in streams:
        if each in later:
            facts.streams_groups.append(await _streams(cluster, facts, each, types[each][1], later[each][1]))


async def _types(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Return type and state of each group."""
    return {each.group_id: (each.group_type.lower(), each.group_state) for each in await list_groups(cluster)}


def _states(types: Mapping[str, tuple[str, str]]) -> States:
    return {group_id: state for group_id, (_, state) in types.items()}


class _Shared(NamedTuple):
    """A share group with the partitions that its members have, or that it has state of."""

    look: ShareLook
    partitions: frozenset[TopicPartition]


async def _look_at_shared(cluster: Cluster, facts: Facts, names: Collection[str]) -> dict[str, _Shared]:
    """A group that its coordinator does not tell of is left out."""
    found: dict[str, _Shared] = {}
    for name in names:
        try:
            described = await describe_share_group(cluster, name)
            offsets = await fetch_share_offsets(cluster, name)
        except ClientError as error:
            if not isinstance(error, KafkaError) or error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                facts.unknown.append(f"share group {name}: {error}")
            continue
        look = ShareLook(
            described.state,
            len(described.members),
            {of: each.start_offset for of, each in offsets.items() if each.start_offset is not None},
            {of: each.lag for of, each in offsets.items() if each.lag is not None},
        )
        read = {of for member in described.members for of in member.partitions}
        found[name] = _Shared(look, frozenset(read.union(offsets)))
    return found


async def _offline(cluster: Cluster, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
    """Return those that are there and have no leader."""
    if not partitions:
        return frozenset()
    wanted = sorted(partitions)[:MOST_PARTITIONS]
    metadata = await cluster.refresh({of.topic for of in wanted})
    known = {
        of for of in wanted if of.topic in metadata.topics and of.partition in metadata.topics[of.topic].partitions
    }
    return frozenset(of for of in known if metadata.leader(of) is None)


async def _streams(cluster: Cluster, facts: Facts, name: str, first_state: str, last_state: str) -> StreamsGroup:
    missing: tuple[str, ...] = ()
    members = 0
    if last_state == _NOT_READY:
        try:
            described = await describe_streams_group(cluster, name)
        except ClientError as error:
            facts.unknown.append(f"streams group {name}: {error}")
        else:
            members = len(described.members)
            needed = described.source_topics.union(described.internal_topics)
            metadata = await cluster.refresh(needed)
            absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            gone = [
                each for each in needed if each not in metadata.topics and metadata.errors.get(each, absent) is absent
            ]
            missing = tuple(sorted(gone)[:_MOST_MISSING])
    return StreamsGroup(name, first_state, last_state, members, missing)


async def _look(cluster: Cluster, facts: Facts, names: Collection[str], states: States) -> dict[str, GroupLook]:
    """A group whose coordinator gives no offsets is left out; so is one that is gone."""
    offsets = await fetch_offsets_of_groups(cluster, [each for each in names if each in states])
    committed: dict[str, dict[TopicPartition, int]] = {}
    for group_id, answer in offsets.items():
        if isinstance(answer, KafkaError):
            facts.unknown.append(f"offsets of group {group_id}: {answer}")
        else:
            committed[group_id] = {of: each.offset for of, each in answer.items()}
    ends = await _ends(cluster, facts, {of for each in committed.values() for of in each})
    return {
        group_id: GroupLook(states[group_id], each, {of: ends[of] for of in each if of in ends})
        for group_id, each in committed.items()
    }


async def _ends(cluster: Cluster, facts: Facts, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of the partitions that are still there and have a leader that was reached."""
    wanted = sorted(partitions)[:MOST_PARTITIONS]
    if not wanted:
        return {}
    metadata = await cluster.refresh({of.topic for of in wanted})
    by_leader: dict[int, list[TopicPartition]] = {}
    for of in wanted:
        leader = metadata.leader(of)
        if leader is not None:
            by_leader.setdefault(leader.node_id, []).append(of)
    found: dict[TopicPartition, int] = {}
    for node_id, led in sorted(by_leader.items()):
        try:
            answers = await list_offsets(cluster, dict.fromkeys(led, LATEST_TIMESTAMP))
        except ClientError as error:
            facts.unknown.append(f"ends of {len(led)} partitions on broker {node_id}: {error}")
        else:
            found.update({of: answer.offset for of, answer in answers.items()})
    return found
