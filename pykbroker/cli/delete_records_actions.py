"""The deletion of records: where it would end in each partition, the question, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.delete_records import UP_TO_HIGH_WATERMARK, Outcomes, delete_records
from pykbroker.client.errors import UnknownTopic
from pykbroker.client.offsets import READ_UNCOMMITTED
from pykbroker.client.places import Anchor, Place
from pykbroker.client.spans import Span
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .confirmation import confirm, is_settled
from .delete_records_options import DeleteRecordsOptions
from .entries import print_json
from .records.places import offsets_at, parse_place, spans_of
from .suggestions import did_you_mean

Offsets = Mapping[TopicPartition, int]


def check_place(options: DeleteRecordsOptions, now_ms: int) -> Place | None:
    """Return the place of `--before`; None where a file has offsets. Raises CommandFailed."""
    return parse_place(options.before, "--before", now_ms) if options.offsets is None else None


async def delete(cluster: Cluster, options: DeleteRecordsOptions) -> bool:
    """Delete records, print what became of each partition, and return whether one failed. Raises CommandFailed."""
    place = check_place(options, time.time_ns() // 1_000_000)
    # A file, or an offset of a partition, names what goes; a time, or all partitions of a topic, is a pattern.
    named = place is None or (bool(options.partitions) and place.anchor is Anchor.OFFSET)
    offsets = options.offsets if options.offsets is not None else await _offsets(cluster, options, place)
    if not is_settled(yes=options.yes, named=named):
        going, count = await _going(cluster, offsets)
        action = f"Delete up to {count:,} record{'' if count == 1 else 's'} of {len(offsets)} partition"
        await confirm(f"{action}{'' if len(offsets) == 1 else 's'}", going, yes=options.yes, named=named)
    if not options.as_json:
        click.echo("Executing records delete operation")
    outcomes = await delete_records(cluster, offsets)
    _print(offsets, outcomes, options)
    return not all(isinstance(outcome, int) for outcome in outcomes.values())


async def _offsets(cluster: Cluster, options: DeleteRecordsOptions, place: Place | None) -> Offsets:
    """Return where the place is in each partition that is meant. Raises CommandFailed."""
    assert place is not None
    try:
        there = (await cluster.topic(options.topic)).partitions
    except UnknownTopic:
        others = [topic.name for topic in await list_topics(cluster)]
        hint = did_you_mean(options.topic, others)
        raise CommandFailed(f"There is no topic '{options.topic[:250]}'.{hint}") from None
    missing = [each for each in options.partitions if each not in there]
    if missing:
        raise CommandFailed(f"Topic '{options.topic}' has no partition {missing[0]}")
    wanted = [TopicPartition(options.topic, each) for each in options.partitions or sorted(there)]
    spans = await spans_of(cluster, wanted, READ_UNCOMMITTED)
    return await offsets_at(cluster, place, spans, READ_UNCOMMITTED)


async def _going(cluster: Cluster, offsets: Offsets) -> tuple[list[str], int]:
    """Return a line for each partition, and how many records go at most: logs have holes."""
    metadata = await cluster.refresh({of.topic for of in offsets})
    spans = await spans_of(cluster, [of for of in offsets if metadata.leader(of) is not None], READ_UNCOMMITTED)
    lines, count = [], 0
    for of, offset in offsets.items():
        if of not in spans:
            lines.append(f"{of} (has no leader, or does not exist)")
            continue
        records = _records(spans[of], offset)
        count += records
        lines.append(f"{of} up to offset {spans[of].end if offset == UP_TO_HIGH_WATERMARK else offset} ({records:,})")
    return lines, count


def _records(span: Span, offset: int) -> int:
    end = span.end if offset == UP_TO_HIGH_WATERMARK else min(offset, span.end)
    return max(0, end - span.first)


def _print(offsets: Offsets, outcomes: Outcomes, options: DeleteRecordsOptions) -> None:
    if options.as_json:
        print_json(
            [
                {
                    "topic": at.topic,
                    "partition": at.partition,
                    "low_watermark": outcome if isinstance(outcome, int) else None,
                    "error": None if isinstance(outcome, int) else str(outcome),
                }
                for at in offsets
                for outcome in [outcomes[at]]
            ]
        )
        return
    click.echo("Records delete operation completed:")
    for at in offsets:
        outcome = outcomes[at]
        text = f"low_watermark: {outcome}" if isinstance(outcome, int) else f"error: {outcome}"
        click.echo(f"partition: {at}\t{text}")
