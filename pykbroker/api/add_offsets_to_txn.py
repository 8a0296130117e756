"""AddOffsetsToTxn (key 25): a producer's transaction will have offsets of a group.

Served are versions 0 to 4: 2 may be answered with PRODUCER_FENCED, 4 with TRANSACTION_ABORTABLE (KIP-890). What is
added is the group's partition of `__consumer_offsets`, which is created where nobody has needed it yet. Producers of
the second protocol leave this request out; TxnOffsetCommit does it for them.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transactions import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.transactions.requests import AddPartitions, PartitionsAdded

from .coordinator_topics import ensure_topic
from .group_requests import check_group
from .transaction_requests import check_transactional_id, submit


@handles(
    AddOffsetsToTxnRequest,
    needs=names((Operation.WRITE, ResourceType.TRANSACTIONAL_ID), (Operation.READ, ResourceType.GROUP)),
)
async def add_offsets_to_txn(
    context: RequestContext[Broker], request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=await _add(context, request))


async def _add(context: RequestContext[Broker], request: AddOffsetsToTxnRequest) -> ErrorCode:
    try:
        check_transactional_id(context, request.transactional_id)
        check_group(context, Operation.READ, request.group_id)
    except ApiError as error:
        return error.code
    groups = context.node.groups
    error_code = await ensure_topic(context.node, groups)
    index = groups.partition_for(request.group_id)
    if error_code is not ErrorCode.NONE or index is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    offsets = TopicPartition(groups.topic, index)
    asked = AddPartitions(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        partitions=(offsets,),
    )
    try:
        added: PartitionsAdded = await submit(context, request.transactional_id, asked)
    except ApiError as error:
        return error.code
    return added.errors[offsets]
