"""The groups that a command line means: by their names, or all that consume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.groups import GroupDescription, describe_group, list_groups
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListedGroup

from .command import CommandFailed
from .group_options import GroupOptions
from .suggestions import did_you_mean

STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
ALL_STATES: Final = (*STATES, "NotReady")
"""Those of streams groups, too, whose topics may be missing."""
CONSUMER_TYPES: Final = ("classic", "consumer")
TYPES: Final = (*CONSUMER_TYPES, "share", "streams")
_CONSUMER_PROTOCOLS: Final = ("consumer", "")
"""Groups of consumers, and those that only ever had offsets committed."""


async def consumer_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """Return the groups of consumers. Brokers that know no types filter are helped out here."""
    return [
        group
        for group in await all_groups(cluster, states, types or CONSUMER_TYPES)
        if group.protocol_type in _CONSUMER_PROTOCOLS
    ]


async def all_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """Return the groups of any kind. Brokers that cannot filter are helped out here."""
    wanted = {each.lower() for each in types}
    return [
        group
        for group in await list_groups(cluster, states, types)
        if (not wanted or group.group_type.lower() in wanted | {""}) and (not states or group.group_state in states)
    ]


async def chosen(cluster: Cluster, options: GroupOptions) -> list[str]:
    """Return the groups that are named, each once; else all groups of consumers."""
    return list(dict.fromkeys(options.groups)) or [group.group_id for group in await consumer_groups(cluster)]


async def existing(cluster: Cluster, options: GroupOptions) -> list[str]:
    """Return the groups that are meant. Raises CommandFailed for those that do not exist, unless `--if-exists`."""
    names = await chosen(cluster, options)
    if not options.groups:
        return names
    there = {group.group_id for group in await list_groups(cluster)}
    missing = [name for name in names if name not in there]
    if missing and not options.if_exists:
        raise no_such_group(missing[0], there)
    return [name for name in names if name in there]


async def described(cluster: Cluster, name: str) -> GroupDescription:
    """Describe a group. Raises CommandFailed where there is none of this name."""
    try:
        return await describe_group(cluster, name)
    except KafkaError as error:
        if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
    known = {group.group_id: group for group in await list_groups(cluster)}
    if name in known:
        raise CommandFailed(
            f"'{name}' is a group of the type {known[name].group_type}, which is unknown to this command"
        )
    raise no_such_group(name, known)


def no_such_group(name: str, others: Iterable[str]) -> CommandFailed:
    """Return the error, which tells groups that are spelled alike."""
    return CommandFailed(f"There is no group '{name[:250]}'.{did_you_mean(name, sorted(others))}")


def in_kafkas_spelling(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Return names between commas in Kafka's spelling, whatever the case they were given in. Raises CommandFailed."""
    spelling = {name.lower(): name for name in known}
    wanted = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in wanted:
        if name.lower() not in spelling:
            raise CommandFailed(f"Invalid {what} '{name}'. Valid {what}s are: {', '.join(known)}")
    return [spelling[name.lower()] for name in wanted]
