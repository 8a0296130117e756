"""Looking at transactions, and ending those that nobody ends any more (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducerState,
    TopicRequest,
)
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import TRANSACTION_COORDINATOR, Cluster
from .errors import BadInput, KafkaError, UnsupportedByBroker, check
from .metadata import Node

DURATION_SINCE = 1
PATTERN_SINCE = 2
NO_DURATION = -1


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction as the log of a partition tells it."""

    at: TopicPartition
    producer: ProducerState


async def list_transactions(
    cluster: Cluster,
    *,
    producer_ids: Sequence[int] = (),
    duration_ms: int = NO_DURATION,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """Those of every broker. Raises UnsupportedByBroker where one does not know the filter."""
    found: list[ListedTransaction] = []
    for node in (await cluster.refresh([])).nodes.values():
        connection = await cluster.node_connection(node)
        version = connection.version_of(ListTransactionsRequest)
        if (pattern is not None and version < PATTERN_SINCE) or (duration_ms >= 0 and version < DURATION_SINCE):
            raise UnsupportedByBroker(f"{connection.peer} cannot filter transactions so")
        request = ListTransactionsRequest(producer_id_filters=list(producer_ids))
        if version >= DURATION_SINCE:
            request.duration_filter = duration_ms
        if version >= PATTERN_SINCE:
            request.transactional_id_pattern = pattern
        response = await cluster.request(
            request, ListTransactionsResponse, node=node, verify=lambda answer: check(answer.error_code)
        )
        found += [
            ListedTransaction(each.transactional_id, node.node_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ]
    return found


async def describe_transaction(
    cluster: Cluster, transactional_id: str
) -> tuple[Node, DescribeTransactionsResponseTransactionState]:
    """Return a transaction with its coordinator. Raises KafkaError."""

    def verify(response: DescribeTransactionsResponse) -> None:
        for row in response.transaction_states:
            check(row.error_code)

    response = await cluster.coordinator_request(
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
        key_type=TRANSACTION_COORDINATOR,
        verify=verify,
    )
    node = await cluster.coordinator(transactional_id, TRANSACTION_COORDINATOR)
    return node, response.transaction_states[0]


async def describe_producers(cluster: Cluster, at: TopicPartition, node: Node | None = None) -> list[ProducerState]:
    """Return what the partition's leader, or `node`, knows of its producers. Raises KafkaError."""

    def verify(response: DescribeProducersResponse) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                check(partition.error_code, partition.error_message)

    response = await cluster.request(
        DescribeProducersRequest(topics=[TopicRequest(name=at.topic, partition_indexes=[at.partition])]),
        DescribeProducersResponse,
        node=node or await cluster.leader(at),
        verify=verify,
    )
    return response.topics[0].partitions[0].active_producers


async def abort_transaction(
    cluster: Cluster, at: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """Write an abort marker into the partition, past the coordinator. Raises KafkaError."""

    def verify(response: WriteTxnMarkersResponse) -> None:
        for marker in response.markers:
            for topic in marker.topics:
                for partition in topic.partitions:
                    check(partition.error_code)

    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=at.topic, partition_indexes=[at.partition])],
        coordinator_epoch=coordinator_epoch,
    )
    await cluster.request(
        WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        node=await cluster.leader(at),
        verify=verify,
    )


async def find_open(
    cluster: Cluster, partitions: Collection[TopicPartition], started_before_ms: int
) -> list[OpenTransaction]:
    """Transactions that are open in the partitions' logs, and whose last record is older."""
    found = []
    for at in partitions:
        for producer in await describe_producers(cluster, at):
            if producer.current_txn_start_offset >= 0 and producer.last_timestamp < started_before_ms:
                found.append(OpenTransaction(at, producer))
    return found


async def find_hanging(
    cluster: Cluster, partitions: Collection[TopicPartition], started_before_ms: int
) -> list[OpenTransaction]:
    """Those of `find_open` that no coordinator knows of: nobody would ever end them."""
    candidates = await find_open(cluster, partitions, started_before_ms)
    if not candidates:
        return []
    producer_ids = sorted({each.producer.producer_id for each in candidates})
    known: dict[int, set[TopicPartition]] = {}
    for listed in await list_transactions(cluster, producer_ids=producer_ids):
        known.setdefault(listed.producer_id, set()).update(await _partitions_of(cluster, listed))
    return [each for each in candidates if each.at not in known.get(each.producer.producer_id, ())]


async def _partitions_of(cluster: Cluster, listed: ListedTransaction) -> set[TopicPartition]:
    try:
        _, described = await describe_transaction(cluster, listed.transactional_id)
    except KafkaError as error:
        if error.retriable:
            raise
        return set()  # it is gone by now
    return {TopicPartition(topic.topic, each) for topic in described.topics for each in topic.partitions}


async def transaction_at(cluster: Cluster, at: TopicPartition, start_offset: int) -> ProducerState:
    """Return the producer of the open transaction that began at the offset. Raises BadInput."""
    for producer in await describe_producers(cluster, at):
        if producer.current_txn_start_offset == start_offset:
            return producer
    raise BadInput(f"Could not find any open transactions starting at offset {start_offset} on partition {at}")
