"""Actions of `pykbroker transactions`: list, describe, producers, find-hanging, abort."""

from __future__ import annotations

import time
from collections.abc import Sequence

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
from pykbroker.client.transactions import find_hanging as hanging_transactions
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .confirmation import confirm, is_settled
from .entries import Field, Value, print_entries, print_json, text_of
from .listing import timestamp_text
from .output import Column, print_table
from .progress import stages
from .transaction_options import TransactionOptions

_MS_PER_MINUTE = 60_000
_NONE = "None"


_TRANSACTION = (
    Field("transactional_id", "TransactionalId"),
    Field("coordinator", "Coordinator"),
    Field("producer_id", "ProducerId"),
    Field("state", "TransactionState"),
)
_DESCRIPTION = (
    Field("coordinator", "CoordinatorId"),
    Field("transactional_id", "TransactionalId"),
    Field("producer_id", "ProducerId"),
    Field("producer_epoch", "ProducerEpoch"),
    Field("state", "TransactionState"),
    Field("timeout_ms", "TransactionTimeoutMs"),
    Field("start_time_ms", "CurrentTransactionStartTimeMs"),
    Field("duration_ms", "TransactionDurationMs"),
    Field("partitions", "TopicPartitions"),
)
_PRODUCER = (
    Field("producer_id", "ProducerId"),
    Field("producer_epoch", "ProducerEpoch"),
    Field("coordinator_epoch", "LatestCoordinatorEpoch"),
    Field("last_sequence", "LastSequence"),
    Field("last_timestamp", "LastTimestamp"),
    Field("start_offset", "CurrentTransactionStartOffset"),
)
_HANGING = (
    Field("topic", "Topic"),
    Field("partition", "Partition"),
    Field("producer_id", "ProducerId"),
    Field("producer_epoch", "ProducerEpoch"),
    Field("coordinator_epoch", "CoordinatorEpoch"),
    Field("start_offset", "StartOffset"),
    Field("last_timestamp", "LastTimestamp"),
    Field("duration_min", "Duration(min)"),
)


async def list_all(cluster: Cluster, options: TransactionOptions) -> None:
    """Print the transactions of all coordinators."""
    duration_ms = NO_DURATION if options["duration_filter"] is None else options["duration_filter"]
    listed = await list_transactions(cluster, duration_ms=duration_ms, pattern=options["transactional_id_pattern"])
    rows: list[list[Value]] = [
        [each.transactional_id, each.coordinator_id, each.producer_id, each.state]
        for each in sorted(listed, key=lambda each: each.transactional_id)
    ]
    _print(_TRANSACTION, rows, options)


async def describe(cluster: Cluster, options: TransactionOptions) -> None:
    """Print the state of one transactional id."""
    coordinator, found = await describe_transaction(cluster, options["transactional_id"])
    began_ms = found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None
    row: list[Value] = [
        coordinator.node_id,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        began_ms,
        None if began_ms is None else _now_ms() - began_ms,
        [f"{topic.topic}-{each}" for topic in found.topics for each in topic.partitions],
    ]
    _print(_DESCRIPTION, [row], options)


async def producers(cluster: Cluster, options: TransactionOptions) -> None:
    """Print the producers of a partition."""
    node = None
    if options["broker_id"] is not None:
        node = (await cluster.refresh([])).nodes.get(options["broker_id"])
        if node is None:
            raise CommandFailed(f"Broker {options['broker_id']} is not there")
    rows: list[list[Value]] = [
        [
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
        ]
        for each in await describe_producers(cluster, options.partition, node)
    ]
    _print(_PRODUCER, rows, options)


async def find_hanging(cluster: Cluster, options: TransactionOptions) -> None:
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
    with stages(1) as under_way:
        under_way.begin("Looking for hanging transactions")
        found = await hanging_transactions(cluster, partitions, oldest_ms)
    _print(_HANGING, [_hanging_row(each, now_ms) for each in found], options)


def _partitions(metadata: ClusterMetadata, options: TransactionOptions) -> list[TopicPartition]:
    topics = [topic for name, topic in sorted(metadata.topics.items()) if options["topic"] in (None, name)]
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _is_wanted(metadata: ClusterMetadata, at: TopicPartition, options: TransactionOptions) -> bool:
    if options["partition"] not in (None, at.partition):
        return False
    leader = metadata.leader(at)
    return options["broker_id"] is None or (leader is not None and leader.node_id == options["broker_id"])


def _hanging_row(found: OpenTransaction, now_ms: int) -> list[Value]:
    producer = found.producer
    return [
        found.at.topic,
        found.at.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
        producer.last_timestamp,
        (now_ms - producer.last_timestamp) // _MS_PER_MINUTE,
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
    if not is_settled(yes=options["yes"], named=True):
        going = [await _going(cluster, options.partition, *named)]
        await confirm("Abort this transaction", going, yes=options["yes"], named=True)
    await abort_transaction(cluster, options.partition, *named)
    if options["as_json"]:
        at, names = options.partition, ("producer_id", "producer_epoch", "coordinator_epoch")
        print_json([{"topic": at.topic, "partition": at.partition, **dict(zip(names, named, strict=True))}])


async def _going(
    cluster: Cluster, at: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> str:
    """Return the line that says what would be aborted."""
    text = f"{at}: producer {producer_id}, epoch {producer_epoch}, coordinator epoch {coordinator_epoch}"
    for each in await describe_producers(cluster, at):
        if each.producer_id == producer_id:
            if each.current_txn_start_offset < 0:
                return f"{text}, which has no open transaction there"
            last = timestamp_text(each.last_timestamp)
            return f"{text}, open from offset {each.current_txn_start_offset} on, last record at {last}"
    return f"{text}, which the partition does not know"


def _print(fields: Sequence[Field], rows: Sequence[Sequence[Value]], options: TransactionOptions) -> None:
    """Print entries; in a table nothing is `None` and an empty list is empty, as Kafka's tool has it."""
    if options["as_json"]:
        print_entries(fields, rows, as_json=True)
        return
    cells = [[_NONE if value is None else "" if value == [] else text_of(value) for value in row] for row in rows]
    print_table([Column(field.title or field.name, 0) for field in fields], cells)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
