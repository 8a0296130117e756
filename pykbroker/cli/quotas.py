"""`pykbroker quotas`: of users, client ids and addresses, with the flags and texts of `kafka-configs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.quotas import describe_quotas

from .client_entities import QUOTA_TYPES, ClientChange, ClientEntity, change_of, entity_of, make, print_found_quotas
from .client_flags import change_options, client_entity_options
from .command import ClientCommand, CommandFailed, bootstrap_options
from .config_options import ClientEntityFlags, ConfigChanges
from .connect import run_on_cluster


@dataclass(frozen=True, slots=True)
class _Quotas:
    bootstrap_server: str
    command_config: Path | None
    entity: ClientEntity
    change: ClientChange | None


@click.command("quotas", cls=ClientCommand)
@bootstrap_options
@click.option("--describe", is_flag=True, help="Show the quotas in which the entity takes part, or all.")
@click.option("--alter", is_flag=True, help="Set and remove quotas of the entity.")
@client_entity_options
@change_options
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    clients: ClientEntityFlags,
    add_config: str | None,
    delete_config: str | None,
) -> None:
    """Describe and alter quotas: how much users, clients and addresses may do.

    Of users and clients: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of
    addresses: connection_creation_rate.
    """
    changes = ConfigChanges(add_config=add_config, add_config_file=None, delete_config=delete_config)
    changes.check(describe=describe, alter=alter)
    named = clients.named
    entity = entity_of([QUOTA_TYPES[type_] for type_, _ in named], [name for _, name in named])
    change = None
    if alter:
        if not named:
            raise CommandFailed("--alter needs --user, --client or --ip, or the defaults of one")
        change = _quotas_alone(change_of(entity, changes.to_set(), changes.to_delete()))
    options = _Quotas(bootstrap_server, command_config, entity, change)
    run_on_cluster(_describe if describe else _alter, options, client_id="quotas")


async def _describe(cluster: Cluster, options: _Quotas) -> None:
    wanted: Mapping[str, object] = options.entity.quota_filter
    print_found_quotas(await describe_quotas(cluster, wanted, only_these_types=False))


async def _alter(cluster: Cluster, options: _Quotas) -> None:
    assert options.change is not None
    await make(cluster, options.change)
    click.echo(f"Completed updating {options.change.entity}.")


def _quotas_alone(change: ClientChange) -> ClientChange:
    if change.passwords or change.removed_mechanisms:
        raise CommandFailed("SCRAM credentials are no quotas: `pykbroker users` has them")
    return change
