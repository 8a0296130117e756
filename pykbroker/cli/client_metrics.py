"""`pykbroker client-metrics`: what clients push of their measurements (KIP-714), in words, or with the flags and texts
of `kafka-client-metrics`.

The same subscriptions are the entities `client-metrics` of `pykbroker configs`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .client_metrics_options import ClientMetricsOptions, configs_of, name_of
from .command import CommandFailed, bootstrap_options, reject
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

_metrics = click.option(
    "--metrics", metavar="PREFIX,…", help="Prefixes of the names of metrics that are pushed; `*` is all, empty none."
)
_interval = click.option(
    "--interval", metavar="MS", help="Milliseconds between two pushes of a client; empty: the default again."
)
_match = click.option(
    "--match", metavar="SELECTOR=PATTERN,…", help="The clients that push, by client_id and others; empty: all of them."
)
_generate_name = click.option("--generate-name", is_flag=True, help="Take a new UUID as the name.")


@click.group(
    "client-metrics",
    cls=TwoForms,
    like="kafka-client-metrics",
    epilog=examples(
        ("All metrics of all clients", "pykbroker client-metrics alter everybody --metrics '*'"),
        ("What is subscribed to", "pykbroker client-metrics describe"),
        ("The same by Kafka's flags", "pykbroker client-metrics --describe"),
    ),
)
@bootstrap_options
@click.option("--alter", "alters", is_flag=True, help="Make or change a subscription.")
@click.option("--delete", "deletes", is_flag=True, help="Delete a subscription.")
@click.option("--describe", "describes", is_flag=True, help="Show subscriptions with their configs.")
@click.option("--list", "lists", is_flag=True, help="List the names of subscriptions.")
@click.option("--name", metavar="NAME", help="Name of the subscription.")
@_generate_name
@_interval
@_match
@_metrics
@json_option
def command(
    bootstrap_server: str,
    command_config: Path | None,
    alters: bool,
    deletes: bool,
    describes: bool,
    lists: bool,
    name: str | None,
    generate_name: bool,
    interval: str | None,
    match: str | None,
    metrics: str | None,
    as_json: bool,
) -> None:
    """List, describe, alter and delete subscriptions to what clients measure of themselves."""
    if (alters, deletes, describes, lists).count(True) != 1:
        raise CommandFailed("Command must include exactly one action: --alter, --delete, --describe or --list.")
    names = () if name is None else (name,)
    configs: dict[str, str] = {}
    if alters:
        if bool(name) == generate_name:
            raise CommandFailed("One of --name or --generate-name must be specified with --alter.")
        names, configs = (name_of(name),), configs_of(metrics, interval, match)
    else:
        reject(
            {"--generate-name": generate_name, "--interval": interval, "--match": match, "--metrics": metrics},
            "can be used with --alter only",
        )
    if lists:
        reject({"--name": name}, "cannot be used with --list")
    if deletes and not name:
        raise CommandFailed("A client metrics resource name must be specified with --delete.")
    from . import client_metrics_actions as actions

    chosen = {actions.alter: alters, actions.delete: deletes, actions.describe: describes, actions.list_names: lists}
    [action] = [each for each, is_asked_for in chosen.items() if is_asked_for]
    options = ClientMetricsOptions(
        bootstrap_server, command_config, names, configs=configs, as_json=as_json, as_kafka=True
    )
    _run(action, options)


def _run(action: Callable[[Cluster, ClientMetricsOptions], Awaitable[None]], options: ClientMetricsOptions) -> None:
    run_on_cluster(action, options, client_id="client-metrics")


@command.command("list", epilog=examples(("Their names", "pykbroker client-metrics list")))
@bootstrap_options
@json_option
def list_(bootstrap_server: str, command_config: Path | None, as_json: bool) -> None:
    """List the names of subscriptions."""
    from .client_metrics_actions import list_names

    _run(list_names, ClientMetricsOptions(bootstrap_server, command_config, as_json=as_json))


@command.command(
    "describe",
    epilog=examples(
        ("All subscriptions", "pykbroker client-metrics describe"),
        ("One of them, for a program", "pykbroker client-metrics describe everybody --json"),
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, metavar="[NAME …]")
@json_option
def describe(bootstrap_server: str, command_config: Path | None, names: tuple[str, ...], as_json: bool) -> None:
    """Show subscriptions with their configs: those with these names, or all."""
    from . import client_metrics_actions as actions

    _run(actions.describe, ClientMetricsOptions(bootstrap_server, command_config, names, as_json=as_json))


@command.command(
    "alter",
    epilog=examples(
        ("All metrics of all clients", "pykbroker client-metrics alter everybody --metrics '*'"),
        (
            "What producers measure, of some clients, each minute",
            "pykbroker client-metrics alter apps --metrics org.apache.kafka.producer. --interval 60000 "
            "--match 'client_id=app-.*'",
        ),
        ("Of all clients again", "pykbroker client-metrics alter apps --match ''"),
    ),
)
@bootstrap_options
@click.argument("name", required=False)
@_generate_name
@_metrics
@_interval
@_match
@json_option
def alter(
    bootstrap_server: str,
    command_config: Path | None,
    name: str | None,
    generate_name: bool,
    metrics: str | None,
    interval: str | None,
    match: str | None,
    as_json: bool,
) -> None:
    """Make a subscription, or change what is given of one and leave the rest."""
    if bool(name) == generate_name:
        raise CommandFailed("Give a name or --generate-name")
    configs = configs_of(metrics, interval, match)
    if not configs:
        raise CommandFailed("Say what to alter: --metrics, --interval or --match")
    from . import client_metrics_actions as actions

    options = ClientMetricsOptions(bootstrap_server, command_config, (name_of(name),), configs, as_json=as_json)
    _run(actions.alter, options)


@command.command("delete", epilog=examples(("One of them", "pykbroker client-metrics delete everybody --yes")))
@bootstrap_options
@click.argument("names", nargs=-1, required=True, metavar="NAME …")
@yes_option
@json_option
def delete(
    bootstrap_server: str, command_config: Path | None, names: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Delete subscriptions: clients push no more for them."""
    from . import client_metrics_actions as actions

    _run(actions.delete, ClientMetricsOptions(bootstrap_server, command_config, names, yes=yes, as_json=as_json))
