"""Groups at two moments: their states, what they have committed, and where their partitions end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, KafkaError
from pykbroker.client.group_offsets import fetch_offsets_of_groups
from pykbroker.client.groups import list_groups
from pykbroker.client.offsets import LATEST_TIMESTAMP, list_offsets
from pykbroker.protocol.topic_partition import TopicPartition

from .facts import Facts, Group, GroupLook

MOST_PARTITIONS: Final = 20_000
_NO_CONSUMERS: Final = frozenset({"share", "streams"})

States = Mapping[str, str]


async def watch_groups(cluster: Cluster, facts: Facts, most: int, watch_s: float) -> None:
    """Add up to `most` groups as they are now, and as they are `watch_s` later. Raises ClientError."""
    states = await _states(cluster)
    chosen = sorted(states)[:most]
    if len(states) > most:
        facts.unknown.append(f"{len(states) - most} of {len(states)} groups were not looked at (--max-groups)")
    if not chosen:
        return
    first = await _look(cluster, facts, chosen, states)
    began = trio.current_time()
    await trio.sleep(watch_s)
    last = await _look(cluster, facts, chosen, await _states(cluster))
    facts.watched_s = round(trio.current_time() - began, 1)
    facts.groups = [Group(each, first[each], last[each]) for each in chosen if each in first and each in last]


async def _states(cluster: Cluster) -> dict[str, str]:
    return {
        each.group_id: each.group_state
        for each in await list_groups(cluster)
        if each.group_type.lower() not in _NO_CONSUMERS
    }


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
