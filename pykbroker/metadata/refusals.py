"""What a request to the controller is answered when nothing of it could be done: each part of it has the error code.

For reasons that lie outside of the metadata, such as a log that has no room for another record.
"""

from __future__ import annotations

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


def refuse(request: Message, error_code: ErrorCode, message: str) -> Message:
    """The response to any request that the controller has a rule for."""
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=each.name, error_code=error_code, error_message=message)
                    for each in request.topics
                ]
            )
        case DeleteTopicsRequest():
            named = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(
                        name=each.name, topic_id=each.topic_id, error_code=error_code, error_message=message
                    )
                    for each in named
                ]
            )
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(name=each.name, error_code=error_code, error_message=message)
                    for each in request.topics
                ]
            )
        case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
            rows = [
                AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=error_code,
                    error_message=message,
                )
                for each in request.resources
            ]
            if isinstance(request, AlterConfigsRequest):
                return AlterConfigsResponse(responses=rows)
            return IncrementalAlterConfigsResponse(responses=rows)
        case AssignReplicasToDirsRequest():
            return AssignReplicasToDirsResponse(error_code=error_code)
        case AlterPartitionRequest():
            return AlterPartitionResponse(error_code=error_code)
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(error_code=error_code, error_message=message)
        case ElectLeadersRequest():
            return elect_leaders.refusal(request, error_code, message)
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
