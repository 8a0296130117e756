"""Actions of `pykbroker client-metrics`, in the texts of `kafka-client-metrics`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs, list_client_metrics

from .client_metrics_options import ClientMetricsOptions
from .command import CommandFailed
from .config_entries import as_json
from .confirmation import confirm
from .described_configs import print_rows
from .entries import Field, Value, print_entries, print_json
from .outcomes import outcomes
from .output import stdout_is_terminal
from .printable import printable
from .progress import progress

_FIELDS: Final = (Field("name"),)
_TYPE: Final = "client-metric"


async def list_names(cluster: Cluster, options: ClientMetricsOptions) -> None:
    """Print the names of all subscriptions."""
    names = await list_client_metrics(cluster)
    if options.as_json or stdout_is_terminal():
        print_entries(_FIELDS, [[name] for name in names], as_json=options.as_json)
    else:
        for name in names:
            click.echo(printable(name))


async def describe(cluster: Cluster, options: ClientMetricsOptions) -> None:
    """Print subscriptions with all their configs, defaults too. For Kafka's tool it is no error that there is none."""
    there = await list_client_metrics(cluster)
    missing = _missing(options.names, there)
    if missing and not options.as_kafka:
        raise _no_subscription(missing)
    found: list[Value] = []
    names = [name for name in options.names if name not in missing] if options.names else there
    with progress("Describing subscriptions", len(names)) as advance:
        for name in names:
            rows = await describe_configs(cluster, _resource(name))
            if options.as_json:
                found.append(as_json(_TYPE, name, rows))
            else:
                click.echo(f"Client metrics configs for {printable(name)} are:")
                if stdout_is_terminal():
                    print_rows(rows, explain=False)
                else:
                    for row in rows:
                        click.echo(f"  {printable(row.name)}={'null' if row.value is None else printable(row.value)}")
            advance()
    if options.as_json:
        print_json(found)
    for name in missing:
        told = f"The client metric resource {printable(name)} doesn't exist and doesn't have dynamic config."
        click.echo(told, err=options.as_json)


async def alter(cluster: Cluster, options: ClientMetricsOptions) -> None:
    """Make a subscription or change one; an empty value gives a config its default."""
    (name,) = options.names
    to_set = {key: value for key, value in options.configs.items() if value}
    to_delete = [key for key, value in options.configs.items() if not value]
    await alter_configs(cluster, _resource(name), to_set, to_delete)
    with outcomes(as_json=options.as_json) as made:
        made.add(
            {"name": name, "set": sorted(to_set), "deleted": to_delete},
            f"Altered client metrics config for {printable(name)}.",
        )


async def delete(cluster: Cluster, options: ClientMetricsOptions) -> None:
    """Delete subscriptions, which are gone without a config of their own."""
    if not options.as_kafka:
        if missing := _missing(options.names, await list_client_metrics(cluster)):
            raise _no_subscription(missing)
        count = len(options.names)
        question = f"Delete {count} subscription{'' if count == 1 else 's'}"
        await confirm(question, list(options.names), yes=options.yes, named=True)
    with outcomes(as_json=options.as_json) as made, progress("Deleting", len(options.names)) as advance:
        for name in options.names:
            rows = await describe_configs(cluster, _resource(name))
            await alter_configs(cluster, _resource(name), {}, [row.name for row in rows])
            made.add({"name": name, "deleted": True}, f"Deleted client metrics config for {printable(name)}.")
            advance()


def _missing(names: Iterable[str], there: Iterable[str]) -> dict[str, None]:
    """Return the names that nothing has, each once."""
    known = frozenset(there)
    return dict.fromkeys(name for name in names if name not in known)


def _no_subscription(names: Iterable[str]) -> CommandFailed:
    return CommandFailed(f"There is no subscription {', '.join(map(printable, names))}")


def _resource(name: str) -> Resource:
    return Resource(ResourceType.CLIENT_METRICS, name)
