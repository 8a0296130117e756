"""Actions of `pykbroker apis`, with the texts of `kafka-broker-api-versions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from pykbroker.client.brokers import describe_cluster
from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.metadata import Node
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type
from pykbroker.protocol.schema import Versions

from .command import CommandFailed, one_line
from .entries import Field, Value, print_entries
from .listing import printable
from .output import stdout_is_terminal

_FIELDS: Final = (
    Field("api"),
    Field("key", right=True),
    Field("min", right=True),
    Field("max", right=True),
    Field("used", right=True),
    Field("brokers"),
)
Answers = dict[int, "dict[int, Versions] | ClientError"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """A field per flag. brokers: all where none is given."""

    bootstrap_server: str
    command_config: Path | None
    brokers: tuple[int, ...]
    as_json: bool


async def show(cluster: Cluster, options: ApiOptions) -> bool:
    """Print the APIs, and return whether a broker does not answer."""
    described = await describe_cluster(cluster)
    nodes = {each.node.node_id: each for each in described.brokers}
    for node_id in options.brokers:
        if node_id not in nodes:
            raise CommandFailed(f"There is no broker {node_id} (there are: {', '.join(str(each) for each in nodes)})")
    chosen = [nodes[node_id] for node_id in dict.fromkeys(options.brokers or nodes)]
    answers: Answers = await ask_each(cluster, [each.node for each in chosen], _versions)
    failed = {node_id: each for node_id, each in answers.items() if isinstance(each, ClientError)}
    if options.as_json or stdout_is_terminal():
        print_entries(_FIELDS, _rows(answers), as_json=options.as_json)
        for error in failed.values():
            click.echo(one_line(error), err=True)
    else:
        for broker in chosen:
            _print_broker(broker.node, broker.is_fenced, answers[broker.node.node_id])
    return bool(failed)


async def _versions(connection: Connection) -> dict[int, Versions]:
    return dict(connection.versions)


def _rows(answers: Answers) -> list[list[Value]]:
    """Return a row for each range of versions of an API."""
    brokers: dict[tuple[int, int, int], list[int]] = {}
    for node_id, answer in answers.items():
        if not isinstance(answer, ClientError):
            for key, versions in answer.items():
                brokers.setdefault((key, versions.low, versions.high), []).append(node_id)
    return [
        [api_name(key), key, low, high, _used(key, Versions(low, high)), list(ids)]
        for (key, low, high), ids in sorted(brokers.items())
    ]


def _used(api_key: int, served: Versions) -> int | None:
    """Return the newest version that this client knows, too; None where there is none."""
    try:
        known = request_type(api_key).__schema__.versions
    except KeyError:
        return None
    high = min(known.high, served.high)
    return high if high >= max(known.low, served.low) else None


def _print_broker(node: Node, is_fenced: bool | None, answer: dict[int, Versions] | ClientError) -> None:
    """Print a broker as `kafka-broker-api-versions` does."""
    fenced = "true" if is_fenced else "false"
    title = printable(f"{node} (id: {node.node_id} rack: {node.rack or 'null'} isFenced: {fenced})")
    if isinstance(answer, ClientError):
        click.echo(f"{title} -> ERROR: {one_line(answer)}")
        return
    lines = [f"\t{api_name(key)}({key}): {_range(key, answer.get(key))}" for key in _keys(answer)]
    click.echo(f"{title} -> (\n" + ",\n".join(lines) + "\n)")


def _keys(served: dict[int, Versions]) -> list[int]:
    """Return the APIs to tell of: those of clients, and what else the broker serves."""
    of_clients = {key for key in ApiKey if "broker" in request_type(key).__schema__.listeners}
    return sorted({*of_clients, *served})


def _range(api_key: int, served: Versions | None) -> str:
    if served is None:
        return "UNSUPPORTED"
    used = _used(api_key, served)
    text = str(served.low) if served.low == served.high else f"{served.low} to {served.high}"
    return f"{text} [usable: {'UNSUPPORTED' if used is None else used}]"
