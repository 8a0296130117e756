"""`pykbroker reassign clear-throttles`: throttles that moves have left behind, since nobody saw them through.

Kafka's tool takes throttles away at `--verify` alone, which needs the file of the moves. Here they are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError
from pykbroker.client.reassignments import list_reassignments
from pykbroker.client.replication_throttles import (
    broker_throttles,
    clear_broker_throttles,
    clear_topic_throttles,
    topic_throttles,
)
from pykbroker.client.topics import list_topics

from .command import CommandFailed, one_line
from .confirmation import confirm
from .entries import Field, Value, print_entries
from .reassign_options import ReassignOptions
from .suggestions import did_you_mean

_LONGEST_VALUE: Final = 100
_FIELDS: Final = (Field("kind"), Field("name"), Field("config"), Field("value"))
_BROKER, _TOPIC = "broker", "topic"
Throttles = Mapping[str, str]


async def clear(cluster: Cluster, options: ReassignOptions) -> bool:
    """Take away the throttles of topics that are named, or of all topics and brokers.

    Return whether it failed somewhere. Raises CommandFailed where moves are under way, whose throttles they are.
    """
    topics = await _topics(cluster, options)
    ongoing = await list_reassignments(cluster)
    theirs = sorted({of.topic for of in ongoing} & set(topics) if options.names else {of.topic for of in ongoing})
    if theirs:
        raise CommandFailed(
            f"Partitions of {_few(theirs)} are being moved, and throttles are for that: wait, or cancel the moves"
        )
    failures: list[str] = []
    brokers = {} if options.names else await _of_brokers(cluster, failures)
    of_topics = {name: found for name, found in (await topic_throttles(cluster, topics)).items() if found}
    rows = [*_rows(_BROKER, {str(name): each for name, each in brokers.items()}), *_rows(_TOPIC, of_topics)]
    await confirm(
        f"Clear {len(rows)} throttle{'' if len(rows) == 1 else 's'}",
        [f"{config} of {kind} {name}" for kind, name, config, _ in rows],
        yes=options.yes,
        named=bool(options.names),
    )
    refused = await _clear(cluster, list(brokers), list(of_topics), failures)
    cleared = [row for row in rows if (row[0], row[1]) not in refused]
    if cleared or options.as_json:
        print_entries(_FIELDS, cleared, as_json=options.as_json)
    elif not failures:
        click.echo("No throttles are left.")
    for each in failures:
        click.echo(each, err=True)
    return bool(failures)


async def _topics(cluster: Cluster, options: ReassignOptions) -> list[str]:
    known = [topic.name for topic in await list_topics(cluster)]
    missing = [name for name in options.names if name not in known]
    if missing:
        raise CommandFailed(f"There is no topic '{missing[0][:250]}'.{did_you_mean(missing[0], known)}")
    return list(dict.fromkeys(options.names)) or known


async def _of_brokers(cluster: Cluster, failures: list[str]) -> dict[int, Throttles]:
    found: dict[int, Throttles] = {}
    for broker, answer in (await broker_throttles(cluster, list(cluster.metadata.nodes.values()))).items():
        if isinstance(answer, ClientError):
            failures.append(f"Broker {broker} does not tell its throttles: {one_line(answer)}")
        elif answer:
            found[broker] = answer
    return found


async def _clear(
    cluster: Cluster, brokers: list[int], topics: list[str], failures: list[str]
) -> set[tuple[Value, Value]]:
    """Return whose throttles stay."""
    nodes = cluster.metadata.nodes
    failed = await clear_broker_throttles(cluster, [nodes[each] for each in brokers])
    failures += [f"Broker {broker} keeps its throttles: {one_line(error)}" for broker, error in failed.items()]
    stay: set[tuple[Value, Value]] = {(_BROKER, str(broker)) for broker in failed}
    try:
        await clear_topic_throttles(cluster, topics)
    except ClientError as error:
        failures.append(f"Topics keep their throttles: {one_line(error)}")
        stay |= {(_TOPIC, name) for name in topics}
    return stay


def _rows(kind: str, throttles: Mapping[str, Throttles]) -> list[list[Value]]:
    return [
        [kind, name, config, value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"]
        for name, configs in throttles.items()
        for config, value in sorted(configs.items())
    ]


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
