"""Elections of leaders that an administrator asks for (ElectLeaders, KIP-460)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import IntEnum
from typing import Final

from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import KafkaError, check, code_of

_TIMEOUT_MS: Final = 30_000
_PARTITIONS_AT_ONCE: Final = 5_000


class ElectionType(IntEnum):
    """An unclean election takes a replica that is not in sync, and what only the others have is lost."""

    PREFERRED = 0
    UNCLEAN = 1


Elections = dict[TopicPartition, KafkaError | None]
"""By partition why there was no election; None where there was one."""


async def elect_leaders(
    cluster: Cluster,
    election_type: ElectionType,
    partitions: Collection[TopicPartition] | None,
    *,
    on_answer: Callable[[int], None] = lambda count: None,
) -> Elections:
    """Elect leaders of these partitions; None: of all where an election changes something. Raises ClientError.

    on_answer: called with the number of partitions of each request.
    """
    if partitions is None:
        return await _elect(cluster, election_type, None)
    wanted = sorted(partitions)
    found: Elections = {}
    for first in range(0, len(wanted), _PARTITIONS_AT_ONCE):
        some = wanted[first : first + _PARTITIONS_AT_ONCE]
        found |= await _elect(cluster, election_type, some)
        on_answer(len(some))
    return found


async def _elect(
    cluster: Cluster, election_type: ElectionType, partitions: Collection[TopicPartition] | None
) -> Elections:
    topics: dict[str, TopicPartitions] = {}
    for of in partitions or ():
        topics.setdefault(of.topic, TopicPartitions(topic=of.topic)).partitions.append(of.partition)
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None if partitions is None else list(topics.values()),
        timeout_ms=_TIMEOUT_MS,
    )
    response = await cluster.controller_request(request, ElectLeadersResponse, verify=_check_elected)
    return {
        TopicPartition(topic.topic, row.partition_id): KafkaError(code_of(row.error_code), row.error_message)
        if row.error_code
        else None
        for topic in response.replica_election_results
        for row in topic.partition_result
    }


def _check_elected(response: ElectLeadersResponse) -> None:
    check(response.error_code)
