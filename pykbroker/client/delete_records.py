"""The deletion of records in front of an offset in each partition (DeleteRecords, KIP-107)."""

from __future__ import annotations

from collections.abc import Mapping

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import ClientError, KafkaError, UnknownTopic, code_of
from .metadata import Node

UP_TO_HIGH_WATERMARK = -1
_TIMEOUT_MS = 30_000

Outcomes = dict[TopicPartition, int | ClientError]


async def delete_records(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> Outcomes:
    """Delete records, and return for each partition its low watermark or the reason why nothing was deleted.

    Partitions fail one by one. Raises ClientError where no broker says anything of them.
    """
    outcomes: Outcomes = {}

    async def attempt() -> None:
        open_ = {at: offset for at, offset in offsets.items() if not _is_final(outcomes.get(at))}
        await _ask_leaders(cluster, open_, outcomes)
        for outcome in outcomes.values():
            if isinstance(outcome, ClientError) and outcome.retriable:
                await cluster.refresh({at.topic for at in open_})
                raise outcome

    try:
        await cluster.retrying(attempt)
    except ClientError:
        if len(outcomes) < len(offsets):
            raise
    return outcomes


def _is_final(outcome: int | ClientError | None) -> bool:
    return isinstance(outcome, int) or (outcome is not None and not outcome.retriable)


async def _ask_leaders(cluster: Cluster, offsets: Mapping[TopicPartition, int], outcomes: Outcomes) -> None:
    by_leader: dict[Node, dict[TopicPartition, int]] = {}
    for at, offset in offsets.items():
        try:
            by_leader.setdefault(await cluster.leader(at), {})[at] = offset
        except (KafkaError, UnknownTopic) as error:
            outcomes[at] = error
    for node, of_node in by_leader.items():
        try:
            connection = await cluster.node_connection(node)
            response = await connection.request(_request(of_node), DeleteRecordsResponse)
        except ClientError as error:
            outcomes.update(dict.fromkeys(of_node, error))
            continue
        for topic in response.topics:
            for answer in topic.partitions:
                at = TopicPartition(topic.name, answer.partition_index)
                failed = answer.error_code != ErrorCode.NONE
                outcomes[at] = KafkaError(code_of(answer.error_code)) if failed else answer.low_watermark


def _request(offsets: Mapping[TopicPartition, int]) -> DeleteRecordsRequest:
    topics: dict[str, DeleteRecordsTopic] = {}
    for at, offset in offsets.items():
        topic = topics.setdefault(at.topic, DeleteRecordsTopic(name=at.topic))
        topic.partitions.append(DeleteRecordsPartition(partition_index=at.partition, offset=offset))
    return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=_TIMEOUT_MS)
