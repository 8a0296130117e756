"""Actions of `pykbroker acls`: add, remove, list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import click

from pykbroker.client.acls import create_acls, delete_acls, describe_acls
from pykbroker.client.cluster import Cluster
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType

from .acl_options import AclOptions, Pattern
from .command import CommandFailed
from .confirmation import can_ask, confirm, says_yes
from .entries import Field, print_entries
from .output import stdout_is_terminal
from .printable import printable

_FIELDS = (
    Field("resource_type", "RESOURCE"),
    Field("resource_name", "NAME"),
    Field("pattern_type", "PATTERN"),
    Field("principal"),
    Field("host"),
    Field("permission"),
    Field("operation"),
)


async def add(cluster: Cluster, options: AclOptions) -> None:
    """Add entries, and print them as Kafka's tool does."""
    entries = options.entries()
    every = [entry for of_pattern in entries.values() for entry in of_pattern]
    await create_acls(cluster, every)
    if options.as_json:
        _print_entries(every, as_json=True)
        return
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
            if await _is_sure(question, options):
                filters.append(pattern.filter)
            continue
        lines = "".join(f" \t{_line(entry)}\n" for entry in of_pattern)
        if await _is_sure(
            f"Are you sure you want to remove ACLs: \n{lines} from resource filter `{pattern}`?", options
        ):
            filters += [_exactly(entry) for entry in of_pattern]
    if filters:
        await delete_acls(cluster, filters)


async def remove_in_words(cluster: Cluster, options: AclOptions) -> None:
    """Remove the entries that there are, once they were shown and somebody said yes. Raises CommandFailed."""
    filters = [
        each
        for pattern, of_pattern in options.entries().items()
        for each in ([_exactly(entry) for entry in of_pattern] or [pattern.filter])
    ]
    going = await _found(cluster, filters)
    named = all(options.entries().values())
    action = f"Remove {len(going)} ACL{'' if len(going) == 1 else 's'}"
    await confirm(action, [_sentence(entry) for entry in going], yes=options.force, named=named)
    if going:
        await delete_acls(cluster, [_exactly(entry) for entry in going])
    elif not options.as_json:
        click.echo("There are no such ACLs", err=True)
    _print_entries(going, as_json=options.as_json)


async def list_all(cluster: Cluster, options: AclOptions) -> None:
    """Print entries in the texts of Kafka's tool, or as JSON."""
    if options.as_json:
        await list_entries(cluster, options)
        return
    wanted = _wanted(options)
    if not options.principals:
        _print(await _found(cluster, wanted))
        return
    for principal in options.principals:
        click.echo(f"ACLs for principal `{principal.strip()}`")
        _print(await _found(cluster, [replace(each, principal=principal.strip()) for each in wanted]))


async def list_entries(cluster: Cluster, options: AclOptions) -> None:
    """Print entries, one a row."""
    wanted = _wanted(options)
    if options.principals:
        wanted = [replace(each, principal=one.strip()) for one in options.principals for each in wanted]
    _print_entries(await _found(cluster, wanted), as_json=options.as_json)


def _wanted(options: AclOptions) -> list[EntryFilter]:
    return [pattern.filter for pattern in options.patterns] or [EntryFilter()]


async def _found(cluster: Cluster, wanted: Iterable[EntryFilter]) -> list[AccessControlEntry]:
    found: dict[AccessControlEntry, None] = {}
    for each in wanted:
        found.update(dict.fromkeys(await describe_acls(cluster, each)))
    return sorted(found)


def _print(entries: list[AccessControlEntry]) -> None:
    if stdout_is_terminal():
        if entries:
            _print_entries(entries, as_json=False)
        return
    for pattern, of_pattern in groupby(entries, key=_pattern):
        click.echo(f"Current ACLs for resource `{printable(str(pattern))}`:")
        _print_lines(of_pattern)


def _print_entries(entries: Sequence[AccessControlEntry], *, as_json: bool) -> None:
    print_entries(_FIELDS, [_cells(entry) for entry in entries], as_json=as_json)


def _print_lines(entries: Iterable[AccessControlEntry]) -> None:
    for entry in entries:
        click.echo(f"\t{_line(entry)}")
    click.echo()


def _line(entry: AccessControlEntry) -> str:
    operation, permission = Operation(entry.operation).name, Permission(entry.permission).name
    principal = printable(entry.principal)
    return f"(principal={principal}, host={entry.host}, operation={operation}, permissionType={permission})"


def _sentence(entry: AccessControlEntry) -> str:
    kind, name, pattern, principal, host, permission, operation = _cells(entry)
    return f"{permission} {principal} from {host}: {operation} on {kind} {name} ({pattern})"


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


async def _is_sure(question: str, options: AclOptions) -> bool:
    """Ask as Kafka's tool does: whoever is at standard input, which may be a file. Raises CommandFailed at its end."""
    if options.force:
        return True
    if can_ask():
        return await says_yes(question)
    try:
        return click.confirm(question, prompt_suffix=" ")
    except click.Abort:
        raise CommandFailed("Nothing was removed") from None
