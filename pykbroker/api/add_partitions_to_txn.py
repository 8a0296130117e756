"""AddPartitionsToTxn (key 24): a producer's transaction will have records in these partitions.

Served are versions 0 to 5. Producers use up to 3, for one transaction; since 4 brokers ask for several at once, to add
partitions or only to see whether they belong (KIP-890). A partition that does not exist keeps the others of its
transaction from being added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.coordinators.transaction_membership import ADDING_BY_BROKERS_SINCE, SECOND_PROTOCOL
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions
from pykbroker.transactions.requests import AddPartitions, PartitionsAdded

from .authorization import denied, is_allowed, is_allowed_on_cluster
from .transaction_requests import submit


@handles(
    AddPartitionsToTxnRequest,
    needs=names(
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (Operation.WRITE, ResourceType.TOPIC),
        (Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    ),
)
async def add_partitions_to_txn(
    context: RequestContext[Broker], request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.header.api_version < ADDING_BY_BROKERS_SINCE:
        (result,) = await _add_all(context, [_of_producer(request)], client_transaction_version=0)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
    if not is_allowed_on_cluster(context, Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = await _add_all(context, request.transactions, client_transaction_version=SECOND_PROTOCOL)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _of_producer(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _add_all(
    context: RequestContext[Broker],
    transactions: Sequence[AddPartitionsToTxnTransaction],
    *,
    client_transaction_version: int,
) -> list[AddPartitionsToTxnResult]:
    results = []
    for transaction in transactions:
        partitions = await _partitions(context, transaction)
        errors = await _objections(context, transaction.transactional_id, partitions)
        asked_once = bool(errors) or transaction.verify_only
        if not errors:
            asked = AddPartitions(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                partitions=partitions,
                verify_only=transaction.verify_only,
                client_transaction_version=client_transaction_version,
            )
            errors = await _add(context, asked)
        if asked_once:
            topics = await _topic_results(context, partitions, errors)
        else:
            topics = [await _topic_result(context, topic, errors) for topic in transaction.topics]
        results.append(AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics))
    return results


async def _partitions(
    context: RequestContext[Broker], transaction: AddPartitionsToTxnTransaction
) -> tuple[TopicPartition, ...]:
    """Return the partitions that the transaction names, each once."""
    named = (TopicPartition(topic.name, each) for topic in transaction.topics for each in topic.partitions)
    return tuple(await context.turn.distinct(named))


async def _objections(
    context: RequestContext[Broker], transactional_id: str, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, ErrorCode]:
    """Empty where all partitions exist, and the producer may write to all of them. Brokers have asked before."""
    hidden: Collection[str] = ()
    if context.header.api_version < ADDING_BY_BROKERS_SINCE:
        if not is_allowed(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        hidden = await denied(context, Operation.WRITE, ResourceType.TOPIC, (at.topic for at in partitions))
    refused: dict[TopicPartition, ErrorCode] = {}
    for portion in portions(partitions):
        image = context.node.image
        for at in portion:
            if at.topic in hidden:
                refused[at] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(at.topic, at.partition) is None:
                refused[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await context.turn.took(len(portion))
    if not refused:
        return {}
    errors: dict[TopicPartition, ErrorCode] = {}
    for portion in portions(partitions):
        errors.update((at, refused.get(at, ErrorCode.OPERATION_NOT_ATTEMPTED)) for at in portion)
        await context.turn.took(len(portion))
    return errors


async def _add(context: RequestContext[Broker], asked: AddPartitions) -> Mapping[TopicPartition, ErrorCode]:
    try:
        added: PartitionsAdded = await submit(context, asked.transactional_id, asked)
    except ApiError as error:
        return dict.fromkeys(asked.partitions, error.code)
    return added.errors


async def _topic_result(
    context: RequestContext[Broker], topic: AddPartitionsToTxnTopic, errors: Mapping[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnTopicResult:
    """Answer what was added as it was asked for."""
    result = AddPartitionsToTxnTopicResult(name=topic.name)
    for portion in portions(topic.partitions):
        result.results_by_partition += [
            AddPartitionsToTxnPartitionResult(
                partition_index=each, partition_error_code=errors[TopicPartition(topic.name, each)]
            )
            for each in portion
        ]
        await context.turn.took(len(portion))
    return result


async def _topic_results(
    context: RequestContext[Broker], partitions: Sequence[TopicPartition], errors: Mapping[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    """Each partition that was looked at is answered once, and each topic that has any has one row, as in Kafka."""
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for portion in portions(partitions):
        for at in portion:
            result = results.get(at.topic)
            if result is None:
                result = results[at.topic] = AddPartitionsToTxnTopicResult(name=at.topic)
            result.results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index=at.partition, partition_error_code=errors[at])
            )
        await context.turn.took(len(portion))
    return list(results.values())
