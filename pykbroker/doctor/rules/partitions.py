"""Findings about partitions: who leads, who is in sync, and whether that is enough. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..facts import Facts, Partition, Topic
from ..findings import Finding, counted, error, some, warning

_NO_LISTENER: Final = "LISTENER_NOT_FOUND"


def of_partitions(facts: Facts) -> Iterator[Finding]:
    every = [(topic, each) for topic in facts.topics for each in topic.partitions]
    unlisted = [each for _, each in every if each.error == _NO_LISTENER]
    offline = [each for _, each in every if each.leader is None and each.error != _NO_LISTENER]
    below = [each for topic, each in every if each.leader is not None and _is_below_min_isr(topic, each)]
    behind = [each for _, each in every if each.leader is not None and len(each.isr) < len(each.replicas)]
    if offline:
        yield error(
            "partition-offline",
            _count(offline),
            f"no leader: {_names(offline)}",
            f"Nothing can be read or written there. Start a broker that has a replica in sync: {_wanted(offline)}.",
        )
    if unlisted:
        yield error(
            "listener-missing",
            _count(unlisted),
            f"the leader has no listener of the name that this client came by: {_names(unlisted)}",
            "Give every broker a listener of that name in `listeners` and `advertised.listeners`.",
        )
    if below:
        yield error(
            "partition-under-min-isr",
            _count(below),
            f"fewer replicas in sync than min.insync.replicas: {_names(below)}",
            "Producers with acks=all are refused (NOT_ENOUGH_REPLICAS). Bring back the brokers that are missing: "
            f"{_missing(below)}.",
        )
    if behind:
        yield warning(
            "partition-under-replicated",
            _count(behind),
            f"replicas that are not in sync: {_names(behind)}",
            f"Bring back the brokers that are missing, or see why they do not keep up: {_missing(behind)}.",
        )


def _is_below_min_isr(topic: Topic, partition: Partition) -> bool:
    """Count as the broker does: no topic needs more replicas in sync than it has."""
    if topic.min_isr is None:
        return False
    return len(partition.isr) < min(topic.min_isr, len(partition.replicas))


def _count(partitions: list[Partition]) -> str:
    return counted(len(partitions), "partition")


def _names(partitions: list[Partition]) -> str:
    return some([each.of for each in partitions])


def _missing(partitions: list[Partition]) -> str:
    nodes = {node for each in partitions for node in each.replicas if node not in each.isr}
    return some(sorted(nodes))


def _wanted(partitions: list[Partition]) -> str:
    nodes = {node for each in partitions for node in each.isr or each.replicas}
    return some(sorted(nodes))
