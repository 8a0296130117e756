"""`pykbroker quotas`: of users, client ids and addresses, in words, or with the flags and texts of `kafka-configs`."""

from __future__ import annotations

from pathlib import Path

import click

from .client_entities import change_of
from .client_flags import change_options, client_entity_options
from .command import CommandFailed, bootstrap_options
from .config_options import ClientEntityFlags, ConfigChanges
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .quota_options import QuotaOptions, entity_of_flags, quotas_alone
from .quota_words import add_words
from .two_forms import TwoForms


@click.group(
    "quotas",
    cls=TwoForms,
    like="kafka-configs",
    epilog=examples(
        ("All quotas", "pykbroker quotas list"),
        ("A megabyte a second for a user", "pykbroker quotas set --user alice producer_byte_rate=1000000"),
        (
            "The same by Kafka's flags",
            "pykbroker quotas --alter --user alice --add-config producer_byte_rate=1000000",
        ),
    ),
)
@bootstrap_options
@click.option("--describe", is_flag=True, help="Show the quotas in which the entity takes part, or all.")
@click.option("--alter", is_flag=True, help="Set and remove quotas of the entity.")
@client_entity_options
@change_options
@json_option
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    clients: ClientEntityFlags,
    add_config: str | None,
    delete_config: str | None,
    as_json: bool,
) -> None:
    """List, describe, set and delete quotas: how much users, clients and addresses may do.

    Of users and clients: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of
    addresses: connection_creation_rate.
    """
    changes = ConfigChanges(add_config=add_config, delete_config=delete_config)
    changes.check(describe=describe, alter=alter)
    entity = entity_of_flags(clients)
    from . import quota_actions

    if describe:
        options = QuotaOptions(bootstrap_server, command_config, entity, in_text=True, as_json=as_json)
        run_on_cluster(quota_actions.describe, options, client_id="quotas")
        return
    if not entity.names:
        raise CommandFailed("--alter needs --user, --client or --ip, or the defaults of one")
    change = quotas_alone(change_of(entity, changes.to_set(), changes.to_delete()))
    options = QuotaOptions(bootstrap_server, command_config, entity, change, as_json=as_json)
    run_on_cluster(quota_actions.alter, options, client_id="quotas")


add_words(command)
