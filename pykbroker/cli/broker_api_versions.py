"""`pykbroker broker-api-versions`: the APIs that each broker offers, printed as `kafka-broker-api-versions.sh` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster
    from pykbroker.client.metadata import Node
    from pykbroker.protocol.schema import Versions


@dataclass(frozen=True, slots=True)
class _Options:
    bootstrap_server: str
    command_config: Path | None


@click.command("broker-api-versions", cls=ClientCommand)
@bootstrap_options
def command(bootstrap_server: str, command_config: Path | None) -> None:
    """Show the APIs of each broker, and the version of each that this client would use."""
    run_on_cluster(_show, _Options(bootstrap_server, command_config), client_id="broker-api-versions")


async def _show(cluster: Cluster, _options: _Options) -> None:
    metadata = await cluster.refresh([])
    for node in sorted(metadata.nodes.values(), key=lambda each: each.node_id):
        connection = await cluster.node_connection(node)
        click.echo("\n".join(_lines(node, connection.versions)))


def _lines(node: Node, versions: Mapping[int, Versions]) -> Iterator[str]:
    yield f"{node.host}:{node.port} (id: {node.node_id} rack: {node.rack or 'null'} isFenced: false) -> ("
    rows = [_row(api_key, offered) for api_key, offered in sorted(versions.items())]
    yield ",\n".join(f"\t{row}" for row in rows)
    yield ")"


def _row(api_key: int, offered: Versions) -> str:
    from pykbroker.protocol.api_keys import api_name, request_type

    name = api_name(api_key)
    low_to_high = f"{offered.low} to {offered.high}" if offered.high > offered.low else f"{offered.low}"
    if name.isdecimal():
        return f"UNKNOWN({api_key}): {low_to_high}"
    known = request_type(api_key).__schema__.versions
    usable = min(known.high, offered.high)
    is_usable = usable >= max(known.low, offered.low)
    return f"{name}({api_key}): {low_to_high} [{f'usable: {usable}' if is_usable else 'unusable'}]"
