"""Actions of `pykbroker offsets`: one question to each leader; one that is down does not hide the others."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError
from pykbroker.client.offsets import OffsetAndTimestamp, list_reachable_offsets
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line, reject
from .entries import Field, Value, print_entries
from .listing import printable
from .offset_times import parse_time
from .partition_patterns import Chooses, chosen_by_lists, chosen_by_patterns
from .progress import progress
from .suggestions import did_you_mean

_FIELDS: Final = (
    Field("topic"),
    Field("partition", right=True),
    Field("offset", right=True),
    Field("timestamp", right=True),
    Field("leader_epoch", right=True),
)
_WITH_ERRORS: Final = (*_FIELDS, Field("error"))

Found = dict[TopicPartition, OffsetAndTimestamp | ClientError]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetOptions:
    """A field per flag. names: topics by their exact names."""

    bootstrap_server: str
    command_config: Path | None
    names: tuple[str, ...] = ()
    topic: str | None = None
    partitions: str | None = None
    topic_partitions: str | None = None
    time_text: str = "latest"
    exclude_internal_topics: bool = False
    as_json: bool = False


async def print_lines(cluster: Cluster, options: OffsetOptions) -> bool:
    """Print `topic:partition:offset` where there is an offset, and return whether a leader did not tell."""
    found = await _find(cluster, options)
    failed = False
    for of, answer in found.items():
        if isinstance(answer, ClientError):
            failed = True
            click.echo(f"Skip getting offsets for topic-partition {of} due to error: {one_line(answer)}", err=True)
        elif answer.offset >= 0:
            click.echo(f"{printable(of.topic)}:{of.partition}:{answer.offset}")
    return failed


async def print_table(cluster: Cluster, options: OffsetOptions) -> bool:
    """Print a row a partition, and return whether a leader did not tell."""
    found = await _find(cluster, options)
    failed = any(isinstance(answer, ClientError) for answer in found.values())
    rows = [[*_row(of, answer), *([_error(answer)] if failed else [])] for of, answer in found.items()]
    print_entries(_WITH_ERRORS if failed else _FIELDS, rows, as_json=options.as_json)
    return failed


def _row(of: TopicPartition, answer: OffsetAndTimestamp | ClientError) -> list[Value]:
    if isinstance(answer, ClientError) or answer.offset < 0:
        return [of.topic, of.partition, None, None, None]
    timestamp = answer.timestamp if answer.timestamp >= 0 else None
    return [of.topic, of.partition, answer.offset, timestamp, answer.leader_epoch if answer.leader_epoch >= 0 else None]


def _error(answer: OffsetAndTimestamp | ClientError) -> str | None:
    return one_line(answer) if isinstance(answer, ClientError) else None


async def _find(cluster: Cluster, options: OffsetOptions) -> Found:
    """Raises CommandFailed where no partition is meant."""
    timestamp = parse_time(options.time_text, time.time_ns() // 1_000_000)
    chooses = _chooses(options)
    topics = await list_topics(cluster)
    missing = set(options.names).difference(topic.name for topic in topics)
    if missing:
        name = min(missing)
        others = [topic.name for topic in topics]
        raise CommandFailed(f"There is no topic '{name[:250]}'.{did_you_mean(name, others)}")
    wanted = [
        of
        for topic in topics
        if not (options.exclude_internal_topics and topic.is_internal)
        and (not options.names or topic.name in options.names)
        for partition in topic.partitions
        if chooses(of := TopicPartition(topic.name, partition))
    ]
    if not wanted:
        raise CommandFailed("Could not match any topic-partitions with the specified filters")
    with progress("Asking for offsets", len(wanted)) as advance:
        found = await list_reachable_offsets(cluster, dict.fromkeys(sorted(wanted), timestamp), on_answer=advance)
    return dict(sorted(found.items()))


def _chooses(options: OffsetOptions) -> Chooses:
    if options.topic_partitions is None:
        reject({"--topic": options.topic if options.names else None}, "and names are two ways to say which topics")
        return chosen_by_lists(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None or options.names:
        raise CommandFailed("--topic-partitions cannot be used with --topic or --partitions")
    return chosen_by_patterns(options.topic_partitions)
