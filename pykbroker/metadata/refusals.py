"""What a request to the controller is answered when nothing of it could be done: each part of it has the error code.

For reasons that lie outside of the metadata, such as a log that has no room for another record.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pykbroker.long_work import LongWork, each_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from pykbroker.protocol.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pykbroker.protocol.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from pykbroker.protocol.schema import Message

from . import elect_leaders


def refuse(request: Message, error_code: ErrorCode, message: str) -> LongWork[Message]:
    """The response to any request that the controller has a rule for."""

    def of(row: Any, **values: Any) -> Any:
        return row(error_code=error_code, error_message=message, **values)

    match request:
        case CreateTopicsRequest():
            created = yield from each_of(request.topics, lambda topic: of(CreatableTopicResult, name=topic.name))
            return CreateTopicsResponse(topics=created)
        case DeleteTopicsRequest():
            deleted = yield from each_of(
                chain(request.topics, (DeleteTopicState(name=name) for name in request.topic_names)),
                lambda topic: of(DeletableTopicResult, name=topic.name, topic_id=topic.topic_id),
            )
            return DeleteTopicsResponse(responses=deleted)
        case CreatePartitionsRequest():
            grown = yield from each_of(request.topics, lambda topic: of(CreatePartitionsTopicResult, name=topic.name))
            return CreatePartitionsResponse(results=grown)
        case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
            resources: Sequence[Any] = request.resources
            altered = yield from each_of(
                resources,
                lambda resource: of(
                    AlterConfigsResourceResponse,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                ),
            )
            if isinstance(request, AlterConfigsRequest):
                return AlterConfigsResponse(responses=altered)
            return IncrementalAlterConfigsResponse(responses=altered)
        case ElectLeadersRequest():
            return (yield from elect_leaders.refusal(request, error_code, message))
        case _:
            return _refuse_whole(request, error_code, message)


def _refuse_whole(request: Message, error_code: ErrorCode, message: str) -> Message:
    """Where one code stands for all of it."""
    match request:
        case AssignReplicasToDirsRequest():
            return AssignReplicasToDirsResponse(error_code=error_code)
        case AlterPartitionRequest():
            return AlterPartitionResponse(error_code=error_code)
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(error_code=error_code, error_message=message)
        case UnregisterBrokerRequest():
            return UnregisterBrokerResponse(error_code=error_code, error_message=message)
        case AllocateProducerIdsRequest():
            return AllocateProducerIdsResponse(error_code=error_code)
        case UpdateFeaturesRequest():
            return UpdateFeaturesResponse(error_code=error_code, error_message=message)
        case BrokerHeartbeatRequest():
            return BrokerHeartbeatResponse(error_code=error_code)
        case BrokerRegistrationRequest():
            return BrokerRegistrationResponse(error_code=error_code)
        case ControllerRegistrationRequest():
            return ControllerRegistrationResponse(error_code=error_code, error_message=message)
        case AlterPartitionReassignmentsRequest():
            return AlterPartitionReassignmentsResponse(error_code=error_code, error_message=message)
        case AddRaftVoterRequest():
            return AddRaftVoterResponse(error_code=error_code, error_message=message)
        case RemoveRaftVoterRequest():
            return RemoveRaftVoterResponse(error_code=error_code, error_message=message)
        case DescribeQuorumRequest():
            return DescribeQuorumResponse(error_code=error_code, error_message=message)
        case _:
            raise TypeError(f"no answer is known to {type(request).__name__}")
