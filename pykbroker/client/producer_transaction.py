"""The transactions of one producer: which partitions are in the one that is open, and its end.

The requests are those of clients before KIP-890, which every broker takes: partitions are added before the first batch
for them is sent, and the producer's epoch stays. Not here: offsets of groups as a part of a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio

from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .batch import ProducerIdentity
from .cluster import TRANSACTION_COORDINATOR, Cluster
from .errors import check

TRANSACTION_TIMEOUT_MS = 60_000
PRODUCES_UNTIL: Final = 11
"""From Produce v12 on a batch adds its partition by itself, and brokers take a producer for one that does so."""
_ADDS_UNTIL: Final = 3
_ENDS_UNTIL: Final = 4
_INIT_UNTIL: Final = 5


class ProducerTransaction:
    """Made by `init_transactions`. A transaction begins with its first batch."""

    def __init__(self, cluster: Cluster, transactional_id: str, identity: ProducerIdentity) -> None:
        self.transactional_id = transactional_id
        self.identity = identity
        self._cluster = cluster
        self._partitions: set[TopicPartition] = set()
        self._lock = trio.Lock()

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add those that are not in the transaction yet. Raises ClientError."""
        async with self._lock:
            new = [each for each in partitions if each not in self._partitions]
            if not new:
                return
            topics: dict[str, AddPartitionsToTxnTopic] = {}
            for each in new:
                row = topics.setdefault(each.topic, AddPartitionsToTxnTopic(name=each.topic))
                row.partitions.append(each.partition)
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.producer_epoch,
                v3_and_below_topics=list(topics.values()),
            )
            await self._cluster.coordinator_request(
                self.transactional_id,
                request,
                AddPartitionsToTxnResponse,
                key_type=TRANSACTION_COORDINATOR,
                at_most=_ADDS_UNTIL,
                verify=_check_added,
            )
            self._partitions.update(new)

    async def end(self, *, committed: bool) -> None:
        """Commit or abort what has been added, if anything has. Raises ClientError."""
        async with self._lock:
            if not self._partitions:
                return
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                committed=committed,
            )
            await self._cluster.coordinator_request(
                self.transactional_id,
                request,
                EndTxnResponse,
                key_type=TRANSACTION_COORDINATOR,
                at_most=_ENDS_UNTIL,
                verify=lambda answer: check(answer.error_code),
            )
            self._partitions.clear()


async def init_transactions(
    cluster: Cluster, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
) -> ProducerTransaction:
    """Fence former producers of the transactional id, and abort what they left open. Raises ClientError."""
    response = await cluster.coordinator_request(
        transactional_id,
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms),
        InitProducerIdResponse,
        key_type=TRANSACTION_COORDINATOR,
        at_most=_INIT_UNTIL,
        verify=lambda answer: check(answer.error_code),
    )
    identity = ProducerIdentity(response.producer_id, response.producer_epoch)
    return ProducerTransaction(cluster, transactional_id, identity)


def _check_added(response: AddPartitionsToTxnResponse) -> None:
    for topic in response.results_by_topic_v3_and_below:
        for row in topic.results_by_partition:
            check(row.partition_error_code)
