"""The membership of partitions in a producer's transaction is asked for at its coordinator, here or on another broker
(KIP-890).

Kafka's counterpart is `AddPartitionsToTxnManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pykbroker.client.errors import ClientError, code_of
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import CoordinatorContext
from pykbroker.transactions.requests import AddPartitions, PartitionsAdded

from ..network.inter_broker import InterBroker
from .transaction_coordinator import TransactionCoordinator

ADDING_BY_BROKERS_SINCE = 4
"""Of AddPartitionsToTxn; the producer follows the second transaction protocol then."""
SECOND_PROTOCOL = 2
CONNECTIONS = 3
"""To each broker. A coordinator answers when what it added is replicated, and a connection's requests one by one: a
partition of `__transaction_state` whose replicas are slow keeps one of them."""


class TransactionMembership:
    """The membership is asked for again while the transaction's predecessor is not complete.

    retry_backoff_ms, retry_backoff_max_ms: `add.partitions.to.txn.retry.backoff.(max.)ms`.
    """

    def __init__(
        self,
        node_id: int,
        transactions: TransactionCoordinator,
        inter_broker: InterBroker,
        *,
        image: Callable[[], MetadataImage],
        retry_backoff_ms: int,
        retry_backoff_max_ms: int,
    ) -> None:
        self._node_id = node_id
        self._transactions = transactions
        self._inter_broker = inter_broker
        self._image = image
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_backoff_max_ms = retry_backoff_max_ms

    def retry_waits_s(self) -> Iterator[float]:
        """Return how long to wait before each further question, while the transaction's predecessor is not complete."""
        waited_ms = 0
        while waited_ms < self._retry_backoff_max_ms:
            yield self._retry_backoff_ms / 1000
            waited_ms += self._retry_backoff_ms

    async def verify(self, request: AddPartitions) -> Mapping[TopicPartition, ErrorCode]:
        """Return NONE for each partition that belongs to the transaction, or was added to it, as the request says."""
        index = self._transactions.partition_for(request.transactional_id)
        state = None if index is None else self._image().partition(self._transactions.topic, index)
        if index is None or state is None or state.leader < 0:
            return dict.fromkeys(request.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if state.leader != self._node_id:
            return await self._ask_elsewhere(state.leader, index, request)
        context = CoordinatorContext(api_version=ADDING_BY_BROKERS_SINCE)
        try:
            added: PartitionsAdded = await self._transactions.submit_to_partition(index, request, context)
        except ApiError as error:
            return dict.fromkeys(request.partitions, error.code)
        return added.errors

    async def _ask_elsewhere(
        self, node_id: int, index: int, request: AddPartitions
    ) -> Mapping[TopicPartition, ErrorCode]:
        try:
            response = await self._inter_broker.request(
                node_id, _batched(request), AddPartitionsToTxnResponse, purpose=_purpose(index)
            )
        except ClientError:
            return dict.fromkeys(request.partitions, ErrorCode.NETWORK_EXCEPTION)
        if response.error_code:
            return dict.fromkeys(request.partitions, code_of(response.error_code))
        return {
            TopicPartition(topic.name, each.partition_index): code_of(each.partition_error_code)
            for result in response.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }


def _purpose(index: int) -> str:
    return f"verification {index % CONNECTIONS}"


def _batched(request: AddPartitions) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for at in request.partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                verify_only=request.verify_only,
                topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
            )
        ]
    )
