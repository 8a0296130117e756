"""When all is quiet the nodes agree about metadata and replicas, and what each keeps beside its image follows from it.

- SameImage: all nodes have one image.
- Hosted: a broker has the replicas that the image gives it, each in the state that the image has, and no others.
- ActiveController: one is active; its image runs ahead of nothing, and its index is the one that the image gives.

`until_agreed` waits in virtual time for what travels still, and then looks at everything once.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from pykbroker.long_work import whole
from pykbroker.metadata.partition_index import PartitionIndex
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.replication.partition import LeaderAndIsr, Partition
from pykbroker.sim.threads import beside_the_loop
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


@beside_the_loop()
def check_agreement(lives: Lives) -> None:
    _check_images(lives)
    for life in lives.values():
        _check_hosted(life)
    _check_controller(lives)
    for at, state, partitions in _partitions(lives):
        check_watermarks(at, partitions)
        check_replicas(
            at,
            [Replica.of(each) for each in partitions],
            leader=f"node {state.leader}",
            is_compacted=any(each.log.config.compact for each in partitions),
        )


@beside_the_loop()
def _are_settled(lives: Lives) -> bool:
    first, *others = lives.values()
    ahead = [life for life in lives.values() if life.controller_state.active]
    images = [*(each.image for each in others), *(each.controller_state.image for each in ahead)]
    return all(image == first.image for image in images) and all(
        len(partitions) == len(state.replicas) and is_settled(partitions, leader=state.leader)
        for _, state, partitions in _replicas(lives)
    )


def _check_images(lives: Lives) -> None:
    first, *others = lives.values()
    for other in others:
        for one, two in zip(_records(first), _records(other), strict=False):
            ensure(one == two, "SameImage", f"node {first.node_id} has {one}, node {other.node_id} has {two}")
        ensure(first.image == other.image, "SameImage", f"nodes {first.node_id} and {other.node_id} differ")


def _check_hosted(life: Life) -> None:
    expected = {
        (topic.name, index): _state(state)
        for topic in life.image.topics.values()
        for index, state in topic.partitions.items()
        if life.node_id in state.replicas
    }
    hosted = {(each.topic, each.index): _state(each) for each in life.partitions}
    differing = {at: (hosted.get(at), expected.get(at)) for at in hosted.keys() | expected.keys()}
    differing = {at: pair for at, pair in differing.items() if pair[0] != pair[1]}
    ensure(not differing, "Hosted", f"node {life.node_id} has, and the image:", differing)


def _state(state: LeaderAndIsr) -> tuple[object, ...]:
    return state.leader, state.leader_epoch, state.partition_epoch, tuple(state.replicas), tuple(state.isr)


def _check_controller(lives: Lives) -> None:
    active = [life for life in lives.values() if life.controller_state.active]
    ensure(len(active) == 1, "ActiveController", "there are", [life.node_id for life in active])
    [life] = active
    state = life.controller_state
    ensure(state.image == life.image, "ActiveController", "node", life.node_id, "has another image than it publishes")
    kept, expected = _content(state.partitions), _content(whole(PartitionIndex.of(life.image)))
    ensure(kept == expected, "ActiveController", "node", life.node_id, "keeps the index", kept, "instead of", expected)


def _content(index: PartitionIndex) -> dict[str, object]:
    """Without sets that are empty, and counts that are 0."""
    return {
        name: {key: each for key, each in kept.items() if each} if isinstance(kept, dict) else kept
        for name, kept in vars(index).items()
    }


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
