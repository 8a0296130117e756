"""When all is quiet the nodes agree about metadata and replicas, within a time, in memory and on their disks.

`until_agreed` waits in virtual time for what travels still, and then looks at everything once.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from pykbroker.metadata.partition_state import PartitionState
from pykbroker.replication.partition import Partition
from tests.replication.simulation.invariants import ensure

from .lives import Life, Lives
from .replicas import Replica, check_replicas, check_watermarks, is_settled

_AGREE_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.1


async def until_agreed(lives: Lives) -> None:
    """Raises AssertionError, which names who differs in what."""
    with trio.move_on_after(_AGREE_WITHIN_S):
        while not _are_settled(lives):  # noqa: ASYNC110 - nobody tells
            await trio.sleep(_LOOK_EVERY_S)
    check_agreement(lives)


def check_agreement(lives: Lives) -> None:
    _check_images(lives)
    for at, state, partitions in _partitions(lives):
        check_watermarks(at, partitions)
        check_replicas(
            at,
            [Replica.of(each) for each in partitions],
            leader=f"node {state.leader}",
            is_compacted=any(each.log.config.compact for each in partitions),
        )


def _are_settled(lives: Lives) -> bool:
    first, *others = lives.values()
    return all(each.image == first.image for each in others) and all(
        len(partitions) == len(state.replicas) and is_settled(partitions) for _, state, partitions in _replicas(lives)
    )


def _check_images(lives: Lives) -> None:
    first, *others = lives.values()
    for other in others:
        for one, two in zip(_records(first), _records(other), strict=False):
            ensure(one == two, "SameImage", f"node {first.node_id} has {one}, node {other.node_id} has {two}")
        ensure(first.image == other.image, "SameImage", f"nodes {first.node_id} and {other.node_id} differ")


def _records(life: Life) -> list[str]:
    return sorted(map(repr, life.image.records()))


def _partitions(lives: Lives) -> Iterator[tuple[str, PartitionState, list[Partition]]]:
    for at, state, partitions in _replicas(lives):
        usable = {each.local_id for each in partitions}
        ensure(
            usable == set(state.replicas), "Replicas", at, "is to be on", state.replicas, "and can be used on", usable
        )
        yield at, state, partitions


def _replicas(lives: Lives) -> Iterator[tuple[str, PartitionState, list[Partition]]]:
    for topic in next(iter(lives.values())).image.topics.values():
        for index, state in topic.partitions.items():
            found = [lives[each].partition(topic.name, index) for each in state.replicas]
            yield f"{topic.name}-{index}", state, [each for each in found if each is not None]
