"""Every node that is up and connected rejoins within a time: what it lacks is told by name."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from pykbroker.raft.states import Role
from tests.replication.simulation.invariants import ensure

from ..nodes import NODE_IDS
from .lives import Life, Lives

REJOINS_WITHIN_S = 30.0
"""After all links, disks and processes are there again. The longest waits of a connection that hung: a request's
time-out of 2 s, sessions of 1.5 s, elections that fail a few times, and a replica that has to catch up behind each.
"""
_LOOK_EVERY_S = 0.1


async def until_rejoined(lives: Lives) -> None:
    """Raises AssertionError: who lacks what."""
    with trio.move_on_after(REJOINS_WITHIN_S):
        while any(True for _ in lacking(lives)):  # noqa: ASYNC110 - nobody tells
            await trio.sleep(_LOOK_EVERY_S)
    missed = list(lacking(lives))
    ensure(not missed, "Rejoined", f"within {REJOINS_WITHIN_S:g} s not:", "; ".join(missed))


def lacking(lives: Lives) -> Iterator[str]:
    """What nodes lack, each as it sees the cluster itself."""
    leaders = {node_id: (life.parts.node.raft.epoch, life.parts.node.raft.leader_id) for node_id, life in lives.items()}
    if len(set(leaders.values())) > 1 or None in {leader for _, leader in leaders.values()}:
        yield f"nodes know different leaders of the quorum, or none: {leaders}"
    for node_id, life in lives.items():
        yield from (f"node {node_id} {what}" for what in _lacks(life))


def _lacks(life: Life) -> Iterator[str]:
    image, node_id = life.image, life.node_id
    yield from _lacks_role(life)
    for broker_id in NODE_IDS:
        broker = image.brokers.get(broker_id)
        if broker is None:
            yield f"knows of no registration of broker {broker_id}"
        elif broker.fenced:
            yield f"sees broker {broker_id} fenced"
    own = image.brokers.get(node_id)
    if own is not None and own.epoch != life.role.lifecycle.epoch:
        yield f"sees its own registration of epoch {own.epoch}, and has {life.role.lifecycle.epoch}"
    if node_id not in image.controllers:
        yield "sees its controller not registered"
    for topic in image.topics.values():
        for index, state in topic.partitions.items():
            at = f"{topic.name}-{index}"
            if state.leader < 0:
                yield f"sees no leader of {at}"
            if node_id in state.replicas and node_id not in state.isr:
                yield f"is not in sync of {at}: {list(state.isr)}"
            if node_id in state.replicas and life.partition(topic.name, index) is None:
                yield f"has no usable replica of {at}"
            if state.adding_replicas or state.removing_replicas:
                yield f"sees {at} moving still: {state.replicas}"


def _lacks_role(life: Life) -> Iterator[str]:
    role = life.parts.node.raft.role
    if role not in (Role.LEADER, Role.FOLLOWER):
        yield f"is {role.name.lower()} in the quorum"
    quorum = life.parts.node.raft._raft._quorum
    refusing = quorum.refusing & set(quorum.voters.ids)
    if role is Role.LEADER and refusing:
        yield f"leads, and takes {sorted(refusing)} for gone, who follow"
