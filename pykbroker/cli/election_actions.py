"""Actions of `pykbroker elect-leaders`, with the texts of `kafka-leader-election`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.elections import Elections, ElectionType, elect_leaders
from pykbroker.client.topics import list_topics
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line
from .confirmation import confirm
from .entries import Field, Value, print_entries
from .partition_file import read_partitions
from .progress import progress
from .suggestions import did_you_mean

_FIELDS: Final = (Field("topic"), Field("partition", right=True), Field("outcome"), Field("error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionOptions:
    """A field per flag."""

    bootstrap_server: str
    command_config: Path | None
    election_type: str
    topic: str | None
    partition: int | None
    all_topic_partitions: bool
    path_to_json_file: Path | None
    as_json: bool
    yes: bool

    @property
    def type(self) -> ElectionType:
        return ElectionType[self.election_type.upper()]


async def elect(cluster: Cluster, options: ElectionOptions) -> bool:
    """Elect leaders, and return whether a partition has none."""
    partitions = await _partitions(cluster, options)
    if options.type is ElectionType.UNCLEAN:
        await _confirm(cluster, options, partitions)
    with progress("Electing leaders", 0 if partitions is None else len(partitions)) as advance:
        outcomes = await elect_leaders(cluster, options.type, partitions, on_answer=advance)
    outcomes = dict(sorted(outcomes.items()))
    if options.as_json:
        print_entries(_FIELDS, [_row(of, error) for of, error in outcomes.items()], as_json=True)
    else:
        _print(outcomes, options.type)
    return any(_outcome(error) == "failed" for error in outcomes.values())


async def _partitions(cluster: Cluster, options: ElectionOptions) -> list[TopicPartition] | None:
    """Return the partitions that are meant, None for all of them. Raises CommandFailed."""
    if options.path_to_json_file is not None:
        return read_partitions(options.path_to_json_file)
    if options.topic is None:
        return None
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    topics = {each.name: each for each in await list_topics(cluster)}
    if options.topic not in topics:
        raise CommandFailed(f"There is no topic '{options.topic[:250]}'.{did_you_mean(options.topic, topics)}")
    return [TopicPartition(options.topic, number) for number in topics[options.topic].partitions]


async def _confirm(cluster: Cluster, options: ElectionOptions, partitions: list[TopicPartition] | None) -> None:
    """Ask, where a partition has no leader: for others there is nothing to do. Raises CommandFailed."""
    wanted = None if partitions is None else set(partitions)
    topics = await list_topics(cluster)
    leaderless = [
        of
        for topic in topics
        for number, partition in topic.partitions.items()
        if partition.leader_id not in cluster.metadata.nodes
        and (of := TopicPartition(topic.name, number))
        and (wanted is None or of in wanted)
    ]
    count = len(leaderless)
    await confirm(
        f"Elect unclean leaders of {count} partition{'' if count == 1 else 's'}, although records may be lost for good",
        [str(of) for of in leaderless],
        yes=options.yes,
        named=not options.all_topic_partitions,
    )


def _outcome(error: Exception | None) -> str:
    if error is None:
        return "elected"
    return "not needed" if getattr(error, "error_code", None) is ErrorCode.ELECTION_NOT_NEEDED else "failed"


def _row(of: TopicPartition, error: Exception | None) -> list[Value]:
    outcome = _outcome(error)
    return [of.topic, of.partition, outcome, one_line(error) if error is not None and outcome == "failed" else None]


def _print(outcomes: Elections, election_type: ElectionType) -> None:
    """Print what `kafka-leader-election` does."""
    by_outcome: dict[str, list[str]] = {}
    for of, error in outcomes.items():
        by_outcome.setdefault(_outcome(error), []).append(str(of))
    if elected := by_outcome.get("elected"):
        name = election_type.name
        click.echo(f"Successfully completed leader election ({name}) for partitions {', '.join(elected)}")
    if not_needed := by_outcome.get("not needed"):
        click.echo(f"Valid replica already elected for partitions {', '.join(not_needed)}")
    failed = {of: error for of, error in outcomes.items() if error is not None and _outcome(error) == "failed"}
    for of, error in failed.items():
        text = f"Error completing leader election ({election_type.name}) for partition: {of}: {one_line(error)}"
        click.echo(text, err=True)
    if failed:
        click.echo(f"{len(failed)} replica(s) could not be elected", err=True)
