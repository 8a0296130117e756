"""Actions of `pykbroker brokers`: list, describe, unregister. A row says which broker did not answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import trio

from pykbroker.client.brokers import BrokerDescription, ClusterDescription, describe_cluster, unregister_broker
from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, describe_configs
from pykbroker.client.connection import Connection
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.features import Features, features_of
from pykbroker.client.log_dirs import describe_log_dirs
from pykbroker.client.metadata import Node, TopicMetadata
from pykbroker.client.quorum import describe_quorum
from pykbroker.client.topics import list_topics

from .command import CommandFailed, one_line
from .confirmation import confirm
from .entries import Field, Value, print_entries, print_json
from .listing import field_lines
from .progress import progress
from .releases import METADATA_VERSION, level_text, release_of

_QUORUM_TIMEOUT_S: Final = 5.0
_LISTENERS: Final = ("advertised.listeners", "listeners")
_FIELDS: Final = (
    Field("broker", right=True),
    Field("address"),
    Field("rack"),
    Field("state"),
    Field("controller"),
    Field("version"),
    Field("leaders", right=True),
    Field("replicas", right=True),
    Field("under_replicated", right=True),
    Field("error", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """A field per flag. ids: none stands for all brokers."""

    bootstrap_server: str
    command_config: Path | None
    ids: tuple[int, ...] = ()
    fenced: bool = False
    unreachable: bool = False
    under_replicated: bool = False
    as_json: bool = False
    yes: bool = False

    @property
    def filters(self) -> bool:
        return self.fenced or self.unreachable or self.under_replicated


@dataclass(frozen=True, slots=True)
class _Counts:
    """Partitions by broker."""

    leaders: Counter[int]
    replicas: Counter[int]
    under_replicated: Counter[int]


@dataclass(frozen=True, slots=True)
class _Row:
    """A broker as the commands show it. error: why it gave no answer."""

    broker: BrokerDescription
    is_controller: bool
    version: str | None
    leaders: int
    replicas: int
    under_replicated: int
    error: ClientError | None

    @property
    def state(self) -> str:
        if self.broker.is_fenced:
            return "fenced"
        return "up" if self.error is None else "unreachable"

    @property
    def values(self) -> list[Value]:
        node = self.broker.node
        return [
            node.node_id,
            str(node),
            node.rack,
            self.state,
            self.is_controller,
            self.version,
            self.leaders,
            self.replicas,
            self.under_replicated,
            None if self.error is None else one_line(self.error),
        ]


async def list_all(cluster: Cluster, options: BrokerOptions) -> bool:
    """Print brokers; return whether something is wrong: one does not answer, or a filter has found some."""
    described = await describe_cluster(cluster)
    rows = await _rows(cluster, described, described.brokers)
    shown = [row for row in rows if not options.filters or _is_found(row, options)]
    if shown or options.as_json or not options.filters:
        print_entries(_FIELDS, [row.values for row in shown], as_json=options.as_json)
    for row in shown:
        if row.error is not None and not options.as_json:
            click.echo(one_line(row.error), err=True)
    return bool(shown) if options.filters else any(row.state != "up" for row in rows)


def _is_found(row: _Row, options: BrokerOptions) -> bool:
    return (
        (options.fenced and bool(row.broker.is_fenced))
        or (options.unreachable and row.error is not None)
        or (options.under_replicated and row.under_replicated > 0)
    )


async def describe(cluster: Cluster, options: BrokerOptions) -> bool:
    """Print brokers with all that they tell; return whether one does not answer."""
    described = await describe_cluster(cluster)
    chosen = _chosen(described, options.ids)
    rows = await _rows(cluster, described, chosen)
    details = await _details(cluster, [row.broker.node for row in rows if row.error is None])
    objects: list[dict[str, Value]] = []
    for row in rows:
        known = dict(zip((field.name for field in _FIELDS), row.values, strict=True))
        objects.append(known | details.get(row.broker.node.node_id, {}))
    if options.as_json:
        print_json(objects)
    else:
        for index, each in enumerate(objects):
            shown = {name: _words(value) for name, value in each.items() if name != "error" or value is not None}
            click.echo(("\n" if index else "") + "\n".join(field_lines(shown)))
    return any(row.state != "up" for row in rows)


def _words(value: Value) -> Value:
    """Return a value with `yes` and `no`, as tables have them."""
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return {key: _words(each) for key, each in value.items()}
        case list():
            return [_words(each) for each in value]
        case _:
            return value


async def unregister(cluster: Cluster, options: BrokerOptions) -> None:
    """Remove registrations, once somebody has agreed. Raises CommandFailed."""
    described = await describe_cluster(cluster)
    chosen = _chosen(described, options.ids)
    tells = [f"broker {each.node.node_id} at {each.node}{_warning(each)}" for each in chosen]
    await confirm(
        f"Unregister {len(chosen)} broker{'' if len(chosen) == 1 else 's'}",
        tells,
        yes=options.yes,
        named=all(each.is_fenced is not False for each in chosen),
    )
    for each in chosen:
        await unregister_broker(cluster, each.node.node_id)
        click.echo(f"Broker {each.node.node_id} is no longer registered.")


def _warning(broker: BrokerDescription) -> str:
    return ", which is up" if broker.is_fenced is False else ""


def _chosen(described: ClusterDescription, ids: Collection[int]) -> list[BrokerDescription]:
    """Return the brokers that are named, or all. Raises CommandFailed."""
    known = {each.node.node_id: each for each in described.brokers}
    for node_id in ids:
        if node_id not in known:
            raise CommandFailed(
                f"There is no broker {node_id} (there are: {', '.join(str(each) for each in known) or 'none'})"
            )
    return [known[node_id] for node_id in dict.fromkeys(ids or known)]


async def _rows(cluster: Cluster, described: ClusterDescription, brokers: Collection[BrokerDescription]) -> list[_Row]:
    counts = _counted(await list_topics(cluster))
    controller_id = await _controller_id(cluster, described)
    with progress("Asking brokers", len(brokers)) as advance:
        nodes = [each.node for each in brokers]
        answers = await ask_each(cluster, nodes, _ask_features, on_answer=advance)
    rows = []
    for broker in brokers:
        node_id = broker.node.node_id
        answer = answers[node_id]
        rows.append(
            _Row(
                broker,
                node_id == controller_id,
                None if isinstance(answer, ClientError) else _release(answer),
                counts.leaders[node_id],
                counts.replicas[node_id],
                counts.under_replicated[node_id],
                answer if isinstance(answer, ClientError) else None,
            )
        )
    return rows


def _counted(topics: Iterable[TopicMetadata]) -> _Counts:
    counts = _Counts(Counter(), Counter(), Counter())
    for topic in topics:
        for partition in topic.partitions.values():
            counts.leaders[partition.leader_id] += 1
            counts.replicas.update(partition.replica_nodes)
            counts.under_replicated.update(set(partition.replica_nodes).difference(partition.isr_nodes))
    return counts


async def _controller_id(cluster: Cluster, described: ClusterDescription) -> int:
    """Return the node that leads the quorum; that of the metadata where nobody tells, which may be any broker."""
    with trio.move_on_after(_QUORUM_TIMEOUT_S):
        try:
            return (await describe_quorum(cluster)).leader_id
        except ClientError:
            pass
    return described.controller_id


async def _ask_features(connection: Connection) -> Features:
    return features_of(await connection.ask_versions())


def _release(features: Features) -> str | None:
    return next((release_of(each.max_supported) for each in features.features if each.name == METADATA_VERSION), None)


async def _details(cluster: Cluster, nodes: Collection[Node]) -> dict[int, dict[str, Value]]:
    """Return what `describe` says beyond `list`, of the brokers that answer."""

    async def ask(connection: Connection) -> dict[str, Value]:
        features = features_of(await connection.ask_versions())
        directories = await describe_log_dirs(connection, ())
        return {
            "log_dirs": [
                {
                    "path": each.path,
                    "online": each.is_online,
                    "cordoned": each.is_cordoned,
                    "total_bytes": each.total_bytes,
                    "usable_bytes": each.usable_bytes,
                }
                for each in directories
            ],
            "features": {
                each.name: f"{level_text(each.name, each.min_supported)} to {level_text(each.name, each.max_supported)}"
                for each in features.features
            },
        }

    found = await ask_each(cluster, nodes, ask)
    details: dict[int, dict[str, Value]] = {}
    for node_id, answer in found.items():
        told = {"details": one_line(answer)} if isinstance(answer, ClientError) else answer
        details[node_id] = {**await _listeners(cluster, node_id), **told}
    return details


async def _listeners(cluster: Cluster, node_id: int) -> dict[str, Value]:
    """Return the listeners that the broker's configuration advertises; nothing where we may not see it."""
    try:
        configs = await describe_configs(cluster, Resource(ResourceType.BROKER, str(node_id)))
    except ClientError:
        return {}
    values = {each.name: each.value for each in configs}
    listeners = next((text for name in _LISTENERS if (text := values.get(name))), None)
    return {"listeners": None if listeners is None else [each.strip() for each in listeners.split(",")]}
