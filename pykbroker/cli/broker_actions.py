"""Actions of `pykbroker brokers`: list, describe, unregister. A row says which broker did not answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.brokers import BrokerDescription, ClusterDescription, describe_cluster, unregister_broker
from pykbroker.client.cluster import Cluster

from .broker_rows import FIELDS, BrokerRow, broker_details, broker_rows
from .command import CommandFailed, one_line
from .confirmation import confirm
from .entries import Value, print_entries, print_json
from .listing import field_lines
from .outcomes import outcomes


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


async def list_all(cluster: Cluster, options: BrokerOptions) -> bool:
    """Print brokers; return whether something is wrong: one does not answer, or a filter has found some."""
    described = await describe_cluster(cluster)
    rows = await broker_rows(cluster, described, described.brokers)
    shown = [row for row in rows if not options.filters or _is_found(row, options)]
    if shown or options.as_json or not options.filters:
        print_entries(FIELDS, [row.values for row in shown], as_json=options.as_json)
    for row in shown:
        if row.error is not None and not options.as_json:
            click.echo(one_line(row.error), err=True)
    return bool(shown) if options.filters else any(row.state != "up" for row in rows)


async def print_cluster_id(cluster: Cluster, options: BrokerOptions) -> None:
    described = await describe_cluster(cluster)
    if options.as_json:
        print_json([{"cluster_id": described.cluster_id}])
    else:
        click.echo(f"Cluster ID: {described.cluster_id}")


def _is_found(row: BrokerRow, options: BrokerOptions) -> bool:
    return (
        (options.fenced and bool(row.broker.is_fenced))
        or (options.unreachable and row.error is not None)
        or (options.under_replicated and row.under_replicated > 0)
    )


async def describe(cluster: Cluster, options: BrokerOptions) -> bool:
    """Print brokers with all that they tell; return whether one does not answer."""
    described = await describe_cluster(cluster)
    chosen = _chosen(described, options.ids)
    rows = await broker_rows(cluster, described, chosen)
    details = await broker_details(cluster, [row.broker.node for row in rows if row.error is None])
    objects: list[dict[str, Value]] = []
    for row in rows:
        known = dict(zip((field.name for field in FIELDS), row.values, strict=True))
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
    with outcomes(as_json=options.as_json) as found:
        for each in chosen:
            node_id = each.node.node_id
            await unregister_broker(cluster, node_id)
            found.add({"broker": node_id, "unregistered": True}, f"Broker {node_id} is no longer registered.")


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
