"""Actions of `pykbroker acls`: add, remove, list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import click

from pykbroker.client.acls import create_acls, delete_acls, describe_acls
from pykbroker.client.cluster import Cluster
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType

from .acl_options import AclOptions, Pattern
from .output import Column, print_table, stdout_is_terminal


async def add(cluster: Cluster, options: AclOptions) -> None:
    entries = options.entries()
    await create_acls(cluster, [entry for of_pattern in entries.values() for entry in of_pattern])
    for pattern, of_pattern in entries.items():
        if of_pattern:
            click.echo(f"Adding ACLs for resource `{pattern}`: ")
            _print_lines(of_pattern)


async def remove(cluster: Cluster, options: AclOptions) -> None:
    """Remove entries, and without a principal all those of the resources; each removal is asked for, as in Kafka."""
    filters: list[EntryFilter] = []
    for pattern, of_pattern in options.entries().items():
        if not of_pattern:
            question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`?"
            if _is_sure(question, options):
                filters.append(pattern.filter)
            continue
        lines = "".join(f" \t{_line(entry)}\n" for entry in of_pattern)
        if _is_sure(f"Are you sure you want to remove ACLs: \n{lines} from resource filter `{pattern}`?", options):
            filters += [_exactly(entry) for entry in of_pattern]
    if filters:
        await delete_acls(cluster, filters)


async def list_all(cluster: Cluster, options: AclOptions) -> None:
    wanted = [pattern.filter for pattern in options.patterns] or [EntryFilter()]
    if not options.principals:
        _print(await _found(cluster, wanted))
        return
    for principal in options.principals:
        click.echo(f"ACLs for principal `{principal.strip()}`")
        _print(await _found(cluster, [replace(each, principal=principal.strip()) for each in wanted]))


async def _found(cluster: Cluster, wanted: Iterable[EntryFilter]) -> list[AccessControlEntry]:
    found: dict[AccessControlEntry, None] = {}
    for each in wanted:
        found.update(dict.fromkeys(await describe_acls(cluster, each)))
    return sorted(found)


def _print(entries: list[AccessControlEntry]) -> None:
    if stdout_is_terminal():
        titles = ("Resource", "Name", "Pattern", "Principal", "Host", "Permission", "Operation")
        if entries:
            print_table([Column(title) for title in titles], [_cells(entry) for entry in entries])
        return
    for pattern, of_pattern in groupby(entries, key=_pattern):
        click.echo(f"Current ACLs for resource `{pattern}`:")
        _print_lines(of_pattern)


def _print_lines(entries: Iterable[AccessControlEntry]) -> None:
    for entry in entries:
        click.echo(f"\t{_line(entry)}")
    click.echo()


def _line(entry: AccessControlEntry) -> str:
    operation, permission = Operation(entry.operation).name, Permission(entry.permission).name
    return f"(principal={entry.principal}, host={entry.host}, operation={operation}, permissionType={permission})"


def _cells(entry: AccessControlEntry) -> list[str]:
    pattern = _pattern(entry)
    return [
        pattern.resource_type.name,
        pattern.name,
        pattern.type.name,
        entry.principal,
        entry.host,
        Permission(entry.permission).name,
        Operation(entry.operation).name,
    ]


def _pattern(entry: AccessControlEntry) -> Pattern:
    return Pattern(ResourceType(entry.resource_type), entry.resource_name, PatternType(entry.pattern_type))


def _exactly(entry: AccessControlEntry) -> EntryFilter:
    return EntryFilter(*entry)


def _is_sure(question: str, options: AclOptions) -> bool:
    return options.force or click.confirm(question, prompt_suffix=" ")
