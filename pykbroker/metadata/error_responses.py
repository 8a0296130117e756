"""The response to a request of which the controller does nothing: each part of it has the error.

`error_response` is Kafka's `AbstractRequest.getErrorResponse`. The reason lies outside of the metadata: the node is not
the active controller, the metadata log has no room for another record, the request is too large as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pykbroker.long_work import LongWork, each_of
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
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
    UnregisterControllerRequest,
    UnregisterControllerResponse,
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
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from pykbroker.protocol.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from pykbroker.protocol.messages.scram_credentials import AlterUserScramCredentialsRequest
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

from . import elect_leaders, scram_credentials


def error_response(request: Message, error: ApiError) -> LongWork[Message]:
    """The response to any request that the controller has a rule for. Raises TypeError for another."""

    def of(row: Any, **values: Any) -> Any:
        return row(error_code=error.code, error_message=str(error), **values)

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
        case CreateAclsRequest():
            return CreateAclsResponse(results=[of(AclCreationResult)] * len(request.creations))
        case DeleteAclsRequest():
            return DeleteAclsResponse(filter_results=[of(DeleteAclsFilterResult)] * len(request.filters))
        case AlterClientQuotasRequest():
            entries = yield from each_of(
                request.entries, lambda entry: of(AlterClientQuotasResponseEntryData, entity=entry.entity)
            )
            return AlterClientQuotasResponse(entries=entries)
        case ElectLeadersRequest():
            return (yield from elect_leaders.error_response(request, error))
        case AlterUserScramCredentialsRequest():
            return scram_credentials.refused(request, ApiError(error.code, str(error)))
        case _:
            return _error_of_the_whole(request, error.code, str(error))


def _error_of_the_whole(request: Message, error_code: ErrorCode, message: str) -> Message:
    """The response that has one error code for all of the request."""
    match request:
        case AssignReplicasToDirsRequest():
            return AssignReplicasToDirsResponse(error_code=error_code)
        case AlterPartitionRequest():
            return AlterPartitionResponse(error_code=error_code)
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(error_code=error_code, error_message=message)
        case UnregisterBrokerRequest():
            return UnregisterBrokerResponse(error_code=error_code, error_message=message)
        case UnregisterControllerRequest():
            return UnregisterControllerResponse(error_code=error_code, error_message=message)
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
        case CreateDelegationTokenRequest():
            return no_token(error_code)
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=error_code)
        case ExpireDelegationTokenRequest():
            return ExpireDelegationTokenResponse(error_code=error_code)
        case DescribeQuorumRequest():
            return DescribeQuorumResponse(error_code=error_code, error_message=message)
        case _:
            raise TypeError(f"no answer is known to {type(request).__name__}")


def no_token(error_code: ErrorCode) -> CreateDelegationTokenResponse:
    """Kafka names nobody but its anonymous principal here, whoever asked, and times of -1."""
    return CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type="User",
        principal_name="ANONYMOUS",
        token_requester_principal_type="User",  # noqa: S106 - no password
        token_requester_principal_name="ANONYMOUS",  # noqa: S106 - no password
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
