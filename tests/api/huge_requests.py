"""One huge request for each API that lists something: entries that are unknown, and one entry again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pykbroker.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ListConfigResourcesRequest,
)
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, LeaveGroupRequest, MemberIdentity
from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from pykbroker.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.quotas import ComponentData, DescribeClientQuotasRequest
from pykbroker.protocol.messages.scram_credentials import DescribeUserScramCredentialsRequest, UserName
from pykbroker.protocol.messages.share_groups import (
    AcknowledgePartition,
    AcknowledgeTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
)
from pykbroker.protocol.messages.share_groups import FetchPartition as ShareFetchPartition
from pykbroker.protocol.messages.share_groups import FetchTopic as ShareFetchTopic
from pykbroker.protocol.messages.share_groups import ForgottenTopic as ShareForgottenTopic
from pykbroker.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateRequestPartitionData,
    DeleteStateData,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequestPartitionData,
    InitializeStateData,
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequestPartitionData,
    ReadStateData,
    ReadStateSummaryData,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestPartitionData,
    WriteStateData,
)
from pykbroker.protocol.messages.streams_groups import StreamsGroupDescribeRequest
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from pykbroker.protocol.messages.transaction_admin import TopicRequest as ProducersTopic
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.protocol.schema import Message

KNOWN = "known"
"""A topic of one partition."""
KNOWN_ID = b"known" + bytes(11)
"""A topic of many partitions."""


class Huge(NamedTuple):
    """What is asked. build: the request, given the numbers of its entries. version: to be asked in."""

    version: int
    build: Callable[[range | list[int]], Message]


def _names(numbers: range | list[int]) -> list[str]:
    return [f"name-{number}" for number in numbers]


HUGE: dict[str, Huge] = {
    "Metadata": Huge(
        13,
        lambda numbers: MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in _names(numbers)], allow_auto_topic_creation=False
        ),
    ),
    "Metadata by id": Huge(
        13,
        lambda numbers: MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=(number + 1).to_bytes(16, "big"), name=None) for number in numbers]
        ),
    ),
    "DescribeTopicPartitions": Huge(
        0, lambda numbers: DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in _names(numbers)])
    ),
    "DescribeConfigs of topics": Huge(
        4,
        lambda numbers: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
                for name in _names(numbers)
            ]
        ),
    ),
    "DescribeConfigs of groups": Huge(
        4,
        lambda numbers: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=name, configuration_keys=None)
                for name in _names(numbers)
            ]
        ),
    ),
    "DescribeLogDirs": Huge(
        5,
        lambda numbers: DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=KNOWN, partitions=list(numbers))]),
    ),
    "AlterReplicaLogDirs": Huge(
        2,
        lambda numbers: AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path="/nowhere", topics=[AlterReplicaLogDirTopic(name=KNOWN, partitions=list(numbers))]
                )
            ]
        ),
    ),
    "ListOffsets": Huge(
        11,
        lambda numbers: ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=KNOWN,
                    partitions=[ListOffsetsPartition(partition_index=each, timestamp=-1) for each in numbers],
                )
            ],
        ),
    ),
    "OffsetForLeaderEpoch": Huge(
        4,
        lambda numbers: OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic=KNOWN, partitions=[OffsetForLeaderPartition(partition=each) for each in numbers]
                )
            ]
        ),
    ),
    "DeleteRecords": Huge(
        2,
        lambda numbers: DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=KNOWN, partitions=[DeleteRecordsPartition(partition_index=each) for each in numbers]
                )
            ]
        ),
    ),
    "DescribeProducers": Huge(
        0,
        lambda numbers: DescribeProducersRequest(topics=[ProducersTopic(name=KNOWN, partition_indexes=list(numbers))]),
    ),
    "Fetch": Huge(
        12,
        lambda numbers: FetchRequest(
            max_bytes=1000,
            topics=[
                FetchTopic(
                    topic=KNOWN, partitions=[FetchPartition(partition=each, partition_max_bytes=1) for each in numbers]
                )
            ],
        ),
    ),
    "Produce": Huge(
        12,
        lambda numbers: ProduceRequest(
            acks=-1,
            topic_data=[
                TopicProduceData(name=KNOWN, partition_data=[PartitionProduceData(index=each) for each in numbers])
            ],
        ),
    ),
    "FindCoordinator": Huge(4, lambda numbers: FindCoordinatorRequest(key_type=0, coordinator_keys=_names(numbers))),
    "FindCoordinator of transactions": Huge(
        4, lambda numbers: FindCoordinatorRequest(key_type=1, coordinator_keys=_names(numbers))
    ),
    "OffsetCommit": Huge(
        9,
        lambda numbers: OffsetCommitRequest(
            group_id="group",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name=KNOWN,
                    partitions=[OffsetCommitRequestPartition(partition_index=each) for each in numbers],
                )
            ],
        ),
    ),
    "OffsetFetch of partitions": Huge(
        9,
        lambda numbers: OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="group",
                    topics=[OffsetFetchRequestTopics(name=KNOWN, partition_indexes=list(numbers))],
                )
            ]
        ),
    ),
    "OffsetFetch of topics": Huge(
        9,
        lambda numbers: OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="group",
                    topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in _names(numbers)],
                )
            ]
        ),
    ),
    "OffsetFetch of groups": Huge(
        9,
        lambda numbers: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in _names(numbers)]
        ),
    ),
    "OffsetDelete": Huge(
        0,
        lambda numbers: OffsetDeleteRequest(
            group_id="group",
            topics=[
                OffsetDeleteRequestTopic(
                    name=KNOWN, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in numbers]
                )
            ],
        ),
    ),
    "TxnOffsetCommit": Huge(
        3,
        lambda numbers: TxnOffsetCommitRequest(
            group_id="group",
            transactional_id="id",
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=KNOWN,
                    partitions=[TxnOffsetCommitRequestPartition(partition_index=each) for each in numbers],
                )
            ],
        ),
    ),
    "AddPartitionsToTxn": Huge(
        3,
        lambda numbers: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="id",
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=KNOWN, partitions=list(numbers))],
        ),
    ),
    "DescribeClientQuotas": Huge(
        1,
        lambda numbers: DescribeClientQuotasRequest(
            components=[ComponentData(entity_type=name, match_type=2, match=None) for name in _names(numbers)]
        ),
    ),
    "DescribeGroups": Huge(6, lambda numbers: DescribeGroupsRequest(groups=_names(numbers))),
    "ConsumerGroupDescribe": Huge(1, lambda numbers: ConsumerGroupDescribeRequest(group_ids=_names(numbers))),
    "StreamsGroupDescribe": Huge(0, lambda numbers: StreamsGroupDescribeRequest(group_ids=_names(numbers))),
    "ShareGroupDescribe": Huge(1, lambda numbers: ShareGroupDescribeRequest(group_ids=_names(numbers))),
    "DescribeShareGroupOffsets": Huge(
        1,
        lambda numbers: DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in _names(numbers)]
        ),
    ),
    "AlterShareGroupOffsets": Huge(
        0,
        lambda numbers: AlterShareGroupOffsetsRequest(
            group_id="g",
            topics=[AlterShareGroupOffsetsRequestTopic(topic_name=name) for name in _names(numbers)],
        ),
    ),
    "DeleteShareGroupOffsets": Huge(
        0,
        lambda numbers: DeleteShareGroupOffsetsRequest(
            group_id="g",
            topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in _names(numbers)],
        ),
    ),
    "DescribeUserScramCredentials": Huge(
        0,
        lambda numbers: DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in _names(numbers)]),
    ),
    "DeleteGroups": Huge(2, lambda numbers: DeleteGroupsRequest(groups_names=_names(numbers))),
    "LeaveGroup": Huge(
        5,
        lambda numbers: LeaveGroupRequest(
            group_id="group", members=[MemberIdentity(member_id=name) for name in _names(numbers)]
        ),
    ),
    "ListGroups": Huge(5, lambda numbers: ListGroupsRequest(states_filter=_names(numbers))),
    "ListTransactions": Huge(2, lambda numbers: ListTransactionsRequest(state_filters=_names(numbers))),
    "ListConfigResources": Huge(
        1, lambda numbers: ListConfigResourcesRequest(resource_types=[TOPIC_RESOURCE for _ in numbers])
    ),
    "CreateAcls": Huge(
        3,
        lambda numbers: CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=2,
                    resource_name=name,
                    principal="User:bob",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
                for name in _names(numbers)
            ]
        ),
    ),
    "DeleteAcls": Huge(
        3,
        lambda numbers: DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=2,
                    resource_name_filter=name,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                )
                for name in _names(numbers)
            ]
        ),
    ),
    "InitializeShareGroupState": Huge(
        0,
        lambda numbers: InitializeShareGroupStateRequest(
            group_id="group",
            topics=[
                InitializeStateData(
                    topic_id=KNOWN_ID,
                    partitions=[
                        InitializeShareGroupStateRequestPartitionData(partition=each, state_epoch=1, start_offset=0)
                        for each in numbers
                    ],
                )
            ],
        ),
    ),
    "ReadShareGroupState": Huge(
        0,
        lambda numbers: ReadShareGroupStateRequest(
            group_id="group",
            topics=[
                ReadStateData(
                    topic_id=KNOWN_ID,
                    partitions=[ReadShareGroupStateRequestPartitionData(partition=each) for each in numbers],
                )
            ],
        ),
    ),
    "WriteShareGroupState": Huge(
        1,
        lambda numbers: WriteShareGroupStateRequest(
            group_id="group",
            topics=[
                WriteStateData(
                    topic_id=KNOWN_ID,
                    partitions=[WriteShareGroupStateRequestPartitionData(partition=each) for each in numbers],
                )
            ],
        ),
    ),
    "WriteShareGroupState of batches": Huge(
        1,
        lambda numbers: WriteShareGroupStateRequest(
            group_id="group",
            topics=[
                WriteStateData(
                    topic_id=KNOWN_ID,
                    partitions=[
                        WriteShareGroupStateRequestPartitionData(
                            state_batches=[
                                StateBatch(first_offset=2 * each, last_offset=2 * each, delivery_state=2)
                                for each in numbers
                            ]
                        )
                    ],
                )
            ],
        ),
    ),
    "DeleteShareGroupState": Huge(
        0,
        lambda numbers: DeleteShareGroupStateRequest(
            group_id="group",
            topics=[
                DeleteStateData(
                    topic_id=KNOWN_ID,
                    partitions=[DeleteShareGroupStateRequestPartitionData(partition=each) for each in numbers],
                )
            ],
        ),
    ),
    "ReadShareGroupStateSummary": Huge(
        1,
        lambda numbers: ReadShareGroupStateSummaryRequest(
            group_id="group",
            topics=[
                ReadStateSummaryData(
                    topic_id=KNOWN_ID,
                    partitions=[ReadShareGroupStateSummaryRequestPartitionData(partition=each) for each in numbers],
                )
            ],
        ),
    ),
    "ShareFetch": Huge(
        2,
        lambda numbers: ShareFetchRequest(
            group_id="group",
            member_id="member",
            max_bytes=1 << 20,
            max_records=500,
            topics=[
                ShareFetchTopic(
                    topic_id=KNOWN_ID, partitions=[ShareFetchPartition(partition_index=each) for each in numbers]
                )
            ],
            forgotten_topics_data=[ShareForgottenTopic(topic_id=KNOWN_ID, partitions=[1, 2, 3])],
        ),
    ),
    "ShareAcknowledge": Huge(
        2,
        lambda numbers: ShareAcknowledgeRequest(
            group_id="group",
            member_id="member",
            share_session_epoch=1,
            topics=[
                AcknowledgeTopic(
                    topic_id=KNOWN_ID, partitions=[AcknowledgePartition(partition_index=each) for each in numbers]
                )
            ],
        ),
    ),
    "DescribeTransactions": Huge(0, lambda numbers: DescribeTransactionsRequest(transactional_ids=_names(numbers))),
}
