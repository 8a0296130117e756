"""The controllers and the brokers that are fenced: DescribeQuorum and DescribeCluster."""

from __future__ import annotations

import time
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, KafkaError
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

from .facts import Facts, Quorum

_TOPIC: Final = "__cluster_metadata"
_FENCED_SINCE: Final = 2


async def look_at_quorum(cluster: Cluster, facts: Facts) -> None:
    """Add what is known of the controllers, and the clock of the active one (KIP-836)."""
    connection = await cluster.any_connection()
    if ApiKey.DESCRIBE_QUORUM not in connection.versions:
        facts.unknown.append("the broker does not tell about its controllers (older than Kafka 3.3)")
        return
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=_TOPIC, partitions=[partition])])
    began = time.time()
    try:
        response = await connection.request(request, DescribeQuorumResponse)
    except ClientError as error:
        facts.quorum = Quorum(None, str(error))
        return
    ended = time.time()
    if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        facts.unknown.append("controllers were not looked at: this user has no right to (DESCRIBE on the cluster)")
        return
    if response.error_code:
        facts.quorum = Quorum(None, _text(response.error_code, response.error_message))
        return
    for row in (each for topic in response.topics for each in topic.partitions):
        if row.error_code:
            facts.quorum = Quorum(None, _text(row.error_code, row.error_message))
            return
        leader_id = row.leader_id if row.leader_id >= 0 else None
        now_ms = next((each.last_fetch_timestamp for each in row.current_voters if each.replica_id == leader_id), -1)
        if now_ms <= 0:
            facts.quorum = Quorum(leader_id)
            return
        ahead_ms = now_ms - int((began + ended) / 2 * 1000)
        facts.quorum = Quorum(leader_id, clock_ahead_ms=ahead_ms, uncertain_ms=int((ended - began) * 1000) + 1)


async def look_for_fenced(cluster: Cluster, facts: Facts) -> None:
    """Add the brokers that have registered and take no part (KIP-1073)."""
    connection = await cluster.any_connection()
    served = connection.versions.get(ApiKey.DESCRIBE_CLUSTER)
    if served is None or served.high < _FENCED_SINCE:
        facts.unknown.append("the broker does not tell about fenced brokers (older than Kafka 4.0)")
        return
    response = await connection.request(DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse)
    facts.fenced = sorted(each.broker_id for each in response.brokers if each.is_fenced)


def _text(error_code: int, message: str | None) -> str:
    try:
        return message or str(KafkaError(ErrorCode(error_code)))
    except ValueError:
        return message or f"error {error_code}"
