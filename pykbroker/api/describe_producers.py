"""DescribeProducers (key 61): who has written to partitions of late, and whose transaction is open there (KIP-664).

Served is version 0. Any replica answers from what its own log knows of producers, so that replicas can be compared.
"""

from __future__ import annotations

from pykbroker.metadata.topic_names import invalid_reason
from pykbroker.protocol.encoded_array import LARGEST_ANSWER_BYTES, EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions
from pykbroker.storage.producers.producer_entry import ProducerEntry

from .authorization import is_allowed

_NO_TRANSACTION = -1
_STEPS_OF_PARTITION = 4
_STEPS_OF_PRODUCER = 3


@handles(DescribeProducersRequest, needs=names((Operation.READ, ResourceType.TOPIC)))
async def describe_producers(
    context: RequestContext[Broker], request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """A partition that is named twice is described twice, out of the same bytes."""
    description = _Description(context)
    response = DescribeProducersResponse()
    for topic in request.topics:
        answer = TopicResponse(name=topic.name)
        response.topics.append(answer)
        refusal = _refusal(context, topic.name)
        for index in topic.partition_indexes:
            answer.partitions.append(
                PartitionResponse(partition_index=index, error_code=refusal, error_message=refusal.description)
                if refusal is not None
                else await description.of(topic.name, index)
            )
            await context.turn.took(_STEPS_OF_PARTITION)
    return response


def _refusal(context: RequestContext[Broker], topic: str) -> ErrorCode | None:
    """Return why nothing of the topic is described. Of a partition that is not here Kafka gives the error alone."""
    if invalid_reason(topic) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not is_allowed(context, Operation.READ, ResourceType.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if context.node.image.topic(topic) is None else None


class _Description:
    def __init__(self, context: RequestContext[Broker]) -> None:
        self._context = context
        self._described: dict[tuple[str, int], EncodedStructs] = {}
        self._size_bytes = 0

    async def of(self, topic: str, index: int) -> PartitionResponse:
        partition = self._context.node.partitions.get_partition(topic, index)
        if isinstance(partition, ErrorCode):
            return PartitionResponse(partition_index=index, error_code=partition)
        if self._size_bytes > LARGEST_ANSWER_BYTES:
            reason = "the answer would be too large: ask for less at a time"
            error_code = ErrorCode.INVALID_REQUEST
            return PartitionResponse(partition_index=index, error_code=error_code, error_message=reason)
        described = self._described.get((topic, index))
        if described is None:
            described = self._described[topic, index] = await self._encoded(partition)
        self._size_bytes += sum(map(len, described.parts))
        return PartitionResponse(partition_index=index, active_producers=described.of(ProducerState))

    async def _encoded(self, partition: Partition) -> EncodedStructs:
        producers = EncodedArray(DescribeProducersResponse, self._context.header.api_version)
        for portion in portions(list(partition.log.producers.producers.values())):
            producers.add([_producer(entry) for entry in portion])
            await self._context.turn.took(len(portion) * _STEPS_OF_PRODUCER)
        return producers.finish()


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
