"""The words of `pykbroker configs`: `describe topic orders`, `alter broker 0 --set k=v --delete k`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import click

from .client_entities import QUOTA_TYPES, ClientEntity, change_of
from .command import CommandFailed, bootstrap_options, reject
from .config_options import ENTITY_TYPES, ConfigChanges, ConfigOptions, SeveralConfigs
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .suggestions import did_you_mean

_TYPES: Final = (*ENTITY_TYPES, *QUOTA_TYPES)
_KINDS: Final = {type_.removesuffix("s"): type_ for type_ in _TYPES if type_ != "client-metrics"} | {
    "client-metrics": "client-metrics"
}
"""Types of entities by the words for one."""

_ALL_OF_A_TYPE: Final[list[tuple[str, ...]]] = [()]

_ENTITY_TYPE = click.option("--entity-type", metavar="TYPE", help="The same as TYPE, as Kafka says it.")
_ENTITY_NAMES = click.option("--entity-name", "entity_names", multiple=True, metavar="NAME", help="The same as NAME.")
_DEFAULT = click.option(
    "--default", "is_default", is_flag=True, help="The default of all brokers, users, clients, ips."
)


def add_words(group: click.Group) -> None:
    """Add `describe` and `alter` to the group."""
    group.add_command(_describe)
    group.add_command(_alter)


@click.command(
    "describe",
    epilog=examples(
        ("What a topic has of its own", "pykbroker configs describe topic orders"),
        ("All that a broker goes by, for a program", "pykbroker configs describe broker 0 --all --json"),
        ("The defaults of all brokers", "pykbroker configs describe broker --default"),
    ),
)
@bootstrap_options
@click.argument("entity", nargs=-1, metavar="TYPE [NAME …]")
@_ENTITY_TYPE
@_ENTITY_NAMES
@_DEFAULT
@click.option("--all", "all_", is_flag=True, help="Every config, defaults included.")
@click.option("--explain", is_flag=True, help="What each config means, and where it is set.")
@json_option
def _describe(
    bootstrap_server: str,
    command_config: Path | None,
    entity: tuple[str, ...],
    entity_type: str | None,
    entity_names: tuple[str, ...],
    is_default: bool,
    all_: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Show the configs of topics, brokers, groups, client metrics, users, clients or ips.

    TYPE is topic, broker, broker-logger, client-metrics, group, user, client or ip. Without a NAME all are shown.
    """
    type_, names = _named(entity, entity_type, entity_names, is_default=is_default)
    entities = tuple(
        ConfigOptions(
            bootstrap_server=bootstrap_server,
            command_config=command_config,
            describe=True,
            all_=all_,
            explain=explain,
            entity_types=(type_,),
            entity_names=each,
            short=(),
            as_json=as_json,
        )
        for each in [(name,) for name in names] or _ALL_OF_A_TYPE
    )
    for one in entities:
        one.entity()
    options = SeveralConfigs(
        bootstrap_server=bootstrap_server, command_config=command_config, all_=entities, as_json=as_json
    )
    from .config_actions import describe_each

    run_on_cluster(describe_each, options, client_id="configs")


@click.command(
    "alter",
    epilog=examples(
        ("Keep records for a day", "pykbroker configs alter topic orders --set retention.ms=86400000"),
        ("Back to the default", "pykbroker configs alter topic orders --delete retention.ms"),
        ("For all brokers", "pykbroker configs alter broker --default --set log.retention.hours=24"),
    ),
)
@bootstrap_options
@click.argument("entity", nargs=-1, metavar="TYPE [NAME]")
@_ENTITY_TYPE
@_ENTITY_NAMES
@_DEFAULT
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A config to set; may be repeated.")
@click.option("--delete", "deleted", multiple=True, metavar="KEY", help="One that is the default again.")
@click.option("--from-file", type=click.Path(path_type=Path), metavar="FILE", help="Properties file to set.")
@json_option
def _alter(
    bootstrap_server: str,
    command_config: Path | None,
    entity: tuple[str, ...],
    entity_type: str | None,
    entity_names: tuple[str, ...],
    is_default: bool,
    pairs: tuple[str, ...],
    deleted: tuple[str, ...],
    from_file: Path | None,
    as_json: bool,
) -> None:
    """Set configs of one entity, or let them be their defaults again; others stay as they are."""
    changes = ConfigChanges(add_config_file=from_file, pairs=pairs, deleted=deleted)
    if changes.is_empty:
        raise CommandFailed("Say what to alter: --set KEY=VALUE, --delete KEY or --from-file FILE")
    changes.check_keys()
    type_, names = _named(entity, entity_type, entity_names, is_default=is_default)
    if len(names) > 1:
        raise CommandFailed("One entity is altered at a time")
    options = ConfigOptions(
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        describe=False,
        all_=False,
        entity_types=(type_,),
        entity_names=tuple(names),
        short=(),
        changes=changes,
        as_json=as_json,
    )
    alter_entity(options)


def alter_entity(options: ConfigOptions) -> None:
    """Alter the entity of the options; what can be refused is, before the cluster is asked. Raises CommandFailed."""
    entity = options.entity()
    change = None
    if isinstance(entity, ClientEntity):
        change = change_of(entity, options.changes.to_set(), options.changes.to_delete())
    elif entity[1] is None:
        raise CommandFailed("Whose configs are to be altered? An entity's name is missing")
    from . import config_actions

    run_on_cluster(partial(config_actions.alter, change=change), options, client_id="configs")


def _named(
    entity: tuple[str, ...], entity_type: str | None, entity_names: tuple[str, ...], *, is_default: bool
) -> tuple[str, list[str]]:
    """Return the type, and each name once; the empty one is the default of all. Raises CommandFailed."""
    if entity_type is not None:
        type_, names = entity_type, entity
    elif entity:
        type_, names = entity[0], entity[1:]
    else:
        raise CommandFailed(f"Say of what: {', '.join(_KINDS)}")
    names = (*names, *entity_names)
    reject({"--default": is_default and names}, "and a name exclude each other")
    return _type_of(type_), list(dict.fromkeys(("",) if is_default else names))


def _type_of(word: str) -> str:
    """Return the type of a word, in the singular or the plural. Raises CommandFailed."""
    if word in _TYPES:
        return word
    if word not in _KINDS:
        hint = did_you_mean(word, _KINDS) or f" There are some of {', '.join(_KINDS)}"
        raise CommandFailed(f"There are no configs of '{word[:60]}'.{hint}")
    return _KINDS[word]
