"""`pykbroker configs`: in words, or with the flags and texts of `kafka-configs`.

Its entities are topics, brokers, groups and client metrics, which have configurations; and users, clients and
addresses, which have quotas, and SCRAM credentials.
"""

from __future__ import annotations

from pathlib import Path

import click

from .client_entities import QUOTA_TYPES
from .client_flags import change_options, client_entity_options
from .command import bootstrap_options, reject
from .config_options import ENTITY_TYPES, ClientEntityFlags, ConfigChanges, ConfigOptions
from .config_words import add_words, alter_entity
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms


class _TwoForms(TwoForms):
    """Names and defaults of entities are one list, in which each stands where its flag does: Kafka pairs them so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--entity-name=" if each == "--entity-default" else each for each in args])


@click.group(
    "configs",
    cls=_TwoForms,
    like="kafka-configs",
    epilog=examples(
        ("What a topic has of its own", "pykbroker configs describe topic orders"),
        ("Keep records for a day", "pykbroker configs alter topic orders --set retention.ms=86400000"),
        ("The same by Kafka's flags", "pykbroker configs --alter --topic orders --add-config retention.ms=86400000"),
    ),
)
@bootstrap_options
@click.option("--describe", is_flag=True, help="List configs for the given entity.")
@click.option("--alter", is_flag=True, help="Alter the configuration for the entity.")
@click.option(
    "--entity-type", "entity_types", multiple=True, metavar="TYPE", help=f"{', '.join((*ENTITY_TYPES, *QUOTA_TYPES))}."
)
@click.option("--entity-name", "entity_names", multiple=True, metavar="NAME", help="Name of the entity.")
@click.option("--entity-default", is_flag=True, help="The defaults of all brokers, users, clients or ips.")
@click.option("--topic", metavar="NAME", help="Short for --entity-type topics --entity-name.")
@click.option("--broker", metavar="ID", help="Short for --entity-type brokers --entity-name.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option("--broker-logger", metavar="ID", help="Short for --entity-type broker-loggers --entity-name.")
@click.option("--client-metrics", metavar="NAME", help="Short for --entity-type client-metrics --entity-name.")
@click.option("--group", metavar="NAME", help="Short for --entity-type groups --entity-name.")
@client_entity_options
@click.option("--all", "all_", is_flag=True, help="With --describe: every config, defaults included.")
@click.option("--explain", is_flag=True, help="With --describe: what each config means, and where it is set.")
@change_options
@click.option(
    "--add-config-file", type=click.Path(path_type=Path), metavar="FILE", help="Properties file with configs."
)
@json_option
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    entity_types: tuple[str, ...],
    entity_names: tuple[str, ...],
    entity_default: bool,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    broker_logger: str | None,
    client_metrics: str | None,
    group: str | None,
    clients: ClientEntityFlags,
    all_: bool,
    explain: bool,
    add_config: str | None,
    add_config_file: Path | None,
    delete_config: str | None,
    as_json: bool,
) -> None:
    """Describe and alter configurations, quotas, and users' SCRAM credentials."""
    del entity_default  # an entity name by now
    resources = {
        "topics": topic,
        "brokers": "" if broker_defaults else broker,
        "broker-loggers": broker_logger,
        "client-metrics": client_metrics,
        "groups": group,
    }
    options = ConfigOptions(
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        describe=describe,
        all_=all_,
        explain=explain,
        entity_types=entity_types,
        entity_names=entity_names,
        short=(*((type_, name) for type_, name in resources.items() if name is not None), *clients.named),
        changes=ConfigChanges(add_config=add_config, add_config_file=add_config_file, delete_config=delete_config),
        as_json=as_json,
    )
    options.changes.check(describe=describe, alter=alter)
    if describe:
        options.entity()
        from . import config_actions

        run_on_cluster(config_actions.describe, options, client_id="configs")
        return
    reject({"--all": all_, "--explain": explain}, "can be used with --describe only")
    alter_entity(options)


add_words(command)
