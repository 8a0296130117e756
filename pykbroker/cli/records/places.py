"""Places where a read begins and ends (`--from`, `--to`), and their offsets in a cluster's partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykbroker.client import places
from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import BadInput
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from pykbroker.client.places import Anchor, Place
from pykbroker.client.spans import Span
from pykbroker.protocol.topic_partition import TopicPartition

from ..command import CommandFailed


def parse_place(text: str, flag: str, now_ms: int) -> Place:
    """Raises CommandFailed."""
    try:
        return places.parse_place(text, flag, now_ms)
    except BadInput as error:
        raise CommandFailed(str(error)) from None


async def spans_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], isolation_level: int
) -> dict[TopicPartition, Span]:
    """Ask where the partitions begin and end now. Raises ClientError."""
    asked = list(partitions)
    starts = await list_offsets(cluster, dict.fromkeys(asked, EARLIEST_TIMESTAMP), isolation_level=isolation_level)
    ends = await list_offsets(cluster, dict.fromkeys(asked, LATEST_TIMESTAMP), isolation_level=isolation_level)
    # Where records are deleted meanwhile, the start may have passed the end that a reader sees.
    return {of: Span(starts[of].offset, max(ends[of].offset, starts[of].offset)) for of in asked}


async def offsets_at(
    cluster: Cluster, place: Place, spans: Mapping[TopicPartition, Span], isolation_level: int
) -> dict[TopicPartition, int]:
    """Return the offset of the place in each partition, which only for an absolute one may be outside of its span."""
    if place.anchor is Anchor.TIME:
        found = await list_offsets(cluster, dict.fromkeys(spans, place.number), isolation_level=isolation_level)
        return {of: span.end if found[of].offset < 0 else found[of].offset for of, span in spans.items()}
    return {of: place.offset_in(span) for of, span in spans.items()}
