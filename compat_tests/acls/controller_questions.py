"""Questions that other nodes ask on controllers' listeners. Most name another cluster or a node that is not there."""

from __future__ import annotations

from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    EnvelopeRequest,
    Feature,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest
from pykbroker.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    FetchSnapshotRequest,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.voters import UpdateRaftVoterRequest
from pykbroker.server.quorum.forwarding import enclose

from . import cluster_questions, token_questions, topic_questions
from .cluster_questions import NO_BROKER
from .scene import MISSING, Catalogue, Scene

ANOTHER = "another-cluster-of-22-c"
METADATA = "__cluster_metadata"

catalogue = Catalogue()
asks = catalogue.asks

_ON_BROKERS_TOO = {
    "create topics",
    "delete topics by name",
    "create partitions",
    "describe configs",
    "alter configs",
    "alter single configs",
    "elect leaders",
    "alter reassignments",
    "list reassignments",
    "unregister a broker",
    "update features",
    "describe the quorum",
    "add a voter",
    "remove a voter",
    "alter SCRAM credentials",
    "alter client quotas",
    "describe ACLs",
    "create ACLs",
    "delete ACLs",
    "create a token",
    "create a token for another",
    "renew a token",
    "expire a token",
}
catalogue.questions += [
    each
    for each in (
        *topic_questions.catalogue.questions,
        *cluster_questions.catalogue.questions,
        *token_questions.catalogue.questions,
    )
    if each.name in _ON_BROKERS_TOO
]


@asks("describe the controllers", 1, 2)
def describe_controllers(scene: Scene) -> cluster_questions.DescribeClusterRequest:
    return cluster_questions.DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=2)


@asks("fetch the metadata log", 12, 14)
def fetch(scene: Scene) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = [FetchTopic(topic=METADATA, topic_id=b"\0" * 15 + b"\1", partitions=[partition])]
    return FetchRequest(cluster_id=ANOTHER, replica_id=NO_BROKER, max_wait_ms=0, session_epoch=-1, topics=topics)


@asks("vote", 0, 2)
def vote(scene: Scene) -> VoteRequest:
    partition = VoteRequestPartitionData(
        partition_index=0, replica_epoch=0, replica_id=NO_BROKER, last_offset_epoch=0, last_offset=0
    )
    topics = [VoteRequestTopicData(topic_name=METADATA, partitions=[partition])]
    return VoteRequest(cluster_id=ANOTHER, voter_id=1, topics=topics)


@asks("begin a quorum epoch", 0, 1)
def begin_quorum_epoch(scene: Scene) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartitionData(partition_index=0, leader_id=NO_BROKER, leader_epoch=0)
    topics = [BeginQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])]
    return BeginQuorumEpochRequest(cluster_id=ANOTHER, voter_id=1, topics=topics)


@asks("end a quorum epoch", 0, 1)
def end_quorum_epoch(scene: Scene) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartitionData(partition_index=0, leader_id=NO_BROKER, leader_epoch=0)
    topics = [EndQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])]
    return EndQuorumEpochRequest(cluster_id=ANOTHER, topics=topics)


@asks("fetch a snapshot", 0, 1)
def fetch_snapshot(scene: Scene) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(cluster_id=ANOTHER, replica_id=NO_BROKER, max_bytes=1, topics=[])


@asks("update a voter")
def update_raft_voter(scene: Scene) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(cluster_id=ANOTHER, current_leader_epoch=0, voter_id=NO_BROKER)


@asks("alter a partition")
def alter_partition(scene: Scene) -> AlterPartitionRequest:
    return AlterPartitionRequest(broker_id=NO_BROKER, broker_epoch=1, topics=[])


@asks("register a broker", 0, 4)
def broker_registration(scene: Scene) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(broker_id=NO_BROKER, cluster_id=ANOTHER, incarnation_id=b"i" * 16)


@asks("broker heartbeat", 0, 2)
def broker_heartbeat(scene: Scene) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=NO_BROKER, broker_epoch=1, current_metadata_offset=0)


@asks("allocate producer ids")
def allocate_producer_ids(scene: Scene) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=NO_BROKER, broker_epoch=1)


@asks("register a controller")
def controller_registration(scene: Scene) -> ControllerRegistrationRequest:
    too_old = Feature(name="metadata.version", min_supported_version=1, max_supported_version=1)
    return ControllerRegistrationRequest(controller_id=NO_BROKER, incarnation_id=b"i" * 16, features=[too_old])


@asks("assign replicas to directories")
def assign_replicas_to_dirs(scene: Scene) -> AssignReplicasToDirsRequest:
    return AssignReplicasToDirsRequest(broker_id=NO_BROKER, broker_epoch=1, directories=[])


def _enclosed(principal: str) -> EnvelopeRequest:
    topics = [CreatableTopic(name=MISSING, num_partitions=1, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=True)
    header = RequestHeader(api_key=19, api_version=7, correlation_id=1, client_id="client")
    return enclose(request, header, principal, "10.1.2.3")


@asks("an envelope of a super user")
def envelope_of_super_user(scene: Scene) -> EnvelopeRequest:
    return _enclosed("User:admin")


@asks("an envelope of nobody")
def envelope_of_nobody(scene: Scene) -> EnvelopeRequest:
    return _enclosed("User:nobody")
