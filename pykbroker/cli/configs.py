"""`pykbroker configs`: the flags and texts of `kafka-configs`, for topics, brokers, groups and client metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs
from pykbroker.client.groups import list_groups
from pykbroker.client.topics import list_topics
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult

from .command import ClientCommand, CommandFailed, bootstrap_options, reject, run
from .connect import open_cluster, read_client_properties
from .output import Column, print_table, stdout_is_terminal


@dataclass(frozen=True, slots=True)
class EntityType:
    """`own_source` is where the entity's own values come from; None shows them all."""

    resource_type: ResourceType
    singular: str
    own_source: ConfigSource | None


ENTITY_TYPES = {
    "topics": EntityType(ResourceType.TOPIC, "topic", ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": EntityType(ResourceType.BROKER, "broker", ConfigSource.DYNAMIC_BROKER_CONFIG),
    "broker-loggers": EntityType(ResourceType.BROKER_LOGGER, "broker-logger", None),
    "client-metrics": EntityType(ResourceType.CLIENT_METRICS, "client-metric", ConfigSource.CLIENT_METRICS_CONFIG),
    "groups": EntityType(ResourceType.GROUP, "group", ConfigSource.GROUP_CONFIG),
}
NOT_YET = ("users", "clients", "ips")
_PAIR = re.compile(r"([^=,\[\]]+)=(\[[^\]]*\]|[^,\[]*)")


@click.command("configs", cls=ClientCommand)
@bootstrap_options
@click.option("--describe", is_flag=True, help="List configs for the given entity.")
@click.option("--alter", is_flag=True, help="Alter the configuration for the entity.")
@click.option("--entity-type", metavar="TYPE", help=f"{', '.join(ENTITY_TYPES)}.")
@click.option("--entity-name", metavar="NAME", help="Name of the entity.")
@click.option("--entity-default", is_flag=True, help="The defaults of all brokers.")
@click.option("--topic", metavar="NAME", help="Short for --entity-type topics --entity-name.")
@click.option("--broker", metavar="ID", help="Short for --entity-type brokers --entity-name.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option("--broker-logger", metavar="ID", help="Short for --entity-type broker-loggers --entity-name.")
@click.option("--client-metrics", metavar="NAME", help="Short for --entity-type client-metrics --entity-name.")
@click.option("--group", metavar="NAME", help="Short for --entity-type groups --entity-name.")
@click.option("--all", "all_", is_flag=True, help="With --describe: every config, defaults included.")
@click.option("--add-config", metavar="K=V,…", help="Configs to set; [a,b] keeps a value with commas together.")
@click.option(
    "--add-config-file", type=click.Path(path_type=Path), metavar="FILE", help="Properties file with configs."
)
@click.option("--delete-config", metavar="K,…", help="Configs to remove.")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    entity_type: str | None,
    entity_name: str | None,
    entity_default: bool,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    broker_logger: str | None,
    client_metrics: str | None,
    group: str | None,
    all_: bool,
    add_config: str | None,
    add_config_file: Path | None,
    delete_config: str | None,
) -> None:
    """Describe and alter configurations."""
    if describe == alter:
        raise CommandFailed("Command must include exactly one action: --describe, --alter")
    short = {
        "topics": topic,
        "brokers": broker,
        "broker-loggers": broker_logger,
        "client-metrics": client_metrics,
        "groups": group,
    }
    named = {kind: name for kind, name in short.items() if name is not None}
    if broker_defaults:
        named["brokers"] = ""
    if len(named) + (entity_type is not None) != 1:
        raise CommandFailed("Exactly one entity type must be specified")
    name: str | None
    if entity_type is None:
        [(kind, name)] = named.items()
    else:
        kind, name = entity_type, "" if entity_default else entity_name
    entity = _entity_type(kind)
    if name == "" and kind != "brokers":
        raise CommandFailed(f"There are no defaults of all {kind}")
    properties = read_client_properties(command_config)
    if describe:
        reject(
            {"--add-config": add_config, "--add-config-file": add_config_file, "--delete-config": delete_config},
            "can be used with --alter only",
        )
    else:
        reject({"--all": all_}, "can be used with --describe only")
        if name is None:
            raise CommandFailed("--alter needs an entity's name")
        if add_config is None and add_config_file is None and delete_config is None:
            raise CommandFailed(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )
    to_set = {**read_client_properties(add_config_file), **parse_pairs(add_config or "")}
    to_delete = [key.strip() for key in (delete_config or "").split(",") if key.strip()]
    both = sorted(set(to_set) & set(to_delete))
    if both:
        raise CommandFailed(f"{', '.join(both)} cannot be set and deleted at once")

    async def work() -> None:
        async with open_cluster(bootstrap_server, properties, client_id="configs") as cluster:
            if describe:
                for each in [name] if name is not None else await _all_names(cluster, kind):
                    await _describe(cluster, entity, each, all_)
            else:
                assert name is not None
                await _require_topic(cluster, entity, name)
                await alter_configs(cluster, Resource(entity.resource_type, name), to_set, to_delete)
                click.echo(f"Completed updating {_of(entity, name)}.")

    run(work)


def parse_pairs(text: str) -> dict[str, str]:
    """`k1=v1,k2=[v1,v2]`. Raises CommandFailed."""
    pairs: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise CommandFailed("--add-config expects key=val, or key=[val1,val2] for values which contain commas")
        value = match[2].strip()
        pairs[match[1].strip()] = value[1:-1] if value.startswith("[") else value
        position = match.end() + 1
    return pairs


def _entity_type(kind: str) -> EntityType:
    if kind in NOT_YET:
        raise CommandFailed(f"Entity type {kind} is not supported yet")
    if kind not in ENTITY_TYPES:
        raise CommandFailed(f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)}")
    return ENTITY_TYPES[kind]


async def _all_names(cluster: Cluster, kind: str) -> Iterable[str]:
    match kind:
        case "topics":
            return [topic.name for topic in await list_topics(cluster)]
        case "brokers":
            return [*(str(node_id) for node_id in sorted((await cluster.refresh([])).nodes)), ""]
        case "groups":
            return [group.group_id for group in await list_groups(cluster)]
        case _:
            raise CommandFailed(f"--entity-name must be specified with --entity-type {kind}")


async def _require_topic(cluster: Cluster, entity: EntityType, name: str) -> None:
    if entity.resource_type is ResourceType.TOPIC:
        await cluster.topic(name)


async def _describe(cluster: Cluster, entity: EntityType, name: str, everything: bool) -> None:
    await _require_topic(cluster, entity, name)
    rows = await describe_configs(cluster, Resource(entity.resource_type, name))
    own_source = entity.own_source
    if entity.resource_type is ResourceType.BROKER and not name:
        own_source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    if not everything and own_source is not None:
        rows = [row for row in rows if row.config_source == own_source]
    if not name:
        title = f"Default configs for {entity.singular}s in the cluster are:"
    else:
        title = f"{'All' if everything else 'Dynamic'} configs for {entity.singular} {name} are:"
    click.echo(title)
    if stdout_is_terminal():
        columns = [Column("Name"), Column("Value"), Column("Source"), Column("Synonyms")]
        cells = [[row.name, _value(row.value), _source(row.config_source), _synonyms(row)] for row in rows]
        if rows:
            print_table(columns, cells)
        return
    for row in rows:
        sensitive = "true" if row.is_sensitive else "false"
        click.echo(f"  {row.name}={_value(row.value)} sensitive={sensitive} synonyms={{{_synonyms(row)}}}")


def _of(entity: EntityType, name: str) -> str:
    return f"config for {entity.singular} {name}" if name else f"default config for {entity.singular}s in the cluster"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _source(source: int) -> str:
    return ConfigSource(source).name if source in list(ConfigSource) else str(source)


def _synonyms(row: DescribeConfigsResourceResult) -> str:
    return ", ".join(f"{_source(one.source)}:{one.name}={_value(one.value)}" for one in row.synonyms)
