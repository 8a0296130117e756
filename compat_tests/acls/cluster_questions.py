"""Questions about the cluster, which a broker answers or passes on."""

from __future__ import annotations

from pykbroker.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UnregisterBrokerRequest, UpdateFeaturesRequest
from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from pykbroker.protocol.messages.metadata import DescribeClusterRequest
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest

from .scene import MISSING, TOPIC, Catalogue, Scene

NO_BROKER = 77

catalogue = Catalogue()
asks = catalogue.asks


@asks("describe the cluster")
def describe_cluster(scene: Scene) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


@asks("describe log directories")
def describe_log_dirs(scene: Scene) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=TOPIC, partitions=[0])])


@asks("alter log directories")
def alter_replica_log_dirs(scene: Scene) -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=[0, 1]) for name in (TOPIC, MISSING)]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=topics)])


@asks("elect leaders")
def elect_leaders(scene: Scene) -> ElectLeadersRequest:
    topics = [TopicPartitions(topic=name, partitions=[0]) for name in (TOPIC, MISSING)]
    return ElectLeadersRequest(election_type=0, topic_partitions=topics, timeout_ms=5000)


@asks("elect all leaders")
def elect_all_leaders(scene: Scene) -> ElectLeadersRequest:
    return ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)


@asks("alter reassignments")
def alter_partition_reassignments(scene: Scene) -> AlterPartitionReassignmentsRequest:
    topics = [
        ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=0, replicas=None)])
        for name in (TOPIC, MISSING)
    ]
    return AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=topics)


@asks("list reassignments")
def list_partition_reassignments(scene: Scene) -> ListPartitionReassignmentsRequest:
    topics = [ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=[0])]
    return ListPartitionReassignmentsRequest(timeout_ms=5000, topics=topics)


@asks("unregister a broker")
def unregister_broker(scene: Scene) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(broker_id=NO_BROKER)


@asks("update features")
def update_features(scene: Scene) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature="no.such.feature", max_version_level=1, upgrade_type=1)
    return UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[update], validate_only=False)


@asks("describe the quorum")
def describe_quorum(scene: Scene) -> DescribeQuorumRequest:
    partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
    return DescribeQuorumRequest(
        topics=[DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=partitions)]
    )


@asks("add a voter")
def add_raft_voter(scene: Scene) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(cluster_id="another", timeout_ms=1000, voter_id=NO_BROKER, voter_directory_id=b"v" * 16)


@asks("remove a voter")
def remove_raft_voter(scene: Scene) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id="another", voter_id=NO_BROKER, voter_directory_id=b"v" * 16)


@asks("describe SCRAM credentials")
def describe_scram_credentials(scene: Scene) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name="nobody"), UserName(name="somebody")])


@asks("alter SCRAM credentials")
def alter_scram_credentials(scene: Scene) -> AlterUserScramCredentialsRequest:
    upsertion = ScramCredentialUpsertion(
        name="somebody", mechanism=1, iterations=1, salt=b"salt", salted_password=b"password"
    )
    deletion = ScramCredentialDeletion(name="nobody", mechanism=1)
    return AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[upsertion])


@asks("describe client quotas")
def describe_client_quotas(scene: Scene) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match_type=0, match=MISSING)])


@asks("alter client quotas")
def alter_client_quotas(scene: Scene) -> AlterClientQuotasRequest:
    entries = [
        AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=name)],
            ops=[OpData(key="consumer_byte_rate", value=1e9)],
        )
        for name in ("nobody", MISSING)
    ]
    return AlterClientQuotasRequest(entries=entries, validate_only=True)


@asks("describe ACLs")
def describe_acls(scene: Scene) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=MISSING,
        pattern_type_filter=4,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


@asks("create ACLs")
def create_acls(scene: Scene) -> CreateAclsRequest:
    bad = AclCreation(
        resource_type=2, resource_name="", principal="User:nobody", host="*", operation=3, permission_type=3
    )
    return CreateAclsRequest(creations=[bad, bad])


@asks("delete ACLs")
def delete_acls(scene: Scene) -> DeleteAclsRequest:
    nothing = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="matrix-nothing",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return DeleteAclsRequest(filters=[nothing, nothing])
