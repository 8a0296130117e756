"""TxnOffsetCommit (key 28): offsets of a group, as part of a producer's transaction.

Served are versions 0 to 6: 2 brought leader epochs (KIP-320), 3 the member, to fence zombies (KIP-447), 4 may be
answered with TRANSACTION_ABORTABLE, with 5 the group is added to the transaction by the way (KIP-890), and 6 has topic
ids in place of names (KIP-1319).
"""

from __future__ import annotations

from collections.abc import Iterable

from pykbroker.groups.common.requests import check_group_id
from pykbroker.metadata.image import TopicState
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import denied
from .group_requests import check_group, submit, take_out_unknown
from .pieces import in_pieces, steps_of, with_topics
from .transaction_requests import check_transactional_id
from .transaction_verification import ClientSupport, TransactionVerification

_TRANSACTION_ABORTABLE_SINCE = 4
_ADDING_SINCE = 5
_TOPIC_IDS_SINCE = 6
_NO_SEQUENCE = -1
_STEPS_OF_COMMIT = 8

_ERRORS_OF_VERIFICATION = {ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Older clients try that again at once, without looking for the coordinator anew."""


@handles(
    TxnOffsetCommitRequest,
    needs=names(
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (Operation.READ, ResourceType.GROUP),
        (Operation.READ, ResourceType.TOPIC),
    ),
)
async def txn_offset_commit(
    context: RequestContext[Broker], request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Partitions that do not exist are answered here, the others by the coordinator, in the order of the request."""
    refusal = _refusal(context, request)
    found = await _find(context, request)
    answers = [TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id) for topic in request.topics]
    hidden = await denied(context, Operation.READ, ResourceType.TOPIC, _names(request, refusal))
    found = [
        None if refusal is not None or topic.name in hidden else state
        for topic, state in zip(request.topics, found, strict=True)
    ]
    split = [
        await take_out_unknown(context, topic.partitions, of) for topic, of in zip(request.topics, found, strict=True)
    ]
    known = [partitions for partitions, _ in split]
    for piece in in_pieces(zip(answers, known, strict=True)):
        topics = [
            TxnOffsetCommitRequestTopic(name=answer.name, topic_id=answer.topic_id, partitions=list(partitions))
            for answer, partitions in piece
        ]
        response = await _commit(context, with_topics(request, topics))
        for (answer, _), answered in zip(piece, response.topics, strict=True):
            answer.partitions += answered.partitions
        await context.turn.took(steps_of(piece, _STEPS_OF_COMMIT))
    for answer, (_, unknown) in zip(answers, split, strict=True):
        denial = refusal or (ErrorCode.TOPIC_AUTHORIZATION_FAILED if answer.name in hidden else None)
        # A name that is still missing would have come from the topic's id.
        is_known = answer.name or not _has_ids(context)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_known else ErrorCode.UNKNOWN_TOPIC_ID
        await _refuse(context, answer, unknown, denial or missing)
    refused = [of is None or bool(unknown) for of, (_, unknown) in zip(found, split, strict=True)]
    return TxnOffsetCommitResponse(topics=_rows(answers, refused))


def _rows(answers: list[TxnOffsetCommitResponseTopic], refused: list[bool]) -> list[TxnOffsetCommitResponseTopic]:
    """Return one row for each topic where some are refused; a topic that is refused has one even without partitions.

    Where none is, the coordinator's rows are those of the request (Kafka's `TxnOffsetCommitResponse.Builder`).
    """
    if not any(refused):
        return [answer for answer in answers if answer.partitions]
    rows: dict[tuple[str, bytes], TxnOffsetCommitResponseTopic] = {}
    for answer, is_refused in zip(answers, refused, strict=True):
        named = answer.name, answer.topic_id
        if named in rows:
            rows[named].partitions += answer.partitions
        elif answer.partitions or is_refused:
            rows[named] = answer
    return list(rows.values())


def _has_ids(context: RequestContext[Broker]) -> bool:
    return context.header.api_version >= _TOPIC_IDS_SINCE


async def _find(context: RequestContext[Broker], request: TxnOffsetCommitRequest) -> list[TopicState | None]:
    """Return the topics of the request as they are now; those that are named by their ids get their names."""
    if not _has_ids(context):
        return [context.node.image.topic(topic.name) for topic in request.topics]
    found: list[TopicState | None] = []
    for portion in portions(request.topics):
        for topic in portion:
            state = context.node.image.topic_by_id(topic.topic_id)
            topic.name = "" if state is None else state.name
            found.append(state)
        await context.turn.took(len(portion))
    return found


def _refusal(context: RequestContext[Broker], request: TxnOffsetCommitRequest) -> ErrorCode | None:
    """Return the error of a client that may not use the transactional id or the group."""
    try:
        check_transactional_id(context, request.transactional_id)
        check_group(context, Operation.READ, request.group_id)
    except ApiError as error:
        return error.code
    return None


def _names(request: TxnOffsetCommitRequest, refusal: ErrorCode | None) -> Iterable[str]:
    """Return the topics whose rights are to be looked up."""
    return () if refusal is not None else (topic.name for topic in request.topics if topic.name)


async def _refuse(
    context: RequestContext[Broker], answer: TxnOffsetCommitResponseTopic, unknown: list[int], error_code: ErrorCode
) -> None:
    for indexes in portions(unknown):
        answer.partitions += [
            TxnOffsetCommitResponsePartition(partition_index=each, error_code=error_code) for each in indexes
        ]
        await context.turn.took(len(indexes))


async def _commit(context: RequestContext[Broker], request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    try:
        check_group_id(request.group_id, request)
        await _verify(context, request)
        response: TxnOffsetCommitResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        from pykbroker.groups.offsets.offset_commits import refused_txn_commit

        return refused_txn_commit(request, _ERRORS_OF_VERIFICATION.get(error.code, error.code))
    return response


async def _verify(context: RequestContext[Broker], request: TxnOffsetCommitRequest) -> None:
    """Return in the moment in which the group's partition belongs to the transaction. Raises ApiError."""
    partition = _offsets_partition(context, request.group_id)
    producer = request.producer_id, request.producer_epoch
    verification = TransactionVerification(
        context.node, request.transactional_id, *producer, _support(context.header.api_version)
    )
    if not verification.is_needed:
        return
    verification.begin(partition, _NO_SEQUENCE)
    await verification.ask()
    error_code = verification.refusal(partition)
    if error_code is not ErrorCode.NONE:
        raise ApiError(error_code)
    partition.log.producers.check_verified(*producer, verification.guard(partition))


def _offsets_partition(context: RequestContext[Broker], group_id: str) -> Partition:
    """Raises ApiError."""
    groups = context.node.groups
    index = groups.partition_for(group_id)
    if index is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # the topic does not exist yet
    partition = context.node.partitions.get_partition(groups.topic, index)
    if isinstance(partition, Partition) and partition.is_leader:
        return partition
    raise ApiError(ErrorCode.NOT_COORDINATOR)


def _support(version: int) -> ClientSupport:
    if version >= _ADDING_SINCE:
        return ClientSupport.ADDING
    return ClientSupport.ABORTABLE_ERRORS if version >= _TRANSACTION_ABORTABLE_SINCE else ClientSupport.FIRST_ERRORS
