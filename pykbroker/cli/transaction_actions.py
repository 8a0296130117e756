"""Actions of `pykbroker transactions`: list, describe, producers, find-hanging, abort."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import ClusterMetadata
from pykbroker.client.transactions import (
    NO_DURATION,
    OpenTransaction,
    abort_transaction,
    describe_producers,
    describe_transaction,
    list_transactions,
    transaction_at,
)
from pykbroker.client.transactions import find_hanging as find_hanging_transactions
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .output import Column, print_table

_MS_PER_MINUTE = 60_000
_NONE = "None"


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """The options of a sub-command. flags: its own, by their names."""

    bootstrap_server: str
    command_config: Path | None
    flags: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.flags[name]

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self["topic"], self["partition"])


Action: TypeAlias = Callable[[Cluster, TransactionOptions], Awaitable[None]]


async def list_all(cluster: Cluster, options: TransactionOptions) -> None:
    duration_ms = NO_DURATION if options["duration_filter"] is None else options["duration_filter"]
    listed = await list_transactions(cluster, duration_ms=duration_ms, pattern=options["transactional_id_pattern"])
    columns = ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    rows = [
        [each.transactional_id, str(each.coordinator_id), str(each.producer_id), each.state]
        for each in sorted(listed, key=lambda each: each.transactional_id)
    ]
    _print(columns, rows)


async def describe(cluster: Cluster, options: TransactionOptions) -> None:
    coordinator, found = await describe_transaction(cluster, options["transactional_id"])
    began_ms = found.transaction_start_time_ms
    has_begun = began_ms >= 0
    at = [f"{topic.topic}-{each}" for topic in found.topics for each in topic.partitions]
    columns = {
        "CoordinatorId": coordinator.node_id,
        "TransactionalId": found.transactional_id,
        "ProducerId": found.producer_id,
        "ProducerEpoch": found.producer_epoch,
        "TransactionState": found.transaction_state,
        "TransactionTimeoutMs": found.transaction_timeout_ms,
        "CurrentTransactionStartTimeMs": began_ms if has_begun else _NONE,
        "TransactionDurationMs": _now_ms() - began_ms if has_begun else _NONE,
        "TopicPartitions": ",".join(at),
    }
    _print(list(columns), [[str(value) for value in columns.values()]])


async def producers(cluster: Cluster, options: TransactionOptions) -> None:
    node = None
    if options["broker_id"] is not None:
        node = (await cluster.refresh([])).nodes.get(options["broker_id"])
        if node is None:
            raise CommandFailed(f"Broker {options['broker_id']} is not there")
    columns = [
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    ]
    rows = [
        [
            str(each.producer_id),
            str(each.producer_epoch),
            str(each.coordinator_epoch),
            str(each.last_sequence),
            str(each.last_timestamp),
            str(each.current_txn_start_offset) if each.current_txn_start_offset >= 0 else _NONE,
        ]
        for each in await describe_producers(cluster, options.partition, node)
    ]
    _print(columns, rows)


async def hanging(cluster: Cluster, options: TransactionOptions) -> None:
    if options["topic"] is None and options["broker_id"] is None:
        raise CommandFailed("The find-hanging command requires either --topic or --broker-id")
    if options["topic"] is None and options["partition"] is not None:
        raise CommandFailed("--partition needs --topic")
    if options["topic"] is not None:
        await cluster.topic(options["topic"])
    metadata = await cluster.refresh(None if options["topic"] is None else [options["topic"]])
    partitions = [at for at in _partitions(metadata, options) if _is_wanted(metadata, at, options)]
    now_ms = _now_ms()
    oldest_ms = now_ms - options["max_transaction_timeout"] * _MS_PER_MINUTE
    found = await find_hanging_transactions(cluster, partitions, oldest_ms)
    columns = [
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    ]
    _print(columns, [_hanging_row(each, now_ms) for each in found])


def _partitions(metadata: ClusterMetadata, options: TransactionOptions) -> list[TopicPartition]:
    topics = [topic for name, topic in sorted(metadata.topics.items()) if options["topic"] in (None, name)]
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _is_wanted(metadata: ClusterMetadata, at: TopicPartition, options: TransactionOptions) -> bool:
    if options["partition"] not in (None, at.partition):
        return False
    leader = metadata.leader(at)
    return options["broker_id"] is None or (leader is not None and leader.node_id == options["broker_id"])


def _hanging_row(found: OpenTransaction, now_ms: int) -> list[str]:
    producer = found.producer
    return [
        found.at.topic,
        str(found.at.partition),
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(producer.coordinator_epoch),
        str(producer.current_txn_start_offset),
        str(producer.last_timestamp),
        str((now_ms - producer.last_timestamp) // _MS_PER_MINUTE),
    ]


async def abort(cluster: Cluster, options: TransactionOptions) -> None:
    named = [options["producer_id"], options["producer_epoch"], options["coordinator_epoch"]]
    if options["start_offset"] is not None:
        if any(value is not None for value in named):
            raise CommandFailed("--start-offset goes without producer id and epochs")
        producer = await transaction_at(cluster, options.partition, options["start_offset"])
        named = [producer.producer_id, producer.producer_epoch, max(producer.coordinator_epoch, 0)]
    if any(value is None for value in named):
        raise CommandFailed(
            "The transaction to abort is named by --start-offset, or by --producer-id, --producer-epoch and "
            "--coordinator-epoch"
        )
    await abort_transaction(cluster, options.partition, *named)


def _print(titles: list[str], rows: list[list[str]]) -> None:
    print_table([Column(title, 0) for title in titles], rows)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
