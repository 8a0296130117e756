"""Proposals of replicas: partitions are spread over brokers and racks as those of a new topic are."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence

from pykbroker.client.metadata import Node, TopicMetadata
from pykbroker.metadata.placement import place_partitions
from pykbroker.metadata.registrations import BrokerRegistration
from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line
from .reassignment_plan import Plan


def propose(
    topics: Iterable[TopicMetadata],
    brokers: Sequence[Node],
    *,
    is_rack_aware: bool,
    replication_factor: int | None,
) -> Plan:
    """Return a plan that puts all partitions of the topics on these brokers. Raises CommandFailed.

    replication_factor: None keeps that of each topic's first partition.
    """
    _check_racks(brokers, is_rack_aware)
    rng = random.Random()  # noqa: S311 - no secret
    registrations = [
        BrokerRegistration(node.node_id, 0, b"", (), rack=node.rack if is_rack_aware else None, fenced=False)
        for node in brokers
    ]
    plan = Plan({})
    for topic in topics:
        partitions = sorted(topic.partitions)
        first = topic.partitions[partitions[0]] if partitions else None
        factor = replication_factor or (len(first.replica_nodes) if first is not None else 1)
        try:
            placed = place_partitions(registrations, len(partitions), factor, rng)
        except ApiError as error:
            raise CommandFailed(f"{topic.name}: {one_line(error)}") from None
        for number, replicas in zip(partitions, placed, strict=True):
            plan.replicas[TopicPartition(topic.name, number)] = tuple(replicas)
    return plan


def _check_racks(brokers: Collection[Node], is_rack_aware: bool) -> None:
    with_rack = [node.node_id for node in brokers if node.rack is not None]
    if is_rack_aware and with_rack and len(with_rack) < len(brokers):
        raise CommandFailed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
