"""The response to a request that is refused as a whole, for any API that has rights on the cluster to ask for.

Kafka's counterpart is `AbstractRequest.getErrorResponse`. Most APIs have one error code on top; some have none, and
each row of theirs gets the error.
"""

from __future__ import annotations

from typing import Any

from pykbroker.long_work import LongWork, each_of
from pykbroker.metadata import error_responses
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from pykbroker.protocol.messages.quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from pykbroker.protocol.messages.scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykbroker.protocol.schema import Message

from ..coordinators.share_state_questions import QUESTIONS, Question

_TOPIC_IDS_SINCE = 13


def refused(request: Message, version: int, error: ApiError) -> LongWork[Message]:
    """Return the response that carries the error wherever it has a place for one."""
    match request:
        case CreateAclsRequest() | DeleteAclsRequest():
            return (yield from error_responses.error_response(request, error))
        case ElectLeadersRequest():
            return (yield from _elections(request, version, error))
        case FetchRequest() if version < _TOPIC_IDS_SINCE:
            return (yield from _fetch(request, error))
        case WriteTxnMarkersRequest():
            return (yield from _markers(request, error))
        case AlterReplicaLogDirsRequest():
            return (yield from _moves(request, error))
        case AlterPartitionReassignmentsRequest():
            return (yield from _reassignments(request, error))
        case ListPartitionReassignmentsRequest():
            return (yield from _ongoing_reassignments(request, error))
        case DescribeUserScramCredentialsRequest():
            return (yield from _described_credentials(request, error))
        case DescribeConfigsRequest():
            return (yield from _configs(request, error))
        case _ if (question := QUESTIONS.get(type(request))) is not None:
            return (yield from _share_state(question, request, error))
        case DescribeClientQuotasRequest():
            return DescribeClientQuotasResponse(error_code=error.code, error_message=None, entries=None)
        case _ if not _has_error_on_top(request):
            return (yield from error_responses.error_response(request, error))
        case _:
            return _on_top(request, error)


def _elections(request: ElectLeadersRequest, version: int, error: ApiError) -> LongWork[Message]:
    """Version 0 has no place for an error on top."""
    response = yield from error_responses.error_response(request, error)
    if version == 0 and isinstance(response, ElectLeadersResponse):
        response.error_code = ErrorCode.NONE
    return response


def _on_top(request: Message, error: ApiError) -> Message:
    response = _response_type(request)()
    response.error_code = error.code  # type: ignore[attr-defined]
    if any(each.name == "error_message" for each in response.__schema__.fields):
        response.error_message = str(error)  # type: ignore[attr-defined]
    return response


def _has_error_on_top(request: Message) -> bool:
    return any(each.name == "error_code" for each in _response_type(request).__schema__.fields)


def _response_type(request: Message) -> type[Message]:
    api_key = request.__schema__.api_key
    assert api_key is not None
    return response_type(api_key)


def _described_credentials(request: DescribeUserScramCredentialsRequest, error: ApiError) -> LongWork[Message]:
    """The answer has as many rows as users are asked for, without their names and without words, as from Kafka."""
    rows = yield from each_of(
        request.users or (), lambda each: DescribeUserScramCredentialsResult(error_code=error.code, error_message=None)
    )
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=None, results=rows)


def _configs(request: DescribeConfigsRequest, error: ApiError) -> LongWork[Message]:
    rows = yield from each_of(
        request.resources,
        lambda each: DescribeConfigsResult(
            error_code=error.code,
            error_message=str(error),
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        ),
    )
    return DescribeConfigsResponse(results=rows)


def _fetch(request: FetchRequest, error: ApiError) -> LongWork[Message]:
    response = FetchResponse(error_code=error.code, session_id=request.session_id)
    for topic in request.topics:
        rows = yield from each_of(
            topic.partitions,
            lambda each: PartitionData(partition_index=each.partition, error_code=error.code, records=b""),
        )
        response.responses.append(FetchableTopicResponse(topic=topic.topic, partitions=rows))
    return response


def _markers(request: WriteTxnMarkersRequest, error: ApiError) -> LongWork[Message]:
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        for topic in marker.topics:
            rows = yield from each_of(
                topic.partition_indexes,
                lambda index: WritableTxnMarkerPartitionResult(partition_index=index, error_code=error.code),
            )
            result.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        response.markers.append(result)
    return response


def _share_state(question: Question[Any, Any], request: Message, error: ApiError) -> LongWork[Message]:
    topics: dict[bytes, dict[int, Any]] = {}
    for each in question.asked_in(request):
        key = question.key(each)
        failed = question.failed(key, error.code, str(error))
        topics.setdefault(key.topic_id, {})[key.partition] = question.result(failed)
        yield 3 * question.weight(each)
    return question.response(topics)


def _moves(request: AlterReplicaLogDirsRequest, error: ApiError) -> LongWork[Message]:
    response = AlterReplicaLogDirsResponse()
    for directory in request.dirs:
        for topic in directory.topics:
            rows = yield from each_of(
                topic.partitions,
                lambda index: AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code),
            )
            response.results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=rows))
    return response


def _reassignments(request: AlterPartitionReassignmentsRequest, error: ApiError) -> LongWork[Message]:
    response = AlterPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    for topic in request.topics:
        rows = yield from each_of(
            topic.partitions,
            lambda each: ReassignablePartitionResponse(
                partition_index=each.partition_index, error_code=error.code, error_message=str(error)
            ),
        )
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=rows))
    return response


def _ongoing_reassignments(request: ListPartitionReassignmentsRequest, error: ApiError) -> LongWork[Message]:
    response = ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    for topic in request.topics or ():
        rows = yield from each_of(
            topic.partition_indexes, lambda index: OngoingPartitionReassignment(partition_index=index)
        )
        response.topics.append(OngoingTopicReassignment(name=topic.name, partitions=rows))
    return response
