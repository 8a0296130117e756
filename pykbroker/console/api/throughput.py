"""`GET /api/throughput`: how many records were ever appended, and how many bytes lie in logs, for rates.

The page asks again and again, and makes rates of the differences; so nothing is counted while nobody looks. Partitions
that come or go are in no difference: the page compares answers about the same partitions alone.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pykbroker.client.metadata import Node
from pykbroker.client.offsets import LATEST_TIMESTAMP
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.messages.metadata import MetadataResponse
from pykbroker.protocol.topic_partition import TopicPartition

from .partition_offsets import Found, find_offsets
from .replica_sizes import Sizes, find_sizes
from .topic_rows import all_metadata

MOST_PARTITIONS: Final = 20_000

ByLeader = dict[Node, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Throughput:
    """Sums over the partitions that answered. time_ms: by a clock that never goes back. of: stands for them,
    the same as long as they are the same; not_shown: the number of partitions beyond the bound.
    """

    time_ms: int
    end_offsets: int
    size_bytes: int | None
    of: int
    not_shown: int


async def throughput(asking: Asking, given: Arguments) -> Throughput:
    """Raises ClientError."""
    response = await all_metadata(asking.cluster)
    by_leader, left_out = await asking.threads.run(_by_leader, response)
    ends, sizes = Found({}, {}), Sizes()
    await find_offsets(asking.cluster, by_leader, LATEST_TIMESTAMP, ends)
    time_ms = time.monotonic_ns() // 1_000_000
    await find_sizes(asking.cluster, by_leader, sizes)
    return Throughput(
        time_ms=time_ms,
        end_offsets=sum(ends.offsets.values()),
        size_bytes=sum(sizes.values()) if sizes else None,
        of=await asking.threads.run(_fingerprint, ends.offsets),
        not_shown=left_out,
    )


def _fingerprint(partitions: Iterable[TopicPartition]) -> int:
    return zlib.crc32(repr(sorted(partitions)).encode())


def _by_leader(response: MetadataResponse) -> tuple[ByLeader, int]:
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
    found: ByLeader = {}
    count = 0
    for topic in response.topics:
        for each in topic.partitions:
            if topic.name is not None and not topic.is_internal and each.leader_id in nodes:
                count += 1
                if count <= MOST_PARTITIONS:
                    found.setdefault(nodes[each.leader_id], []).append(TopicPartition(topic.name, each.partition_index))
    return found, max(0, count - MOST_PARTITIONS)
