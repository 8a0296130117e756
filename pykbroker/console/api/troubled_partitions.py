"""`GET /api/cluster/partitions`: partitions without a leader, with replicas out of sync, or too few in sync."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import MOST_TOPICS_AT_ONCE, ResourceType
from pykbroker.client.errors import ClientError
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from pykbroker.protocol.messages.metadata import MetadataResponse

from .pages import Page, PageAsked, page_of
from .topic_rows import NO_LEADER, all_metadata, is_under_replicated

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_LONGEST_S: Final = 8.0


@dataclass(frozen=True, slots=True)
class TroubledRow:
    """A partition. min_isr: None where the user may not see the topic's configs."""

    topic: str
    partition: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]
    min_isr: int | None
    is_under_replicated: bool
    is_under_min_isr: bool


@dataclass(frozen=True, slots=True)
class Troubled:
    """A page of the worst first. not_told: topics whose least number of in-sync replicas is not known."""

    partitions: Page[TroubledRow]
    without_leader: int
    under_replicated: int
    under_min_isr: int
    not_told: int


async def troubled(asking: Asking, given: Arguments) -> Troubled:
    """Raises BadInput, ClientError."""
    asked = PageAsked.of(given)
    response = await all_metadata(asking.cluster)
    names = [each.name for each in response.topics if each.name is not None and each.error_code == ErrorCode.NONE]
    least = await _min_isr_of(asking.cluster, names)
    rows = await asking.threads.run(_rows, response, least)
    return Troubled(
        partitions=page_of(rows, asked),
        without_leader=sum(row.leader is None for row in rows),
        under_replicated=sum(row.is_under_replicated for row in rows),
        under_min_isr=sum(row.is_under_min_isr for row in rows),
        not_told=len(names) - len(least),
    )


async def _min_isr_of(cluster: Cluster, names: Sequence[str]) -> Mapping[str, int]:
    """Return the least number of in-sync replicas of the topics that can be asked for within some seconds."""
    found: dict[str, int] = {}
    with trio.move_on_after(_LONGEST_S):
        for first in range(0, len(names), MOST_TOPICS_AT_ONCE):
            try:
                found |= await _ask(cluster, names[first : first + MOST_TOPICS_AT_ONCE])
            except ClientError:  # the other topics' partitions are shown nevertheless
                continue
    return found


async def _ask(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    asked = [
        DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=[MIN_INSYNC_REPLICAS]
        )
        for name in names
    ]
    response = await cluster.request(DescribeConfigsRequest(resources=asked), DescribeConfigsResponse)
    return {
        result.resource_name: int(row.value)
        for result in response.results
        for row in result.configs
        if row.name == MIN_INSYNC_REPLICAS and row.value is not None and row.value.isdecimal()
    }


def _rows(response: MetadataResponse, least: Mapping[str, int]) -> list[TroubledRow]:
    """Return the partitions that are not as they should be, the worst first."""
    rows = []
    for topic in response.topics:
        for each in topic.partitions:
            min_isr = least.get(topic.name or "")
            is_under_min_isr = min_isr is not None and len(each.isr_nodes) < min_isr
            if each.leader_id == NO_LEADER or is_under_replicated(each) or is_under_min_isr:
                rows.append(
                    TroubledRow(
                        topic=topic.name or "",
                        partition=each.partition_index,
                        leader=None if each.leader_id == NO_LEADER else each.leader_id,
                        replicas=each.replica_nodes,
                        isr=each.isr_nodes,
                        offline=each.offline_replicas,
                        min_isr=min_isr,
                        is_under_replicated=is_under_replicated(each),
                        is_under_min_isr=is_under_min_isr,
                    )
                )
    rows.sort(key=lambda row: (row.leader is not None, not row.is_under_min_isr, row.topic, row.partition))
    return rows
