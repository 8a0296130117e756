"""The questions of `pykbroker probe`: requests that change nothing, and whose error codes differ between releases.

Each names what is not there, or asks that something be checked alone. A question is for a range of versions, and is
asked in the newest one of them that both sides know. What comes back is the name of an error code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pykbroker.protocol.messages.acls import DescribeAclsRequest
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.delegation_tokens import DescribeDelegationTokenRequest
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.scram_credentials import DescribeUserScramCredentialsRequest
from pykbroker.protocol.messages.scram_credentials import UserName as ScramUser
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from pykbroker.protocol.messages.transaction_admin import DescribeProducersRequest
from pykbroker.protocol.messages.transaction_admin import TopicRequest as ProducersTopic
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.protocol.schema import Message, Versions

NOWHERE: Final = "pykbroker-probe-of-what-is-not-there"
"""The name of topics, groups and others that nobody has."""
NO_NAME: Final = "pykbroker probe: no topic has such a name?"
ABSENT_ID: Final = bytes.fromhex("70726f62650040008000000000000001")
OFFSETS_TOPIC: Final = "__consumer_offsets"
LONGEST_TIMEOUT_MS: Final = 2_147_483_647
_NO_TYPE: Final = 99
_TIMEOUT_MS: Final = 10_000
_ANY: Final = Versions(0, 32767)

Whom: TypeAlias = Literal["any", "coordinator", "leader"]


@dataclass(frozen=True, slots=True)
class Question:
    """One request, and where its error code is in the answer.

    to: any broker, the coordinator of the group NOWHERE, or the leader of OFFSETS_TOPIC's first partition.
    """

    name: str
    request: Callable[[int], Message]
    code: Callable[[Any], int]
    versions: Versions = _ANY
    to: Whom = "any"


def _since(version: int) -> Versions:
    return Versions(version, 32767)


def _metadata(version: int, name: str | None, topic_id: bytes = bytes(16), *, creation: bool = False) -> Message:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name, topic_id=topic_id)], allow_auto_topic_creation=creation
    )


def _create(
    name: str, *, partitions: int = 1, replicas: int = 1, configs: tuple[tuple[str, str], ...] = ()
) -> Callable[[int], Message]:
    def request(version: int) -> Message:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
        )
        return CreateTopicsRequest(topics=[topic], validate_only=True)

    return request


def _list_offsets(name: str, timestamp: int) -> Callable[[int], Message]:
    def request(version: int) -> Message:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[partition])])

    return request


def _fetch(version: int) -> Message:
    """A Fetch without a session, and without a wait."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(partitions=[partition])
    if version >= 13:
        topic.topic_id = ABSENT_ID
    else:
        topic.topic = NOWHERE
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=-1, topics=[topic])


def _fetched(response: Any) -> int:
    return response.error_code or response.responses[0].partitions[0].error_code  # type: ignore[no-any-return]


def _describe_configs(resource_type: int) -> Callable[[int], Message]:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=NOWHERE, configuration_keys=None)
    return lambda version: DescribeConfigsRequest(resources=[resource])


def _find_coordinator(key: str, key_type: int) -> Callable[[int], Message]:
    def request(version: int) -> Message:
        if version >= 4:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return FindCoordinatorRequest(key=key, key_type=key_type)

    return request


def _found(response: Any) -> int:
    return response.error_code or sum(each.error_code for each in response.coordinators)  # type: ignore[no-any-return]


def _offset_for_leader_epoch(version: int) -> Message:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=NOWHERE, partitions=[partition])]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def _join_group(version: int) -> Message:
    """A JoinGroup with a session timeout that no broker takes, which is looked at before there is a group."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id=NOWHERE, session_timeout_ms=0, rebalance_timeout_ms=0, protocol_type="consumer", protocols=[protocol]
    )


def _offset_commit(version: int) -> Message:
    """A commit by a member of a generation: a group that is not there is not made for it."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequestTopic(name=OFFSETS_TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id=NOWHERE, generation_id_or_member_epoch=7, member_id=NOWHERE, topics=[topic])


def _consumer_heartbeat(version: int) -> Message:
    """A heartbeat of a member that has joined before: a group that is not there is not made for it."""
    return ConsumerGroupHeartbeatRequest(group_id=NOWHERE, member_id=NOWHERE, member_epoch=7)


def _producers(version: int) -> Message:
    return DescribeProducersRequest(topics=[ProducersTopic(name=NOWHERE, partition_indexes=[0])])


def _first_topic(response: Any) -> int:
    return response.topics[0].error_code  # type: ignore[no-any-return]


def _first_partition(response: Any) -> int:
    return response.topics[0].partitions[0].error_code  # type: ignore[no-any-return]


def _first_result(response: Any) -> int:
    return response.results[0].error_code  # type: ignore[no-any-return]


def _top(response: Any) -> int:
    return response.error_code  # type: ignore[no-any-return]


QUESTIONS: Final = (
    Question("metadata-unknown-topic", lambda version: _metadata(version, NOWHERE), _first_topic, _since(4)),
    Question(
        "metadata-invalid-topic", lambda version: _metadata(version, NO_NAME, creation=True), _first_topic, _since(4)
    ),
    Question(
        "metadata-unknown-topic-id", lambda version: _metadata(version, None, ABSENT_ID), _first_topic, _since(12)
    ),
    Question("find-coordinator-unknown-type", _find_coordinator(NOWHERE, _NO_TYPE), _found, _since(1)),
    Question(
        "describe-acls",
        lambda version: DescribeAclsRequest(
            resource_type_filter=2, resource_name_filter=NOWHERE, operation=1, permission_type=1
        ),
        _top,
    ),
    Question("describe-delegation-tokens", lambda version: DescribeDelegationTokenRequest(owners=[]), _top),
    Question(
        "describe-unknown-scram-user",
        lambda version: DescribeUserScramCredentialsRequest(users=[ScramUser(name=NOWHERE)]),
        lambda response: response.error_code or response.results[0].error_code,
    ),
    Question("describe-configs-unknown-topic", _describe_configs(2), _first_result),
    Question("describe-configs-unknown-type", _describe_configs(_NO_TYPE), _first_result),
    Question("create-topic-invalid-name", _create(NO_NAME), _first_topic),
    Question("create-topic-long-name", _create("n" * 250), _first_topic),
    Question("create-topic-too-many-replicas", _create(NOWHERE, replicas=32767), _first_topic),
    Question("create-topic-no-partitions", _create(NOWHERE, partitions=0), _first_topic),
    Question("create-topic-defaults", _create(NOWHERE, partitions=-1, replicas=-1), _first_topic, _since(4)),
    Question("create-topic-unknown-config", _create(NOWHERE, configs=(("no.such.key", "1"),)), _first_topic),
    Question("create-topic-invalid-config", _create(NOWHERE, configs=(("retention.ms", "long"),)), _first_topic),
    Question(
        "create-partitions-unknown-topic",
        lambda version: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=NOWHERE, count=2, assignments=None)],
            timeout_ms=_TIMEOUT_MS,
            validate_only=True,
        ),
        _first_result,
    ),
    Question(
        "init-producer-id-empty-transactional-id",
        lambda version: InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000),
        _top,
    ),
    Question(
        "init-producer-id-long-timeout",
        lambda version: InitProducerIdRequest(transactional_id=NOWHERE, transaction_timeout_ms=LONGEST_TIMEOUT_MS),
        _top,
    ),
    Question("fetch-unknown-topic", _fetch, _fetched, Versions(4, 12)),
    Question("fetch-unknown-topic-id", _fetch, _fetched, _since(13)),
    Question("list-offsets-unknown-topic", _list_offsets(NOWHERE, -1), _first_partition),
    Question("list-offsets-max-timestamp", _list_offsets(OFFSETS_TOPIC, -3), _first_partition, to="leader"),
    Question("list-offsets-earliest-local", _list_offsets(OFFSETS_TOPIC, -4), _first_partition, to="leader"),
    Question("list-offsets-latest-tiered", _list_offsets(OFFSETS_TOPIC, -5), _first_partition, to="leader"),
    Question("list-offsets-earliest-pending-upload", _list_offsets(OFFSETS_TOPIC, -6), _first_partition, to="leader"),
    Question("list-offsets-unknown-timestamp", _list_offsets(OFFSETS_TOPIC, -99), _first_partition, to="leader"),
    Question("offset-for-leader-epoch-unknown-topic", _offset_for_leader_epoch, _first_partition, _since(2)),
    Question("describe-producers-unknown-topic", _producers, _first_partition),
    Question("find-coordinator-empty-group", _find_coordinator("", 0), _found, to="coordinator"),
    Question(
        "describe-unknown-group",
        lambda version: DescribeGroupsRequest(groups=[NOWHERE]),
        lambda response: response.groups[0].error_code,
        to="coordinator",
    ),
    Question("join-group-short-session", _join_group, _top, to="coordinator"),
    Question(
        "heartbeat-unknown-member",
        lambda version: HeartbeatRequest(group_id=NOWHERE, generation_id=7, member_id=NOWHERE),
        _top,
        to="coordinator",
    ),
    Question(
        "sync-group-unknown-member",
        lambda version: SyncGroupRequest(
            group_id=NOWHERE,
            generation_id=7,
            member_id=NOWHERE,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
        ),
        _top,
        to="coordinator",
    ),
    Question("offset-commit-unknown-member", _offset_commit, _first_partition, Versions(2, 9), to="coordinator"),
    Question("consumer-heartbeat-unknown-member", _consumer_heartbeat, _top, to="coordinator"),
    Question(
        "consumer-describe-unknown-group",
        lambda version: ConsumerGroupDescribeRequest(group_ids=[NOWHERE]),
        lambda response: response.groups[0].error_code,
        to="coordinator",
    ),
)
