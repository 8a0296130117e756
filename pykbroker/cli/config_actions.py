"""Actions of `pykbroker configs`: describe and alter."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, alter_configs, describe_configs, list_client_metrics
from pykbroker.client.groups import list_groups
from pykbroker.client.quotas import describe_quotas
from pykbroker.client.scram_users import describe_scram_users
from pykbroker.client.topics import list_topics
from pykbroker.quotas.entities import USER

from .client_entities import (
    ClientChange,
    ClientEntity,
    make,
    print_change,
    print_quotas,
    print_scram_users,
    quotas_json,
    scram_users_json,
)
from .command import CommandFailed
from .config_entries import as_json
from .config_options import ENTITY_TYPES, ConfigOptions, EntityType, SeveralConfigs
from .described_configs import Rows, own_rows, print_rows, title_of
from .entries import Value, print_json
from .meant_keys import warn_of_unknown, warn_of_vain_changes, with_meant_keys
from .progress import progress

if TYPE_CHECKING:
    from pykbroker.config.texts import Kind

_KINDS: Final[Mapping[ResourceType, Kind]] = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.CLIENT_METRICS: "client-metrics",
    ResourceType.GROUP: "group",
}


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
    names = [name] if name is not None else await _all_names(cluster, kind)
    with progress("Describing configs", len(names)) as advance:
        for each in names:
            await _describe(cluster, ENTITY_TYPES[kind], each, options)
            advance()


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
    names = [name] if name is not None else await _all_names(cluster, kind)
    found: list[Value] = []
    with progress("Describing configs", len(names)) as advance:
        for each in names:
            found.append(as_json(type_.singular, each, await _rows(cluster, type_, each, everything=options.all_)))
            advance()
    return found


async def alter(cluster: Cluster, options: ConfigOptions, change: ClientChange | None) -> None:
    """Alter an entity. change: of a client's, which was read before the cluster is asked anything."""
    if change is not None:
        await make(cluster, change)
        print_change(change, as_json=options.as_json)
        return
    entity = options.entity()
    assert not isinstance(entity, ClientEntity)
    kind, name = entity
    assert name is not None
    type_ = ENTITY_TYPES[kind]
    await _require_topic(cluster, type_, name)
    changes = options.changes
    to_set, to_delete = changes.to_set(), changes.to_delete()
    of_keys = _KINDS.get(type_.resource_type)
    with nullcontext() if of_keys is None else with_meant_keys([*to_set, *to_delete], of_keys):
        await alter_configs(cluster, Resource(type_.resource_type, name), to_set, to_delete)
    if of_keys == "broker":
        warn_of_unknown(to_set, of_keys)
        warn_of_vain_changes(to_set)
    if options.as_json:
        row: Value = {"type": type_.singular, "name": name or None, "set": sorted(to_set), "deleted": list(to_delete)}
        print_json([row])
    else:
        click.echo(f"Completed updating {_of(type_, name)}.")


async def _all_names(cluster: Cluster, kind: str) -> list[str]:
    match kind:
        case "topics":
            return [topic.name for topic in await list_topics(cluster)]
        case "brokers":
            return [*(str(node_id) for node_id in sorted((await cluster.refresh([])).nodes)), ""]
        case "groups":
            return [group.group_id for group in await list_groups(cluster)]
        case "client-metrics":
            return await list_client_metrics(cluster)
        case _:
            raise CommandFailed(f"--entity-name must be specified with --entity-type {kind}")


async def _require_topic(cluster: Cluster, entity: EntityType, name: str) -> None:
    if entity.resource_type is ResourceType.TOPIC:
        await cluster.topic(name)


async def _rows(cluster: Cluster, entity: EntityType, name: str, *, everything: bool) -> Rows:
    """Return the configs of an entity: its own, or all."""
    await _require_topic(cluster, entity, name)
    rows: Rows = await describe_configs(cluster, Resource(entity.resource_type, name))
    return rows if everything else own_rows(entity, name, rows)


async def _describe(cluster: Cluster, entity: EntityType, name: str, options: ConfigOptions) -> None:
    rows = await _rows(cluster, entity, name, everything=options.all_)
    click.echo(title_of(entity, name, everything=options.all_))
    print_rows(rows, explain=options.explain)


def _of(entity: EntityType, name: str) -> str:
    return f"config for {entity.singular} {name}" if name else f"default config for {entity.singular}s in the cluster"
