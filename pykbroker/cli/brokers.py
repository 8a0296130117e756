"""`pykbroker brokers`: which brokers a cluster has, how they are, and the end of a registration."""

from __future__ import annotations

from typing import Any

import click

from .command import bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import Words

CLIENT_ID = "brokers"


@click.group(
    "brokers",
    cls=Words,
    epilog=examples(
        ("All brokers", "pykbroker brokers list"),
        ("Listeners and log directories of one", "pykbroker brokers describe 1"),
    ),
)
@bootstrap_options
def command(**flags: Any) -> None:
    """List and describe brokers, and remove the registration of one that is gone for good."""


@command.command(
    "list",
    epilog=examples(
        ("All brokers", "pykbroker brokers list"),
        ("For a script: exit code 1 where a broker is down", "pykbroker brokers list --fenced --json"),
    ),
)
@bootstrap_options
@click.option("--fenced", is_flag=True, help="Only brokers that the controller has fenced: they are down, or starting.")
@click.option("--unreachable", is_flag=True, help="Only brokers that do not answer.")
@click.option("--under-replicated", is_flag=True, help="Only brokers with replicas that are not in sync.")
@json_option
def list_(**flags: Any) -> None:
    """List brokers; with exit code 1 where one does not answer, or where a filter finds some."""
    from .broker_actions import BrokerOptions, list_all

    if run_on_cluster(list_all, BrokerOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command(
    "describe",
    epilog=examples(("Listeners, log directories and replicas of one broker", "pykbroker brokers describe 1")),
)
@bootstrap_options
@click.argument("ids", nargs=-1, type=click.IntRange(0, 2**31 - 1), metavar="[ID …]")
@json_option
def describe(**flags: Any) -> None:
    """Show listeners, log directories, features and replicas of brokers; of all where none is named."""
    from . import broker_actions

    if run_on_cluster(broker_actions.describe, broker_actions.BrokerOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command("cluster-id", epilog=examples(("The id of the cluster", "pykbroker brokers cluster-id")))
@bootstrap_options
@json_option
def cluster_id(**flags: Any) -> None:
    """Print the id of the cluster, as kafka-cluster does."""
    from . import broker_actions

    run_on_cluster(broker_actions.print_cluster_id, broker_actions.BrokerOptions(**flags), client_id=CLIENT_ID)


@command.command(
    "unregister", epilog=examples(("A broker that never comes back", "pykbroker brokers unregister 3 --yes"))
)
@bootstrap_options
@click.argument("ids", nargs=-1, required=True, type=click.IntRange(0, 2**31 - 1), metavar="ID …")
@yes_option
@json_option
def unregister(**flags: Any) -> None:
    """Remove the registrations of brokers that are gone for good."""
    from . import broker_actions

    run_on_cluster(broker_actions.unregister, broker_actions.BrokerOptions(**flags), client_id=CLIENT_ID)
