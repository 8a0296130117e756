"""Groups of one type, of share consumers or of Kafka Streams: which are meant, their list, descriptions and deletion.

What differs is a `GroupKind`: `pykbroker share-groups` and `pykbroker streams-groups` have one each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import click

from .command import CommandFailed, one_line
from .confirmation import MOST_SHOWN, confirm, is_settled
from .connect import ClusterOptions
from .entries import Field, Value, print_entries, print_json
from .group_selection import all_groups, in_kafkas_spelling, no_such_group
from .outcomes import outcomes
from .output import Column, print_table
from .printable import printable
from .progress import progress
from .suggestions import did_you_mean

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster
    from pykbroker.protocol.messages.group_admin import ListedGroup

Group = TypeVar("Group")
Offsets = TypeVar("Offsets")
AnyGroup = TypeVar("AnyGroup", contravariant=True)
AnyOffsets = TypeVar("AnyOffsets", contravariant=True)

_FIELDS = (Field("group"), Field("protocol"), Field("state"))


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A type of groups. name: as brokers spell it; states: those that its groups may have, as Kafka spells them."""

    name: str
    states: Sequence[str]
    refusal: str
    """Kafka's sentence about a group that is not of the type; `{0}` is its id."""
    deleted: str
    """Kafka's sentence about those that were deleted beside others that were not; `{0}` are their ids."""


SHARE = GroupKind(
    "share",
    ("Empty", "Stable", "Dead"),
    "Group '{0}' is not a share group.",
    "These share groups were deleted successfully: {0}",
)
STREAMS = GroupKind(
    "streams",
    ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead"),
    "Group '{0}' does not exist or is not a streams group.",
    "These streams groups were deleted successfully: {0}.",
)


class TypedGroupOptions(ClusterOptions, Protocol):
    """The options that say which groups are meant, and how they are listed, described and deleted."""

    @property
    def groups(self) -> tuple[str, ...]: ...
    @property
    def all_groups(self) -> bool: ...
    @property
    def members(self) -> bool: ...
    @property
    def verbose(self) -> bool: ...
    @property
    def state(self) -> str | None: ...
    @property
    def if_exists(self) -> bool: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def yes(self) -> bool: ...


Options = TypeVar("Options", bound=TypedGroupOptions)


async def listed(cluster: Cluster, kind: GroupKind, state: str | None = None) -> list[ListedGroup]:
    """Return the groups of a type, those in some states alone where states are named. Raises CommandFailed."""
    return await all_groups(cluster, in_kafkas_spelling(state, kind.states, "state"), [kind.name])


async def list_names(cluster: Cluster, options: TypedGroupOptions, kind: GroupKind) -> None:
    """Print the groups as Kafka's tool does: names, or with `--state` a table; with `--json` as objects."""
    groups = await listed(cluster, kind, options.state)
    if options.as_json:
        _print(groups, as_json=True)
    elif options.state is None:
        for group in groups:
            click.echo(printable(group.group_id))
    else:
        print_table((Column("GROUP"), Column("STATE", 0)), [[group.group_id, group.group_state] for group in groups])


async def list_in_words(cluster: Cluster, options: TypedGroupOptions, kind: GroupKind) -> None:
    """Print the groups, or those that are named. Raises CommandFailed where one of these does not exist."""
    groups = await listed(cluster, kind, options.state)
    if options.groups:
        await existing(cluster, options, kind)
        groups = [group for group in groups if group.group_id in options.groups]
    _print(groups, as_json=options.as_json)


def _print(groups: Sequence[ListedGroup], *, as_json: bool) -> None:
    rows = [[group.group_id, group.protocol_type or None, group.group_state or None] for group in groups]
    print_entries(_FIELDS, rows, as_json=as_json)


async def chosen(cluster: Cluster, options: TypedGroupOptions, kind: GroupKind) -> list[str]:
    """Return the groups that are named, each once; else all of the type."""
    return list(dict.fromkeys(options.groups)) or [group.group_id for group in await listed(cluster, kind)]


async def existing(cluster: Cluster, options: TypedGroupOptions, kind: GroupKind) -> list[str]:
    """Return the groups that are meant. Raises CommandFailed for those that are none, unless `--if-exists`."""
    everything = {group.group_id: group for group in await all_groups(cluster)}
    there = [name for name, group in everything.items() if group.group_type.lower() == kind.name]
    if not options.groups:
        return there
    found = []
    for name in dict.fromkeys(options.groups):
        if name in there:
            found.append(name)
        elif name in everything:
            raise CommandFailed(
                f"'{name[:250]}' is a group of the type {everything[name].group_type.lower()}, not of the type "
                f"{kind.name}; `pykbroker groups` has those of every type.{did_you_mean(name, there)}"
            )
        elif not options.if_exists:
            raise no_such_group(name, there)
    return found


# ---- descriptions


class AsJson(Protocol[AnyGroup, AnyOffsets]):
    """A group as JSON. Its offsets are None where they are not asked for."""

    def __call__(self, group: AnyGroup, offsets: AnyOffsets | None, /, *, with_members: bool) -> Value: ...


class PrintsGroup(Protocol[AnyGroup]):
    """A print of a group's members, or of its state."""

    def __call__(self, group: AnyGroup, /, *, verbose: bool) -> None: ...


class PrintsOffsets(Protocol[AnyGroup, AnyOffsets]):
    """A print of a group's offsets."""

    def __call__(self, group: AnyGroup, offsets: AnyOffsets, /, *, verbose: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Descriptions(Generic[Group, Offsets]):
    """The ways in which groups of a type are asked for and shown."""

    group_of: Callable[[Cluster, str], Awaitable[Group]]
    offsets_of: Callable[[Cluster, Group], Awaitable[Offsets]]
    as_json: AsJson[Group, Offsets]
    print_members: PrintsGroup[Group]
    print_state: PrintsGroup[Group]
    print_offsets: PrintsOffsets[Group, Offsets]


async def describe(
    cluster: Cluster, options: TypedGroupOptions, kind: GroupKind, ways: Descriptions[Group, Offsets]
) -> None:
    """Describe the groups that are meant. Raises CommandFailed where one of them does not exist."""
    names = await existing(cluster, options, kind)
    wants_offsets = not options.members and options.state is None
    found: list[Value] = []
    with progress("Describing groups", len(names)) as advance:
        for name in names:
            group = await ways.group_of(cluster, name)
            offsets = await ways.offsets_of(cluster, group) if wants_offsets else None
            advance()
            if options.as_json:
                found.append(ways.as_json(group, offsets, with_members=options.state is None))
            elif options.members:
                ways.print_members(group, verbose=options.verbose)
            elif offsets is None:
                ways.print_state(group, verbose=options.verbose)
            else:
                ways.print_offsets(group, offsets, verbose=options.verbose)
    if options.as_json:
        print_json(found)


# ---- deletion


@dataclass(frozen=True, slots=True)
class Followed:
    """The consequences of a deletion of groups. rows: more values of their rows, by group; text: a line for people."""

    rows: Mapping[str, dict[str, Value]]
    text: str | None = None
    failure: str | None = None


AfterDeletion = Callable[[Sequence[str]], Awaitable[Followed]]
"""A step behind the deletion of groups, whose ids it gets."""


async def delete(
    cluster: Cluster,
    options: TypedGroupOptions,
    kind: GroupKind,
    names: Sequence[str],
    *,
    what_goes: str,
    count_of: Callable[[str], Awaitable[str]],
    after: AfterDeletion | None = None,
) -> None:
    """Delete groups without members, once that is agreed. Raises CommandFailed for those that cannot be.

    what_goes: `with all offsets`, for the question; count_of: what goes with one group, in a few words.
    """
    from pykbroker.client.errors import KafkaError
    from pykbroker.client.groups import delete_group

    listing = {group.group_id: group.group_state for group in await listed(cluster, kind)}
    named = bool(options.groups)
    if not is_settled(yes=options.yes, named=named):
        going = [await _going(name, listing, count_of) for name in names[:MOST_SHOWN]]
        noun = "group" if len(names) == 1 else "groups"
        action = f"Delete {len(names)} {kind.name} {noun} {what_goes}"
        await confirm(action, [*going, *names[MOST_SHOWN:]], yes=options.yes, named=named)
    deleted: list[str] = []
    failures: dict[str, str] = {}
    with progress("Deleting groups", len(names)) as advance:
        for name in names:
            refusal = _refusal(name, listing, kind)
            if refusal is None:
                try:
                    await delete_group(cluster, name)
                    deleted.append(name)
                except KafkaError as error:
                    refusal = one_line(error)
            if refusal is not None:
                failures[name] = refusal
            advance()
    followed = Followed({}) if after is None else await after(deleted)
    with outcomes(as_json=options.as_json) as found:
        for name in names:
            row: dict[str, Value] = {"group": name, "deleted": name in deleted, "error": failures.get(name)}
            found.add(row | followed.rows.get(name, {}))
        quoted = ", ".join(f"'{printable(name)}'" for name in deleted)
        if not failures:
            found.say(f"Deletion of requested {kind.name} groups ({quoted}) was successful.")
        elif deleted:
            found.say(kind.deleted.format(quoted))
        found.say(followed.text)
    told = [f"Group '{name}' could not be deleted due to: {why}" for name, why in failures.items()]
    told += [] if followed.failure is None else [followed.failure]
    if told:
        raise CommandFailed("; ".join(told))


async def delete_existing(
    cluster: Cluster,
    options: Options,
    kind: GroupKind,
    delete_named: Callable[[Cluster, Options, Sequence[str]], Awaitable[None]],
) -> None:
    """Delete the groups that are meant, unless one of them does not exist. Raises CommandFailed."""
    names = await existing(cluster, options, kind)
    if names or options.as_json:
        await delete_named(cluster, options, names)


def _refusal(name: str, listing: Mapping[str, str], kind: GroupKind) -> str | None:
    """Return Kafka's sentence about a group that is not deleted; None where it may be."""
    state = listing.get(name)
    if state is None:
        return kind.refusal.format(name)
    if state == "Dead":
        return f"{kind.name.capitalize()} group '{name}' group state is DEAD."
    return None if state in ("Empty", "") else f"{kind.name.capitalize()} group '{name}' is not EMPTY."


async def _going(name: str, listing: Mapping[str, str], count_of: Callable[[str], Awaitable[str]]) -> str:
    if name not in listing:
        return f"{name} (does not exist)"
    return f"{name} ({listing[name] or 'state unknown'}, {await count_of(name)})"


def counted(number: int, noun: str) -> str:
    """`1 offset`, `2 offsets`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
