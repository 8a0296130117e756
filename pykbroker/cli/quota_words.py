"""The words of `pykbroker quotas`: list, describe, set, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .client_entities import ClientEntity, change_of
from .client_flags import client_entity_options
from .command import bootstrap_options, key_values
from .config_options import ClientEntityFlags
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .quota_options import QuotaOptions, named_entity, quotas_alone

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster


def add_words(group: click.Group) -> None:
    """Add the words to the group."""
    for each in (_list, _describe, _set, _delete):
        group.add_command(each)


def _run(action: Callable[[Cluster, QuotaOptions], Awaitable[None]], options: QuotaOptions) -> None:
    run_on_cluster(action, options, client_id="quotas")


@click.command(
    "list",
    epilog=examples(("All quotas", "pykbroker quotas list"), ("For a program", "pykbroker quotas list --json")),
)
@bootstrap_options
@json_option
def _list(bootstrap_server: str, command_config: Path | None, as_json: bool) -> None:
    """List all quotas."""
    from .quota_actions import describe

    _run(describe, QuotaOptions(bootstrap_server, command_config, ClientEntity({}), as_json=as_json))


@click.command(
    "describe",
    epilog=examples(
        ("All in which a user takes part", "pykbroker quotas describe --user alice"),
        ("Of the clients that have no quota of their own", "pykbroker quotas describe --client-defaults --json"),
    ),
)
@bootstrap_options
@client_entity_options
@json_option
def _describe(bootstrap_server: str, command_config: Path | None, clients: ClientEntityFlags, as_json: bool) -> None:
    """Show the quotas in which a user, a client or an address takes part."""
    entity = named_entity(clients)
    from .quota_actions import describe

    _run(describe, QuotaOptions(bootstrap_server, command_config, entity, as_json=as_json))


@click.command(
    "set",
    epilog=examples(
        ("A megabyte a second for a user", "pykbroker quotas set --user alice producer_byte_rate=1000000"),
        ("For each client of a user", "pykbroker quotas set --user alice --client-defaults consumer_byte_rate=500000"),
        ("New connections from an address", "pykbroker quotas set --ip 10.0.0.7 connection_creation_rate=5"),
    ),
)
@bootstrap_options
@client_entity_options
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE …")
@json_option
def _set(
    bootstrap_server: str,
    command_config: Path | None,
    clients: ClientEntityFlags,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Set quotas of a user, a client, both together, or an address; others stay as they are.

    Keys are producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate; of addresses
    connection_creation_rate.
    """
    change = quotas_alone(change_of(named_entity(clients), key_values(pairs, "set"), ()))
    from .quota_actions import alter

    _run(alter, QuotaOptions(bootstrap_server, command_config, change.entity, change, as_json=as_json))


@click.command(
    "delete",
    epilog=examples(
        ("All quotas of a user", "pykbroker quotas delete --user alice"),
        ("One of them, without a question", "pykbroker quotas delete --user alice producer_byte_rate --yes"),
    ),
)
@bootstrap_options
@client_entity_options
@click.argument("keys", nargs=-1, metavar="[KEY …]")
@yes_option
@json_option
def _delete(
    bootstrap_server: str,
    command_config: Path | None,
    clients: ClientEntityFlags,
    keys: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Delete quotas of a user, a client, both together, or an address: those with these keys, or all."""
    entity = named_entity(clients)
    quotas_alone(change_of(entity, {}, keys))
    from .quota_actions import delete

    _run(delete, QuotaOptions(bootstrap_server, command_config, entity, keys=keys, yes=yes, as_json=as_json))
