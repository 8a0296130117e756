"""DescribeProducers (key 61): who has written to partitions of late, and whose transaction is open there (KIP-664).

Served is version 0. Any replica answers from what its own log knows of producers, so that replicas can be compared.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from pykbroker.server.dispatch import RequestContext, handles
from pykbroker.storage.producer_entry import ProducerEntry

_NO_TRANSACTION = -1


@handles(DescribeProducersRequest)
async def describe_producers(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_describe(context, topic.name, each) for each in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    partition = context.broker.partitions.get_partition(topic, index)
    if isinstance(partition, ErrorCode):
        return PartitionResponse(partition_index=index, error_code=partition, error_message=partition.description)
    producers = partition.log.producers.producers
    return PartitionResponse(
        partition_index=index, active_producers=[_producer(entry) for entry in list(producers.values())]
    )


def _producer(entry: ProducerEntry) -> ProducerState:
    first_offset = entry.current_transaction_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=_NO_TRANSACTION if first_offset is None else first_offset,
    )
