"""Partitions of topics, as `pykbroker topics` shows them: which are asked for, and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from pykbroker.client.metadata import PartitionMetadata, TopicMetadata
from pykbroker.protocol.uuids import uuid_to_text

from .entries import Value
from .output import Column, print_table, stdout_is_terminal
from .topic_options import TopicOptions


def is_shown(partition: PartitionMetadata, options: TopicOptions, live_nodes: set[int], min_isr: int) -> bool:
    """Return whether the filters of the options let a partition through."""
    in_sync = len(partition.isr_nodes)
    return (
        not options.filters_partitions
        or (options.under_replicated_partitions and in_sync < len(partition.replica_nodes))
        or (options.unavailable_partitions and partition.leader_id not in live_nodes)
        or (options.under_min_isr_partitions and in_sync < min_isr)
        or (options.at_min_isr_partitions and in_sync == min_isr)
    )


def replication_factor(topic: TopicMetadata) -> int:
    return len(next(iter(topic.partitions.values())).replica_nodes) if topic.partitions else 0


def print_topic(topic: TopicMetadata, configs: Mapping[str, str]) -> None:
    """Print the line above the partitions."""
    header = {
        "Topic": topic.name,
        "TopicId": uuid_to_text(topic.topic_id),
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": str(replication_factor(topic)),
        "Configs": ",".join(f"{name}={value}" for name, value in configs.items()),
    }
    separator = "  " if stdout_is_terminal() else "\t"
    click.echo(separator.join(f"{name}: {value}" for name, value in header.items()))


def print_partitions(topic: TopicMetadata, partitions: Sequence[PartitionMetadata]) -> None:
    rows = [_row(topic.name, partition) for partition in partitions]
    if rows and stdout_is_terminal():
        print_table([Column(name) for name in rows[0]], [list(row.values()) for row in rows])
        return
    for row in rows:
        click.echo("\t" + "\t".join(f"{name}: {value}" for name, value in row.items()))


def as_json(
    topic: TopicMetadata, configs: Mapping[str, str], partitions: Sequence[PartitionMetadata]
) -> dict[str, Value]:
    """Return a topic as `topics describe --json` prints it."""
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "configs": dict(configs),
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "replicas": list(each.replica_nodes),
                "isr": list(each.isr_nodes),
                "elr": _list(each.eligible_leader_replicas),
                "last_known_elr": _list(each.last_known_elr),
            }
            for each in partitions
        ],
    }


def _row(name: str, partition: PartitionMetadata) -> dict[str, str]:
    return {
        "Topic": name,
        "Partition": str(partition.partition),
        "Leader": str(partition.leader_id) if partition.leader_id >= 0 else "none",
        "Replicas": _ids(partition.replica_nodes),
        "Isr": _ids(partition.isr_nodes),
        "Elr": _ids(partition.eligible_leader_replicas),
        "LastKnownElr": _ids(partition.last_known_elr),
    }


def _ids(nodes: Sequence[int] | None) -> str:
    return "N/A" if nodes is None else ",".join(str(node) for node in nodes)


def _list(nodes: Sequence[int] | None) -> list[int] | None:
    return None if nodes is None else list(nodes)
