"""Actions of `pykbroker configs`: describe and alter."""

from __future__ import annotations

from collections.abc import Iterable

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs
from pykbroker.client.groups import list_groups
from pykbroker.client.quotas import describe_quotas
from pykbroker.client.scram_users import describe_scram_users
from pykbroker.client.topics import list_topics
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult
from pykbroker.quotas.entities import USER

from .client_entities import (
    ClientChange,
    ClientEntity,
    make,
    print_quotas,
    print_scram_users,
    quotas_json,
    scram_users_json,
)
from .command import CommandFailed
from .config_entries import as_json, source_name
from .config_options import ENTITY_TYPES, ConfigOptions, EntityType, SeveralConfigs
from .entries import Value, print_json
from .output import Column, print_table, stdout_is_terminal


async def describe(cluster: Cluster, options: ConfigOptions) -> None:
    entity = options.entity()
    if options.as_json:
        print_json(await objects(cluster, options))
        return
    if isinstance(entity, ClientEntity):
        await print_quotas(cluster, entity)
        if entity.is_user and entity.names[USER] != "":
            await print_scram_users(cluster, entity.names[USER])
        return
    kind, name = entity
    for each in [name] if name is not None else await _all_names(cluster, kind):
        await _describe(cluster, ENTITY_TYPES[kind], each, options.all_)


async def describe_each(cluster: Cluster, entities: SeveralConfigs) -> None:
    """Describe entities one by one; with JSON in one array."""
    found: list[Value] = []
    for each in entities.all_:
        if each.as_json:
            found += await objects(cluster, each)
        else:
            await describe(cluster, each)
    if entities.as_json:
        print_json(found)


async def objects(cluster: Cluster, options: ConfigOptions) -> list[Value]:
    """Return what is described as JSON."""
    entity = options.entity()
    if isinstance(entity, ClientEntity):
        quotas = await describe_quotas(cluster, entity.quota_filter, only_these_types=True)
        users: dict[str, dict[str, int]] = {}
        if entity.is_user and entity.names[USER] != "":
            users = await describe_scram_users(cluster, [each for each in entity.names.values() if each is not None])
        return [*quotas_json(quotas), *scram_users_json(users)]
    kind, name = entity
    type_ = ENTITY_TYPES[kind]
    return [
        as_json(type_.singular, each, await _rows(cluster, type_, each, options.all_))
        for each in ([name] if name is not None else await _all_names(cluster, kind))
    ]


async def alter(cluster: Cluster, options: ConfigOptions, change: ClientChange | None) -> None:
    """Alter an entity. change: of a client's, which was read before the cluster is asked anything."""
    if change is not None:
        await make(cluster, change)
        click.echo(f"Completed updating {change.entity}.")
        return
    entity = options.entity()
    assert not isinstance(entity, ClientEntity)
    kind, name = entity
    assert name is not None
    type_ = ENTITY_TYPES[kind]
    await _require_topic(cluster, type_, name)
    changes = options.changes
    await alter_configs(cluster, Resource(type_.resource_type, name), changes.to_set(), changes.to_delete())
    click.echo(f"Completed updating {_of(type_, name)}.")


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


async def _rows(
    cluster: Cluster, entity: EntityType, name: str, everything: bool
) -> list[DescribeConfigsResourceResult]:
    """Return the configs of an entity: its own, or all."""
    await _require_topic(cluster, entity, name)
    rows = await describe_configs(cluster, Resource(entity.resource_type, name))
    own_source = entity.own_source
    if entity.resource_type is ResourceType.BROKER and not name:
        own_source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    if everything or own_source is None:
        return rows
    return [row for row in rows if row.config_source == own_source]


async def _describe(cluster: Cluster, entity: EntityType, name: str, everything: bool) -> None:
    rows = await _rows(cluster, entity, name, everything)
    if not name:
        title = f"Default configs for {entity.singular}s in the cluster are:"
    else:
        title = f"{'All' if everything else 'Dynamic'} configs for {entity.singular} {name} are:"
    click.echo(title)
    if stdout_is_terminal():
        columns = [Column("Name"), Column("Value"), Column("Source"), Column("Synonyms")]
        cells = [[row.name, _value(row.value), source_name(row.config_source), _synonyms(row)] for row in rows]
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


def _synonyms(row: DescribeConfigsResourceResult) -> str:
    return ", ".join(f"{source_name(one.source)}:{one.name}={_value(one.value)}" for one in row.synonyms)
